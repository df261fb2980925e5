"""What happens when a run message arrives: claim, collect, write, store."""

from datetime import timedelta
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

import model
from attempt import ComesBack, Delivery, Done, Workplace
from drafting import draft_run
from galley import system
from galley.observe import metrics
from galley.settings import DraftSettings
from sources.fetch import fetch


@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[dict[str, str]]]:
    """Work on each message of the batch and return those that must come back.

    The queue is FIFO: the handler stops at the first message that must come back, and the rest come back with it.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    """
    workplace = _workplace()
    failures: list[dict[str, str]] = []
    for record in event["Records"]:
        remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
        delivery = _delivery(record)
        outcome = ComesBack() if failures else draft_run(delivery, workplace, context.aws_request_id, remaining)
        match outcome:
            case Done():
                pass
            case ComesBack():
                failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}


def _delivery(record: dict[str, Any]) -> Delivery:
    receives = int(record["attributes"]["ApproximateReceiveCount"])
    return Delivery(body=record["body"], receipt=record["receiptHandle"], receives=receives)


def _workplace() -> Workplace:
    outside = system.current()
    settings = DraftSettings.from_environment()
    return Workplace(
        store=outside.store(settings.table),
        queue=outside.queue(settings.runs_queue_url, settings.dead_runs_queue_url),
        bucket=outside.bucket(settings.bucket),
        schedules=outside.schedules(settings.schedule_group),
        model=_model(settings.model_provider, settings.model_key_arn),
        fetch=fetch,
        desk_url=settings.desk_url,
        now=outside.now,
    )


@cache
def _model(provider: str, key_arn: str) -> model.Model:
    def key(*, refresh: bool) -> str:
        return system.current().secret(key_arn, refresh=refresh)

    return model.open_model(provider, key=key)
