"""What happens when a tick arrives: one message for each drafter goes into the queue, and nothing else."""

from collections.abc import Mapping
from datetime import datetime

from aws_lambda_powertools.utilities.typing import LambdaContext

from galley import system
from galley.contract import Tick, read_tick
from galley.observe import logger
from galley.runs import Origin, RunMessage, messages_for
from galley.settings import DispatchSettings


def handler(event: Mapping[str, object], context: LambdaContext) -> dict[str, list[str]]:
    """Send the tick's runs and return their keys.

    Raises:
        galley.contract.InvalidTick: for a malformed tick; Lambda retries it and puts it among the dead ticks.
        galley.queue.QueueUnavailable: when some messages could not be sent; the retry sends all, and the queue
            swallows those that it has.
    """
    outside = system.current()
    settings = DispatchSettings.from_environment()
    messages = messages_of(read_tick(event), arrived=outside.now(), trace=context.aws_request_id)
    outside.queue(settings.runs_queue_url).send(messages)
    runs = [str(message.key) for message in messages]
    logger.info("dispatched %d runs", len(runs), extra={"runs": runs, "trace": context.aws_request_id})
    return {"runs": runs}


def messages_of(tick: Tick, *, arrived: datetime, trace: str) -> list[RunMessage]:
    """Return a tick's run messages.

    A tick without a slot was sent by hand: its slot is the minute in which it arrived.
    """
    slot, origin = (
        (arrived.replace(second=0, microsecond=0), Origin.MANUAL) if tick.slot is None else (tick.slot, Origin.SCHEDULE)
    )
    return messages_for(tick, slot, origin=origin, schedule=tick.schedule, trace=trace)
