"""What each function reads from its environment, at each invocation: that costs microseconds, and nothing is stale."""

import os
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from galley.explain import explain


class InvalidSettings(Exception):
    """An environment variable is missing or wrong. Its text is one line that names it."""


class Settings(BaseModel):
    """What a function is told. Fields are named by their environment variables; no other variable is looked at."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the settings from the environment.

        Raises:
            InvalidSettings: one line that names each variable that is missing or wrong, with its value.
        """
        given = os.environ if environment is None else environment
        values: dict[str, object] = {}
        for field in cls.model_fields.values():
            name = str(field.alias)
            if name in given or not field.is_required():
                values[name] = given.get(name, field.default)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise InvalidSettings(explain(error, "environment of the function")) from error


class DispatchSettings(Settings):
    """What dispatch needs: the queue it writes to."""

    runs_queue_url: str = Field(alias="GALLEY_RUNS_QUEUE_URL", min_length=1)


class DraftSettings(Settings):
    """What draft needs. The model's key is a secret's ARN, never the key itself."""

    table: str = Field(alias="GALLEY_TABLE", min_length=1)
    runs_queue_url: str = Field(alias="GALLEY_RUNS_QUEUE_URL", min_length=1)
    dead_runs_queue_url: str = Field(alias="GALLEY_DEAD_RUNS_QUEUE_URL", min_length=1)
    bucket: str = Field(alias="GALLEY_BUCKET", min_length=1)
    schedule_group: str = Field(alias="GALLEY_SCHEDULE_GROUP", min_length=1)
    desk_url: str = Field(alias="GALLEY_DESK_URL", min_length=1)
    model_provider: Literal["anthropic", "bedrock", "offline"] = Field(alias="GALLEY_MODEL_PROVIDER")
    model_key_arn: str = Field(alias="GALLEY_MODEL_KEY_ARN", default="")

    @field_validator("model_key_arn")
    @classmethod
    def _key_for_anthropic(cls, arn: str, info: ValidationInfo) -> str:
        if not arn and info.data.get("model_provider") == "anthropic":
            raise ValueError("must be the ARN of a secret, for GALLEY_MODEL_PROVIDER=anthropic")
        return arn


class RecoverSettings(Settings):
    """What recover needs: the rows, the queues and the schedules."""

    table: str = Field(alias="GALLEY_TABLE", min_length=1)
    runs_queue_url: str = Field(alias="GALLEY_RUNS_QUEUE_URL", min_length=1)
    dead_runs_queue_url: str = Field(alias="GALLEY_DEAD_RUNS_QUEUE_URL", min_length=1)
    schedule_group: str = Field(alias="GALLEY_SCHEDULE_GROUP", min_length=1)


class ReviewSettings(Settings):
    """What review needs: the rows, and where reviewers log in."""

    table: str = Field(alias="GALLEY_TABLE", min_length=1)
    login_domain: str = Field(alias="GALLEY_LOGIN_DOMAIN", default="")
    login_client_id: str = Field(alias="GALLEY_LOGIN_CLIENT_ID", default="")


class PublishSettings(Settings):
    """What publish needs: the rows, and the bucket that the s3 channel writes to."""

    table: str = Field(alias="GALLEY_TABLE", min_length=1)
    bucket: str = Field(alias="GALLEY_BUCKET", min_length=1)
