"""What a new drafter begins with: its file, with every setting of its shape, and the schedule to paste. Pure."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files

from galley.contract import SCHEDULE_PLACEHOLDER, SLOT_PLACEHOLDER, CatchUp, Contract

_NAME, _TITLE = "my-drafter", "My drafter"
"""What stands for the drafter's own in the starters."""
_PARTS = ("common", "channels")

LONGEST_RETRIES = 86_400
"""How long EventBridge Scheduler tries to deliver at most, in seconds.

https://docs.aws.amazon.com/scheduler/latest/APIReference/API_RetryPolicy.html
"""


class ShapeName(StrEnum):
    """The shapes, as a drafter's file names them."""

    DIGEST = "digest"
    REPORT = "report"
    SYNC = "sync"
    MONITOR = "monitor"


@dataclass(frozen=True, slots=True)
class Due:
    """When a drafter is due, what its schedule promises, and how many slots without a draft are its silence."""

    expression: str
    timezone: str
    contract: Contract
    silence_slots: int | None


def usual(shape: ShapeName) -> Due:
    """Return when a drafter of that shape is due unless its author says otherwise."""
    match shape:
        case ShapeName.DIGEST:
            return Due("cron(0 7 ? * MON-FRI *)", "UTC", _contract(30, 120, CatchUp.LATEST), 5)
        case ShapeName.REPORT:
            return Due("cron(0 8 ? * MON *)", "UTC", _contract(60, 1_440, CatchUp.LATEST), 2)
        case ShapeName.SYNC:
            return Due("cron(30 4 * * ? *)", "UTC", _contract(60, 360, CatchUp.LATEST), 14)
        case ShapeName.MONITOR:
            return Due("cron(0 * * * ? *)", "UTC", _contract(5, 30, CatchUp.NONE), None)


def starter(shape: ShapeName, name: str) -> str:
    """Return the text of a new drafter's file: right as it stands, each setting with its default in a comment."""
    text = _part(shape)
    for part in _PARTS:
        text = text.replace(f"# @{part}\n", _part(part))
    return text.replace(_NAME, name).replace(_TITLE, name.replace("-", " ").strip().capitalize())


def schedule_event(name: str, due: Due, taken: Collection[str]) -> tuple[str, str]:
    """Return the name of a drafter's schedule and its text in template.yaml, below ``Events`` of ``DispatchFunction``.

    ``taken`` are the names that other schedules have there already.
    """
    plain = "".join(word.capitalize() for word in name.split("-"))
    number = 1
    event = plain
    while event in taken:
        number += 1
        event = f"{plain}{number}"
    contract = due.contract
    age = min(LONGEST_RETRIES, contract.grace_minutes * 60)
    drafters = json.dumps([name])
    silence = "" if due.silence_slots is None else f', "silence_slots": {due.silence_slots}'
    lines = (
        f"{event}:",
        "  Type: ScheduleV2",
        "  Properties:",
        f"    ScheduleExpression: {due.expression}",
        f"    ScheduleExpressionTimezone: {due.timezone}",
        "    OmitName: true",
        "    GroupName: !Ref ScheduleGroup",
        "    RoleArn: !GetAtt SchedulerRole.Arn",
        f"    RetryPolicy: {{MaximumEventAgeInSeconds: {age}, MaximumRetryAttempts: 20}}",
        "    DeadLetterConfig: {Arn: !GetAtt DeadTicksQueue.Arn}",
        "    Input: >-",
        f'      {{"drafters": {drafters}, "schedule": "{SCHEDULE_PLACEHOLDER}",',
        f'      "slot": "{SLOT_PLACEHOLDER}",',
        f'      "window_minutes": {contract.window_minutes}, "grace_minutes": {contract.grace_minutes}, '
        f'"catch_up": "{contract.catch_up}"{silence}}}',
    )
    return event, "".join(f"{' ' * 8}{line}\n" for line in lines)


def _contract(window: int, grace: int, catch_up: CatchUp) -> Contract:
    return Contract(window_minutes=window, grace_minutes=grace, catch_up=catch_up)


def _part(name: str) -> str:
    return (files("galley_cli") / "starters" / f"{name}.toml").read_text(encoding="utf-8")
