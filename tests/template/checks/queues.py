"""The queues and what feeds the functions: nothing is lost, nothing is repeated without a bound."""

import json
from typing import Any

from template.expansion import Template, as_list, named, resources
from template.faults import Fault, add, arn, drop, put, remove
from template.words import (
    async_settings,
    dead_letter_queues,
    failure_destination,
    function_of,
    mappings,
    mappings_of,
    queues,
    schedules,
    secure_transport,
    target_of,
    worth_seconds,
)

MAPPING = "DraftFunctionRuns"
STREAM = "PublishFunctionApproved"
DISPATCH_ASYNC = "DispatchFunctionEventInvokeConfig"


def every_queue_is_dead_lettered(template: Template) -> list[str]:
    """A queue has a dead-letter queue or is one."""
    dead = dead_letter_queues(template)
    return [
        f"{name}: has no RedrivePolicy and is nobody's dead-letter queue"
        for name, queue in queues(template).items()
        if "RedrivePolicy" not in queue and name not in dead
    ]


def dead_letter_queues_fit(template: Template) -> list[str]:
    """A dead-letter queue is of its source's type, keeps longer than it, and is not reached too soon."""
    faults = []
    every = queues(template)
    for name, queue in every.items():
        policy = queue.get("RedrivePolicy")
        if policy is None:
            continue
        if policy["maxReceiveCount"] < 5:
            faults.append(f"{name}: fewer than 5 receives; a receive may be lost before the code runs")
        for dead in named(policy["deadLetterTargetArn"]):
            if every[dead].get("FifoQueue", False) != queue.get("FifoQueue", False):
                faults.append(f"{dead}: is not of the type of {name}")
            if every[dead].get("MessageRetentionPeriod", 0) <= queue.get("MessageRetentionPeriod", 345600):
                faults.append(f"{dead}: must keep messages longer than {name}")
    return faults


def failures_of_ticks_go_to_standard_queues(template: Template) -> list[str]:
    """Neither Scheduler nor an asynchronous invocation nor a stream can write to a FIFO queue."""
    redriven = set().union(
        *(named(queue.get("RedrivePolicy", {}).get("deadLetterTargetArn")) for queue in queues(template).values())
    )
    return [
        f"{name}: is FIFO, and is written to by Scheduler or Lambda"
        for name in dead_letter_queues(template) - redriven
        if queues(template)[name].get("FifoQueue")
    ]


def queues_are_encrypted(template: Template) -> list[str]:
    """A queue encrypts what rests in it and refuses a connection that does not."""
    guarded = secure_transport(template, "AWS::SQS::QueuePolicy", "Queues")
    return [
        f"{name}: {fault}"
        for name, queue in queues(template).items()
        for fault in (
            *(() if queue.get("SqsManagedSseEnabled") is True else ("is not encrypted",)),
            *(() if name in guarded else ("takes messages over an insecure connection",)),
        )
    ]


def fifo_queues_are_of_high_throughput(template: Template) -> list[str]:
    """The limits of the queue of runs are those of a drafter's group, and its deduplication ids are ours."""
    queue = queues(template)["RunsQueue"]
    wanted = {
        "FifoQueue": True,
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
        "ContentBasedDeduplication": False,
    }
    return [f"RunsQueue: {field} must be {value}" for field, value in wanted.items() if queue.get(field) != value]


def dead_letters_raise_an_alarm(template: Template) -> list[str]:
    """One message in a dead-letter queue is enough for an alarm, and the alarm reaches the topic where there is one."""
    watched: set[str] = set()
    faults = []
    for name, alarm in resources(template, "AWS::CloudWatch::Alarm").items():
        if alarm["MetricName"] != "ApproximateNumberOfMessagesVisible":
            continue
        if (alarm["Threshold"], alarm["ComparisonOperator"]) == (0, "GreaterThanThreshold"):
            watched |= set().union(*(named(dimension["Value"]) for dimension in alarm["Dimensions"]))
        if "AlarmTopicArn" not in set().union(*(named(action) for action in as_list(alarm.get("AlarmActions")))):
            faults.append(f"{name}: does not notify the topic")
    return faults + [f"{name}: fills without an alarm" for name in sorted(dead_letter_queues(template) - watched)]


