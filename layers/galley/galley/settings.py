"""What each function reads from its environment, once, at its first invocation."""

import os
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator


class InvalidSettings(Exception):
    """An environment variable is missing or wrong. Its text is one line that names it."""


class Settings(BaseModel):
    """What every function knows. Fields are named by their environment variables."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=False)

    stage: str = Field(alias="GALLEY_STAGE", min_length=1)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the settings from the environment.

        Raises:
            InvalidSettings: one line that names each variable that is missing or wrong.
        """
        try:
            return cls.model_validate(dict(os.environ if environment is None else environment))
        except ValidationError as error:
            wrong = "; ".join(f"{one['loc'][0] if one['loc'] else 'settings'}: {one['msg']}" for one in error.errors())
            raise InvalidSettings(f"environment of the function: {wrong}") from error


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

    @model_validator(mode="after")
    def _key_for_anthropic(self) -> Self:
        if self.model_provider == "anthropic" and not self.model_key_arn:
            raise ValueError("GALLEY_MODEL_KEY_ARN is missing, and GALLEY_MODEL_PROVIDER=anthropic needs it")
        return self


class RecoverSettings(Settings):
    """What recover needs: the rows, the queue and the schedules."""

    table: str = Field(alias="GALLEY_TABLE", min_length=1)
    runs_queue_url: str = Field(alias="GALLEY_RUNS_QUEUE_URL", min_length=1)
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
