"""What the desk's HTTP API takes: bodies, queries, run keys and the reviewer, each checked or refused in one line."""

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from galley.contract import DrafterName
from galley.edits import checked_body, checked_title, checked_words, has_control
from galley.explain import explain
from galley.runs import WATCHED, RejectReason, RunKey, Status
from galley.store import Approve, Reject

MAX_NAMES = 50
MAX_REVIEWER = 320


class InvalidRequest(ValueError):
    """A request that does not fit. Its text is one line that names the field and its value."""


class NoReviewer(Exception):
    """Nobody is known to have sent the request, so nothing can be decided on their behalf."""


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


TextHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ApproveRequest(_Request):
    """A yes to the text at a version and hash; with ``title`` and ``body`` a yes to the reviewer's edit of it."""

    version: int = Field(strict=True, ge=1)
    text_hash: TextHash
    title: Annotated[str, AfterValidator(checked_title)] | None = None
    body: Annotated[str, AfterValidator(checked_body)] | None = Field(default=None, validate_default=True)

    @field_validator("body")
    @classmethod
    def _with_its_title(cls, body: str | None, info: ValidationInfo) -> str | None:
        if "title" in info.data and (body is None) != (info.data["title"] is None):
            raise ValueError("an edit sends title and body together")
        return body

    @property
    def verdict(self) -> Approve:
        """The approval."""
        return Approve(self.title, self.body)


class RejectRequest(_Request):
    """A no to the text at a version and hash, with its reason and, if the reviewer likes, words."""

    version: int = Field(strict=True, ge=1)
    text_hash: TextHash
    reason: RejectReason
    words: Annotated[str, AfterValidator(checked_words)] = ""

    @property
    def verdict(self) -> Reject:
        """The rejection."""
        return Reject(self.reason, self.words)


PageToken = Annotated[str, StringConstraints(max_length=4_000)]
"""Where a listing goes on: what its last page gave as ``next``."""


class _Query(_Request):
    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Self:
        """Read the parameters of a query; an empty one counts as absent.

        Raises:
            InvalidRequest: one line that names every wrong parameter.
        """
        try:
            return cls.model_validate({name: value for name, value in parameters.items() if value})
        except ValidationError as error:
            raise InvalidRequest(explain(error, "query")) from error


class DraftsQuery(_Query):
    """Which page of the waiting drafts."""

    after: PageToken | None = None


class RunsQuery(_Query):
    """A drafter's runs, newest slot first, or all runs in a state that a person or the sweep must look at."""

    drafter: DrafterName | None = None
    status: Status | None = Field(default=None, validate_default=True)
    after: PageToken | None = None

    @field_validator("status")
    @classmethod
    def _listed(cls, status: Status | None, info: ValidationInfo) -> Status | None:
        if info.data.get("drafter") is None:
            if status is None:
                raise ValueError("name a drafter or a status")
            if status not in WATCHED:
                raise ValueError(f"without a drafter only {', '.join(sorted(WATCHED))} are listed; add drafter=NAME")
        return status


class DraftersQuery(_Query):
    """Whose gates to tell, separated by commas."""

    names: tuple[DrafterName, ...] = Field(max_length=MAX_NAMES)

    @field_validator("names", mode="before")
    @classmethod
    def _split(cls, names: object) -> object:
        return tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names


Body = TypeVar("Body", bound=_Request)


def read_body(model: type[Body], text: str | None) -> Body:
    """Return the request in a JSON body.

    Raises:
        InvalidRequest: one line that names every wrong field with its value.
    """
    try:
        return model.model_validate_json(text or "")
    except ValidationError as error:
        raise InvalidRequest(explain(error, "body")) from error


def run_key(drafter: str, slot: str) -> RunKey:
    """Return the run that two segments of a path name, percent-encoded or not.

    Raises:
        galley.runs.InvalidRunKey: one line that says what a key looks like.
    """
    return RunKey.parse(f"{unquote(drafter)}:{unquote(slot)}")


def reviewer_of(claims: Mapping[str, Any]) -> str:
    """Return who sent the request, as the authorizer's JWT claims say: a readable name and the lasting subject.

    Names can change hands; ``sub`` never does
    (https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html).

    Raises:
        NoReviewer: when the claims name nobody.
    """
    subject = str(claims.get("sub") or "")
    name = str(claims.get("email") or claims.get("username") or subject)
    reviewer = name if name == subject else f"{name} ({subject})"
    if not subject or has_control(reviewer) or len(reviewer) > MAX_REVIEWER:
        raise NoReviewer("the request does not say who sends it; sign in and try again")
    return reviewer
