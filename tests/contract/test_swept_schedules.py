"""What the sweep notes of the schedules, and which slots have a row."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from contract.material import DIGEST, NOW, REPORT, SLOT, claimed, failed, later, message
from galley.instants import format_instant
from galley.runs import SkipReason, Status
from galley.schedules import ScheduleDefinition
from galley.store import Asked, Store, SweptDrafter, SweptSchedule, SweptSchedules, UnreadableRow
from galley.store.rows import read_schedule, schedule_row

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
DAILY = ScheduleDefinition(
    name="galley-DailyDigest-1A2B3C",
    arn="arn:aws:scheduler:eu-west-2:123456789012:schedule/galley/galley-DailyDigest-1A2B3C",
    expression="cron(0 6 ? * MON-FRI *)",
    timezone="Europe/London",
    input='{"drafters": ["daily-digest"], "note": "☕ – \\"quoted\\""}',
    enabled=True,
    created=datetime(2026, 1, 1, 12, 0, 0, 123_000, tzinfo=UTC),
    modified=datetime(2026, 2, 1, 12, 0, 0, 456_789, tzinfo=UTC),
)
BOUND = replace(DAILY, name="Bound", enabled=False, start=SLOT - DAY, end=SLOT + DAY)


def test_nothing_is_known_of_a_schedule_that_was_never_swept(store: Store) -> None:
    assert store.swept_schedules() == SweptSchedules(())


@pytest.mark.parametrize("definition", [DAILY, BOUND], ids=["plain", "bounded and disabled"])
def test_what_was_noted_is_known_as_it_was_to_the_fraction_of_a_second(
    store: Store, definition: ScheduleDefinition
) -> None:
    store.note_swept(SweptSchedule(definition, SLOT), now=NOW)

    assert store.swept_schedules() == SweptSchedules((SweptSchedule(definition, SLOT),))
    (known,) = store.swept_schedules().schedules
    assert known.definition.summary == definition.summary
    assert known.definition.calendar() == definition.calendar()


def test_what_is_noted_later_replaces_all_that_was_noted_before(store: Store) -> None:
    store.note_swept(SweptSchedule(replace(BOUND, name=DAILY.name), SLOT), now=NOW)
    store.note_swept(SweptSchedule(DAILY, SLOT + DAY), now=NOW + SECOND)

    assert store.swept_schedules().schedules == (SweptSchedule(DAILY, SLOT + DAY),)


def test_the_former_definitions_of_a_schedule_are_noted_with_it(store: Store) -> None:
    """A slot may lie in the very second of the change, so it is kept to the fraction."""
    asked = {"daily-digest": SweptDrafter(asked=Asked(NOW, SLOT))}
    first = SweptSchedule(replace(DAILY, modified=SLOT - DAY), SLOT, asked, ends=DAILY.modified)
    second = SweptSchedule(replace(BOUND, name=DAILY.name), SLOT, ends=SLOT + timedelta(microseconds=5))
    known = SweptSchedule(DAILY, SLOT + DAY, former=(first, second))
    store.note_swept(known, now=NOW)

    assert store.swept_schedules().schedules == (known,)
    store.note_swept(SweptSchedule(DAILY, SLOT + DAY), now=NOW + SECOND)
    assert store.swept_schedules().schedules == (SweptSchedule(DAILY, SLOT + DAY),)


def test_a_note_that_is_asked_for_twice_is_one(store: Store) -> None:
    for _ in range(2):
        store.note_swept(SweptSchedule(DAILY, SLOT), now=NOW)

    assert store.swept_schedules().schedules == (SweptSchedule(DAILY, SLOT),)


def test_the_mark_is_kept_to_the_second_and_never_later_than_it_is(store: Store) -> None:
    store.note_swept(SweptSchedule(DAILY, SLOT + timedelta(milliseconds=900)), now=NOW)

    (known,) = store.swept_schedules().schedules
    assert known.swept_until == SLOT


def test_schedules_are_known_by_name_and_each_by_itself(store: Store) -> None:
    names = [f"S.{number:03}_x-Y" for number in range(30)]
    for number, name in enumerate(reversed(names)):
        store.note_swept(SweptSchedule(replace(DAILY, name=name), SLOT + number * DAY), now=NOW)

    known = store.swept_schedules().schedules
    assert [one.definition.name for one in known] == names
    assert [one.swept_until for one in known] == [SLOT + number * DAY for number in reversed(range(30))]


def test_instants_of_other_zones_come_back_in_utc(store: Store) -> None:
    elsewhere = timezone(timedelta(hours=11))
    there = replace(DAILY, created=DAILY.created.astimezone(elsewhere), start=SLOT.astimezone(elsewhere))
    store.note_swept(SweptSchedule(there, SLOT.astimezone(elsewhere)), now=NOW)

    (known,) = store.swept_schedules().schedules
    for instant in (known.definition.created, known.definition.start, known.swept_until):
        assert instant is not None
        assert instant.tzinfo is UTC
    assert known == SweptSchedule(replace(DAILY, start=SLOT), SLOT)


def test_what_is_forgotten_is_known_no_more_and_nothing_else_is(store: Store) -> None:
    other = replace(DAILY, name=f"{DAILY.name}-2")
    for definition in (DAILY, other):
        store.note_swept(SweptSchedule(definition, SLOT), now=NOW)

    for _ in range(2):
        store.forget_swept(DAILY.name, now=NOW)
    store.forget_swept("never-noted", now=NOW)

    assert store.swept_schedules() == SweptSchedules((SweptSchedule(other, SLOT),))


def test_a_schedule_that_is_made_again_is_noted_anew(store: Store) -> None:
    store.note_swept(SweptSchedule(DAILY, SLOT), now=NOW)
    store.forget_swept(DAILY.name, now=NOW)
    store.note_swept(SweptSchedule(BOUND, SLOT), now=NOW)
    store.note_swept(SweptSchedule(DAILY, SLOT + DAY), now=NOW + SECOND)

    assert store.swept_schedules().schedules == (SweptSchedule(BOUND, SLOT), SweptSchedule(DAILY, SLOT + DAY))


def test_naive_instants_are_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="timezone"):
        store.note_swept(SweptSchedule(DAILY, SLOT.replace(tzinfo=None)), now=NOW)
    with pytest.raises(ValueError, match="timezone"):
        store.note_swept(SweptSchedule(DAILY, SLOT), now=NOW.replace(tzinfo=None))
    with pytest.raises(ValueError, match="timezone"):
        store.forget_swept(DAILY.name, now=NOW.replace(tzinfo=None))
    assert store.swept_schedules() == SweptSchedules(())


def test_a_note_changes_no_run_and_a_run_no_note(store: Store) -> None:
    run = claimed(store)
    store.note_swept(SweptSchedule(replace(DAILY, name=DIGEST), SLOT), now=NOW)

    assert store.history(DIGEST).runs == (run,)
    assert len(store.swept_schedules().schedules) == 1


def test_the_slots_that_have_a_row_are_those_of_the_range_both_ends_included(store: Store) -> None:
    for number in range(5):
        claimed(store, later(number))
    slots = [SLOT + number * DAY for number in range(5)]

    assert store.slot_statuses(DIGEST, slots[1], slots[3]).keys() == set(slots[1:4])
    assert store.slot_statuses(DIGEST, slots[1] + SECOND, slots[3] - SECOND).keys() == {slots[2]}
    assert store.slot_statuses(DIGEST, slots[2], slots[2]).keys() == {slots[2]}
    assert store.slot_statuses(DIGEST, SLOT - DAY, SLOT + 9 * DAY).keys() == set(slots)


def test_every_kind_of_row_counts_with_what_it_has_become_and_no_other_drafters(store: Store) -> None:
    claimed(store)
    failed(store, later(1))
    store.skip(later(2), SkipReason.GATE, "", now=NOW)
    store.queue(later(3), now=NOW)
    claimed(store, message(REPORT, SLOT + 4 * DAY))

    assert store.slot_statuses(DIGEST, SLOT, SLOT + 9 * DAY) == {
        SLOT: Status.DRAFTING,
        SLOT + DAY: Status.FAILED,
        SLOT + 2 * DAY: Status.SKIPPED,
        SLOT + 3 * DAY: Status.QUEUED,
    }
    assert store.slot_statuses("never-seen", SLOT, SLOT + 9 * DAY) == {}


def test_a_range_that_runs_backwards_holds_nothing(store: Store) -> None:
    claimed(store)

    assert store.slot_statuses(DIGEST, SLOT + DAY, SLOT) == {}


NOTED = {
    "all-of-it": SweptDrafter(SLOT, SLOT + DAY, Asked(NOW, SLOT + 2 * DAY)),
    "asked": SweptDrafter(asked=Asked(NOW, SLOT)),
    "in-flight": SweptDrafter(in_flight=SLOT),
    "silent": SweptDrafter(silent_since=SLOT),
}


def test_what_is_noted_of_the_drafters_comes_back_and_is_replaced_as_a_whole(store: Store) -> None:
    noted = SweptSchedule(DAILY, SLOT, NOTED, stopped=NOW)

    store.note_swept(noted, now=NOW)
    assert store.swept_schedules().schedules == (noted,)
    silent = next(one.silent_since for one in store.swept_schedules().schedules[0].drafters.values())
    assert silent is not None
    assert silent.utcoffset() == timedelta(0)

    store.note_swept(SweptSchedule(DAILY, SLOT, {"silent": NOTED["silent"]}), now=NOW + SECOND)
    assert store.swept_schedules().schedules == (SweptSchedule(DAILY, SLOT, {"silent": NOTED["silent"]}),)


def test_a_drafter_of_which_nothing_is_to_be_remembered_is_not_kept(store: Store) -> None:
    store.note_swept(SweptSchedule(DAILY, SLOT, {"quiet": SweptDrafter()}), now=NOW)

    assert store.swept_schedules().schedules == (SweptSchedule(DAILY, SLOT),)


def test_what_the_sweep_remembers_is_kept_to_the_second_and_never_naive(store: Store) -> None:
    odd = NOW + timedelta(milliseconds=900)
    store.note_swept(SweptSchedule(DAILY, SLOT, {"d": SweptDrafter(asked=Asked(odd, SLOT))}, stopped=odd), now=NOW)
    (known,) = store.swept_schedules().schedules
    assert known == SweptSchedule(DAILY, SLOT, {"d": SweptDrafter(asked=Asked(NOW, SLOT))}, stopped=NOW)

    for naive in (
        SweptSchedule(DAILY, SLOT, {"d": SweptDrafter(silent_since=SLOT.replace(tzinfo=None))}),
        SweptSchedule(DAILY, SLOT, stopped=NOW.replace(tzinfo=None)),
    ):
        with pytest.raises(ValueError, match="timezone"):
            store.note_swept(naive, now=NOW)


def test_a_row_of_an_older_version_has_nothing_noted_and_a_newer_ones_words_are_ignored() -> None:
    plain = schedule_row(SweptSchedule(DAILY, SLOT))
    assert plain.keys() & {"drafters", "stopped"} == set()
    assert read_schedule(plain) == SweptSchedule(DAILY, SLOT)
    newer = {**plain, "drafters": {"d": {"silent_since": format_instant(SLOT), "mood": "fine"}}, "weather": "good"}
    assert read_schedule(newer) == SweptSchedule(DAILY, SLOT, {"d": SweptDrafter(silent_since=SLOT)})


@pytest.mark.parametrize(
    "damage",
    [
        {"stopped": "yesterday"},
        {"drafters": {"d": {"silent_since": "yesterday"}}},
        {"drafters": {"d": {"silent_since": "2026-03-29T05:00:00"}}},
        {"drafters": ["d"]},
        {"drafters": {"d": {"asked": {"at": format_instant(NOW)}}}},
    ],
)
def test_what_is_noted_and_cannot_be_read_is_an_unreadable_row(damage: dict[str, object]) -> None:
    with pytest.raises(UnreadableRow):
        read_schedule({**schedule_row(SweptSchedule(DAILY, SLOT)), **damage})
