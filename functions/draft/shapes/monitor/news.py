"""What a monitor says of its alarms: the items of a draft, and the line of a run that has nothing to tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from drafter_file.monitor import HealthSource
from galley.drafts import Item
from galley.instants import format_instant
from galley.texts import counted
from shapes.monitor.alarms import Bad, Finding, Good, News, NoData, Policy, Standing, State, What, is_open
from sources.clean import clean_line, web_link
from sources.health import Down, Health, Unseen, Up


class Concern(StrEnum):
    """What can go wrong with a source; each has an alarm of its own."""

    ANSWER = "answer"
    SPEED = "speed"
    CERTIFICATE = "certificate"
    SIGHT = "sight"


@dataclass(frozen=True, slots=True)
class Heard:
    """What one look means to one alarm. ``missed`` is when it was looked at last, if a look since then was missed."""

    concern: Concern
    finding: Finding
    news: News
    before: Standing | None
    now: Standing
    policy: Policy
    missed: datetime | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """One look at a source, and what it means to each of its alarms.

    It means nothing to any if the source was looked at just before; ``at`` is that earlier look then, in UTC.
    """

    source: HealthSource
    address: str
    found: Health
    at: datetime
    heard: Sequence[Heard]
    alarms: Mapping[Concern, Standing]


@dataclass(frozen=True, slots=True)
class _Words:
    """How it is said of a source that something is wrong with it, and that it is not."""

    bad: str
    still_bad: str
    good: str
    good_again: str
    had_been_bad: str
    had_been_good: str


_WORDS: Mapping[Concern, _Words] = {
    Concern.ANSWER: _Words("is down", "is still down", "is up", "is up again", "had been down", "had been up"),
    Concern.SPEED: _Words(
        "is slow", "is still slow", "is fast enough", "is fast enough again", "had been slow", "had been fast enough"
    ),
    Concern.CERTIFICATE: _Words(
        "has a certificate that ends soon",
        "still has a certificate that ends soon",
        "has a certificate that lasts",
        "has a new certificate",
        "had had a certificate that ended soon",
        "had had a certificate that lasted",
    ),
    Concern.SIGHT: _Words(
        "cannot be looked at",
        "still cannot be looked at",
        "can be looked at",
        "can be looked at again",
        "could not be looked at",
        "could be looked at",
    ),
}


def item_of(item_id: str, looked: Looked, heard: Heard, at: datetime) -> Item:
    """Return what a draft tells of an alarm; ``at`` is when it was looked at, in UTC."""
    title = _title(looked.source.id, heard)
    sentences = [f"{title}: {_found(heard.finding)}, when looked at, {format_instant(at)}."]
    if heard.missed is not None:
        sentences.append(f"A look was missed since the last one, {format_instant(heard.missed)}.")
    sentences += _context(heard)
    text = clean_line(" ".join(sentences), 1_000)
    return Item(id=item_id, title=title, text=text, source=looked.source.id, link=web_link(looked.address))


def _title(source: str, heard: Heard) -> str:
    words = _WORDS[heard.concern]
    match heard.news:
        case News.REMINDER:
            return f"{source} {words.still_bad}"
        case News.IS_GOOD_AGAIN:
            return f"{source} {words.good_again}"
        case News.FLAPS:
            return f"{source} is flapping: it {words.bad} once more"
        case News.FLAPPING_REMINDER:
            return f"{source} is still flapping: it {words.bad if heard.now.state is State.BAD else words.good} now"
        case News.SETTLED_BAD:
            return f"{source} has stopped flapping and {words.bad}"
        case News.SETTLED_GOOD:
            return f"{source} has stopped flapping and {words.good}"
        case _:
            return f"{source} {words.bad}"


def _found(finding: Finding) -> str:
    match finding:
        case Good(how):
            return how
        case Bad(why) | NoData(why):
            return why
    assert_never(finding)


def _context(heard: Heard) -> list[str]:
    """Return what was before: since when, for how many looks, and what was told of it."""
    before, now, words = heard.before, heard.now, _WORDS[heard.concern]
    told = before.told if before is not None else None
    looks = now.streak.looks if now.streak is not None else 1
    in_a_row = [f"{looks} looks in a row said so, the first at {format_instant(now.since)}."] if looks > 1 else []
    match heard.news:
        case News.WENT_BAD if before is None:
            return ["It had not been looked at before."]
        case News.WENT_BAD if before is not None and before.state is State.GOOD:
            since = format_instant(before.since)
            return [*in_a_row, f"It {words.had_been_good} since the look at {since}."]
        case News.WENT_BAD:
            return [*in_a_row, "How it had been before is not known."]
        case News.IS_GOOD_AGAIN if told is not None:
            return [*in_a_row, f"It {words.had_been_bad} since the look at {format_instant(told.since)}."]
        case News.REMINDER if told is not None:
            since, slot = format_instant(told.since), format_instant(told.slot)
            return [f"It {words.had_been_bad} since the look at {since}, as was told for the slot {slot}."]
        case News.FLAPS:
            since = format_instant(now.troubles[0])
            return [
                f"It has gone wrong {len(now.troubles)} times since {since}.",
                f"{_told_until(heard.policy)} it has been the same for {_hours(heard.policy)}.",
            ]
        case News.FLAPPING_REMINDER if told is not None:
            return [
                f"It was told as flapping for the slot {format_instant(told.slot)}.",
                f"{_told_until(heard.policy)} it has been the same for {_hours(heard.policy)}.",
            ]
        case News.SETTLED_BAD | News.SETTLED_GOOD:
            return [f"It has been the same for {_hours(heard.policy)}, since the look at {format_instant(now.since)}."]
        case _:
            return []


def _told_until(policy: Policy) -> str:
    return "No more is told of it until" if policy.remind is None else "Only reminders are sent until"


def _hours(policy: Policy) -> str:
    return counted(int(policy.flapping_within.total_seconds() // 3600), "hour", "hours")


def quiet_line(looked: Looked) -> str:
    """Return what a run says of a source of which it drafts nothing."""
    if not looked.heard:
        at = format_instant(looked.at)
        return f"{looked.source.id} was looked at only seconds ago, at {at}; this look does not count"
    said = [words for heard in looked.heard if (words := _quiet(heard, is_up=isinstance(looked.found, Up)))]
    return f"{looked.source.id} {', and '.join(said)}"


def _quiet(heard: Heard, *, is_up: bool) -> str:
    """Return what is said of one alarm; "" where another one says it, or where all is well."""
    is_answer, words, told = heard.concern is Concern.ANSWER, _WORDS[heard.concern], heard.now.told
    looks = heard.now.streak.looks if heard.now.streak is not None else 0
    match heard.news:
        case News.NOT_YET_BAD:
            why = "" if heard.concern is Concern.SIGHT else f": {_found(heard.finding)}"
            return f"{words.bad} by {looks} of {heard.policy.failures} looks in a row{why}"
        case News.NOT_YET_GOOD if is_answer or is_open(heard.now):
            return f"{words.good} by {looks} of {heard.policy.successes} looks in a row"
        case News.STILL_BAD if told is not None:
            return f"{words.still_bad}, as was told for the slot {format_instant(told.slot)}"
        case News.STILL_FLAPS if told is not None:
            return f"is flapping, as was told for the slot {format_instant(told.slot)}"
        case News.NO_DATA if is_answer:
            return f"is unknown: {_found(heard.finding)}"
        case News.NO_DATA if heard.concern is Concern.CERTIFICATE and is_up:
            return "has no certificate to be seen"
        case News.FINE if is_answer:
            return words.good
        case _:
            return ""


def figures_of(looks: Sequence[Looked]) -> str:
    """Return how all sources stand, as a table in Markdown."""
    lines = [
        "| Source | State | Status | Milliseconds | Since | Certificate ends |",
        "| --- | --- | ---: | ---: | --- | --- |",
    ]
    for looked in looks:
        status, took, ends = _measured(looked.found)
        answer = looked.alarms.get(Concern.ANSWER)
        since = "none" if answer is None else format_instant(answer.since)
        lines.append(f"| {looked.source.id} | {_state(looked.alarms)} | {status} | {took} | {since} | {ends} |")
    return "\n".join(lines)


def _measured(found: Health) -> tuple[str, str, str]:
    match found:
        case Up() | Down():
            status = "none" if found.status is None else str(found.status)
            ends = "none" if found.certificate_ends is None else format_instant(found.certificate_ends)
            return status, str(found.milliseconds), ends
        case Unseen():
            return "none", "none", "none"
    assert_never(found)


def _state(alarms: Mapping[Concern, Standing]) -> str:
    words = [_UP_OR_DOWN[alarms[Concern.ANSWER].state] if Concern.ANSWER in alarms else "unknown"]
    speed = alarms.get(Concern.SPEED)
    if speed is not None and speed.state is State.BAD:
        words.append("slow")
    if any(alarm.told is not None and alarm.told.what is What.FLAPPING for alarm in alarms.values()):
        words.append("flapping")
    return ", ".join(words)


_UP_OR_DOWN = {State.GOOD: "up", State.BAD: "down", State.UNKNOWN: "unknown"}
