"""The queues: run messages in order for each drafter, and the dead with their reasons."""

from datetime import timedelta

import pytest
import time_machine

from contract.conftest import START
from contract.implementations import VISIBILITY, Received, RunQueueUnderTest
from contract.material import DIGEST, REPORT, later, message
from galley.queue import MAX_RECEIVES, RECEIVES_EXHAUSTED, DeadLetter
from galley.runs import RunMessage, read_message
from galley.texts import CUT_MARK

LETTER = DeadLetter(
    body=message().model_dump_json(),
    run=str(message().key),
    reason="refusal",
    detail="the model refused – „nein“",
    error_type="NeverSucceeds",
    attempts=2,
    first=START - timedelta(minutes=4),
    last=START,
)
MOMENT = timedelta(seconds=1)


def receive(queues: RunQueueUnderTest) -> Received:
    found = queues.receive()
    assert found is not None
    return found


def received(queues: RunQueueUnderTest) -> RunMessage:
    return read_message(receive(queues).body)


def finish(queues: RunQueueUnderTest) -> RunMessage:
    """Receive the next message and let it be done with."""
    found = receive(queues)
    queues.delete(found.receipt)
    return read_message(found.body)


def exhaust(queues: RunQueueUnderTest, clock: time_machine.Traveller) -> None:
    """Let the next message be received until the queue has enough of it."""
    for number in range(MAX_RECEIVES):
        assert receive(queues).receives == number + 1
        clock.shift(VISIBILITY + MOMENT)
    assert queues.receive() is None


def test_a_message_arrives_as_it_was_sent(queues: RunQueueUnderTest) -> None:
    sent = message(resend=2)

    queues.queue.send([sent])

    found = receive(queues)
    assert (read_message(found.body), found.receives) == (sent, 1)


def test_nothing_sent_is_nothing_received(queues: RunQueueUnderTest) -> None:
    queues.queue.send([])

    assert queues.receive() is None
    assert queues.queue.dead_runs() == ()
    assert queues.queue.dead_ticks() == ()


@pytest.mark.guarantee("G3")
def test_g3_one_drafters_messages_come_in_order_and_one_at_a_time(queues: RunQueueUnderTest) -> None:
    sent = [later(number) for number in range(25)]
    queues.queue.send(sent)

    first = receive(queues)
    assert queues.receive() is None
    queues.delete(first.receipt)

    assert [read_message(first.body), *(finish(queues) for _ in range(24))] == sent
    assert queues.receive() is None


@pytest.mark.guarantee("G3")
def test_g3_a_drafter_that_is_busy_delays_no_other(queues: RunQueueUnderTest) -> None:
    queues.queue.send([later(0), later(1), message(REPORT)])

    assert received(queues).drafter == DIGEST
    assert received(queues).drafter == REPORT
    assert queues.receive() is None


@pytest.mark.guarantee("G1")
def test_g1_a_message_sent_again_within_five_minutes_arrives_once(
    queues: RunQueueUnderTest, clock: time_machine.Traveller
) -> None:
    queues.queue.send([message(), message()])
    clock.shift(timedelta(minutes=2))
    queues.queue.send([message()])
    found = receive(queues)
    clock.shift(timedelta(minutes=2))
    queues.queue.send([message()])

    queues.delete(found.receipt)

    assert queues.receive() is None


def test_a_run_that_a_person_sends_again_arrives_at_once(queues: RunQueueUnderTest) -> None:
    queues.queue.send([message()])
    finish(queues)

    queues.queue.send([message(resend=1)])

    assert finish(queues).resend == 1


def test_a_message_that_nobody_finishes_comes_back_after_its_visibility(
    queues: RunQueueUnderTest, clock: time_machine.Traveller
) -> None:
    queues.queue.send([later(0), later(1)])
    received(queues)

    clock.shift(VISIBILITY - MOMENT)
    assert queues.receive() is None
    clock.shift(2 * MOMENT)

    found = receive(queues)
    assert (read_message(found.body), found.receives) == (later(0), 2)


@pytest.mark.parametrize("delay", [timedelta(seconds=30), timedelta(minutes=15), timedelta(hours=2)])
def test_a_message_that_is_put_off_comes_back_after_the_delay_and_its_drafter_waits(
    queues: RunQueueUnderTest, clock: time_machine.Traveller, delay: timedelta
) -> None:
    queues.queue.send([later(0), later(1)])
    queues.queue.put_off(receive(queues).receipt, delay)

    clock.shift(delay - MOMENT)
    assert queues.receive() is None
    clock.shift(2 * MOMENT)

    assert read_message(receive(queues).body) == later(0)


