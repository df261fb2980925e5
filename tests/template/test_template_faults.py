"""Faults that users of other templates met when they deployed twice, each with its report."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from galley.contract import read_tick
from template.expansion import Template, expand, read_source
from template.words import drafting_schedules, target_of

OWN_NAMES = frozenset(
    {
        "AlarmName", "BucketName", "Domain", "FunctionName", "GroupName", "LayerName", "LogGroupName", "Name",
        "ManagedPolicyName", "QueueName", "RoleName", "TableName", "UserPoolName",
    }
)  # fmt: skip
"""The properties by which a resource names itself, for all the account or all the world."""
NO_RIVALS = frozenset(
    {
        "AWS::ApiGatewayV2::Authorizer",
        "AWS::Cognito::UserPoolResourceServer",
        "AWS::Lambda::Permission",
        "AWS::Lambda::EventSourceMapping",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Scheduler::Schedule",
    }
)
"""Here such a property names the resource within another one of the stack, or names that other one."""

STACKS_OWN = re.compile(r"AWS::Stack(Name|Id)")
"""What makes a name the stack's own."""


def own_names(template: Template) -> Iterator[tuple[str, Any]]:
    """Yield each name that the template itself gives to a resource, with the resource's logical id."""
    for name, resource in template["Resources"].items():
        if resource["Type"] not in NO_RIVALS:
            for field in OWN_NAMES & resource.get("Properties", {}).keys():
                yield name, resource["Properties"][field]


def test_two_stages_of_the_template_share_no_name_in_one_account(template: Template) -> None:
    """https://github.com/aws/serverless-application-model/pull/3120

    Every schedule was given a fixed name of its own, so a second stack of the same template could not be deployed.
    """
    named = dict(own_names(template))
    assert named.keys() >= {"RunsQueue", "DispatchLogs"}
    assert [name for name, value in named.items() if not STACKS_OWN.search(str(value))] == []
    assert not [name for name, schedule in drafting_schedules(template).items() if "Name" in schedule]


@pytest.mark.parametrize("event", ["DailyDigest", "HourlyMonitor"])
def test_a_renamed_schedule_takes_the_place_of_the_old_one(event: str) -> None:
    """https://github.com/langchain-ai/managed-deepagents/issues/1

    Each deployment added a second, identical schedule. CloudFormation removes what the template has no longer.
    """
    source = read_source()
    events = source["Resources"]["DispatchFunction"]["Properties"]["Events"]
    events[f"{event}Renamed"] = events.pop(event)
    renamed = drafting_schedules(expand(source))
    drafters = Counter(
        drafter for schedule in renamed.values() for drafter in read_tick(target_of(schedule)["Input"]).drafters
    )
    assert set(drafters.values()) == {1}
    assert [name for name in renamed if name.endswith(event)] == []
    assert not any("Name" in schedule for schedule in renamed.values())
