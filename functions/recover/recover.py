"""The sweep, on its own schedule: due slots without an outcome get one, and so do runs that nobody works on."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from abandoned import end_abandoned
from galley import system
from galley.observe import count, logger, metrics
from galley.schedule import tzdata_version
from galley.settings import RecoverSettings
from in_flight import list_in_flight
from overdue import find_overdue
from stale import withdraw_stale
from sweep import sweep
from unsent import send_unsent

TIME_FOR_ONE_DRAFTER = timedelta(seconds=20)
"""With how little of the function's time left no further drafter's undecided drafts are looked at."""


@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[str]]:
    """Sweep once and return what was done.

    The runs that were caught up, skipped, ended and sent again, those whose drafts expired or were superseded, those
    that are overdue, a line for each drafter that went silent, one for what is broken, one for what is left to the next
    sweep because the time was up, and one for each schedule that is deleted.

    Raises:
        galley.retry.RetryLater: when the table or Scheduler gives no answer; the next sweep does the rest.
    """
    outside = system.current()
    settings = RecoverSettings.from_environment()
    store = outside.store(settings.table)
    queue = outside.queue(settings.runs_queue_url, settings.dead_runs_queue_url)
    now = outside.now()

    def remaining() -> timedelta:
        return timedelta(milliseconds=context.get_remaining_time_in_millis())

    in_flight = list_in_flight(store)
    ended = end_abandoned(in_flight.runs, store, queue, now=now)
    waiting = in_flight.without(ended.runs)
    sent = send_unsent(waiting, store, queue, now=now)
    swept = sweep(
        outside.schedules(settings.schedule_group),
        store,
        queue,
        now=now,
        trace=context.aws_request_id,
        remaining=remaining,
    )
    stale = withdraw_stale(store, now=now, is_out_of_time=lambda: remaining() < TIME_FOR_ONE_DRAFTER)
    overdue = sorted({*swept.overdue, *find_overdue(waiting, now=now)})
    if overdue:
        count("run_overdue", len(overdue))
    answer = {
        "caught_up": list(swept.caught_up),
        "skipped": list(swept.skipped),
        "ended": list(ended.runs),
        "sent_again": list(sent.runs),
        "expired": list(stale.expired),
        "superseded": list(stale.superseded),
        "overdue": overdue,
        "silent": list(swept.silent),
        "broken": sorted({*in_flight.broken, *swept.broken, *ended.broken, *sent.broken, *stale.broken}),
        "unfinished": [*swept.unfinished, *stale.unfinished],
        "gone": list(swept.gone),
    }
    for line in answer["broken"]:
        logger.error("broken: %s", line)
    for line in answer["gone"]:
        logger.warning("%s", line)
    logger.info("swept", extra={**answer, "tzdata": tzdata_version()})
    return answer
