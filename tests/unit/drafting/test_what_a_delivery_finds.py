"""What a delivery does about what it finds: a missing drafter, an old outcome, another owner, a crash before it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

import authoring
from attempt import ComesBack, Delivery, Done, Workplace, last_end
from drafter import Drafter, InvalidDrafter
from drafting import LOOK_AGAIN_AFTER, draft_run
from galley.drafts import Item
from galley.retry import RetryLater
from galley.runs import Run, RunKey, RunMessage, SkipReason, Status, Usage
from galley.store import Claimed, LeaseLost, Limits, Store, StoreBusy
from shapes.shape import Material
from support.outside import SLOT, FixedSchedules, RecordingQueue, message
from writing import Answer

KEY = RunKey("daily-digest", SLOT)
MINUTE = timedelta(minutes=1)
LATE = SLOT + timedelta(hours=3)
LIMITS = Limits(pending=3, daily_budget_nanousd=None, worst_cost_nanousd=0)
DRAFTER = Drafter.model_validate(
    {
        "name": "daily-digest",
        "title": "Morning digest",
        "shape": "digest",
        "instructions": "Be short.",
        "pending_limit": 2,
        "sources": [{"kind": "mail", "id": "inbox", "prefix": "mail/"}],
    }
)


@dataclass
class FreeModel:
    """A model that costs nothing and is overloaded until it has an answer; it remembers how long it was given."""

    answer: Answer | None = None
    given: list[timedelta] = field(default_factory=list)

    def write(self, brief: object, *, remaining: timedelta) -> Answer:
        self.given.append(remaining)
        if self.answer is None:
            raise RetryLater("overloaded", "529")
        return self.answer

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        return 0


def known(name: str) -> Drafter:
    return DRAFTER


def unknown(name: str) -> Drafter:
    raise InvalidDrafter(f"drafter {name!r} is not known")


@pytest.fixture
def queue() -> RecordingQueue:
    return RecordingQueue()


@pytest.fixture
def model() -> FreeModel:
    return FreeModel()


@pytest.fixture
def deliver(store: Store, queue: RecordingQueue, model: FreeModel) -> Callable[..., Done | ComesBack]:
    """Deliver the run's message at an instant, where a drafter's file says something or is missing."""

    def delivered(
        at: Any, drafter: Callable[[str], Drafter] = known, asked: RunMessage | None = None
    ) -> Done | ComesBack:
        outside: Any = {"bucket": None, "model": model, "fetch": None}
        place = Workplace(
            store=store,
            queue=queue,
            schedules=FixedSchedules(),
            desk_url="https://desk.example",
            now=lambda: at,
            drafter=drafter,
            **outside,
        )
        return draft_run(Delivery((asked or message()).model_dump_json(), "receipt", 1), place, "worker", 5 * MINUTE)

    return delivered


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is something to write about."""

    class Shape:
        @staticmethod
        def collect(assignment: object) -> Material:
            return Material(
                items=(Item(id="m1", title="Invoice", text="Due on Friday.", source="inbox"),),
                cursors={"inbox": {"through": "2026-11-27T05:00:00Z"}},
            )

    monkeypatch.setitem(authoring.SHAPES, "digest", Shape)


def finds_nothing(monkeypatch: pytest.MonkeyPatch, cursors: dict[str, dict[str, object]]) -> None:
    """There is nothing new, and it is known up to where."""

    class Shape:
        @staticmethod
        def collect(assignment: object) -> Material:
            return Material(nothing_new="no mail", cursors=cursors)

    monkeypatch.setitem(authoring.SHAPES, "digest", Shape)


def lost(run: Run, *given: object, **named: object) -> LeaseLost:
    return LeaseLost(run)


def crashed(store: Store) -> Run:
    claimed = store.claim(message(), LIMITS, owner="crashed", now=SLOT, lease_until=SLOT + 5 * MINUTE)
    assert isinstance(claimed, Claimed)
    return claimed.run


def row(store: Store) -> Run:
    found = store.run(KEY)
    assert found is not None
    return found


@pytest.mark.guarantee("G5")
def test_g5_a_drafter_that_does_not_exist_fails_its_run_however_late(
    store: Store, queue: RecordingQueue, deliver: Callable[..., Done | ComesBack]
) -> None:
    assert deliver(LATE, unknown) == Done()
    assert (row(store).status, row(store).reason) == (Status.FAILED, "invalid_drafter")
    assert [letter.run for letter in queue.buried] == [str(KEY)]


def test_a_late_message_of_a_run_that_has_its_outcome_is_done_with(
    store: Store, queue: RecordingQueue, deliver: Callable[..., Done | ComesBack]
) -> None:
    store.skip(message(), SkipReason.PAUSED, "on holiday", now=SLOT)
    before = row(store)
    assert deliver(LATE) == Done()
    assert (row(store), queue.put_offs) == (before, [])


