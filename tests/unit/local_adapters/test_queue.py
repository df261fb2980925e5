"""The local queues, as Amazon SQS and Lambda's asynchronous invocation would behave."""

from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from contract.material import DIGEST, REPORT, later, message
from galley.queue import MAX_RECEIVES, RECEIVES_EXHAUSTED, DeadLetter, DeadTick, QueueUnavailable
from galley.runs import RunMessage, read_message
from galley_cli.local import state as state_module
from galley_cli.local.queue import (
    MOST_INTERRUPTIONS,
    RETRIES_EXHAUSTED,
    Delivery,
    SqliteQueues,
    StaleReceipt,
    TickQueue,
)
from galley_cli.local.state import StateDirectory
from unit.local_adapters.conftest import Clock

VISIBILITY = timedelta(minutes=30)


@pytest.fixture
def queues(state: StateDirectory, clock: Clock) -> SqliteQueues:
    return SqliteQueues(state, now=clock)


@pytest.fixture
def ticks(state: StateDirectory, clock: Clock) -> TickQueue:
    return TickQueue(state, now=clock)


def receive(queue: SqliteQueues | TickQueue, limit: int = 10) -> list[Delivery]:
    return list(queue.receive(visibility=VISIBILITY, limit=limit))


def asked(deliveries: list[Delivery]) -> list[RunMessage]:
    return [read_message(delivery.body) for delivery in deliveries]


def test_a_message_is_handed_out_with_all_that_lambda_tells_of_it(queues: SqliteQueues, clock: Clock) -> None:
    sent = clock()
    queues.send([message()])
    clock.forward(seconds=3)
    (first,) = receive(queues)
    assert read_message(first.body) == message()
    assert (first.group, first.deduplication_id) == (DIGEST, message().deduplication_id)
    assert (first.sent, first.first_received, first.receives) == (sent, clock(), 1)
    clock.forward(minutes=31)
    (second,) = receive(queues)
    assert (second.id, second.sequence, second.receives) == (first.id, first.sequence, 2)
    assert second.first_received == first.first_received
    assert second.receipt != first.receipt


def test_one_message_of_a_group_at_a_time_and_in_order_the_groups_beside_each_other(queues: SqliteQueues) -> None:
    queues.send([message(), later(1), later(2), message(REPORT)])
    first = receive(queues)
    assert asked(first) == [message(), message(REPORT)]
    assert receive(queues) == []
    queues.delete(first[0].receipt)
    assert asked(receive(queues)) == [later(1)]


def test_a_message_that_waits_to_be_tried_again_holds_its_group_back(queues: SqliteQueues, clock: Clock) -> None:
    queues.send([message(), later(1)])
    (delivery,) = receive(queues)
    queues.put_off(delivery.receipt, timedelta(minutes=2))
    clock.forward(seconds=119)
    assert receive(queues) == []
    clock.forward(seconds=1)
    assert asked(receive(queues)) == [message()]


def test_no_more_is_handed_out_than_there_is_room_for_the_oldest_first(queues: SqliteQueues) -> None:
    queues.send([message(f"drafter-{number}") for number in range(5)])
    assert [one.drafter for one in asked(receive(queues, limit=2))] == ["drafter-0", "drafter-1"]
    assert [one.drafter for one in asked(receive(queues, limit=9))] == ["drafter-2", "drafter-3", "drafter-4"]


def test_a_repeated_message_is_swallowed_for_five_minutes_even_when_the_first_is_gone(
    queues: SqliteQueues, clock: Clock
) -> None:
    queues.send([message(), message()])
    (delivery,) = receive(queues)
    queues.delete(delivery.receipt)
    clock.forward(minutes=4, seconds=59)
    queues.send([message()])
    assert queues.waiting() == 0
    queues.send([message(resend=1)])
    assert queues.waiting() == 1
    clock.forward(seconds=1)
    queues.send([message()])
    assert queues.waiting() == 2


def test_the_window_counts_from_the_message_that_was_accepted(queues: SqliteQueues, clock: Clock) -> None:
    queues.send([message()])
    clock.forward(minutes=3)
    queues.send([message()])
    clock.forward(minutes=3)
    queues.send([message()])
    assert queues.waiting() == 2


