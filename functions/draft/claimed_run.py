"""A claimed run on its way to an outcome: collect, write, store.

What can go wrong is of two kinds (galley.retry): it may succeed later, then the row waits with its lease given up,
until the slot's grace ends; or it never will, then the message goes to the dead letters before the row says failed, so
that a crash between the two is repeated, not lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from attempt import WITHOUT_A_WORD, Attempt, Done, Outcome, Workplace, dead_letter
from authoring import brief_of, collect, draft_of
from draft_rules import replace_older, rules_of
from drafter import Drafter, InvalidDrafter
from galley.drafts import Draft
from galley.instants import format_instant
from galley.money import usd
from galley.observe import logger, tell_outcome
from galley.retry import (
    AnswerLost,
    Fault,
    NeverSucceeds,
    RetryLater,
    SpendLimitReached,
    faults_exhausted,
    judged,
    next_attempt,
)
from galley.runs import Run, SkipReason, Status
from galley.store import NO_CURSORS, Bill, Cursor, LeaseLost, Memory, Settled, StoreBusy
from shapes.shape import Material
from writing import Answer, Brief

AFTER_A_CRASH = timedelta(seconds=30)
"""How long after its lease's end a run is tried again that crashes once more."""


@dataclass(slots=True)
class ClaimedRun:
    """A run whose lease is this attempt's.

    ``bill`` holds what it has consumed so far, ``read`` what the drafter's earlier runs left, once it was read.
    """

    run: Run
    attempt: Attempt
    bill: Bill = field(default_factory=Bill)
    read: Memory | None = None

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
        if faults_exhausted(self.run.faults):
            return self._give_up(_exhausted(f"{self.run.faults} attempts met a fault", WITHOUT_A_WORD))
        if self.run.faults:
            # It may crash once more: then it comes back when its lease ends, not when the queue's own visibility does.
            self.attempt.put_off(self.attempt.deadline - self.attempt.began + AFTER_A_CRASH)
        try:
            outcome = self._draft(drafter)
        except Exception as error:
            return self._act_on(judged(error), drafter)
        return self._tell(outcome)

    def _act_on(self, failure: RetryLater | NeverSucceeds, drafter: Drafter) -> Outcome:
        match failure:
            case Fault():
                logger.exception("run %s met an unexpected error", self.run.key)
                if faults_exhausted(self.run.faults + 1):
                    return self._give_up(
                        _exhausted(f"{self.run.faults + 1} attempts met a fault", f"ended with {failure}")
                    )
                return self._postpone(failure)
            case RetryLater():
                return self._postpone(failure)
            case SpendLimitReached():
                self._outside.store.pause(drafter.name, failure.detail, now=self._outside.now())
                return self._give_up(failure)
            case NeverSucceeds():
                return self._give_up(failure)
        assert_never(failure)

    def _draft(self, drafter: Drafter) -> Settled | LeaseLost:
        material = self._collect(drafter)
        if material.nothing_new is not None:
            return self._end_empty(material.nothing_new, material)
        memory = self._memory()
        brief = brief_of(drafter, material, self.run.slot, memory)
        draft = draft_of(self._call(brief), brief, drafter, material, memory)
        return self._store(draft, material, drafter)

    def _call(self, brief: Brief) -> Answer:
        """Have the model write. Until it is known what the call costs, it is taken to cost the most it can."""
        self.bill = Bill(cost_nanousd=self.run.reserved_nanousd)
        try:
            answer = self._outside.model.write(brief, remaining=self.attempt.deadline - self._outside.now())
        except (RetryLater, NeverSucceeds) as error:
            if not isinstance(error, AnswerLost):
                self.bill = Bill()
            raise
        self.bill = Bill(answer.usage, answer.cost_nanousd, answer.model)
        if answer.cost_nanousd > self.run.reserved_nanousd:
            cost, reserved = usd(answer.cost_nanousd), usd(self.run.reserved_nanousd)
            logger.warning("run %s cost %s, more than the %s that were reserved", self.run.key, cost, reserved)
        return answer

    def _store(self, draft: Draft, material: Material, drafter: Drafter) -> Settled | LeaseLost:
        """Store the draft; it is paid for, so rows that others hold are waited for twice."""
        now, read = self._outside.now(), self._cursors()
        rules = rules_of(drafter, material, now)
        store = self._outside.store
        try:
            return store.store(self.run, draft, material.cursors, self.bill, now=now, read=read, rules=rules)
        except StoreBusy:
            return store.store(self.run, draft, material.cursors, self.bill, now=now, read=read, rules=rules)

    def _memory(self) -> Memory:
        """Return what the drafter's earlier runs left, as it was when it was first asked for."""
        if self.read is None:
            self.read = self._outside.store.memory(self.run.drafter)
        return self.read

    def _cursors(self) -> Mapping[str, Cursor]:
        """Return each source's cursor."""
        return self._memory().cursors

    def _collect(self, drafter: Drafter) -> Material:
        return collect(
            self.attempt.message, drafter, self._outside, deadline=self.attempt.deadline, cursors=self._cursors
        )

    def _end_empty(self, why: str, material: Material) -> Settled | LeaseLost:
        now = self._outside.now()
        read = self._cursors() if material.cursors else NO_CURSORS
        return self._outside.store.release(
            self.run, Status.EMPTY, "nothing_new", why, self.bill, now=now, cursors=material.cursors, read=read
        )

    def _give_up(self, error: NeverSucceeds) -> Outcome:
        return self._fail(error.reason, error.detail, error)

    def _fail(self, reason: str, detail: str, error: Exception) -> Outcome:
        now = self._outside.now()
        self._outside.queue.bury(dead_letter(self.attempt.delivery, reason, detail, error, now, run=self.run))
        return self._tell(self._outside.store.release(self.run, Status.FAILED, reason, detail, self.bill, now=now))

    def _skip(self, reason: SkipReason, detail: str) -> Outcome:
        now = self._outside.now()
        return self._tell(
            self._outside.store.release(self.run, Status.SKIPPED, str(reason), detail, self.bill, now=now)
        )

    def _postpone(self, error: RetryLater) -> Outcome:
        now = self._outside.now()
        ends = self.run.message.grace_ends
        again = next_attempt(self.run.attempts, str(self.run.key), now=now, retry_after=error.after, grace_ends=ends)
        if again is None and ends is None:
            return self._give_up(_exhausted(f"{self.run.attempts} attempts", f"ended with {error}"))
        if again is None:
            return self._skip(SkipReason.MISFIRED, f"its grace ends before attempt {self.run.attempts + 1}; {error}")
        postponed = self._outside.store.postpone(self.run, error, self.bill, now=now, next_attempt=again)
        match postponed:
            case Settled():
                logger.warning("run %s waits until %s: %s", self.run.key, format_instant(again), error.reason)
                return self.attempt.put_off_or_renew(again - now)
            case LeaseLost():
                return self._tell(postponed)
        assert_never(postponed)

    def _tell(self, outcome: Settled | LeaseLost) -> Outcome:
        match outcome:
            case Settled(run):
                tell_outcome(run)
                replace_older(self._outside.store, run, self._outside.now())
            case LeaseLost():
                logger.warning("run %s was taken over; this attempt is dropped", self.run.key)
            case _:
                assert_never(outcome)
        return Done()


def _exhausted(what: str, last: str) -> NeverSucceeds:
    return NeverSucceeds("attempts_exhausted", f"{what}; the last {last}")
