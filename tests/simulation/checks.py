"""What must hold of a story: after each write, after each step, and when all is quiet.

The checks keep their own account of what happened (which row became what, who called the model, which text was
approved, which entries a draft consumed) and compare it with what the rows, the queues and the bucket say. What may
become of a row, what holds a place at the gate and what a week counts is stated here anew, in the design's words: a
check must not share what it checks.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from galley.markdown import heading
from galley.queue import RunQueue
from galley.runs import Decision, InvalidMessage, Run, RunKey, RunMessage, Status, read_message
from galley.store import MOST_REJECTIONS, Store
from galley_cli.dead import list_dead
from simulation.drafters import SOURCES, WORST_COST, Catalogue, Sources
from simulation.lambdas import Lambda
from simulation.model_api import Call, ModelApi
from simulation.people import Asked, Desk, Operator
from simulation.sqs import DEAD_TICKS, Message, Sqs
from simulation.story import Verdict
from simulation.world import World
from support.counted import as_rows_tell, counted_in_rows

SKEW = timedelta(seconds=1)
"""Rows keep instants to the second."""
ABANDONED = timedelta(hours=2) - SKEW
HOLDS_A_PLACE = frozenset({Status.DRAFTING, Status.PENDING})
"""What is being drafted or waits for a decision counts against the gate."""
UNSETTLED = frozenset({Status.QUEUED, Status.DRAFTING})
MAY_BECOME: Mapping[Status | None, frozenset[Status]] = {
    None: frozenset({Status.QUEUED, Status.DRAFTING, Status.SKIPPED}),
    Status.QUEUED: frozenset({Status.DRAFTING, Status.SKIPPED}),
    Status.DRAFTING: frozenset({Status.PENDING, Status.APPROVED, Status.EMPTY, Status.FAILED, Status.SKIPPED}),
    Status.PENDING: frozenset({Status.APPROVED, Status.REJECTED, Status.EXPIRED, Status.SUPERSEDED}),
    Status.APPROVED: frozenset({Status.PUBLISHED, Status.PUBLISH_UNKNOWN}),
    Status.FAILED: frozenset({Status.QUEUED}),
}
"""What a run may become, in a story: nothing there settles a publication by hand."""
WITHDRAWN = frozenset({Status.EXPIRED, Status.SUPERSEDED})
UNREVIEWED = b"\n\n*Nobody has reviewed this text: it is sent as the model wrote it.*\n\n"
"""What stands between the title and the text of a draft that is sent unread."""
COUNTED_AS = {
    Status.PENDING: "drafted",
    Status.APPROVED: "approved",
    Status.REJECTED: "rejected",
    Status.EXPIRED: "expired",
    Status.SUPERSEDED: "superseded",
    Status.EMPTY: "empty",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
}
"""By which name a week counts the runs that came into a state; nothing else is counted by states."""
COUNTED_BY_REASON = frozenset({Status.REJECTED, Status.SKIPPED})
WEEKS = ("2026-W48", "2026-W49")
"""In these most slots of a story are."""
MEASURED = frozenset({"tokens", "cost_nanousd", "minutes_to_decision"})
"""What a week adds up besides."""


class Broken(AssertionError):
    """A guarantee does not hold."""


@dataclass
class Checks:
    """The account of one story."""

    world: World
    plain: Store
    queue: RunQueue
    sqs: Sqs
    catalogue: Catalogue
    sources: Sources
    api: ModelApi
    desk: Desk
    operator: Operator
    lambdas: Lambda
    rows: dict[str, Run] = field(default_factory=dict)
    drafted: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    settled: Counter[tuple[str, int]] = field(default_factory=Counter)
    settling: set[Call] = field(default_factory=set)
    counters: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    requeued: dict[str, datetime] = field(default_factory=dict)
    tampered: set[str] = field(default_factory=set)
    published: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    due: frozenset[str] = frozenset()
    """The runs that were due when the last sweep began that had schedules to look at."""
    swept: datetime | None = None
    """When the last sweep was asked for."""

    # After each write

    def is_news(self, key: RunKey) -> bool:
        """Tell whether a run's row is another than the account has."""
        after = self.plain.run(key)
        return after is not None and after != self.rows.get(str(key))

    def written(self, key: RunKey) -> None:
        """Take a write into the account: what became of the row, and whether it may."""
        after = self.plain.run(key)
        before = self.rows.get(str(key))
        assert after is not None, "no row is ever taken away"
        self.rows[str(key)] = after
        was = None if before is None else before.status
        if after.status is not was and after.status not in MAY_BECOME.get(was, frozenset()):
            raise Broken(f"{key} went from {was} to {after.status}")
        if after.version != (1 if before is None else before.version + 1):
            raise Broken(f"{key} went from version {before and before.version} to {after.version}")
        if after.reason in {"unexpected_error", "rows_disagree"}:
            raise Broken(f"{key} met an error that nothing in its way explains: {after.detail}")
        self._take(before, after)
        self._gate(after.drafter)

    def _take(self, before: Run | None, after: Run) -> None:
        was = None if before is None else before.status
        if before is not None and after.dismissed != before.dismissed and after.dismissed is not None:
            self._dismissed(before, after)
            return
        if before is not None and replace(before, version=after.version, changed=after.changed) == after:
            self._reminded(before)
            return
        self.world.count(f"rows became {after.status}" + (f" ({after.reason})" if after.reason else ""))
        if after.reason == "cursor_moved":
            self.world.count("drafts whose cursor another run had moved")
        if after.status is not was:
            for name in _counted(was, after):
                self.counters[after.drafter, _week(after.slot), name] += 1
        if was is Status.DRAFTING and after.status is not Status.DRAFTING:
            self._call_settled(after)
            if after.status in {Status.PENDING, Status.APPROVED}:
                self._drafted(after)
        if before is not None and after.reason == "abandoned" and was is Status.DRAFTING:
            self._abandoned(before)
        if after.status is Status.DRAFTING and after.owner is not None:
            self._claimed(before, after)
        if after.status in WITHDRAWN:
            self._withdrawn(after)
        if after.status is Status.QUEUED:
            self._requeued(before, after)

    def _requeued(self, before: Run | None, after: Run) -> None:
        if after.resend != (1 if before is None else before.resend + 1):
            raise Broken(f"{after.key} was sent again as number {after.resend}")
        self.requeued[str(after.key)] = self.world.now

    def _dismissed(self, before: Run, after: Run) -> None:
        """A person was done with a failed run, and nothing else of it changed."""
        self.world.count("failed runs dismissed")
        if before.status is not Status.FAILED or not self._is_discarding():
            raise Broken(f"{after.key}, which is {before.status}, was dismissed by nobody")
        if replace(before, version=after.version, changed=after.changed, dismissed=after.dismissed) != after:
            raise Broken(f"{after.key} was dismissed, and changed: {before} became {after}")

    def _reminded(self, run: Run) -> None:
        """The message of a run that waits for it was sent once more, and nothing of the run changed."""
        self.world.count("reminders")
        if run.status not in UNSETTLED or run.owner is not None:
            raise Broken(f"{run.key} is {run.status} of {run.owner}, and waits for no message")

    def _is_discarding(self) -> bool:
        task = self.world.current
        return task is not None and task.name in self.operator.discarding

    def taken_away(self, url: str, dead: Message) -> None:
        """Nothing leaves the dead unless a person discards it, or what it asks for was sent again before (G5)."""
        self.world.count("dead ticks taken away" if url == DEAD_TICKS else "dead letters taken away")
        if self._is_discarding():
            return
        sent = [message for one in self.sqs.runs.accepted if (message := _message(one)) is not None]
        if url == DEAD_TICKS:
            tick = json.loads(dead.body)
            tick = tick.get("requestPayload", tick)
            again = {(message.drafter, message.key) for message in sent if message.resend}
            slot = tick.get("slot")
            for name in tick["drafters"]:
                if f"{name}:{slot}" in self.rows:
                    continue
                if not any(of == name and (slot is None or str(key) == f"{name}:{slot}") for of, key in again):
                    raise Broken(f"the tick {dead.body} was taken away, and {name} was not sent for it")
            return
        letter = _message(dead)
        if letter is None or not any(
            message.key == letter.key and (message.resend, message.renewal) > (letter.resend, letter.renewal)
            for message in sent
        ):
            raise Broken(f"the letter {dead.body} was taken away, and nothing was sent for it")

    def _claimed(self, before: Run | None, after: Run) -> None:
        task = self.world.current
        if before is not None and before.status is Status.DRAFTING:
            if before.lease_until is not None and task is not None and task.began < before.lease_until - SKEW:
                raise Broken(f"{after.key} was taken from its owner, whose lease lives until {before.lease_until}")
            if before.next_attempt is not None and task is not None and task.began < before.next_attempt - SKEW:
                raise Broken(f"{after.key} was tried again before {before.next_attempt}")
            self.world.count("takes-over of a dead lease" if before.owner is not None else "later attempts")
        if self.plain.drafter(after.drafter).paused is not None:
            raise Broken(f"{after.key} was claimed while its drafter is paused")
        if task is None or after.spend_day is None:
            return
        task.day = after.spend_day
        allowed = self.catalogue.budgets_since(after.drafter, task.began)
        if None in allowed or after.drafter in self.catalogue.ever_broken:
            return
        most = max(calls for calls in allowed if calls is not None) * WORST_COST
        committed = self.plain.committed_nanousd(after.drafter, after.spend_day)
        if committed > most:
            raise Broken(f"{after.key} was claimed with {committed} committed of a budget of {most}")

    def _abandoned(self, before: Run) -> None:
        """Only what nobody has worked on for two hours, and nobody was to work on, is given up."""
        signs = [sign for sign in (before.changed, before.lease_until, before.next_attempt) if sign is not None]
        if self.world.now - max(signs) < ABANDONED:
            raise Broken(f"{before.key} was given up, though its last sign of life was {max(signs)}")

    def _drafted(self, after: Run) -> None:
        key = str(after.key)
        if key in self.drafted:
            raise Broken(f"{key} was drafted twice")
        stored = self.plain.draft(after.key)
        if stored is None or stored.text_hash != after.text_hash:
            raise Broken(f"{key} is pending without its text")
        self.drafted[key] = [item.id for item in stored.draft.items]
        unread = self.catalogue.ruled(after.drafter).unread
        if (after.status is Status.APPROVED) != unread:
            raise Broken(f"{key} is {after.status} as it is stored; that nobody reviews it is {unread}")
        self.world.count("drafts that nobody reviews", int(unread))

    def _withdrawn(self, after: Run) -> None:
        """Only what was undecided for too long expires, and only what a newer draft replaces gives way (G8)."""
        task = self.world.current
        if after.status is Status.SUPERSEDED and task is not None:
            self.world.count(f"drafts superseded by {task.function}")
        if after.status is Status.EXPIRED:
            hours = self.catalogue.ruled(after.drafter).expire_hours
            if hours is None or after.drafted is None or self.world.now < after.drafted + timedelta(hours=hours) - SKEW:
                raise Broken(f"{after.key}, drafted {after.drafted}, expired though it may wait for {hours} hours")
            return
        by = str(after.detail).removeprefix("the draft of ").removesuffix(" took its place")
        if by not in self.drafted or not self._replaces(self.rows[by], after):
            raise Broken(f"{after.key} gave way to {by}, which does not replace it")

    def _replaces(self, newer: Run, older: Run) -> bool:
        if newer.drafted is None or older.drafted is None or newer.drafter != older.drafter or newer is older:
            return False
        is_earlier = older.slot < newer.slot and older.drafted <= newer.drafted
        is_named = older.slot != newer.slot and older.slot in newer.rules.supersedes
        return is_named or (self.catalogue.ruled(newer.drafter).supersede and is_earlier)

    def _call_settled(self, after: Run) -> None:
        """The acting invocation ended its run: a call that it made was not in vain."""
        task = self.world.current
        for call in [] if task is None else task.asked:
            if call.run == str(after.key) and call not in self.settling:
                self.settling.add(call)
                self.settled[call.run, after.resend] += 1

    def _gate(self, drafter: str) -> None:
        """The pending count is what the rows say, and within the limit (G2)."""
        rows = [run for run in self.rows.values() if run.drafter == drafter]
        held = sum(run.status in HOLDS_A_PLACE for run in rows)
        count = self.plain.drafter(drafter).pending
        if count != held:
            raise Broken(f"{drafter} counts {count} undecided drafts, its rows are {held}")
        limit = self.catalogue.limit(drafter)
        waiting = sum(run.status is Status.PENDING for run in rows)
        # A drafter whose file is broken claims a place only to record that it is broken, and never drafts.
        if waiting > limit or (held > limit and drafter not in self.catalogue.ever_broken):
            raise Broken(f"{drafter} has {held} undecided drafts, {waiting} of them pending; its limit is {limit}")

    # What the world saw

    def see_published(self, path: str, body: bytes) -> None:
        """A channel was written to: only the text that a person approved, and only while it is approved (G8)."""
        drafter, _, name = path.removeprefix("published/").partition("/")
        key = f"{drafter}:{name.removesuffix('.md')}"
        run = self.plain.run(RunKey.parse(key))
        self.world.count("published")
        self.published[key].add(body)
        if run is None or run.status not in {Status.APPROVED, Status.PUBLISHED}:
            raise Broken(f"{key} was published while it is {run and run.status}")
        if self.catalogue.ruled(drafter).unread:
            self._see_unread(run, body)
        elif not any(self._text(asked) == body for asked in self._asked(run, Verdict.APPROVE, Verdict.EDIT)):
            raise Broken(f"{key} was published with a text that nobody approved")

    def _see_unread(self, run: Run, body: bytes) -> None:
        """A text that nobody reviews was sent: exactly as it was stored, and it says so itself."""
        stored = self.plain.draft(run.key)
        assert stored is not None
        if stored.text_hash != run.text_hash or body != f"{heading(stored.title)}\n\n{stored.body}\n".encode():
            raise Broken(f"{run.key} was published with another text than was stored")
        if UNREVIEWED not in body:
            raise Broken(f"{run.key} was published unread and does not say so")

    def _asked(self, run: Run, *verdicts: Verdict) -> Iterator[Asked]:
        """Yield what reviewers sent that makes the run what it is."""
        for asked in self.desk.asked:
            if asked.run != str(run.key) or asked.verdict not in verdicts or run.decision is None:
                continue
            if asked.verdict is Verdict.REJECT or asked.text_hash == run.text_hash:
                yield asked

    @staticmethod
    def _text(asked: Asked) -> bytes:
        return f"{heading(asked.title)}\n\n{asked.body}\n".encode()

    # After each step

    def now(self) -> None:
        """Check what holds at any moment."""
        if self.world.broken:
            raise Broken(self.world.broken[0])
        for drafter in self.catalogue.names:
            self._gate(drafter)
            self._spend(drafter)

    def _spend(self, drafter: str) -> None:
        """What is booked on a drafter's days is what its rows cost and have reserved, and no less than was billed."""
        rows = [run for run in self.rows.values() if run.drafter == drafter]
        billed: Counter[str] = Counter()
        for call in self.api.calls:
            if call.drafter == drafter:
                billed[call.task.day or ""] += call.cost_nanousd
        days = {run.spend_day for run in rows} | billed.keys() | {task.day for task in self.world.ever}
        booked = {day: self.plain.committed_nanousd(drafter, day) for day in days if day}
        owed = sum(run.cost_nanousd + run.reserved_nanousd for run in rows)
        if sum(booked.values()) != owed:
            raise Broken(f"{drafter} has {booked} booked, its rows cost and reserve {owed}")
        for day, cost in billed.items():
            if cost > booked.get(day, 0):
                raise Broken(f"{drafter} was billed {cost} on {day}, but {booked.get(day, 0)} is booked")

    # When all is quiet

    def pending(self) -> list[Run]:
        """Return the drafts that wait for a decision."""
        return [run for run in self.rows.values() if run.status is Status.PENDING]

    def open_work(self) -> list[str]:
        """Return what is still on its way to an outcome."""
        return [
            *(f"message {message.body[:60]}" for message in self.sqs.runs.messages),
            *(f"{key} is {run.status}" for key, run in self.rows.items() if run.status in UNSETTLED),
            *(f"to publish {key}" for key in self.lambdas.publishing),
            *(f"{task.name} at work" for task in self.world.tasks),
        ]

    def at_the_end(self) -> None:
        """Check what holds when nothing is on its way any more."""
        self.now()
        if without := sorted(self.due - self.rows.keys()):
            raise Broken(f"{len(without)} runs were due and have no row, {without[0]} first")
        for key, run in self.rows.items():
            if run != self.plain.run(run.key):
                raise Broken(f"{key} was changed by nobody")
            self._decided(run)
            self._is_withdrawn(run)
        for drafter in self.catalogue.names:
            self._listed(drafter)
            self._rejections(drafter)
            for source in SOURCES:
                self._cursor(drafter, source)
        self._calls()
        self._outcomes()
        self._dead()
        self._weeks()

    def _listed(self, drafter: str) -> None:
        kept = {str(run.key) for run in self.plain.history(drafter, limit=1_000).runs}
        seen = {key for key, run in self.rows.items() if run.drafter == drafter}
        if kept != seen:
            raise Broken(f"rows that nobody was seen to write: {kept ^ seen}")

    def _decided(self, run: Run) -> None:
        """A decision is made once, for the text that was read; what is approved is published, or known not to be."""
        for asked in self.desk.asked:
            if asked.verdict in {Verdict.OTHER_TEXT, Verdict.OLD_VERSION} and 200 in asked.statuses:
                raise Broken(f"{asked.run} was decided for a text or a version that it never had")
        answers = [asked for asked in self.desk.asked if asked.run == str(run.key)]
        decided = sum(asked.statuses.count(200) for asked in answers)
        if decided > 1:
            raise Broken(f"{run.key} was decided {decided} times")
        if run.decision is None:
            self._undecided(run, decided)
        elif self.catalogue.ruled(run.drafter).unread:
            self._unread(run, run.decision, decided)
        else:
            self._decided_by_a_person(run, run.decision)

    def _undecided(self, run: Run, decided: int) -> None:
        if decided:
            raise Broken(f"{run.key} was decided, and its row does not know")
        is_through = run.status in {Status.APPROVED, Status.PUBLISHED, Status.PUBLISH_UNKNOWN}
        if is_through or str(run.key) in self.published:
            raise Broken(f"{run.key} is {run.status}, and nothing says who let it through")

    def _unread(self, run: Run, decision: Decision, decided: int) -> None:
        if decided or decision.read_hash:
            raise Broken(f"{run.key} was decided by somebody, though nobody reviews it: {decision}")
        if run.status is not Status.PUBLISHED and run.key not in self.lambdas.unpublished:
            raise Broken(f"{run.key} is {run.status}, though nobody needs to decide on it: {run.detail}")

    def _decided_by_a_person(self, run: Run, decision: Decision) -> None:
        verdicts = (Verdict.REJECT,) if decision.reason is not None else (Verdict.APPROVE, Verdict.EDIT)
        made = [asked for asked in self._asked(run, *verdicts) if asked.read_hash == decision.read_hash]
        if not made:
            raise Broken(f"{run.key} has a decision that nobody sent")
        if run.status is Status.PUBLISH_UNKNOWN and str(run.key) in self.tampered:
            return
        if run.status is Status.PUBLISH_UNKNOWN:
            raise Broken(f"{run.key}: {run.detail}")
        if run.status is Status.APPROVED and run.key not in self.lambdas.unpublished:
            raise Broken(f"{run.key} is approved and was never published")
        bodies = self.published.get(str(run.key), set())
        if run.status is Status.PUBLISHED and bodies != {self._text(made[0])}:
            raise Broken(f"{run.key} was published as {bodies}")

    def _is_withdrawn(self, run: Run) -> None:
        """When all is quiet nothing waits that is past its time or that a newer draft replaces."""
        if run.status is not Status.PENDING:
            return
        hours = self.catalogue.ruled(run.drafter).expire_hours
        assert run.drafted is not None
        assert self.swept is not None
        if hours is not None and run.drafted + timedelta(hours=hours) + SKEW < self.swept:
            raise Broken(f"{run.key}, drafted {run.drafted}, is pending though it may wait for {hours} hours")
        for newer in self.rows.values():
            if self._replaces(newer, run):
                raise Broken(f"{run.key} is pending though {newer.key} replaces it")

    def _rejections(self, drafter: str) -> None:
        """A drafter remembers its latest rejections, each once, and nothing that was not rejected."""
        memory = self.plain.memory(drafter)
        rejected = {
            run.slot: run.reason
            for run in self.rows.values()
            if run.status is Status.REJECTED and run.drafter == drafter
        }
        told = {rejection.slot: str(rejection.reason) for rejection in memory.rejections}
        most = min(MOST_REJECTIONS, len(rejected))
        if (
            memory.unreadable
            or len(memory.rejections) != most
            or len(told) != most
            or not told.items() <= rejected.items()
        ):
            raise Broken(f"{drafter} remembers {memory.rejections} of the rejections {rejected}")

    def _cursor(self, drafter: str, source: str) -> None:
        """A source's cursor is exactly behind what stored drafts consumed: nothing lost, nothing twice (G6)."""
        through = self.plain.memory(drafter).cursors.get(source, {}).get("through", 0)
        assert isinstance(through, int)
        passed = self.sources.log(drafter, source)[:through]
        due = Counter(f"{source[0]}{number}" for number, is_item in enumerate(passed, 1) if is_item)
        used = Counter(
            item
            for key, items in self.drafted.items()
            if key.startswith(f"{drafter}:")
            for item in items
            if item.startswith(source[0])
        )
        if used != due:
            raise Broken(f"{source} of {drafter}: its cursor is at {through}, lost {due - used}, twice {used - due}")

    def _calls(self) -> None:
        """The model is called once for an outcome; another call needs an accident after the one before."""
        for (run, _), calls in self.settled.items():
            if calls > 1:
                raise Broken(f"{run} has an outcome from {calls} calls")
        for call in self.api.calls:
            if call not in self.settling and call.worked and not call.task.disturbed:
                raise Broken(f"{call.task.name} called the model for {call.run}, for nothing")

    def _outcomes(self) -> None:
        """Every message ever taken ends as a row that says what became of it, or as a dead letter (G4, G5)."""
        letters = self.sqs.dead_runs.accepted
        for message in self.sqs.runs.accepted:
            key = _key(message)
            run = None if key is None else self.rows.get(key)
            if run is None and not any(_answers(letter, message) for letter in letters):
                raise Broken(f"nothing became of the message {message.body}")
        for letter in letters:
            if letter.attributes.get("reason") in {"rows_disagree", "unexpected_error"}:
                raise Broken(f"{letter.body} was buried for {letter.attributes}")
        for key, run in self.rows.items():
            since = self.requeued.get(key)
            if run.status is Status.FAILED and not any(
                _key(letter) == key and (since is None or letter.sent >= since) for letter in letters
            ):
                raise Broken(f"{key} has failed ({run.reason}: {run.detail}) and is not among the dead letters")

    def _dead(self) -> None:
        """The operator is shown every failed run that nobody is done with, and every tick that died (G5)."""
        dead = list_dead(self.plain, self.queue)
        if dead.unreadable:
            raise Broken(f"rows that cannot be read: {dead.unreadable}")
        listed = {str(run.key) for run in dead.runs if run.row is not None and run.row.status is Status.FAILED}
        letters = {_key(letter) for letter in self.sqs.dead_runs.messages}
        for key, run in self.rows.items():
            is_due = run.status is Status.FAILED and (run.dismissed is None or key in letters)
            if is_due != (key in listed):
                raise Broken(f"{key} is {run.status}, dismissed {run.dismissed}, and listed as dead: {key in listed}")
        ticks = {tick.id for tick in self.sqs.dead_ticks.messages}
        if {named.tick.id for named in dead.ticks} != ticks:
            raise Broken(f"of the dead ticks {ticks} these are listed: {dead.ticks}")

    def _weeks(self) -> None:
        """The week's counters are what happened, and what the rows say."""
        for drafter in self.catalogue.names:
            in_rows = counted_in_rows(run for run in self.rows.values() if run.drafter == drafter)
            for week in {*WEEKS, *in_rows}:
                kept = self.plain.week(drafter, week)
                told = {name: count for name, count in kept.items() if name not in MEASURED}
                seen = {name: n for (of, when, name), n in self.counters.items() if (of, when) == (drafter, week)}
                if told != seen:
                    raise Broken(f"week {week} of {drafter} counts {told}; it was {seen}")
                if as_rows_tell(kept) != in_rows.get(week, {}):
                    raise Broken(f"week {week} of {drafter} counts {kept}; its rows say {in_rows.get(week)}")


