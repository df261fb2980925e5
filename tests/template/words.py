"""Words in which the checks speak of an expanded template."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from template.expansion import Template, as_list, named, resources, text

FUNCTIONS = ("dispatch", "draft", "recover", "review", "publish")


def dead_letter_queues(template: Template) -> set[str]:
    """Return the queues that something names as the place of its failures."""
    redriven = [named(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn")) for queue in queues(template).values()]
    configured = [failure_destination(one) for one in (*async_settings(template), *mappings(template).values())]
    scheduled = [named(target_of(one).get("DeadLetterConfig", {}).get("Arn")) for one in schedules(template).values()]
    return set().union(*redriven, *configured, *scheduled)


def failure_destination(configured: dict[str, Any]) -> set[str]:
    """Return where a mapping, or a function invoked asynchronously, keeps what failed; empty where it is dropped."""
    return named(configured.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"))


def drafting_schedules(template: Template) -> dict[str, dict[str, Any]]:
    """Return the schedules that send ticks; the sweep's own is not one of them."""
    return {
        name: schedule
        for name, schedule in schedules(template).items()
        if named(target_of(schedule)["Arn"]) == {"DispatchFunction"}
    }


def queues(template: Template) -> dict[str, dict[str, Any]]:
    """Return the queues, by logical id."""
    return resources(template, "AWS::SQS::Queue")


def schedules(template: Template) -> dict[str, dict[str, Any]]:
    """Return all schedules, the sweep's own among them."""
    return resources(template, "AWS::Scheduler::Schedule")


def functions(template: Template) -> dict[str, dict[str, Any]]:
    """Return the functions."""
    return resources(template, "AWS::Lambda::Function")


def async_settings(template: Template) -> list[dict[str, Any]]:
    """Return how the functions that are invoked asynchronously are retried."""
    return list(resources(template, "AWS::Lambda::EventInvokeConfig").values())


def target_of(schedule: dict[str, Any]) -> dict[str, Any]:
    """Return what a schedule invokes, and how."""
    target: dict[str, Any] = schedule["Target"]
    return target


def mappings(template: Template) -> dict[str, dict[str, Any]]:
    """Return what feeds the functions from queues and streams."""
    return resources(template, "AWS::Lambda::EventSourceMapping")


def mappings_of(template: Template, source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the mappings that read from one queue or table."""
    for name, mapping in mappings(template).items():
        if source in named(mapping["EventSourceArn"]):
            yield name, mapping


def function_of(template: Template, mapping: dict[str, Any]) -> dict[str, Any]:
    """Return the function that a mapping feeds."""
    (name,) = named(mapping["FunctionName"])
    return functions(template)[name]


def variables_of(template: Template, function: str) -> dict[str, Any]:
    """Return the environment of a function, by its name in lower case."""
    variables: dict[str, Any] = functions(template)[f"{function.title()}Function"]["Environment"]["Variables"]
    return variables


def the_only(template: Template, kind: str) -> dict[str, Any]:
    """Return the only resource of its type."""
    (only,) = resources(template, kind).values()
    return only


def role_of(function: str) -> str:
    """Return the logical id of a function's role."""
    return f"{function.title()}Role"


def worth_seconds(schedule: dict[str, Any]) -> int:
    """Return for how long a tick is worth delivering: its grace, or until the next sweep."""
    if named(target_of(schedule)["Arn"]) == {"RecoverFunction"}:
        (minutes,) = re.findall(r"^rate\((\d+) minutes\)$", schedule["ScheduleExpression"])
        return int(minutes) * 60
    grace: int = json.loads(target_of(schedule)["Input"]).get("grace_minutes", 0)
    return grace * 60


@dataclass(frozen=True, slots=True)
class Right:
    """One action on one resource, and the policy that allows it."""

    policy: str
    action: str
    resource: str

    def __str__(self) -> str:
        return f"{self.policy}: {self.action} on {self.resource}"


def rights_in(template: Template, only: str | None = None) -> Iterator[Right]:
    """Yield every right that a role of the stack has, by itself or through a policy of the stack."""
    documents = [
        (name, policy["PolicyDocument"])
        for name, role in resources(template, "AWS::IAM::Role").items()
        for policy in role.get("Policies", [])
    ]
    for kind in ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::IAM::RolePolicy"):
        documents += [(name, policy["PolicyDocument"]) for name, policy in resources(template, kind).items()]
    for name, document in documents:
        for statement in as_list(document["Statement"]):
            if statement["Effect"] == "Allow" and only in (None, name):
                for action in as_list(statement["Action"]):
                    for resource in as_list(statement.get("Resource", "*")):
                        yield Right(name, action, text(resource))


def secure_transport(template: Template, kind: str, field: str) -> set[str]:
    """Return the resources whose policy denies everything over an insecure connection."""
    return set().union(
        *(
            named(one)
            for policy in resources(template, kind).values()
            for statement in policy["PolicyDocument"]["Statement"]
            for one in as_list(policy[field])
            if statement["Effect"] == "Deny"
            and statement["Principal"] == "*"
            and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
            and named(one) & set().union(*(named(resource) for resource in as_list(statement["Resource"])))
        )
    )
