"""The deployed system, as template.yaml describes it, and proof that each check sees the fault it is there for."""

import json
import tomllib
from inspect import isfunction
from types import ModuleType

import pytest

from template.checks import desk, queues, rights, system, timetable
from template.expansion import ROOT, Template, expand, lint_faults, read_source, resources
from template.faults import Check, Fault, Spoil, put
from template.words import FUNCTIONS, drafting_schedules, rights_in, target_of

PARTS: tuple[ModuleType, ...] = (queues, timetable, desk, rights, system)
FAULTS: tuple[Fault, ...] = tuple(fault for part in PARTS for fault in part.FAULTS)
CHECKS: tuple[Check, ...] = tuple(
    value
    for part in PARTS
    for name, value in vars(part).items()
    if getattr(value, "__module__", "") == part.__name__ and isfunction(value) and not name.startswith("_")
)
"""Every public function of the parts is a check."""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_template_passes(check: Check, template: Template) -> None:
    assert check(template) == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_each_check_is_shown_a_fault(check: Check) -> None:
    assert check in {fault.check for fault in FAULTS}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_noticed(fault: Fault, template: Template) -> None:
    before = set(fault.check(template))
    fault.spoil(template)
    assert set(fault.check(template)) - before


def test_the_expansion_is_free_of_lint(template: Template) -> None:
    assert lint_faults(template) == []


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        pytest.param("E3505", put("RunsQueue", "VisibilityTimeout", 30), id="visibility below the time limit"),
        pytest.param("E3717", put("ReviewFunction", "Timeout", 1200), id="a time limit that Lambda does not have"),
        pytest.param("E3034", put(queues.MAPPING, "ScalingConfig.MaximumConcurrency", 1), id="a concurrency of one"),
    ],
)
def test_lint_sees_what_sam_generates(rule: str, spoil: Spoil, template: Template) -> None:
    spoil(template)
    assert rule in {fault.split()[0] for fault in lint_faults(template)}


def test_a_route_left_to_sam_would_be_an_open_second_api() -> None:
    """SAM adds an API of its own for an event that names none; the expansion shows it, the source does not."""
    source = read_source()
    source["Resources"]["ReviewFunction"]["Properties"]["Events"] = {
        "Leak": {"Type": "HttpApi", "Properties": {"Path": "/leak", "Method": "GET"}}
    }
    assert desk.there_is_one_api(expand(source)) == ["the APIs are ['DeskApi', 'ServerlessHttpApi']"]


def test_a_schedule_left_to_sam_would_have_a_name_and_a_role_that_anybody_can_take() -> None:
    source = read_source()
    schedule = source["Resources"]["DispatchFunction"]["Properties"]["Events"]["DailyDigest"]["Properties"]
    del schedule["OmitName"], schedule["RoleArn"]
    template = expand(source)
    assert timetable.schedules_have_no_name(template) == [f"{timetable.DIGEST}: has a name of its own"]
    assert rights.functions_have_their_own_roles(template) != []
    assert len(resources(template, "AWS::IAM::Role")) == len(FUNCTIONS) + 2


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_has_its_handler_where_the_template_says(name: str, template: Template) -> None:
    function = template["Resources"][f"{name.title()}Function"]["Properties"]
    module, handler = function["Handler"].split(".")
    code = ROOT / function["Code"]["S3Key"] / f"{module}.py"
    assert f"def {handler}(" in code.read_text(encoding="utf-8")


def test_each_drafter_has_one_schedule(template: Template) -> None:
    inputs = [json.loads(target_of(schedule)["Input"]) for schedule in drafting_schedules(template).values()]
    assert sorted(name for one in inputs for name in one["drafters"]) == sorted(
        path.stem for path in timetable.DRAFTERS.glob("*.toml")
    )


@pytest.mark.parametrize("action", rights.WIDE_ACTIONS)
def test_each_reason_for_a_wide_resource_is_still_needed(action: str, template: Template) -> None:
    assert action in {right.action for right in rights_in(template)}


@pytest.mark.parametrize(("table", "stage"), [("default", "dev"), ("prod", "prod")])
def test_a_stage_gives_parameters_that_the_template_has(table: str, stage: str, template: Template) -> None:
    settings = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))[table]
    given = dict(pair.split("=", 1) for pair in settings["global"]["parameters"]["parameter_overrides"])
    for name, value in given.items():
        assert value in map(str, template["Parameters"][name].get("AllowedValues", [value]))
    assert given["Stage"] == stage
    assert settings["validate"]["parameters"]["lint"] is True
    assert settings["deploy"]["parameters"]["capabilities"] == "CAPABILITY_IAM"


def test_the_stages_are_stacks_of_their_own() -> None:
    settings = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))
    names = {settings[table]["global"]["parameters"]["stack_name"] for table in ("default", "prod")}
    assert len(names) == 2
