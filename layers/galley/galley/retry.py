"""The two ways in which work fails: it may succeed later, or it never will."""

from datetime import timedelta


class RetryLater(Exception):
    """The same work may succeed later: throttling, overload, a time-out, a broken connection.

    ``reason`` is a short code (``overloaded``, ``timeout``); ``after`` is what the other side asked for, if it did.
    """

    def __init__(self, reason: str, detail: str, after: timedelta | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.after = after


class NeverSucceeds(Exception):
    """Doing the same again would only cost money: a refusal, a truncated answer, a wrong setting.

    ``reason`` is a short code (``refusal``, ``unknown_drafter``); ``detail`` is one line for a person.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class SpendLimitReached(NeverSucceeds):
    """The account's own spend limit: no run of this drafter succeeds until a person raises it."""
