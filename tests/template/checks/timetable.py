"""The schedules: when they fire, what they promise, and who is promised."""

import json
from contextlib import suppress
from functools import cache
from zoneinfo import available_timezones

from template.expansion import ROOT, Template, as_list, named, resources
from template.faults import Fault, drop, promise, put, remove
from template.words import drafting_schedules, schedules, target_of, variables_of, worth_seconds

DRAFTERS = ROOT / "functions/draft/drafters"
DIGEST = "DispatchFunctionDailyDigest"
SWEEP = "RecoverFunctionSweep"


def schedules_have_a_zone(template: Template) -> list[str]:
    """A schedule names a timezone that exists; without one its hours would be UTC's."""
    return [
        f"{name}: {schedule.get('ScheduleExpressionTimezone')!r} is not a timezone"
        for name, schedule in schedules(template).items()
        if schedule.get("ScheduleExpressionTimezone") not in available_timezones()
    ]


def schedules_fire(template: Template) -> list[str]:
    """A schedule's expression is one that EventBridge Scheduler knows."""
    from galley.schedule import InvalidSchedule, parse

    faults = []
    for name, schedule in schedules(template).items():
        try:
            parse(schedule["ScheduleExpression"])
        except InvalidSchedule as error:
            faults.append(f"{name}: {error}")
    return faults


def schedules_have_no_name(template: Template) -> list[str]:
    """``OmitName`` leaves the name to CloudFormation, so that two stages fit into one account."""
    return [f"{name}: has a name of its own" for name, schedule in schedules(template).items() if "Name" in schedule]


def schedules_retry_within_bounds(template: Template) -> list[str]:
    """Scheduler tries no longer than a tick is worth, and keeps what it could not deliver."""
    faults = []
    for name, schedule in schedules(template).items():
        retry = target_of(schedule).get("RetryPolicy", {})
        if not 0 <= retry.get("MaximumRetryAttempts", 185) <= 50:
            faults.append(f"{name}: retries without a bound")
        if not 60 <= retry.get("MaximumEventAgeInSeconds", 86401) <= worth_seconds(schedule):
            faults.append(f"{name}: retries a tick for longer than it is worth")
        if not named(target_of(schedule).get("DeadLetterConfig", {}).get("Arn")):
            faults.append(f"{name}: has no dead-letter queue")
    return faults


def drafting_schedules_are_contracts(template: Template) -> list[str]:
    """The input of a drafting schedule is a contract, for its own slot, and its drafters exist."""
    from galley.contract import SCHEDULE_PLACEHOLDER, SLOT_PLACEHOLDER, InvalidTick, read_tick

    faults = []
    for name, schedule in drafting_schedules(template).items():
        written = target_of(schedule).get("Input", "")
        try:
            tick = read_tick(written, name)
        except InvalidTick as error:
            faults.append(str(error))
            continue
        promised = json.loads(written)
        if (promised.get("schedule"), promised.get("slot")) != (SCHEDULE_PLACEHOLDER, SLOT_PLACEHOLDER):
            faults.append(f"{name}: its ticks would not name the schedule and the slot")
        faults += [f"{name}: there is no drafter {one!r}" for one in tick.drafters if one not in _drafters()]
    return faults


def the_sweep_reads_drafting_schedules_only(template: Template) -> list[str]:
    """One group holds all schedules of dispatch and nothing else; it is the one that recover and draft are given."""
    given = {name: named(variables_of(template, name)["GALLEY_SCHEDULE_GROUP"]) for name in ("draft", "recover")}
    faults = [f"{name}: is not given the ScheduleGroup" for name, group in given.items() if group != {"ScheduleGroup"}]
    for name, schedule in schedules(template).items():
        drafting = named(target_of(schedule)["Arn"]) == {"DispatchFunction"}
        if drafting != (named(schedule.get("GroupName")) == {"ScheduleGroup"}):
            faults.append(f"{name}: is in the wrong group")
    return faults


def schedules_stand_in_three_zones(template: Template) -> list[str]:
    """There are four drafting schedules, in at least three timezones."""
    drafting = drafting_schedules(template).values()
    zones = {one.get("ScheduleExpressionTimezone") for one in drafting}
    return [] if len(drafting) == 4 and len(zones) >= 3 else [f"{len(drafting)} schedules in {len(zones)} timezones"]


