"""Deploying the template's schedules on one machine, and the environment that its functions get."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from galley_cli.local.deployment import deploy, deployed
from galley_cli.local.environment import function_environment
from galley_cli.template import InvalidTemplate, TemplateFunction, TemplateSchedule, read_template

PROJECT = Path(__file__).parents[3]
TEMPLATE = PROJECT / "template.yaml"
MONDAY = datetime(2026, 3, 30, tzinfo=UTC)
SCHEDULE = TemplateSchedule(
    name="Daily",
    function="dispatch",
    expression="cron(0 6 * * ? *)",
    timezone="Europe/London",
    input="{}",
    enabled=True,
    start=MONDAY,
    end=None,
    retry_age=timedelta(hours=1),
)


def function(name: str) -> TemplateFunction:
    return read_template(TEMPLATE).functions[name]


def test_what_was_deployed_is_read_back_as_it_was(tmp_path: Path) -> None:
    assert deployed(tmp_path).all() == ()
    made = deploy(tmp_path, [SCHEDULE], MONDAY)
    assert deployed(tmp_path).all() == made.all() == (SCHEDULE.definition(MONDAY, MONDAY),)


def test_a_schedule_keeps_its_creation_and_its_last_change(tmp_path: Path) -> None:
    tuesday, wednesday = MONDAY + timedelta(days=1), MONDAY + timedelta(days=2)
    other = replace(SCHEDULE, name="Other")
    changed = replace(SCHEDULE, expression="cron(0 7 * * ? *)")
    deploy(tmp_path, [SCHEDULE], MONDAY)
    deploy(tmp_path, [SCHEDULE, other], tuesday)
    assert [(one.name, one.created, one.modified) for one in deployed(tmp_path).all()] == [
        ("Daily", MONDAY, MONDAY),
        ("Other", tuesday, tuesday),
    ]
    deploy(tmp_path, [changed], wednesday)
    (daily,) = deployed(tmp_path).all()
    assert (daily.created, daily.modified) == (MONDAY, wednesday)
    assert daily.expression == "cron(0 7 * * ? *)"


def test_a_deployment_that_cannot_be_read_is_made_anew(tmp_path: Path) -> None:
    deploy(tmp_path, [SCHEDULE], MONDAY)
    (tmp_path / "schedules.json").write_bytes(b"")
    assert deployed(tmp_path).all() == ()


def test_a_function_gets_the_templates_variables_and_no_others_of_ours() -> None:
    inherited = {"PATH": "/bin", "AWS_PROFILE": "work", "GALLEY_TABLE": "mine", "PYTHONPATH": "/x", "EDITOR": "vi"}
    environment = function_environment(function("dispatch"), TEMPLATE, desk_url="http://desk", inherited=inherited)
    assert environment["GALLEY_RUNS_QUEUE_URL"]
    assert environment["EDITOR"] == "vi"
    assert environment["POWERTOOLS_SERVICE_NAME"] == "dispatch"
    assert environment.keys().isdisjoint({"AWS_PROFILE", "GALLEY_TABLE", "PYTHONPATH", "GALLEY_BUCKET"})


@pytest.mark.parametrize(("key", "provider"), [({"ANTHROPIC_API_KEY": "sk"}, "anthropic"), ({}, "offline")])
def test_the_model_is_claude_where_a_key_is_set_and_only_draft_gets_the_key(key: dict[str, str], provider: str) -> None:
    draft = function_environment(function("draft"), TEMPLATE, desk_url="http://desk", inherited=key)
    review = function_environment(function("review"), TEMPLATE, desk_url="http://desk", inherited=key)
    assert draft["GALLEY_MODEL_PROVIDER"] == provider
    assert draft.get("ANTHROPIC_API_KEY") == key.get("ANTHROPIC_API_KEY")
    assert "ANTHROPIC_API_KEY" not in review
    assert "sk" not in {value for name, value in draft.items() if name != "ANTHROPIC_API_KEY"}
    assert draft["GALLEY_DESK_URL"] == "http://desk"


def test_a_variable_without_a_value_on_one_machine_is_named() -> None:
    strange = replace(function("dispatch"), environment={"GALLEY_TOPIC_ARN": None})
    with pytest.raises(InvalidTemplate, match=r"template\.yaml: variable 'GALLEY_TOPIC_ARN' of function dispatch"):
        function_environment(strange, TEMPLATE, desk_url="")
