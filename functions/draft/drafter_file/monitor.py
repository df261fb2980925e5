"""What a monitor looks at, and when it tells of it."""

from functools import cache
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, TypeAdapter, field_validator, model_validator
from pydantic_core import SchemaError

from drafter_file.fields import AddressOrDesk, Count, SourceId, Strict, Words
from galley.texts import one_line


class HealthSource(Strict):
    """An address that answers when all is well.

    It is down after ``failures`` looks in a row that failed, and up after ``successes`` that did not. A look fails when
    there is no answer within ``timeout_seconds``, or another status, or a body without what is expected in it. A slow
    answer, and a certificate that is valid for fewer than ``certificate_days``, are told apart from that.
    """

    kind: Literal["health"]
    id: SourceId
    url: AddressOrDesk
    expect_status: int = Field(default=200, strict=True, ge=100, le=599)
    body_contains: Words | None = Field(default=None, max_length=500)
    body_matches: Words | None = Field(default=None, max_length=500)
    timeout_seconds: Count = Field(default=10, le=60)
    slow_milliseconds: Count | None = Field(default=None, le=60_000)
    certificate_days: Count | None = Field(default=None, le=365)
    failures: Count = Field(default=2, le=20)
    successes: Count = Field(default=2, le=20)

    @field_validator("body_matches")
    @classmethod
    def _a_pattern(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                matcher(pattern)
            except SchemaError as error:
                why = one_line(str(error).rpartition("error: ")[2], 200)
                raise ValueError(f"is no regular expression of Rust's regex crate ({why})") from error
        return pattern

    @model_validator(mode="after")
    def _can_be_told(self) -> Self:
        if self.certificate_days is not None and self.url.startswith("http:"):
            raise ValueError(
                f"certificate_days = {self.certificate_days}, but {self.url} is without a certificate; use https"
            )
        if self.slow_milliseconds is not None and self.slow_milliseconds >= self.timeout_seconds * 1000:
            raise ValueError(
                f"slow_milliseconds = {self.slow_milliseconds} is never reached, "
                f"since it is down after timeout_seconds = {self.timeout_seconds}; give less"
            )
        return self


class MonitorSettings(Strict):
    """What holds for a monitor as a whole: the table ``[monitor]``.

    Its drafts expire after ``alert_expire_hours``. What is still so after ``remind_hours`` is told again; 0 is never.
    The ``flapping``-th time within ``flapping_hours`` that the same thing goes wrong is told as flapping, and then only
    reminders are sent until it has been steady for as long.
    """

    alert_expire_hours: Count = Field(default=24, le=24 * 366)
    remind_hours: int = Field(default=24, strict=True, ge=0, le=24 * 366)
    flapping: Annotated[int, Field(strict=True, ge=2, le=10)] = 3
    flapping_hours: Count = Field(default=6, le=24 * 31)


@cache
def matcher(pattern: str) -> TypeAdapter[str]:
    """Return what accepts a text in which the pattern is found.

    pydantic's own engine is Rust's, which takes time in proportion to the text: a page cannot make it run for hours, as
    it can the standard library's. https://docs.rs/regex/latest/regex/#untrusted-input

    Raises:
        SchemaError: when it is no pattern, or uses what that engine has not (look-around, back-references).
    """
    return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
