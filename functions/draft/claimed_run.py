"""A claimed run on its way to an outcome: collect, write, store.

What can go wrong is of two kinds (galley.retry): it may succeed later, then the row waits with its lease given up; or
it never will, then the message goes to the dead letters before the row says failed, so that a crash between the two
is repeated, not lost.
"""

from dataclasses import dataclass, field, replace
from typing import assert_never

from attempt import Attempt, ComesBack, Done, Outcome, Workplace, dead_letter
from drafter import Drafter, InvalidDrafter
from galley.drafts import Draft, Item
from galley.observe import logger, tell_outcome
from galley.queue import RECEIVES_EXHAUSTED
from galley.retry import MOST_ATTEMPTS, NeverSucceeds, RetryLater, SpendLimitReached, wait_after
from galley.runs import Run, Status
from galley.store import Bill, LeaseLost, RowsDisagree, Settled, StoreBusy
from galley.texts import clip_bytes
from shapes import digest, monitor, report, sync
from shapes.shape import Assignment, Material, Shape
from windows import window_of
from writing import Brief, compose, read_answer

SHAPES: dict[str, Shape] = {"digest": digest, "report": report, "sync": sync, "monitor": monitor}
SHOWN_BYTES = 8_000
"""How much of each item's text is kept beside the draft for the reviewer, in UTF-8."""
SHOWN_BYTES_IN_ALL = 200_000
"""How much of all items' texts is kept: a table row holds 400 KB, the draft and a reviewer's edit with it."""


@dataclass(slots=True)
class ClaimedRun:
    """A run whose lease is this attempt's. ``bill`` holds what it has consumed so far."""

    run: Run
    attempt: Attempt
    bill: Bill = field(default_factory=Bill)

    def finish(self) -> Outcome:
        """Bring the run to its outcome, or let it wait for its next attempt."""
        match self.attempt.drafter:
            case InvalidDrafter() as error:
                return self._fail("invalid_drafter", str(error), error)
            case Drafter() as drafter:
                return self._try(drafter)

    @property
    def _outside(self) -> Workplace:
        return self.attempt.outside

    def _try(self, drafter: Drafter) -> Outcome:
        if self.attempt.message.is_late(self._outside.now()):
            return self._give_up(
                NeverSucceeds("grace_over", f"was not drafted within its grace; the last attempt {_last_end(self.run)}")
            )
        if self.run.attempts > MOST_ATTEMPTS:
            return self._give_up(_exhausted(self.run, _last_end(self.run)))
        try:
            return self._draft(drafter)
        except RetryLater as error:
            return self._postpone(error)
        except SpendLimitReached as error:
            self._outside.store.pause(drafter.name, error.detail, now=self._outside.now())
            return self._give_up(error)
        except NeverSucceeds as error:
            return self._give_up(error)
        except StoreBusy as error:
            return self._postpone(RetryLater("store_busy", str(error)))
        except RowsDisagree as error:
            return self._give_up(NeverSucceeds("rows_disagree", str(error)))
        except Exception as error:
            logger.exception("run %s met an unexpected error", self.run.key)
            return self._postpone(RetryLater("unexpected_error", f"{type(error).__name__}: {error}"))

    def _draft(self, drafter: Drafter) -> Outcome:
        material = self._collect(drafter)
        if material.nothing_new is not None:
            return self._end_empty(material.nothing_new, material)
        brief = Brief(
            drafter=drafter.name,
            shape=drafter.shape,
            title=drafter.title,
            instructions=drafter.instructions,
            items=material.items,
            figures=material.figures,
            slot=self.run.slot,
            model=drafter.model,
            max_input_tokens=drafter.max_input_tokens,
            max_output_tokens=drafter.max_output_tokens,
        )
        answer = self._outside.model.write(brief, remaining=self.attempt.deadline - self._outside.now())
        self.bill = Bill(answer.usage, answer.cost_nanousd, answer.model)
        title, body, warnings = compose(read_answer(answer, brief), brief)
        draft = Draft(
            title=title,
            body=body,
            items=_shown(material.items),
            warnings=(*material.warnings, *warnings),
            model=answer.model,
            channels=drafter.destinations,
        )
        return self._settled(self._store(draft, material))

    def _store(self, draft: Draft, material: Material) -> Settled | LeaseLost:
        """Store the draft; it is paid for, so rows that others hold are waited for twice."""
        now = self._outside.now()
        try:
            return self._outside.store.store(self.run, draft, material.cursors, self.bill, now=now)
        except StoreBusy:
            return self._outside.store.store(self.run, draft, material.cursors, self.bill, now=now)

    def _collect(self, drafter: Drafter) -> Material:
        assignment = Assignment(
            drafter=drafter,
            slot=self.run.slot,
            looked_at=self._outside.now(),
            window=lambda: window_of(self.attempt.message, drafter, self._outside.schedules),
            cursors=self._outside.store.cursors(drafter.name),
            bucket=self._outside.bucket,
            fetch=self._outside.fetch,
            desk_url=self._outside.desk_url,
        )
        return SHAPES[drafter.shape].collect(assignment)

    def _end_empty(self, why: str, material: Material) -> Outcome:
        now = self._outside.now()
        return self._settled(
            self._outside.store.release(
                self.run, Status.EMPTY, "nothing_new", why, self.bill, now=now, cursors=material.cursors
            )
        )

    def _give_up(self, error: NeverSucceeds) -> Outcome:
        return self._fail(error.reason, error.detail, error)

    def _fail(self, reason: str, detail: str, error: Exception) -> Outcome:
        now = self._outside.now()
        self._outside.queue.bury(dead_letter(self.attempt.delivery, reason, detail, error, now, self.run))
        return self._settled(self._outside.store.release(self.run, Status.FAILED, reason, detail, self.bill, now=now))

    def _postpone(self, error: RetryLater) -> Outcome:
        if self.run.attempts >= MOST_ATTEMPTS:
            return self._give_up(_exhausted(self.run, f"ended with {error}"))
        if self.attempt.delivery.is_last:
            return self._give_up(NeverSucceeds(RECEIVES_EXHAUSTED, f"{error}, and its message is not delivered again"))
        now = self._outside.now()
        wait = wait_after(self.run.attempts, str(self.run.key), error.after)
        postponed = self._outside.store.postpone(
            self.run, error.reason, error.detail, self.bill, now=now, next_attempt=now + wait
        )
        match postponed:
            case Settled():
                logger.warning("run %s waits %d s: %s", self.run.key, wait.total_seconds(), error.reason)
                self._outside.queue.put_off(self.attempt.delivery.receipt, wait)
                return ComesBack()
            case LeaseLost():
                return self._settled(postponed)
        assert_never(postponed)

    def _settled(self, outcome: Settled | LeaseLost) -> Outcome:
        match outcome:
            case Settled(run):
                tell_outcome(run)
            case LeaseLost():
                logger.warning("run %s was taken over; this attempt is dropped", self.run.key)
            case _:
                assert_never(outcome)
        return Done()


def _exhausted(run: Run, last: str) -> NeverSucceeds:
    return NeverSucceeds("attempts_exhausted", f"{run.attempts} attempts; the last {last}")


def _last_end(run: Run) -> str:
    if run.reason is None:
        return "ended without a word: a crash, or the function's time limit"
    return f"ended with {run.reason}: {run.detail}"


def _shown(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the items as they are kept beside the draft, each cut to its share of what a row can hold."""
    share = min(SHOWN_BYTES, SHOWN_BYTES_IN_ALL // max(1, len(items)))
    return tuple(replace(item, text=clip_bytes(item.text, share)) for item in items)
