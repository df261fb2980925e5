"""The catch-up sweep, on its own schedule: due slots that have no outcome get one."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from galley import system
from galley.observe import logger, metrics
from galley.settings import RecoverSettings
from sweep import sweep


@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[str]]:
    """Sweep once and return what was caught up, what was recorded as skipped, and which schedules are broken."""
    outside = system.current()
    settings = RecoverSettings.from_environment()
    swept = sweep(
        outside.schedules(settings.schedule_group),
        outside.store(settings.table),
        outside.queue(settings.runs_queue_url),
        now=outside.now(),
        trace=context.aws_request_id,
    )
    for line in swept.broken:
        logger.error("broken schedule: %s", line)
    logger.info("swept", extra={"caught_up": swept.caught_up, "skipped": swept.skipped, "broken": swept.broken})
    return {"caught_up": list(swept.caught_up), "skipped": list(swept.skipped), "broken": list(swept.broken)}