def _counted(was: Status | None, run: Run) -> list[str]:
    """Return the names by which a week counts a run that came into its state from another, or from none."""
    if was is Status.FAILED:
        return ["resent"]
    name = COUNTED_AS.get(run.status)
    if run.status is Status.APPROVED and run.decision is not None and not run.decision.read_hash:
        return ["drafted", "unreviewed"]
    if name is None:
        return []
    names = [name]
    if run.status in COUNTED_BY_REASON:
        names.append(f"{name}:{run.reason}")
    if run.status is Status.APPROVED and run.decision is not None and run.decision.edited:
        names.append("edited")
    return names


def _week(slot: datetime) -> str:
    """Return the ISO week in which a slot, in UTC, is counted."""
    return slot.strftime("%G-W%V")


def _message(message: Message) -> RunMessage | None:
    try:
        return read_message(message.body)
    except InvalidMessage:
        return None


def _key(message: Message) -> str | None:
    asked = _message(message)
    return None if asked is None else str(asked.key)


def _answers(letter: Message, message: Message) -> bool:
    """Tell whether a letter is what became of a message: it is that one, or one of the same run sent no earlier."""
    asked, died = _message(message), _message(letter)
    if asked is None or died is None:
        return letter.body == message.body
    return died.key == asked.key and died.resend >= asked.resend
