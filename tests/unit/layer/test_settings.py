"""What a function is told by its environment."""

import pytest

from galley.settings import DraftSettings, InvalidSettings, RecoverSettings

DRAFT = {
    "GALLEY_TABLE": "table",
    "GALLEY_RUNS_QUEUE_URL": "runs",
    "GALLEY_DEAD_RUNS_QUEUE_URL": "dead",
    "GALLEY_BUCKET": "bucket",
    "GALLEY_SCHEDULE_GROUP": "group",
    "GALLEY_DESK_URL": "https://desk.example",
    "GALLEY_MODEL_PROVIDER": "offline",
}


def test_each_variable_that_is_missing_or_wrong_is_named_with_its_value() -> None:
    with pytest.raises(InvalidSettings) as refusal:
        RecoverSettings.from_environment({"GALLEY_TABLE": "", "GALLEY_SCHEDULE_GROUP": "group"})
    assert "GALLEY_RUNS_QUEUE_URL is missing" in str(refusal.value)
    assert "GALLEY_TABLE is '':" in str(refusal.value)
    assert "GALLEY_SCHEDULE_GROUP" not in str(refusal.value)


def test_an_unknown_model_provider_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidSettings, match=r"GALLEY_MODEL_PROVIDER is 'openai': use anthropic, bedrock or offline"):
        DraftSettings.from_environment({**DRAFT, "GALLEY_MODEL_PROVIDER": "openai"})


def test_anthropic_needs_the_arn_of_its_key_and_no_secret_is_told() -> None:
    environment = {**DRAFT, "GALLEY_MODEL_PROVIDER": "anthropic", "AWS_SECRET_ACCESS_KEY": "hush"}
    with pytest.raises(InvalidSettings, match="GALLEY_MODEL_KEY_ARN is ''") as refusal:
        DraftSettings.from_environment(environment)
    assert "hush" not in str(refusal.value)
    assert DraftSettings.from_environment({**environment, "GALLEY_MODEL_KEY_ARN": "arn"}).model_key_arn == "arn"


def test_what_is_set_now_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in DRAFT.items():
        monkeypatch.setenv(name, value)
    assert DraftSettings.from_environment().table == "table"
    monkeypatch.setenv("GALLEY_TABLE", "another")
    assert DraftSettings.from_environment().table == "another"