def lateness_and_silence_raise_an_alarm(template: Template) -> list[str]:
    """What the sweep counts of overdue runs and of silent drafters rings an alarm of this stack's own."""
    given = variables_of(template, "recover")
    rings: set[str] = set()
    for alarm in resources(template, "AWS::CloudWatch::Alarm").values():
        is_ours = alarm["Namespace"] == given["POWERTOOLS_METRICS_NAMESPACE"] and alarm["Dimensions"] == [
            {"Name": "service", "Value": given["POWERTOOLS_SERVICE_NAME"]}
        ]
        rings_at_one = (alarm["Threshold"], alarm["ComparisonOperator"]) == (0, "GreaterThanThreshold")
        if is_ours and rings_at_one and "AlarmTopicArn" in set().union(*map(named, as_list(alarm.get("AlarmActions")))):
            rings.add(alarm["MetricName"])
    faults = [f"{metric}: rings no alarm" for metric in ("run_overdue", "drafter_silent") if metric not in rings]
    if "AWS::StackName" not in named(given["POWERTOOLS_METRICS_NAMESPACE"]):
        faults.append("the metrics of two stacks in one account are the same")
    return faults


def every_drafter_but_the_monitor_is_watched_for_silence(template: Template) -> list[str]:
    """A drafter that ought to draft is watched; a monitor that finds nothing wrong has nothing to say."""
    from galley.contract import InvalidTick, read_tick

    faults = []
    for name, schedule in drafting_schedules(template).items():
        with suppress(InvalidTick):  # told by another check
            tick = read_tick(target_of(schedule).get("Input", ""), name)
            if (tick.silence_slots is None) != (tick.drafters == ("hourly-monitor",)):
                faults.append(f"{name}: watches for silence where it should not, or does not where it should")
    return faults


@cache
def _drafters() -> frozenset[str]:
    """Return the names of the drafters that have a file."""
    return frozenset(path.stem for path in DRAFTERS.glob("*.toml"))


FAULTS: tuple[Fault, ...] = (
    Fault(schedules_have_a_zone, "no such zone", put(DIGEST, "ScheduleExpressionTimezone", "Europe/Londn")),
    Fault(schedules_have_a_zone, "none", drop(SWEEP, "ScheduleExpressionTimezone")),
    Fault(schedules_fire, "five fields", put(DIGEST, "ScheduleExpression", "cron(0 6 * * MON-FRI)")),
    Fault(schedules_fire, "two days", put(DIGEST, "ScheduleExpression", "cron(0 6 * * MON-FRI *)")),
    Fault(schedules_have_no_name, "a name", put(DIGEST, "Name", "DailyDigest")),
    Fault(schedules_retry_within_bounds, "default retries", drop(DIGEST, "Target.RetryPolicy")),
    Fault(
        schedules_retry_within_bounds,
        "past its grace",
        put(DIGEST, "Target.RetryPolicy.MaximumEventAgeInSeconds", 7201),
    ),
    Fault(schedules_retry_within_bounds, "no dead letters", drop(SWEEP, "Target.DeadLetterConfig")),
    Fault(drafting_schedules_are_contracts, "no such drafter", promise(DIGEST, drafters=["dialy-digest"])),
    Fault(drafting_schedules_are_contracts, "an unknown field", promise(DIGEST, windows=3)),
    Fault(drafting_schedules_are_contracts, "a missing field", promise(DIGEST, grace_minutes=None)),
    Fault(drafting_schedules_are_contracts, "no slot", promise(DIGEST, slot=None)),
    Fault(drafting_schedules_are_contracts, "no schedule", promise(DIGEST, schedule=None)),
    Fault(drafting_schedules_are_contracts, "not JSON", put(DIGEST, "Target.Input", "{drafters: [daily-digest]}")),
    Fault(
        the_sweep_reads_drafting_schedules_only,
        "the sweep among them",
        put(SWEEP, "GroupName", {"Ref": "ScheduleGroup"}),
    ),
    Fault(the_sweep_reads_drafting_schedules_only, "one astray", drop(DIGEST, "GroupName")),
    Fault(
        the_sweep_reads_drafting_schedules_only,
        "another group",
        put("RecoverFunction", "Environment.Variables.GALLEY_SCHEDULE_GROUP", {"Ref": "SweepGroup"}),
    ),
    Fault(schedules_stand_in_three_zones, "three schedules", remove(DIGEST)),
    Fault(lateness_and_silence_raise_an_alarm, "no alarm", remove("SilentDraftersAlarm")),
    Fault(lateness_and_silence_raise_an_alarm, "a mute alarm", drop("OverdueRunsAlarm", "AlarmActions")),
    Fault(lateness_and_silence_raise_an_alarm, "another name", put("SilentDraftersAlarm", "MetricName", "silent")),
    Fault(lateness_and_silence_raise_an_alarm, "all stacks' metrics", put("OverdueRunsAlarm", "Namespace", "Galley")),
    Fault(lateness_and_silence_raise_an_alarm, "a deaf alarm", put("SilentDraftersAlarm", "Threshold", 10)),
    Fault(every_drafter_but_the_monitor_is_watched_for_silence, "nobody listens", promise(DIGEST, silence_slots=None)),
)