def visibility_outlasts_the_function(template: Template) -> list[str]:
    """A queue hides a message for at least six times its function's time limit.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    faults = []
    for name, mapping in mappings_of(template, "RunsQueue"):
        timeout = function_of(template, mapping)["Timeout"]
        for queue in named(mapping["EventSourceArn"]):
            visibility = queues(template)[queue].get("VisibilityTimeout", 30)
            if visibility < 6 * timeout:
                faults.append(f"{queue}: hides for {visibility} s; {name} needs at least {6 * timeout} s")
    return faults


def mappings_report_failures(template: Template) -> list[str]:
    """A mapping takes partial responses and has a maximum concurrency, in the form that its source knows."""
    faults = []
    for name, mapping in mappings(template).items():
        if mapping.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            faults.append(f"{name}: has no partial responses")
        from_queue = named(mapping["EventSourceArn"]) & set(queues(template))
        limit = mapping.get("ScalingConfig", {}).get("MaximumConcurrency") if from_queue else _shard_limit(mapping)
        if limit is None:
            faults.append(f"{name}: has no maximum concurrency")
    return faults


def runs_are_taken_one_by_one(template: Template) -> list[str]:
    """A larger batch spends the receives of messages that did nothing wrong."""
    return [
        f"{name}: takes {mapping.get('BatchSize', 10)} messages at once"
        for name, mapping in mappings_of(template, "RunsQueue")
        if mapping.get("BatchSize") != 1
    ]


def streams_are_bounded(template: Template) -> list[str]:
    """A record that cannot be published neither blocks the stream for a day nor is lost."""
    faults = []
    for name, mapping in mappings_of(template, "Table"):
        if mapping.get("BisectBatchOnFunctionError") is not True:
            faults.append(f"{name}: does not halve a failing batch")
        if not 0 <= mapping.get("MaximumRetryAttempts", -1) <= 10:
            faults.append(f"{name}: retries without a bound")
        if not 60 <= mapping.get("MaximumRecordAgeInSeconds", -1) < 86400:
            faults.append(f"{name}: keeps a record for the whole day")
        if not failure_destination(mapping):
            faults.append(f"{name}: drops what fails")
    return faults


def only_approved_runs_are_published(template: Template) -> list[str]:
    """The filter lets through the change of a run's row to approved, and nothing else."""
    approved = {"pk": {"S": "RUN#daily-digest"}, "status": {"S": "approved"}}
    records = {
        "an approved run": ({"NewImage": approved, "OldImage": approved | {"status": {"S": "pending"}}}, True),
        "a pending run": ({"NewImage": approved | {"status": {"S": "pending"}}}, False),
        "a draft's text": ({"NewImage": {"pk": {"S": "TEXT#daily-digest"}, "status": {"S": "approved"}}}, False),
        "a drafter's count": ({"NewImage": {"pk": {"S": "DRAFTER#daily-digest"}, "pending": {"N": "1"}}}, False),
        "a removed run": ({"OldImage": approved}, False),
    }
    faults = []
    for name, mapping in mappings_of(template, "Table"):
        patterns = [json.loads(one["Pattern"]) for one in mapping.get("FilterCriteria", {}).get("Filters", [])] or [{}]
        for what, (record, wanted) in records.items():
            if any(_matches(pattern, {"dynamodb": record}) for pattern in patterns) is not wanted:
                faults.append(f"{name}: {'drops' if wanted else 'takes'} {what}")
    return faults


def asynchronous_failures_are_kept(template: Template) -> list[str]:
    """A function that a schedule invokes retries within bounds and keeps what still fails."""
    faults = []
    configured = {next(iter(named(one["FunctionName"]))): one for one in async_settings(template)}
    for name, schedule in schedules(template).items():
        for function in named(target_of(schedule)["Arn"]):
            config = configured.get(function, {})
            if not failure_destination(config):
                faults.append(f"{function}: drops what fails")
            if config.get("MaximumRetryAttempts") not in (0, 1, 2):
                faults.append(f"{function}: does not say how often it is retried")
            if config.get("MaximumEventAgeInSeconds", 21600) > worth_seconds(schedule):
                faults.append(f"{function}: retries a tick of {name} for longer than it is worth")
    return sorted(set(faults))


def _shard_limit(mapping: dict[str, Any]) -> int | None:
    limit: int | None = mapping.get("ParallelizationFactor")
    return limit


def _matches(pattern: object, record: object) -> bool:
    """Tell whether a Lambda event filter lets a record through; of its operators only equality and prefix.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html#filtering-syntax
    """
    match pattern, record:
        case dict(), dict():
            return all(name in record and _matches(rule, record[name]) for name, rule in pattern.items())
        case list(), str():
            return any(
                record.startswith(rule["prefix"]) if isinstance(rule, dict) else record == rule for rule in pattern
            )
        case _:
            return False


