"""The sweep, on its own schedule: due slots without an outcome get one, and so do runs that nobody works on."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from abandoned import end_abandoned
from galley import system
from galley.observe import logger, metrics
from galley.settings import RecoverSettings
from sweep import sweep


@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[str]]:
    """Sweep once and return the runs that were caught up, skipped and ended, and a line for all that is broken."""
    outside = system.current()
    settings = RecoverSettings.from_environment()
    store = outside.store(settings.table)
    ended = end_abandoned(store, now=outside.now())
    swept = sweep(
        outside.schedules(settings.schedule_group),
        store,
        outside.queue(settings.runs_queue_url),
        now=outside.now(),
        trace=context.aws_request_id,
    )
    answer = {
        "caught_up": list(swept.caught_up),
        "skipped": list(swept.skipped),
        "ended": list(ended.runs),
        "broken": [*swept.broken, *ended.broken],
    }
    for line in answer["broken"]:
        logger.error("broken: %s", line)
    logger.info("swept", extra=answer)
    return answer