def test_a_run_that_was_taken_while_it_was_to_be_skipped_is_looked_at_again(
    store: Store,
    queue: RecordingQueue,
    deliver: Callable[..., Done | ComesBack],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crashed(store)
    monkeypatch.setattr(store, "release", lost)
    assert deliver(LATE) == ComesBack()
    assert queue.put_offs == [("receipt", LOOK_AGAIN_AFTER)]


def test_an_attempt_after_a_crash_comes_back_soon_after_its_lease_should_it_crash_too(
    store: Store,
    queue: RecordingQueue,
    deliver: Callable[..., Done | ComesBack],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Killed(BaseException):
        pass

    class Shape:
        @staticmethod
        def collect(assignment: object) -> Material:
            raise Killed

    monkeypatch.setitem(authoring.SHAPES, "digest", Shape)
    crashed(store)
    with pytest.raises(Killed):
        deliver(SLOT + 6 * MINUTE)
    assert row(store).faults == 1
    assert queue.put_offs == [("receipt", 5 * MINUTE + timedelta(seconds=30))]


@pytest.mark.usefixtures("collected")
def test_the_model_is_given_what_is_left_of_the_functions_time(
    model: FreeModel, deliver: Callable[..., Done | ComesBack]
) -> None:
    assert deliver(SLOT + MINUTE) == ComesBack()
    assert model.given == [5 * MINUTE]


@pytest.mark.guarantee("G6")
@pytest.mark.usefixtures("collected")
def test_g6_a_draft_that_is_stored_at_the_second_try_moves_its_cursors_too(
    store: Store,
    model: FreeModel,
    deliver: Callable[..., Done | ComesBack],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = {"title": "One invoice", "sections": [{"heading": "Due", "text": "On Friday.", "cites": ["m1"]}]}
    model.answer = Answer(model="offline", stop="end_turn", text=json.dumps(text), usage=Usage(), cost_nanousd=0)
    held = [StoreBusy("rows held")]
    kept = store.store

    def busy_once(*given: object, **named: object) -> object:
        if held:
            raise held.pop()
        return kept(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "store", busy_once)
    assert deliver(SLOT + MINUTE) == Done()
    assert row(store).status is Status.PENDING
    assert store.memory("daily-digest").cursors == {"inbox": {"through": "2026-11-27T05:00:00Z"}}


@pytest.mark.guarantee("G1")
@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(("operation", "drafter"), [("postpone", known), ("release", unknown)])
def test_g1_an_attempt_whose_run_was_taken_over_drops_what_it_has(
    store: Store,
    deliver: Callable[..., Done | ComesBack],
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    drafter: Callable[[str], Drafter],
) -> None:
    monkeypatch.setattr(store, operation, lost)
    assert deliver(SLOT + MINUTE, drafter) == Done()


@pytest.mark.guarantee("G5")
def test_g5_a_letter_says_how_often_and_since_when_its_run_was_tried(
    store: Store, queue: RecordingQueue, deliver: Callable[..., Done | ComesBack]
) -> None:
    crashed(store)
    assert deliver(SLOT + 6 * MINUTE, unknown) == Done()
    (letter,) = queue.buried
    assert (letter.attempts, letter.first, letter.last) == (2, SLOT, SLOT + 6 * MINUTE)


def test_how_an_attempt_ended_is_told_by_its_lease_and_its_error(store: Store) -> None:
    died = crashed(store)
    given_up = replace(died, owner=None, lease_until=None)
    failed = replace(given_up, reason="overloaded", detail="529")
    died_later = replace(failed, owner="crashed", lease_until=died.lease_until)
    without_a_word = "ended without a word: a crash, or the function's time limit"
    assert [last_end(run) for run in (died, given_up, failed, died_later)] == [
        without_a_word,
        without_a_word,
        "ended with overloaded: 529",
        without_a_word,
    ]


def test_an_empty_run_moves_its_cursors_on_from_where_they_were(
    store: Store, deliver: Callable[..., Done | ComesBack], monkeypatch: pytest.MonkeyPatch
) -> None:
    for day, through in enumerate(("2026-11-26", "2026-11-27")):
        finds_nothing(monkeypatch, {"inbox": {"through": through}})
        slot = SLOT + timedelta(days=day)
        assert deliver(slot + MINUTE, asked=message(slot=slot)) == Done()
        ended = store.run(RunKey("daily-digest", slot))
        assert ended is not None
        assert ended.status is Status.EMPTY
        assert store.memory("daily-digest").cursors == {"inbox": {"through": through}}


def test_an_empty_run_that_keeps_no_cursors_reads_none(
    store: Store, deliver: Callable[..., Done | ComesBack], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unasked(drafter: str) -> None:
        raise AssertionError("nobody needs what earlier runs left")

    finds_nothing(monkeypatch, {})
    monkeypatch.setattr(store, "memory", unasked)
    assert deliver(SLOT + MINUTE) == Done()
    assert row(store).status is Status.EMPTY


def test_a_slot_that_cannot_be_skipped_since_others_hold_its_rows_is_looked_at_again(
    store: Store,
    queue: RecordingQueue,
    deliver: Callable[..., Done | ComesBack],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def held(*given: object, **named: object) -> None:
        raise StoreBusy("rows held")

    store.pause("daily-digest", "on holiday", now=SLOT)
    monkeypatch.setattr(store, "skip", held)
    assert deliver(SLOT + MINUTE) == ComesBack()
    assert queue.put_offs == [("receipt", LOOK_AGAIN_AFTER)]