def test_a_receipt_is_worth_nothing_once_the_message_was_received_again(queues: SqliteQueues, clock: Clock) -> None:
    queues.send([message()])
    (stale,) = receive(queues)
    clock.forward(minutes=30)
    (fresh,) = receive(queues)
    for use in (queues.delete, lambda receipt: queues.put_off(receipt, timedelta())):
        with pytest.raises(StaleReceipt):
            use(stale.receipt)
    assert queues.waiting() == 1
    queues.delete(fresh.receipt)
    assert queues.waiting() == 0


def test_a_receipt_ends_with_the_visibility_even_if_nobody_received_the_message_since(
    queues: SqliteQueues, clock: Clock
) -> None:
    queues.send([message()])
    (delivery,) = receive(queues)
    clock.forward(minutes=30)
    with pytest.raises(StaleReceipt):
        queues.delete(delivery.receipt)
    with pytest.raises(StaleReceipt):
        queues.put_off(delivery.receipt, timedelta(minutes=5))
    assert asked(receive(queues)) == [message()]


def test_deleting_a_message_twice_is_harmless(queues: SqliteQueues) -> None:
    queues.send([message()])
    (delivery,) = receive(queues)
    queues.delete(delivery.receipt)
    queues.delete(delivery.receipt)
    with pytest.raises(StaleReceipt):
        queues.put_off(delivery.receipt, timedelta())


def test_a_message_is_put_off_for_twelve_hours_from_its_receipt_at_most(queues: SqliteQueues, clock: Clock) -> None:
    queues.send([message()])
    received = clock()
    (delivery,) = receive(queues)
    clock.forward(minutes=10)
    queues.put_off(delivery.receipt, timedelta(days=3))
    assert queues.next_due() == received + timedelta(hours=12)
    queues.put_off(delivery.receipt, timedelta(seconds=-5))
    assert queues.next_due() == clock()
    assert asked(receive(queues)) == [message()]


def test_a_message_received_too_often_is_buried_at_the_next_receive_and_its_followers_go_on(
    queues: SqliteQueues, clock: Clock
) -> None:
    queues.send([message(), later(1)])
    for _ in range(MAX_RECEIVES):
        assert asked(receive(queues)) == [message()]
        clock.forward(minutes=30)
    assert queues.dead_runs() == ()
    assert asked(receive(queues)) == [later(1)]
    (letter,) = queues.dead_runs()
    assert letter == DeadLetter(
        body=message().model_dump_json(),
        run=str(message().key),
        reason=RECEIVES_EXHAUSTED,
        detail="was received 5 times and never finished",
        error_type="",
        attempts=5,
        first=clock(),
        last=clock(),
    )
    assert queues.waiting() == 1


def test_a_queue_full_of_dead_messages_is_buried_in_one_go(queues: SqliteQueues, clock: Clock) -> None:
    for name in ("a", "b"):
        queues.send_text(f"no message {name}", group=name, deduplication_id=name)
    for _ in range(MAX_RECEIVES):
        assert len(receive(queues)) == 2
        clock.forward(minutes=30)
    queues.send([message("a")])
    assert asked(receive(queues, limit=1)) == [message("a")]
    assert [(letter.body, letter.run) for letter in queues.dead_runs()] == [
        ("no message a", None),
        ("no message b", None),
    ]


def test_a_letter_buried_again_is_one_letter(queues: SqliteQueues, clock: Clock) -> None:
    letter = DeadLetter("{}", "d:2026-03-02T06:00:00Z", "refusal", "x" * 2_000, "NeverSucceeds", 1, clock(), clock())
    queues.bury(letter)
    queues.bury(letter)
    (kept,) = queues.dead_runs()
    assert kept == letter
    assert len(kept.detail) == 1_000


def test_after_a_restart_what_was_being_handled_is_handed_out_at_once_under_another_receipt(
    state: StateDirectory, queues: SqliteQueues, root: Path, clock: Clock
) -> None:
    queues.send([message(), message(REPORT)])
    killed, put_off = receive(queues)
    queues.put_off(put_off.receipt, timedelta(minutes=7))
    state.close()
    with closing(StateDirectory.open(root)) as reopened:
        again = SqliteQueues(reopened, now=clock)
        assert again.make_all_visible() == 1
        (delivery,) = receive(again)
        assert delivery.id == killed.id
        with pytest.raises(StaleReceipt):
            again.delete(killed.receipt)
        clock.forward(minutes=7)
        assert [one.id for one in receive(again)] == [put_off.id]