@pytest.mark.parametrize(
    ("delay", "comes_back"),
    [
        pytest.param(timedelta(), timedelta(), id="not at all"),
        pytest.param(timedelta(seconds=-5), timedelta(), id="into the past"),
        pytest.param(timedelta(days=2), timedelta(hours=12), id="longer than a queue can"),
    ],
)
def test_a_delay_is_brought_to_what_a_queue_can_do(
    queues: RunQueueUnderTest, clock: time_machine.Traveller, delay: timedelta, comes_back: timedelta
) -> None:
    queues.queue.send([message()])

    queues.queue.put_off(receive(queues).receipt, delay)

    clock.shift(comes_back + MOMENT)
    assert received(queues) == message()


@pytest.mark.guarantee("G5")
def test_g5_a_buried_message_is_listed_with_its_reason_until_somebody_takes_it(
    queues: RunQueueUnderTest, clock: time_machine.Traveller
) -> None:
    queues.queue.bury(LETTER)
    clock.shift(MOMENT)

    assert queues.queue.dead_runs() == (LETTER,)
    clock.shift(MOMENT)
    assert queues.queue.dead_runs() == (LETTER,)
    assert queues.receive() is None


@pytest.mark.guarantee("G5")
@pytest.mark.parametrize("body", ["not JSON", "{}", '{"drafter": "Ümlaut"}', "  ", "☕\n"])
def test_g5_an_unreadable_message_is_buried_as_it_was(
    queues: RunQueueUnderTest, clock: time_machine.Traveller, body: str
) -> None:
    letter = DeadLetter(body, None, "invalid_message", "run message: is not JSON", "InvalidMessage", 1, START, START)

    queues.queue.bury(letter)
    clock.shift(MOMENT)

    assert queues.queue.dead_runs() == (letter,)


def test_a_letter_without_details_is_a_letter(queues: RunQueueUnderTest, clock: time_machine.Traveller) -> None:
    letter = DeadLetter("body", None, "timeout", "", "", 0, START, START)

    queues.queue.bury(letter)
    clock.shift(MOMENT)

    assert queues.queue.dead_runs() == (letter,)


def test_a_long_detail_is_kept_up_to_a_thousand_characters(
    queues: RunQueueUnderTest, clock: time_machine.Traveller
) -> None:
    queues.queue.bury(DeadLetter("body", None, "refusal", "ä" * 5_000, "", 1, START, START))
    clock.shift(MOMENT)

    (letter,) = queues.queue.dead_runs()
    assert letter.detail == "ä" * (1_000 - len(CUT_MARK)) + CUT_MARK


@pytest.mark.guarantee("G5")
def test_g5_all_the_dead_of_one_drafter_are_listed_oldest_first(
    queues: RunQueueUnderTest, clock: time_machine.Traveller
) -> None:
    letters = [
        DeadLetter(
            body=later(number).model_dump_json(),
            run=str(later(number).key),
            reason="refusal",
            detail="",
            error_type="",
            attempts=1,
            first=START,
            last=START + timedelta(minutes=number),
        )
        for number in range(25)
    ]
    for letter in reversed(letters):
        queues.queue.bury(letter)
    clock.shift(MOMENT)

    assert queues.queue.dead_runs() == tuple(letters)
    clock.shift(MOMENT)
    assert len(queues.queue.dead_runs(limit=3)) == 3
    clock.shift(MOMENT)
    assert queues.queue.dead_runs() == tuple(letters)


@pytest.mark.guarantee("G5")
def test_g5_a_message_that_kills_whoever_receives_it_is_buried_by_the_queue_and_holds_up_no_follower(
    queues: RunQueueUnderTest, clock: time_machine.Traveller
) -> None:
    queues.queue.send([message()])

    exhaust(queues, clock)
    queues.queue.send([later(1)])

    assert received(queues) == later(1)
    (letter,) = queues.queue.dead_runs()
    assert letter.body == message().model_dump_json()
    assert (letter.run, letter.reason) == (str(message().key), RECEIVES_EXHAUSTED)
    assert letter.attempts == MAX_RECEIVES
    assert letter.first <= letter.last
    assert letter.detail


@pytest.mark.guarantee("G5")
def test_g5_an_unreadable_message_that_the_queue_buried_has_no_run(
    queues: RunQueueUnderTest, clock: time_machine.Traveller
) -> None:
    queues.send_raw('{"drafter": 7}', group="nobody")

    exhaust(queues, clock)

    (letter,) = queues.queue.dead_runs()
    assert (letter.body, letter.run, letter.reason) == ('{"drafter": 7}', None, RECEIVES_EXHAUSTED)