FAULTS: tuple[Fault, ...] = (
    Fault(every_queue_is_dead_lettered, "no redrive", drop("RunsQueue", "RedrivePolicy")),
    Fault(every_queue_is_dead_lettered, "a loose queue", add("Loose", "AWS::SQS::Queue")),
    Fault(dead_letter_queues_fit, "another type", put("DeadRunsQueue", "FifoQueue", False)),
    Fault(dead_letter_queues_fit, "forgets early", put("DeadRunsQueue", "MessageRetentionPeriod", 345600)),
    Fault(dead_letter_queues_fit, "one receive", put("RunsQueue", "RedrivePolicy.maxReceiveCount", 1)),
    Fault(failures_of_ticks_go_to_standard_queues, "a FIFO queue", put("DeadTicksQueue", "FifoQueue", True)),
    Fault(queues_are_encrypted, "in the clear", put("DeadTicksQueue", "SqsManagedSseEnabled", False)),
    Fault(queues_are_encrypted, "no policy", remove("DeadPublishQueuePolicy")),
    Fault(
        queues_are_encrypted,
        "another queue's policy",
        put("RunsQueuePolicy", "PolicyDocument.Statement.0.Resource", arn("DeadRunsQueue")),
    ),
    Fault(fifo_queues_are_of_high_throughput, "one limit", put("RunsQueue", "FifoThroughputLimit", "perQueue")),
    Fault(dead_letters_raise_an_alarm, "no alarm", remove("DeadTicksAlarm")),
    Fault(dead_letters_raise_an_alarm, "a deaf alarm", put("DeadRunsAlarm", "Threshold", 10)),
    Fault(dead_letters_raise_an_alarm, "a mute alarm", drop("DeadRunsAlarm", "AlarmActions")),
    Fault(visibility_outlasts_the_function, "too short", put("RunsQueue", "VisibilityTimeout", 1799)),
    Fault(visibility_outlasts_the_function, "too slow", put("DraftFunction", "Timeout", 900)),
    Fault(mappings_report_failures, "whole batches", drop(MAPPING, "FunctionResponseTypes")),
    Fault(mappings_report_failures, "whole batches of a stream", put(STREAM, "FunctionResponseTypes", [])),
    Fault(mappings_report_failures, "no limit", put(MAPPING, "ScalingConfig", {})),
    Fault(mappings_report_failures, "no limit of a stream", drop(STREAM, "ParallelizationFactor")),
    Fault(runs_are_taken_one_by_one, "ten", put(MAPPING, "BatchSize", 10)),
    Fault(runs_are_taken_one_by_one, "unsaid", drop(MAPPING, "BatchSize")),
    Fault(streams_are_bounded, "forever", put(STREAM, "MaximumRetryAttempts", -1)),
    Fault(streams_are_bounded, "for a day", drop(STREAM, "MaximumRecordAgeInSeconds")),
    Fault(streams_are_bounded, "whole", drop(STREAM, "BisectBatchOnFunctionError")),
    Fault(streams_are_bounded, "lost", drop(STREAM, "DestinationConfig")),
    Fault(only_approved_runs_are_published, "everything", drop(STREAM, "FilterCriteria")),
    Fault(
        only_approved_runs_are_published,
        "a slip of the pen",
        put(STREAM, "FilterCriteria.Filters.0.Pattern", '{"dynamodb": {"NewImage": {"status": {"S": ["approve"]}}}}'),
    ),
    Fault(
        only_approved_runs_are_published,
        "any row",
        put(STREAM, "FilterCriteria.Filters.0.Pattern", '{"dynamodb": {"NewImage": {"status": {"S": ["approved"]}}}}'),
    ),
    Fault(asynchronous_failures_are_kept, "no destination", drop(DISPATCH_ASYNC, "DestinationConfig")),
    Fault(asynchronous_failures_are_kept, "no configuration", remove("RecoverFunctionEventInvokeConfig")),
    Fault(asynchronous_failures_are_kept, "unsaid", drop(DISPATCH_ASYNC, "MaximumRetryAttempts")),
    Fault(asynchronous_failures_are_kept, "too long", put(DISPATCH_ASYNC, "MaximumEventAgeInSeconds", 1801)),
)