@pytest.mark.parametrize("away", [timedelta(), timedelta(days=1)])
def test_a_message_that_many_stops_cut_short_is_as_healthy_as_before(
    queues: SqliteQueues, clock: Clock, away: timedelta
) -> None:
    queues.send([message()])
    for _ in range(MOST_INTERRUPTIONS):
        (delivery,) = receive(queues)
        assert delivery.receives == 1
        clock.forward(seconds=away.total_seconds())
        assert queues.make_all_visible() == 1
    assert queues.make_all_visible() == 0
    assert queues.dead_runs() == ()
    assert asked(receive(queues)) == [message()]


def test_a_stop_takes_back_its_own_receive_alone(queues: SqliteQueues, clock: Clock) -> None:
    queues.send([message()])
    for receives in (1, 2, 3):
        (delivery,) = receive(queues)
        assert delivery.receives == receives
        queues.put_off(delivery.receipt, timedelta(minutes=1))
        queues.make_all_visible()
        assert receive(queues) == []
        clock.forward(minutes=1)
    (delivery,) = receive(queues)
    assert delivery.receives == 4
    queues.make_all_visible()
    (delivery,) = receive(queues)
    assert delivery.receives == 4


@pytest.mark.guarantee("G5")
def test_g5_a_message_that_kills_the_whole_system_each_time_is_buried_in_the_end(
    queues: SqliteQueues, clock: Clock
) -> None:
    queues.send([message(), later(1)])
    receipts = []
    while asked(deliveries := receive(queues)) == [message()]:
        receipts.append(deliveries[0].receipt)
        queues.make_all_visible()
    assert len(set(receipts)) == len(receipts) == MOST_INTERRUPTIONS + MAX_RECEIVES
    assert asked(deliveries) == [later(1)]
    (letter,) = queues.dead_runs()
    assert (letter.reason, letter.attempts) == (RECEIVES_EXHAUSTED, MAX_RECEIVES)


def test_the_next_due_message_tells_how_long_to_sleep(queues: SqliteQueues, clock: Clock) -> None:
    assert queues.next_due() is None
    queues.send([message(), later(1)])
    assert queues.next_due() == clock()
    (delivery,) = receive(queues)
    assert queues.next_due() == clock() + VISIBILITY
    queues.put_off(delivery.receipt, timedelta(minutes=1))
    assert queues.next_due() == clock() + timedelta(minutes=1)
    queues.send([message(REPORT)])
    assert queues.next_due() == clock()


def test_what_is_due_is_handed_out_however_fast_time_goes_by(state: StateDirectory, clock: Clock) -> None:
    def ticking() -> datetime:
        clock.forward(microseconds=1)
        return clock()

    queues = SqliteQueues(state, now=ticking)
    queues.send([message()])
    assert asked(receive(queues)) == [message()]


def test_a_clock_that_was_set_back_hides_no_message(queues: SqliteQueues, clock: Clock) -> None:
    queues.send([message()])
    clock.forward(hours=-2)
    assert asked(receive(queues)) == [message()]


@pytest.mark.parametrize("longest", [timedelta(minutes=5), timedelta(hours=12)])
def test_a_clock_that_was_set_back_makes_no_message_wait_longer_than_a_put_off_can(
    state: StateDirectory, queues: SqliteQueues, clock: Clock, longest: timedelta
) -> None:
    right = clock()
    clock.forward(days=400)
    queues.send([message(), later(1)])
    (delivery,) = receive(queues)
    queues.put_off(delivery.receipt, longest)
    clock.at = right
    assert SqliteQueues(state, now=clock).next_due() == clock()
    queues.make_all_visible()
    assert queues.next_due() == clock()
    (again,) = receive(queues)
    assert read_message(again.body) == message()
    assert receive(queues) == []
    queues.put_off(again.receipt, longest)
    assert queues.next_due() == clock() + longest
    clock.forward(seconds=longest.total_seconds())
    (again,) = receive(queues)
    queues.delete(again.receipt)
    assert asked(receive(queues)) == [later(1)]


