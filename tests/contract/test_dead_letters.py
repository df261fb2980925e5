"""The dead: named by the queue, sent again run by run, and taken away; on either system."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import time_machine

from contract.conftest import START
from contract.implementations import RunQueueUnderTest
from contract.implementations.aws import SqsUnderTest
from contract.material import BILL, DIGEST, DRAFT, NO_LIMITS, NOW, REPORT, claim, failed, later, message, pending
from galley.instants import utc_now
from galley.queue import DeadLetter, DeadTick, QueueUnavailable, RemovalFailed, RunQueue
from galley.runs import Origin, Run, RunKey, RunMessage, SkipReason, Status, read_message
from galley.store import AlreadyThere, Claimed, Conflict, Duplicate, Gated, Limits, NoSuchRun, Settled, Store
from galley_cli.dead import DeadThing, Report, Resending, Sent, discard_dead, list_dead, new_things
from galley_cli.local.queue import SqliteQueues

KEY = message().key
OTHER = later(1).key
MOMENT = timedelta(seconds=1)


class Crash(BaseException):
    """The process ends here."""


class Steps:
    """A store or a queue whose requests take a pause, or end in a crash before or after the step that is named."""

    def __init__(self, inner: Any, crash: str = "never", pause: Callable[[], object] = lambda: None) -> None:
        self._inner = inner
        self._crash = crash
        self._pause = pause

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)

        def step(*arguments: Any, **named: Any) -> Any:
            self._pause()
            if self._crash == f"before {name}":
                raise Crash
            result = found(*arguments, **named)
            if self._crash == f"after {name}":
                raise Crash
            return result

        return step


@dataclass
class System:
    """A store and queues of one implementation, and a worker that drafts whatever is sent."""

    store: Store
    ends: RunQueueUnderTest
    clock: time_machine.Traveller

    @property
    def queue(self) -> RunQueue:
        """The queue, at which each request takes a moment: what is shown again is visible only later than now."""
        return cast("RunQueue", Steps(self.ends.queue, pause=lambda: self.clock.shift(MOMENT)))

    def letters(self) -> list[str | None]:
        return [letter.run for letter in self.queue.dead_runs()]

    def resending(self, store: Any = None, queue: Any = None) -> Resending:
        return Resending(store or self.store, queue or self.queue, now=lambda: NOW, trace="trace")

    def discard(self, things: Sequence[DeadThing], store: Any = None, queue: Any = None) -> Report:
        report = Report()
        discard_dead(store or self.store, queue or self.queue, things, now=NOW, report=report)
        return report

    def resend(self, *names: str) -> Report:
        resending = self.resending()
        dead = list_dead(self.store, self.queue)
        resending.resend([thing for name in names if (thing := dead.named(name)) is not None])
        return resending.report

    def now(self) -> datetime:
        return utc_now()

    def row(self, key: RunKey = KEY) -> Run:
        run = self.store.run(key)
        assert run is not None
        return run

    def work(self, limits: Limits = NO_LIMITS) -> list[RunMessage]:
        """Handle every message that there is, as draft does, and return them."""
        handled = []
        while (found := self.ends.receive()) is not None:
            asked = read_message(found.body)
            handled.append(asked)
            match claim(self.store, asked, limits):
                case Claimed(run):
                    self.store.store(run, DRAFT, {}, BILL, now=NOW)
                case Gated(count):
                    self.store.skip(asked, SkipReason.GATE, f"{count} wait", now=NOW)
                case Duplicate():
                    pass
                case other:
                    raise AssertionError(other)
            self.ends.delete(found.receipt)
        return handled


@pytest.fixture
def system(
    implementation: Any, tmp_path: Path, clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
) -> Iterator[System]:
    monkeypatch.setattr("contract.implementations.aws._never", lambda seconds: clock.shift(seconds))
    with implementation.open_queue(tmp_path / "queue") as ends, implementation.open_store(tmp_path / "store") as store:
        yield System(store, ends, clock)


def letter(asked: RunMessage, reason: str = "refusal", minute: int = 0) -> DeadLetter:
    at = START + timedelta(minutes=minute)
    return DeadLetter(asked.model_dump_json(), str(asked.key), reason, "no", "NeverSucceeds", 1, at, at)


def dead_run(system: System, asked: RunMessage | None = None, minute: int = 0) -> RunMessage:
    """Let a run fail for good, as draft does: the letter, then the row."""
    asked = asked or message()
    system.queue.bury(letter(asked, minute=minute))
    failed(system.store, asked)
    return asked


def test_the_dead_have_ids_that_stay_the_same(system: System) -> None:
    system.queue.bury(letter(message()))
    system.queue.bury(letter(later(1), minute=1))
    first, again = system.queue.dead_runs(), system.queue.dead_runs()
    assert [one.id for one in first] == [one.id for one in again]
    assert len({one.id for one in first} - {""}) == 2


def test_letters_are_taken_away_by_their_ids_and_the_others_stay(system: System) -> None:
    for number in range(25):
        system.queue.bury(letter(later(number), minute=number))
    ids = [one.id for one in system.queue.dead_runs()]
    gone = set(ids[3:17])

    assert system.queue.remove_dead_runs(gone) == gone
    assert [one.id for one in system.queue.dead_runs()] == ids[:3] + ids[17:]


@pytest.mark.parametrize("there", [0, 1])
def test_a_letter_that_is_gone_already_is_nothing(system: System, there: int) -> None:
    system.queue.bury(letter(message()))
    system.queue.bury(letter(later(1)))
    ids = [one.id for one in system.queue.dead_runs()]
    system.queue.remove_dead_runs(ids[there:])

    assert system.queue.remove_dead_runs([*ids, "no such id", "", "1.0", "' OR 1=1"]) == set(ids[:there])
    assert system.queue.remove_dead_runs([]) == frozenset()
    assert system.queue.remove_dead_ticks(ids) == frozenset()


@pytest.mark.guarantee("G5")
def test_g5_one_of_two_failed_runs_is_sent_again_and_the_other_stays(system: System) -> None:
    dead_run(system)
    dead_run(system, later(1), minute=1)

    report = system.resend(str(KEY))

    assert report == Report(sent=[Sent(str(KEY), (str(KEY),))])
    assert (system.row().status, system.row().resend) == (Status.QUEUED, 1)
    assert system.row(OTHER).status is Status.FAILED
    assert system.letters() == [str(OTHER)]
    assert system.work() == [message(resend=1)]
    assert system.row().status is Status.PENDING


@pytest.mark.guarantee("G1")
@pytest.mark.guarantee("G5")
def test_g1_g5_a_run_that_is_sent_again_twice_is_drafted_once(system: System) -> None:
    dead_run(system)
    assert system.resend(str(KEY)).sent
    assert system.resend(str(KEY)).sent == [Sent(str(KEY), (str(KEY),))], "it is still queued, so it is sent again"
    assert len(system.work()) == 1, "the queue swallows the second"
    (third,) = system.resend(str(KEY)).refused
    assert "is pending; there is nothing to send" in third.why
    system.clock.shift(timedelta(minutes=6))
    system.queue.send([message(resend=1)])
    assert len(system.work()) == 1
    assert (system.row().status, system.row().attempts) == (Status.PENDING, 1)
    assert system.store.drafter(DIGEST).pending == 1


@pytest.mark.guarantee("G1")
@pytest.mark.guarantee("G5")
def test_g1_g5_two_people_who_send_a_run_again_at_once_send_one_message(system: System) -> None:
    dead_run(system)
    first, second = system.resending(), system.resending()
    listed = list_dead(system.store, system.queue)
    also_listed = list_dead(system.store, system.queue)

    first.resend(listed.runs)
    second.resend(also_listed.runs)

    assert first.report.refused == second.report.refused == []
    assert system.letters() == []
    assert system.work() == [message(resend=1)]
    assert system.row().resend == 1


@pytest.mark.guarantee("G5")
def test_g5_who_is_overtaken_between_looking_and_queueing_sends_the_same_message(system: System) -> None:
    dead_run(system)
    other = system.resending()
    things = list_dead(system.store, system.queue).runs

    class Overtaken(Steps):
        def resend(self, key: RunKey, *, now: datetime) -> Settled | Conflict | NoSuchRun:
            other.resend(things)
            return system.store.resend(key, now=now)

    mine = system.resending(store=Overtaken(system.store))
    mine.resend(things)
    assert (mine.report.sent, mine.report.refused) == ([Sent(str(KEY), (str(KEY),))], [])
    assert system.work() == [message(resend=1)]


@pytest.mark.guarantee("G2")
@pytest.mark.guarantee("G5")
def test_g2_g5_a_run_that_is_sent_again_passes_no_full_gate(system: System) -> None:
    dead_run(system)
    pending(system.store, later(1))

    system.resend(str(KEY))
    system.work(Limits(pending=1, daily_budget_nanousd=None, worst_cost_nanousd=0))

    assert (system.row().status, system.row().reason) == (Status.SKIPPED, "gate")
    assert system.letters() == []
    assert system.store.drafter(DIGEST).pending == 1


STEPS = {
    "row and letter": ("resend", "send", "remove_dead_runs"),
    "row": ("resend", "send"),
    "letter": ("queue", "send", "remove_dead_runs"),
    "two letters": ("resend", "send", "remove_dead_runs"),
}
CRASHES = [
    (f"{when} {step}", found) for found, steps in STEPS.items() for step in steps for when in ("before", "after")
]


@pytest.mark.guarantee("G1")
@pytest.mark.guarantee("G5")
@pytest.mark.parametrize("meanwhile", ["it is drafted", "nothing", "the queue forgets what was sent"])
@pytest.mark.parametrize(("crash", "found"), CRASHES)
def test_g1_g5_a_crash_anywhere_loses_nothing_and_the_same_command_repairs_it(
    system: System, crash: str, found: str, meanwhile: str
) -> None:
    if found != "row":
        system.queue.bury(letter(message()))
    if found == "two letters":
        system.queue.bury(letter(message(), "abandoned", minute=1))
    if found != "letter":
        failed(system.store)
    crashing = system.resending(Steps(system.store, crash), Steps(system.queue, crash))
    with pytest.raises(Crash):
        crashing.resend(list_dead(system.store, system.queue).runs)
    if meanwhile == "it is drafted":
        system.work()
    if meanwhile == "the queue forgets what was sent":
        system.clock.shift(timedelta(minutes=6))

    system.resend(str(KEY))

    system.work()
    row = system.row()
    assert (row.status, row.attempts, row.resend) == (Status.PENDING, 1, 1)
    assert system.store.drafter(DIGEST).pending == 1
    assert system.letters() == []


@pytest.mark.guarantee("G5")
def test_g5_a_letter_without_a_row_is_sent_under_a_new_number_that_no_grace_binds(system: System) -> None:
    system.queue.bury(letter(message(resend=2, renewal=3)))
    system.queue.bury(letter(message(resend=1, renewal=7), minute=1))

    assert system.resend(str(KEY)).sent == [Sent(str(KEY), (str(KEY),))]

    (sent,) = system.work()
    assert (sent.resend, sent.renewal) == (3, 0)
    assert not sent.is_late(NOW + timedelta(days=30))
    assert system.letters() == []


@pytest.mark.guarantee("G5")
def test_g5_a_queued_run_whose_message_died_is_sent_at_once_though_the_queue_remembers_that_message(
    system: System,
) -> None:
    dead_run(system)
    system.resend(str(KEY))
    received = system.ends.receive()
    assert received is not None
    system.queue.bury(letter(message(resend=1), "receives_exhausted", minute=1))
    system.ends.delete(received.receipt)

    assert system.resend(str(KEY)).sent

    assert system.work() == [message(resend=1, renewal=1)]
    assert (system.row().status, system.letters()) == (Status.PENDING, [])


@pytest.mark.guarantee("G5")
@pytest.mark.parametrize("status", [Status.DRAFTING, Status.PENDING, Status.SKIPPED, Status.EMPTY])
def test_g5_a_letter_of_a_run_that_went_on_is_not_sent_and_stays(system: System, status: Status) -> None:
    system.queue.bury(letter(message()))
    match status:
        case Status.DRAFTING:
            claim(system.store)
        case Status.PENDING:
            pending(system.store)
        case Status.SKIPPED:
            system.store.skip(message(), SkipReason.PAUSED, "by Ada", now=NOW)
        case _:
            outcome = claim(system.store)
            assert isinstance(outcome, Claimed)
            system.store.release(outcome.run, status, "nothing_new", "", BILL, now=NOW)

    report = system.resend(str(KEY))

    (refused,) = report.refused
    assert (report.sent, refused.name) == ([], str(KEY))
    assert f"run {KEY} is {status}" in refused.why
    assert system.work() == []
    assert system.letters() == [str(KEY)]


def test_all_of_the_dead_are_sent_and_each_refusal_is_told(system: System) -> None:
    dead_run(system)
    dead_run(system, message(REPORT), minute=1)
    failed(system.store, later(1))
    system.queue.bury(letter(later(2), minute=2))
    system.queue.bury(replace(letter(message(), "invalid_message", minute=3), body="{", run=None))
    pending(system.store, later(3))
    system.queue.bury(letter(later(3), minute=4))

    resending = system.resending()
    resending.resend_all()

    sent = {one.name for one in resending.report.sent}
    assert sent == {str(key) for key in (KEY, message(REPORT).key, later(1).key, later(2).key)}
    why = [one.why for one in resending.report.refused]
    assert len(why) == 2
    assert "cannot be read, so it cannot be sent" in why[0]
    assert "is pending" in why[1]
    assert system.letters() == [None, str(later(3).key)]


def test_a_run_that_fails_again_while_all_are_sent_is_sent_once(system: System) -> None:
    dead_run(system)

    class Failing(Steps):
        """A queue whose worker fails each message at once."""

        def send(self, messages: Sequence[RunMessage]) -> None:
            assert len(messages) < 10
            for one in messages:
                system.queue.bury(letter(one, minute=one.resend))
                outcome = claim(system.store, one)
                assert isinstance(outcome, Claimed)
                system.store.release(outcome.run, Status.FAILED, "refusal", "no", BILL, now=NOW)

    resending = system.resending(queue=Failing(system.queue))
    resending.resend_all()
    assert (len(resending.report.sent), system.row().resend) == (1, 1)
    assert system.letters() == [str(KEY)], "the letter of its second death stays"


def test_a_queue_that_takes_no_message_leaves_everything_to_be_sent_again(system: System) -> None:
    dead_run(system)
    dead_run(system, message(REPORT), minute=1)

    class Down(Steps):
        def send(self, messages: Sequence[RunMessage]) -> None:
            if messages[0].drafter == DIGEST:
                raise QueueUnavailable([str(messages[0].key)], "the queue is away")
            system.queue.send(messages)

    resending = system.resending(queue=Down(system.queue))
    resending.resend_all()
    assert [one.name for one in resending.report.sent] == [str(message(REPORT).key)]
    (refused,) = resending.report.refused
    assert "the queue is away; nothing is lost, send it again" in refused.why
    assert system.letters() == [str(KEY)]
    assert system.resend(str(KEY)).sent
    assert {one.key for one in system.work()} == {KEY, message(REPORT).key}


def test_a_run_that_was_refused_is_refused_once_though_another_letter_of_it_comes_into_view(system: System) -> None:
    dead_run(system)

    class Down(Steps):
        def send(self, messages: Sequence[RunMessage]) -> None:
            system.queue.bury(letter(message(), "abandoned", minute=1))
            raise QueueUnavailable([str(KEY)], "the queue is away")

    resending = system.resending(queue=Down(system.queue))
    resending.resend_all()
    assert [one.name for one in resending.report.refused] == [str(KEY)]
    assert system.letters() == [str(KEY), str(KEY)]


@pytest.mark.parametrize(
    ("body", "run", "name"),
    [
        ("{", "daily-digest:2026-03-02T06:00:00Z", "daily-digest:2026-03-02T06:00:00Z"),
        ("{", "no run", "letter-"),
        ("{", "\x1b[2J", "letter-"),
        ("{", "Übel:2026-03-02T06:00:00Z", "letter-"),
        ("{", ":", "letter-"),
        (message().model_dump_json(), "somebody-else:2026-03-02T06:00:00Z", str(KEY)),
        (message().model_dump_json(), None, str(KEY)),
    ],
)
def test_a_letter_is_named_for_what_would_be_sent(system: System, body: str, run: str | None, name: str) -> None:
    system.queue.bury(replace(letter(message()), body=body, run=run))
    (dead,) = list_dead(system.store, system.queue).runs
    assert dead.name.startswith(name)
    report = system.resend(dead.name)
    if body == "{":
        assert [one.name for one in report.refused] == [dead.name]
        assert system.work() == []
    else:
        assert report.sent == [Sent(name, (name,))]
        assert [one.key for one in system.work()] == [KEY]


TICK = {"drafters": [DIGEST, REPORT], "window_minutes": 30, "grace_minutes": 120, "catch_up": "latest"}
ARN = "arn:aws:scheduler:eu-west-2:123456789012:schedule/galley/Daily"
DUE = "2026-02-20T06:00:00Z"


def dead_tick(system: System, body: str, said: dict[str, str] | None = None) -> None:
    """Put a tick among the dead, as its sender does."""
    if isinstance(system.ends, SqsUnderTest):
        attributes: Any = {name: {"DataType": "String", "StringValue": text} for name, text in (said or {}).items()}
        url = system.ends.queue._dead_ticks_url
        system.ends.client.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)
    else:
        cast("SqliteQueues", system.ends.queue).bury_tick(DeadTick(body, "RetriesExhausted", "no answer", system.now()))


def sent_of(system: System) -> list[tuple[str, Origin, str | None, int]]:
    return [(str(one.key), one.origin, one.schedule, one.resend) for one in system.work()]


@pytest.mark.guarantee("G5")
@pytest.mark.guarantee("G1")
def test_g1_g5_a_dead_tick_is_sent_again_for_its_own_slot_and_leaves_the_dead(system: System) -> None:
    dead_tick(system, json.dumps({**TICK, "slot": DUE, "schedule": ARN}))
    dead_tick(system, json.dumps({**TICK, "slot": "2026-02-21T06:00:00Z", "schedule": ARN}))
    there = message(REPORT, RunKey.parse(f"{REPORT}:{DUE}").slot)
    pending(system.store, there)
    dead = list_dead(system.store, system.queue)
    asked = next(one for one in dead.ticks if DUE in one.tick.body)

    report = system.resend(asked.name)

    assert report.sent == [Sent(asked.name, (f"{DIGEST}:{DUE}",))]
    (refused,) = report.refused
    assert (refused.name, refused.why) == (
        str(there.key),
        f"{asked.name}: run {there.key} is pending; there is nothing to send",
    )
    assert sent_of(system) == [(f"{DIGEST}:{DUE}", Origin.SCHEDULE, ARN, 1)]
    assert system.row(there.key).attempts == 1, "its row was there already"
    assert [one.name for one in list_dead(system.store, system.queue).ticks] == [
        one.name for one in dead.ticks if one != asked
    ]


def due(name: str) -> RunMessage:
    """The message of the dead tick for a drafter, as dispatch would have sent it."""
    return message(name, RunKey.parse(f"{name}:{DUE}").slot)


def resent_tick(system: System, **named: Any) -> tuple[str, Report]:
    """Send the only dead tick again; return its name and what became of it."""
    resending = system.resending(**named)
    (tick,) = list_dead(system.store, system.queue).ticks
    resending.resend([tick])
    return tick.name, resending.report


@pytest.mark.guarantee("G5")
def test_g5_a_failed_run_of_a_dead_tick_is_sent_again_as_by_its_name(system: System) -> None:
    dead_tick(system, json.dumps({**TICK, "slot": DUE}))
    for name in (DIGEST, REPORT):
        failed(system.store, due(name))

    name, report = resent_tick(system)

    assert report == Report(sent=[Sent(name, (f"{DIGEST}:{DUE}", f"{REPORT}:{DUE}"))])
    assert len(system.work()) == 2
    assert {system.row(due(name).key).status for name in (DIGEST, REPORT)} == {Status.PENDING}
    assert list_dead(system.store, system.queue).all == ()


@pytest.mark.guarantee("G5")
def test_g5_a_dead_tick_whose_slots_were_given_up_is_refused_run_by_run_and_stays(system: System) -> None:
    dead_tick(system, json.dumps({**TICK, "slot": DUE}))
    for name in (DIGEST, REPORT):
        system.store.skip(due(name), SkipReason.MISFIRED, "its tick never came", now=NOW)

    name, report = resent_tick(system)

    assert report.sent == []
    assert [(one.name, one.why) for one in report.refused] == [
        (
            f"{drafter}:{DUE}",
            f"{name}: run {drafter}:{DUE} is skipped (misfired); there is nothing to send; "
            f"'galley dlq discard {name}' takes the tick away",
        )
        for drafter in (DIGEST, REPORT)
    ]
    assert system.work() == []
    assert [tick.name for tick in list_dead(system.store, system.queue).ticks] == [name]


@pytest.mark.guarantee("G5")
def test_g5_a_tick_of_which_a_run_could_not_be_sent_now_stays_for_it(system: System) -> None:
    dead_tick(system, json.dumps({**TICK, "slot": DUE}))

    class Down(Steps):
        def send(self, messages: Sequence[RunMessage]) -> None:
            if messages[0].drafter == REPORT:
                raise QueueUnavailable([str(messages[0].key)], "the queue is away")
            system.queue.send(messages)

    name, report = resent_tick(system, queue=Down(system.queue))
    assert report.sent == [Sent(name, (f"{DIGEST}:{DUE}",))]
    (refused,) = report.refused
    assert refused.why.startswith(f"{name}: {REPORT}:{DUE}: ")
    assert refused.why.endswith("the queue is away; the tick stays, send it again")
    system.work()

    again, report = resent_tick(system)
    assert (again, report.sent) == (name, [Sent(name, (f"{REPORT}:{DUE}",))])
    assert [one.name for one in report.refused] == [f"{DIGEST}:{DUE}"]
    system.work()
    assert system.row(due(REPORT).key).status is Status.PENDING
    assert list_dead(system.store, system.queue).ticks == ()


def test_a_run_that_fails_again_is_sent_once_though_a_tick_asks_for_it_too(system: System) -> None:
    dead_tick(system, json.dumps({**TICK, "drafters": [DIGEST], "slot": DUE}))
    dead_run(system, due(DIGEST))

    class Failing(Steps):
        """A queue whose worker fails each message at once."""

        def send(self, messages: Sequence[RunMessage]) -> None:
            for one in messages:
                failed(system.store, one)

    resending = system.resending(queue=Failing(system.queue))
    resending.resend_all()

    assert [one.runs for one in resending.report.sent] == [(f"{DIGEST}:{DUE}",)] * 2
    assert system.row(due(DIGEST).key).resend == 1
    assert list_dead(system.store, system.queue).ticks == ()


@pytest.mark.guarantee("G5")
@pytest.mark.parametrize("dead", ["letter", "tick"])
def test_g5_what_is_sent_without_a_row_is_not_given_up_by_the_sweep_before_it_is_handled(
    system: System, dead: str
) -> None:
    if dead == "letter":
        system.queue.bury(letter(due(DIGEST)))
    else:
        dead_tick(system, json.dumps({**TICK, "drafters": [DIGEST], "slot": DUE}))
    system.resending().resend_all()

    row = system.row(due(DIGEST).key)
    assert (row.status, row.resend, row.attempts) == (Status.QUEUED, 1, 0)
    (asked,) = system.work()
    assert asked.resend == 1
    assert system.row(due(DIGEST).key).status is Status.PENDING


@pytest.mark.guarantee("G5")
@pytest.mark.parametrize("dead", ["letter", "tick"])
def test_g5_who_finds_a_row_where_none_was_looks_again(system: System, dead: str) -> None:
    if dead == "letter":
        system.queue.bury(letter(due(DIGEST)))
    else:
        dead_tick(system, json.dumps({**TICK, "drafters": [DIGEST], "slot": DUE}))

    class Overtaken(Steps):
        """A store in which the sweep is a moment faster."""

        def queue(self, asked: RunMessage, *, now: datetime) -> Settled | AlreadyThere:
            system.store.skip(due(DIGEST), SkipReason.MISFIRED, "its tick never came", now=NOW)
            return system.store.queue(asked, now=now)

    mine = system.resending(store=Overtaken(system.store))
    mine.resend(list_dead(system.store, system.queue).all)

    (refused,) = mine.report.refused
    assert mine.report.sent == []
    assert f"run {DIGEST}:{DUE} is skipped (misfired)" in refused.why
    assert len(list_dead(system.store, system.queue).all) == 1


@pytest.mark.guarantee("G5")
def test_g5_a_row_whose_message_was_not_sent_is_sent_by_its_name_which_the_refusal_tells(system: System) -> None:
    failed(system.store)

    class Down(Steps):
        def send(self, messages: Sequence[RunMessage]) -> None:
            raise QueueUnavailable([str(KEY)], "the queue is away")

    resending = system.resending(queue=Down(system.queue))
    resending.resend_all()
    (refused,) = resending.report.refused
    assert refused.why.endswith("the queue is away; nothing is lost, send it again by its name")

    again = system.resending()
    again.resend_all()
    assert again.report == Report(), "a queued row is not dead"
    assert system.resend(str(KEY)).sent
    assert system.work() == [message(resend=1)]


@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 3_000 + "1" + "}" * 3_000])
def test_a_tick_that_is_nested_too_deep_is_listed_and_refused(system: System, body: str) -> None:
    dead_tick(system, body)
    name, report = resent_tick(system)
    (refused,) = report.refused
    assert refused.why.startswith(f"{name} cannot be sent: its body")
    assert len(refused.why) < 1_000
    assert [tick.name for tick in list_dead(system.store, system.queue).ticks] == [name]


def test_a_tick_without_a_slot_has_the_minute_that_the_queue_knows(system: System) -> None:
    body = {**TICK, "drafters": [DIGEST], "slot": "<aws.scheduler.scheduled-time>"}
    dead_tick(system, json.dumps({**body, "schedule": "<aws.scheduler.schedule-arn>"}))
    (named,) = list_dead(system.store, system.queue).ticks

    system.resend(named.name)

    minute = START.isoformat().replace("+00:00", "Z")
    assert sent_of(system) == [(f"{DIGEST}:{minute}", Origin.MANUAL, None, 1)]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("not json", "cannot be sent: its body: is not JSON"),
        ("[]", "cannot be sent: its body"),
        ('{"drafters": ["daily-digest"]}', "window_minutes is missing"),
        ('{"run": "daily-digest:2026-03-02T06:00:00Z", "sequence": "7"}', "publish could not handle run daily-digest"),
        ('{"sweep": "2026-03-02T06:00:00Z"}', "is no tick but a sweep"),
    ],
)
def test_what_is_no_tick_is_refused_with_what_to_do(system: System, body: str, why: str) -> None:
    dead_tick(system, body)
    (named,) = list_dead(system.store, system.queue).ticks

    (refused,) = system.resend(named.name).refused

    assert why in refused.why
    assert f"'galley dlq discard {named.name}'" in refused.why
    assert system.work() == []
    assert len(list_dead(system.store, system.queue).ticks) == 1


TICK_CRASHES = [f"{when} {step}" for step in ("queue", "send", "remove_dead_ticks") for when in ("before", "after")]


@pytest.mark.parametrize("crash", TICK_CRASHES)
def test_a_crash_while_a_tick_is_sent_loses_no_run(system: System, crash: str) -> None:
    dead_tick(system, json.dumps({**TICK, "slot": DUE, "schedule": ARN}))
    crashing = system.resending(Steps(system.store, crash), Steps(system.queue, crash))
    with pytest.raises(Crash):
        crashing.resend(list_dead(system.store, system.queue).ticks)
    system.clock.shift(timedelta(minutes=6))
    again = system.resending()
    again.resend_all()
    system.work()
    for name in (DIGEST, REPORT):
        assert system.row(RunKey.parse(f"{name}:{DUE}")).attempts == 1
    assert list_dead(system.store, system.queue).ticks == ()


def discarded(system: System, *names: str) -> Report:
    dead = list_dead(system.store, system.queue)
    return system.discard([thing for name in names if (thing := dead.listed(name)) is not None])


def test_what_is_discarded_is_listed_no_longer_and_its_row_stays(system: System) -> None:
    dead_run(system)
    dead_run(system, later(1), minute=1)
    failed(system.store, later(2))
    system.queue.bury(letter(later(3), minute=2))
    dead_tick(system, "not json")
    (tick,) = list_dead(system.store, system.queue).ticks
    names = [str(later(2).key), str(KEY), str(later(3).key), tick.name]

    assert discarded(system, *names) == Report(discarded=names)

    dead = list_dead(system.store, system.queue)
    assert ([run.name for run in dead.runs], dead.ticks) == ([str(OTHER)], ())
    assert system.row().status is system.row(later(2).key).status is Status.FAILED
    assert system.store.run(later(3).key) is None


@pytest.mark.parametrize("crash", ["before dismiss", "after dismiss", "before remove_dead_runs"])
def test_a_crash_while_a_run_is_discarded_leaves_it_listed_and_the_same_again_is_enough(
    system: System, crash: str
) -> None:
    dead_run(system)
    with pytest.raises(Crash):
        system.discard(
            list_dead(system.store, system.queue).runs, Steps(system.store, crash), Steps(system.queue, crash)
        )
    assert [run.name for run in list_dead(system.store, system.queue).runs] == [str(KEY)]

    assert discarded(system, str(KEY)) == Report(discarded=[str(KEY)])
    assert list_dead(system.store, system.queue).runs == ()


def test_the_letter_of_a_run_that_went_on_is_discarded_and_the_run_is_not(system: System) -> None:
    system.queue.bury(letter(message()))
    run = pending(system.store)

    assert discarded(system, str(KEY)) == Report(discarded=[str(KEY)])

    assert system.row() == run
    assert system.letters() == []


def test_what_was_sent_again_in_the_meantime_is_not_discarded(system: System) -> None:
    failed(system.store)
    things = list_dead(system.store, system.queue).runs
    system.resend(str(KEY))
    report = system.discard(things)
    assert (report.discarded, [one.why for one in report.refused]) == (
        [],
        [f"run {KEY} is queued; there is nothing to discard"],
    )
    assert len(system.work()) == 1


def test_what_somebody_else_took_away_in_the_meantime_is_told(system: System) -> None:
    dead_run(system)
    dead_tick(system, json.dumps({**TICK, "slot": DUE}))
    dead = list_dead(system.store, system.queue)
    discarded(system, str(KEY), dead.ticks[0].name)

    late = system.resending()
    late.resend(dead.all)

    names = [str(KEY), dead.ticks[0].name]
    assert ([one.name for one in late.report.sent], late.report.refused) == (names, [])
    assert late.report.not_found == names
    assert system.discard(dead.all) == Report(not_found=names)


def test_a_run_with_two_letters_is_discarded_once_both_are_gone(system: System) -> None:
    system.queue.bury(letter(message()))
    system.queue.bury(letter(message(), "abandoned", minute=1))
    (dead,) = list_dead(system.store, system.queue).runs
    system.queue.remove_dead_runs([dead.letters[0].id])

    assert system.discard([dead]) == Report(not_found=[str(KEY)])


class Stuck(Steps):
    """A queue that lets go of no letter of a run."""

    def remove_dead_runs(self, ids: Collection[str]) -> frozenset[str]:
        raise RemovalFailed((), "not allowed")


def test_a_queue_that_does_not_let_go_is_told_and_the_same_again_clears_it(system: System) -> None:
    dead_run(system)

    resending = system.resending(queue=Stuck(system.queue))
    resending.resend(list_dead(system.store, system.queue).runs)
    assert [one.name for one in resending.report.sent] == [str(KEY)]
    (refused,) = resending.report.refused
    assert "still lies among the dead: could not remove every dead message: not allowed" in refused.why
    system.work()
    assert system.resend(str(KEY)) == Report(sent_before=[str(KEY)])
    assert system.letters() == []


def test_what_a_queue_does_not_let_go_is_not_discarded_and_the_same_again_clears_it(system: System) -> None:
    dead_run(system)
    failed(system.store, later(1))
    dead_tick(system, "not json")
    dead = list_dead(system.store, system.queue)

    report = system.discard(dead.all, queue=Stuck(system.queue))

    assert report.discarded == [str(OTHER), dead.ticks[0].name]
    assert report.not_found == []
    (refused,) = report.refused
    assert refused.name == str(KEY)
    assert "still lies among the dead: could not remove every dead message: not allowed" in refused.why
    assert discarded(system, str(KEY)) == Report(discarded=[str(KEY)])
    assert list_dead(system.store, system.queue).all == ()


class OneAtATime(Steps):
    """A queue that shows only the first of its letters."""

    def dead_runs(self, *, limit: int) -> tuple[DeadLetter, ...]:
        return cast("RunQueue", self._inner).dead_runs()[:1]


def test_listings_are_gone_through_until_one_shows_nothing_new(system: System) -> None:
    queue: Any = OneAtATime(system.queue)
    for number in range(3):
        system.queue.bury(letter(later(number), minute=number))
    failed(system.store, later(3))
    report = Report()

    shown = []
    for things in new_things(system.store, queue, report):
        shown.append([thing.name for thing in things])
        if len(shown) < 3:
            system.queue.remove_dead_runs([system.queue.dead_runs()[0].id])

    first, second, third, row = (str(later(number).key) for number in range(4))
    assert shown == [[first, row], [second], [third]]
    assert report == Report()


def test_what_is_more_than_one_command_goes_through_is_told(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("galley_cli.dead.MOST_ROUNDS", 2)
    for number in range(3):
        system.queue.bury(letter(later(number), minute=number))

    resending = system.resending(queue=OneAtATime(system.queue))
    resending.resend_all()

    assert len(resending.report.sent) == 2
    assert [one.name for one in resending.report.refused] == ["--all"]
    assert "repeat it" in resending.report.refused[0].why
    assert system.letters() == [str(later(2).key)]
