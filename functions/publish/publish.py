"""What happens when a draft is approved: the table's stream brings its row, and the text goes to its channels."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from galley import system
from galley.observe import logger, metrics
from galley.runs import InvalidRunKey
from galley.settings import PublishSettings
from galley.store import UnreadableRow
from galley.store.rows import run_of_keys
from publishing import Press, publish


@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, list[dict[str, str]]]:
    """Publish each approved run of the batch and return the records that must come again.

    The stream retries from the first of them, in order, so the handler stops there.
    https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
    """
    outside = system.current()
    settings = PublishSettings.from_environment()
    press = Press(outside.store(settings.table), outside.bucket(settings.bucket), outside.now)
    for record in event["Records"]:
        try:
            key = run_of_keys(record["dynamodb"]["Keys"])
        except InvalidRunKey as error:
            # No repetition gives a row another name, and the runs behind it must not wait for one.
            logger.error("a person must look at the row %s: %s", record["dynamodb"]["Keys"], error)
            continue
        if key is None:
            continue
        with logger.append_context_keys(run=str(key)):
            try:
                publish(key, press)
            except UnreadableRow as error:
                # No repetition mends a damaged row, and the runs behind it must not wait for one.
                logger.error("a person must look at %s: %s", key, error)
            except Exception:
                logger.exception("could not publish %s; it comes again", key)
                return {"batchItemFailures": [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]}]}
    return {"batchItemFailures": []}
