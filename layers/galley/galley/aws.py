"""What all adapters to AWS know of its errors."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError

_UNAVAILABLE = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)


def why_unavailable(error: ClientError | BotoCoreError) -> str | None:
    """Return in one line why AWS gave no answer, if the same request may have one later; None otherwise.

    That is throttling, a fault of AWS's own (5xx), and a connection that could not be made or broke off; the SDK has
    then repeated the request already. After a broken connection nobody knows whether the request was done.
    https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
    """
    match error:
        case ClientError():
            code = error.response.get("Error", {}).get("Code", "")
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            return str(error) if code in _UNAVAILABLE or status >= 500 else None
        case ConnectionError() | HTTPClientError():
            return str(error)
        case _:
            return None


@contextmanager
def unavailable_as(error_of: Callable[[str], Exception]) -> Iterator[None]:
    """Raise an error of one's own, made of the one line, where AWS gave no answer but may later."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        why = why_unavailable(error)
        if why is None:
            raise
        raise error_of(why) from error