def test_a_clock_that_was_set_back_hands_nothing_out_that_is_being_handled(queues: SqliteQueues, clock: Clock) -> None:
    queues.send([message(), later(1)])
    (delivery,) = receive(queues)
    clock.forward(days=-400)
    assert receive(queues) == []
    queues.delete(delivery.receipt)
    assert asked(receive(queues)) == [later(1)]


def test_a_clock_that_was_set_back_swallows_no_message_for_longer_than_five_minutes(
    queues: SqliteQueues, clock: Clock
) -> None:
    right = clock()
    clock.forward(days=400)
    queues.send([message()])
    clock.at = right
    queues.send([message()])
    assert queues.waiting() == 2
    queues.send([message()])
    assert queues.waiting() == 2


def test_a_message_cannot_be_handed_out_for_no_time(queues: SqliteQueues) -> None:
    with pytest.raises(ValueError, match="for a while"):
        queues.receive(visibility=timedelta())


def test_what_could_not_be_sent_is_named(
    queues: SqliteQueues, root: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "TURN_SECONDS", 0.02)
    letter = DeadLetter("{}", "d:2026-03-02T06:00:00Z", "refusal", "", "", 1, clock(), clock())
    with closing(StateDirectory.open(root)) as other, other.write():
        with pytest.raises(QueueUnavailable) as unsent:
            queues.send([message(), later(1)])
        with pytest.raises(QueueUnavailable, match="dead letter"):
            queues.bury(letter)
    assert unsent.value.unsent == (str(message().key), str(later(1).key))
    assert queues.waiting() == 0


def test_ticks_wait_for_no_other_tick_and_survive_a_restart(
    state: StateDirectory, ticks: TickQueue, queues: SqliteQueues, root: Path, clock: Clock
) -> None:
    for number in range(3):
        ticks.enqueue(f'{{"tick": {number}}}')
    first = receive(ticks, limit=2)
    state.close()
    with closing(StateDirectory.open(root)) as reopened:
        again = TickQueue(reopened, now=clock)
        assert again.make_all_visible() == 2
        assert [(one.body, one.receives) for one in receive(again)] == [
            (first[0].body, 1),
            (first[1].body, 1),
            ('{"tick": 2}', 1),
        ]
        assert receive(SqliteQueues(reopened, now=clock)) == []


def test_a_tick_that_dies_at_every_attempt_is_a_dead_tick(ticks: TickQueue, queues: SqliteQueues, clock: Clock) -> None:
    ticks.enqueue("{}")
    for _ in range(3):
        (delivery,) = receive(ticks)
        ticks.put_off(delivery.receipt, timedelta(minutes=1))
        clock.forward(minutes=1)
    assert receive(ticks) == []
    assert queues.dead_ticks() == (DeadTick("{}", RETRIES_EXHAUSTED, "no answer (3 attempts)", clock()),)
    assert ticks.next_due() is None


def test_a_tick_is_moved_to_the_dead_with_its_reason(ticks: TickQueue, queues: SqliteQueues, clock: Clock) -> None:
    ticks.enqueue("[]")
    (delivery,) = receive(ticks)
    ticks.bury(delivery.receipt, "RetriesExhausted", "InvalidTick: drafters: is missing")
    assert ticks.waiting() == 0
    queues.bury_tick(DeadTick("{}", "PublishFailed", "", clock() - timedelta(minutes=1)))
    assert [(tick.body, tick.detail) for tick in queues.dead_ticks()] == [
        ("{}", ""),
        ("[]", "InvalidTick: drafters: is missing"),
    ]


def test_a_tick_that_came_back_is_not_buried_by_who_had_it_before(
    ticks: TickQueue, queues: SqliteQueues, clock: Clock
) -> None:
    ticks.enqueue("{}")
    (delivery,) = receive(ticks)
    clock.forward(minutes=30)
    with pytest.raises(StaleReceipt):
        ticks.bury(delivery.receipt, "RetriesExhausted", "")
    assert queues.dead_ticks() == ()
    assert ticks.waiting() == 1
