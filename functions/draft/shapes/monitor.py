"""monitor: an alert when something goes down, a notice when it is back, and nothing in between."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, assert_never

from pydantic import AwareDatetime

from drafter_file.monitor import HealthSource
from galley.drafts import Item
from galley.instants import format_instant, in_utc
from galley.store import Cursor
from shapes.shape import Assignment, Material
from sources.clean import clean_line, web_link
from sources.collected import CursorState, read_cursor
from sources.health import Down, Health, Up, address_of, check


class News(StrEnum):
    """What one look says, compared with the last one."""

    FIRST_UP = "first_up"
    STILL_UP = "still_up"
    WENT_DOWN = "went_down"
    STILL_DOWN = "still_down"
    CAME_BACK = "came_back"
    CAME_BACK_UNANNOUNCED = "came_back_unannounced"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a source stands: up or down, since which slot (in UTC), and whether its being down was announced."""

    state: Literal["up", "down"]
    since: datetime
    announced: bool


def decide(before: Standing | None, found: Health, slot: datetime) -> tuple[News, Standing]:
    """Return what a look at the slot means, and how the source stands now.

    The first failed look is an alert, also when there was none before, and the first good one after it is the
    recovery; how many looks in a row it takes is not settable. A recovery is told only of what was announced as down.
    A source that was never looked at and is up is no news.
    """
    match found:
        case Down():
            if before is None or before.state == "up":
                return News.WENT_DOWN, Standing("down", slot, announced=True)
            news = News.STILL_DOWN if before.announced else News.WENT_DOWN
            return news, Standing("down", before.since, announced=True)
        case Up():
            if before is None:
                return News.FIRST_UP, Standing("up", slot, announced=False)
            if before.state == "up":
                return News.STILL_UP, before
            news = News.CAME_BACK if before.announced else News.CAME_BACK_UNANNOUNCED
            return news, Standing("up", slot, announced=False)
    assert_never(found)


def collect(assignment: Assignment) -> Material:
    """Look at every source at once and return what is news: one item for each alert or recovery.

    How things stand is kept in the cursors, and they move with the draft: an alert that was not stored (the gate was
    shut, the model failed) is not announced, and the next run drafts it. What is looked at is the present, whatever the
    slot, and an item says when that was: a monitor's schedule should not be caught up, and its "since" is the slot of
    the look that noticed.

    Raises:
        NeverSucceeds: ``invalid_address``, when a source's own address is at fault; ``invalid_cursor``.
    """
    sources = [source for source in assignment.drafter.sources if isinstance(source, HealthSource)]
    before = {source.id: _standing(assignment.cursors().get(source.id), source) for source in sources}
    looks = [
        _Look(source, before[source.id], found, *decide(before[source.id], found, assignment.slot))
        for source, found in zip(sources, _check_all(sources, assignment), strict=True)
    ]
    cursors = {look.source.id: _cursor(look.now) for look in looks}
    told = [look for look in looks if look.news in (News.WENT_DOWN, News.CAME_BACK)]
    if not told:
        return Material(cursors=cursors, nothing_new="; ".join(_quiet(look) for look in looks))
    items = tuple(_item(f"h{place}", look, assignment) for place, look in enumerate(told, start=1))
    return Material(items=items, figures=_figures(looks), cursors=cursors)


@dataclass(frozen=True, slots=True)
class _Look:
    source: HealthSource
    before: Standing | None
    found: Health
    news: News
    now: Standing


class _State(CursorState):
    state: Literal["up", "down"]
    since: AwareDatetime
    announced: bool


def _check_all(sources: Sequence[HealthSource], assignment: Assignment) -> list[Health]:
    """Look at all sources beside each other, so that the slowest one's time limit bounds them all."""
    with ThreadPoolExecutor(max_workers=len(sources), thread_name_prefix="health") as pool:
        return list(pool.map(lambda source: check(source, assignment.fetch, assignment.desk_url), sources))


def _standing(cursor: Cursor | None, source: HealthSource) -> Standing | None:
    if cursor is None:
        return None
    state = read_cursor(_State, cursor, f"the health of {source.id!r}")
    return Standing(state.state, in_utc(state.since), state.announced)


def _cursor(standing: Standing) -> Cursor:
    return {"state": standing.state, "since": format_instant(standing.since), "announced": standing.announced}


def _quiet(look: _Look) -> str:
    since = format_instant(look.now.since)
    match look.news:
        case News.FIRST_UP | News.STILL_UP:
            return f"{look.source.id} is up"
        case News.CAME_BACK_UNANNOUNCED:
            return f"{look.source.id} is up again, its being down was never announced"
        case News.STILL_DOWN:
            return f"{look.source.id} is still down, announced at {since}"
        case News.WENT_DOWN | News.CAME_BACK:
            return f"{look.source.id} is {look.now.state} since {since}"
    assert_never(look.news)


def _item(item_id: str, look: _Look, assignment: Assignment) -> Item:
    address = address_of(look.source, assignment.desk_url)
    looked_at = format_instant(assignment.looked_at)
    match look.found:
        case Up(status, milliseconds):
            title = f"{look.source.id} is up again"
            text = f"{title}: it answered {status} in {milliseconds} ms when looked at, {looked_at}."
        case Down(why, _, milliseconds):
            title = f"{look.source.id} is down"
            text = f"{title}: {why}, after {milliseconds} ms, when looked at, {looked_at}."
    if look.before is None:
        text += " It had not been looked at before."
    else:
        text += f" It had been {look.before.state} since the look for the slot {format_instant(look.before.since)}."
    return Item(id=item_id, title=title, text=clean_line(text, 1_000), source=look.source.id, link=web_link(address))


def _figures(looks: Sequence[_Look]) -> str:
    lines = ["| Source | State | Status | Milliseconds | Since |", "| --- | --- | ---: | ---: | --- |"]
    for look in looks:
        status = "none" if look.found.status is None else look.found.status
        since = format_instant(look.now.since)
        lines.append(f"| {look.source.id} | {look.now.state} | {status} | {look.found.milliseconds} | {since} |")
    return "\n".join(lines)
