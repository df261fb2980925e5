"""What the model is asked for, what it answered, and the draft that code makes of it. Pure.

The model only writes. It cites items by id; links, titles and the list of sources are put in here, from the items
themselves, and whatever its own text contributes beyond words is taken out and named beside the draft.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from galley.drafts import Item
from galley.explain import explain
from galley.instants import format_instant
from galley.retry import NeverSucceeds, RetryLater
from galley.runs import Usage
from galley.store import Rejection
from galley.texts import clip, counted, listed
from grounding import Facts, Finding, Kind, Passage, Place, around, told, ungrounded
from inert import Inert, Own, defang, hosts_of, inert_line, inert_text, mailboxes_in, plain_line, target
from quantities import Reading

OFFLINE = "offline"
"""The name of the model that is none: an extract of the items."""

OFFLINE_NOTICE = (
    "**Made by the offline model:** sentences picked from the sources by counting words. No language model read them."
)

_NOT_READ = " **not read, over the input limit**"
_TITLE_LIMIT = 200
_NAMED = 10
_HEADING_SHOWN = 60
_AROUND_SHOWN = 160


NO_HEADING = "(no title)"
"""What stands over a section whose heading was nothing but markup."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What a draft is to be made of.

    ``instructions`` and ``figures`` (Markdown that code computed, "" if none) are trusted; ``items`` are not. They
    stand in the order of their importance: what does not fit is left out from the end. ``values`` are the numbers that
    the figures show, exact, as far as they are known. ``slot`` is in UTC.
    ``max_output_tokens`` bounds what the model thinks and writes together. ``rejections`` are the drafter's latest
    ones, the last one first; what reviewers wrote is data like the items.
    """

    drafter: str
    shape: str
    title: str
    instructions: str
    items: tuple[Item, ...]
    figures: str
    slot: datetime
    model: str
    max_input_tokens: int
    max_output_tokens: int
    values: tuple[Reading, ...] = ()
    rejections: tuple[Rejection, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from the model, whole or not, refused or not: its cost is booked before it is judged.

    ``stop`` is the reason that the model gave for stopping; None when it gave none. ``failure`` is how the answer broke
    off after it had begun to cost something. ``cost_nanousd`` is never less than what was billed: where a part of
    the usage never arrived, it is the most that the call could cost. ``shortened`` and ``left_out`` are the ids of the
    items that the model read in part and not at all.
    """

    model: str
    stop: str | None
    text: str
    usage: Usage
    cost_nanousd: int
    stop_detail: str = ""
    failure: RetryLater | NeverSucceeds | None = None
    shortened: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a draft in the model's words.

    ``cites`` are ids of items of the brief, ``unknown`` what was cited and is none.
    """

    heading: str
    text: str
    cites: tuple[str, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Writing:
    """An answer that is fit for a draft. ``notice`` is the line that the draft begins with, "" if none.

    ``notes`` are warnings about what the model read and cited that nothing in the text is the cause of.
    """

    title: str
    sections: tuple[Section, ...]
    notice: str = ""
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Composed:
    """A draft's title (plain text), its body (Markdown) and what a reviewer must know of them.

    ``findings`` are about the model's own words: what the sources do not bear out, and what no draft may say.
    """

    title: str
    body: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each warning that stands beside the draft."""
        return (*self.notes, *told(self.findings))


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    heading: str = Field(max_length=300)
    text: str = Field(max_length=20_000)
    cites: list[str] = Field(max_length=500)


class _Draft(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    title: str = Field(max_length=300)
    sections: list[_Part] = Field(max_length=60)


def read_answer(answer: Answer, brief: Brief) -> Writing:
    """Return the answer as sections, when the model finished it and it has the form that was asked for.

    Ids that belong to no item are dropped and named in a warning: the words beside them may still be good, and the
    reviewer sees that something was cited that does not exist.

    Raises:
        RetryLater: when the answer broke off.
        NeverSucceeds: ``refusal``, ``truncated``, ``unfinished``, ``unreadable_answer`` or ``empty_answer``.
    """
    if answer.failure is not None:
        raise answer.failure
    _check_stop(answer, brief)
    draft = _parse(answer.text)
    parts = [part for part in draft.sections if part.text.strip()]
    if not parts:
        raise NeverSucceeds("empty_answer", "the model finished without writing any text")
    known = {item.id for item in brief.items}
    cited = [tuple(dict.fromkeys(cite.strip().strip("[]") for cite in part.cites)) for part in parts]
    sections = tuple(
        Section(
            part.heading,
            part.text,
            cites=tuple(cite for cite in cites if cite in known),
            unknown=tuple(cite for cite in cites if cite not in known),
        )
        for part, cites in zip(parts, cited, strict=True)
    )
    return Writing(
        title=draft.title,
        sections=sections,
        notice=OFFLINE_NOTICE if answer.model == OFFLINE else "",
        left_out=answer.left_out,
        notes=(*_about_input(answer, brief), *_about_cites(sections, known)),
    )


def compose(writing: Writing, brief: Brief) -> Composed:
    """Return the draft that is made of a writing, and what is to be said of it.

    Every link in the body is the own address of an item of the brief. Text of the model and of the items is inert
    Markdown: addresses that are no item's, images and HTML are taken out, mentions are made harmless, and a warning
    names each with its place. So it does each number, date and time in the model's words that no source has.
    """
    items = {item.id: item for item in brief.items}
    cites = {item.id: _cite(item) for item in brief.items}
    own = Own(
        links={item.link: cites[item.id] for item in brief.items if item.link},
        hosts=hosts_of(item.link for item in brief.items if item.link),
        mailboxes=mailboxes_in(text for item in brief.items for text in (item.author or "", item.source)),
    )
    title = plain_line(writing.title, _TITLE_LIMIT, own)
    findings = list(_about_markup(title, writing.title, Place(0), own))
    passages = [Passage(title.words, Place(0), _cited_counts(writing.sections, len(items)))]
    blocks = [writing.notice] if writing.notice else []
    for number, section in enumerate(writing.sections, start=1):
        heading, text = inert_line(section.heading, _TITLE_LIMIT, own), inert_text(section.text, own)
        place = Place(number, plain_line(section.heading, _HEADING_SHOWN, own).markdown)
        counts = _cited_counts((section,), len(items)) | {text.markdown.count("\n- ") + text.markdown.startswith("- ")}
        passages += [Passage(heading.words, place, counts), Passage(text.words, place, counts)]
        findings += _about_markup(heading, section.heading, place, own)
        findings += _about_markup(text, section.text, place, own)
        if section.unknown:
            findings.append(Finding(Kind.CITE, _unknown(section.unknown), place))
        if section.heading.strip():
            blocks.append(f"## {heading.markdown or NO_HEADING}")
        blocks += [text.markdown] if text.markdown else []
        if section.cites:
            blocks.append(f"Sources: {', '.join(cites[cite] for cite in section.cites)}")
    if brief.figures.strip():
        blocks += ["## Figures", brief.figures.strip()]
    notes = list(writing.notes)
    if items:
        lines = [_source(item, own, note=_NOT_READ if item.id in writing.left_out else "") for item in brief.items]
        notes += _about_items(lines, brief)
        blocks += ["## Sources", "\n".join(line.markdown for line in lines)]
    facts = Facts(brief.items, brief.figures, (brief.title, brief.instructions), brief.slot, brief.values)
    findings += ungrounded(passages, facts)
    findings.sort(key=lambda finding: finding.place.section)
    return Composed(title.markdown or brief.title, "\n\n".join(blocks) + "\n", tuple(findings), tuple(notes))


def _check_stop(answer: Answer, brief: Brief) -> None:
    match answer.stop:
        case "end_turn":
            return
        case "refusal":
            detail = f" ({answer.stop_detail})" if answer.stop_detail else ""
            raise NeverSucceeds("refusal", f"the model refused to write this draft{detail}")
        case "max_tokens":
            raise NeverSucceeds(
                "truncated",
                f"the answer was cut at max_output_tokens = {brief.max_output_tokens}; raise it, it bounds what the"
                " model thinks and writes together",
            )
        case "model_context_window_exceeded":
            raise NeverSucceeds(
                "truncated",
                f"the prompt and the answer do not fit the context of {answer.model}; lower max_input_tokens",
            )
        case other:
            raise NeverSucceeds("unfinished", f"the model stopped for the reason {other or 'none'}, not at an end")


def _parse(text: str) -> _Draft:
    try:
        return _Draft.model_validate_json(_json_in(text))
    except ValidationError as error:
        raise NeverSucceeds("unreadable_answer", clip(explain(error, "the model's answer"), 500)) from error


def _json_in(text: str) -> str:
    """Return the JSON object in an answer that has a fence or a sentence around it."""
    text = text.strip()
    if text.startswith("{"):
        return text
    fenced = re.search(r"```(?:json)?\s*(\{.*\})\s*```", text, re.DOTALL)
    if fenced:
        return fenced[1]
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def _about_input(answer: Answer, brief: Brief) -> Iterable[str]:
    limit = f"over the limit of {brief.max_input_tokens} input tokens"
    if answer.left_out:
        yield f"not read, {limit}: {', '.join(answer.left_out)}"
    if answer.shortened:
        yield f"read only in part, {limit}: {', '.join(answer.shortened)}"


def _about_cites(sections: tuple[Section, ...], known: set[str]) -> Iterable[str]:
    bare = [str(place) for place, section in enumerate(sections, start=1) if not section.cites]
    if known and bare:
        yield f"no item is cited for section {', '.join(bare)}"


def _unknown(cites: tuple[str, ...]) -> str:
    return listed([repr(clip(plain_line(cite, 40).markdown, 40)) for cite in cites], _NAMED)


def _cited_counts(sections: tuple[Section, ...], items: int) -> frozenset[int]:
    """Return how many items the sections cite, and how many they do not."""
    cited = len({cite for section in sections for cite in section.cites})
    return frozenset({cited, items - cited})


def _about_markup(made: Inert, written: str, place: Place, own: Own) -> Iterator[Finding]:
    """Return what was taken out of a text of the model's, each with the words that stood around it."""
    for kind, named in ((Kind.LINK, made.addresses), (Kind.MENTION, made.mentions)):
        for name in dict.fromkeys(named):
            if name in own.links:
                continue  # an image, of which only the picture was taken out
            at = written.find(name)
            words = around(written, at, at + len(name)) if at >= 0 else ""
            yield Finding(kind, defang(name), replace(place, around=plain_line(words, _AROUND_SHOWN, own).markdown))
    if made.markup:
        yield Finding(Kind.MARKUP, counted(made.markup, "piece", "pieces"), place)


def _about_items(made: list[Inert], brief: Brief) -> Iterable[str]:
    addresses = list(dict.fromkeys(address for one in made for address in one.addresses))
    if addresses:
        yield f"taken out of the titles of items, links: {listed([*map(defang, addresses)], _NAMED)}"
    markup = sum(one.markup for one in made)
    if markup:
        yield f"taken out of the titles of items, HTML and images: {markup}"
    for item in brief.items:
        if item.link and target(item.link) is None:
            yield f"the address of {item.id} is not one that can be linked: {defang(item.link)}"


def _cite(item: Item) -> str:
    name, link = inert_line(item.id, 64).markdown, target(item.link)
    return f"[{name}]({link})" if link else name


def _source(item: Item, own: Own, *, note: str) -> Inert:
    title, source = inert_line(item.title, _TITLE_LIMIT, own), inert_line(item.source, 100, own)
    author = inert_line(item.author or "", 100, own)
    link = target(item.link)
    name = title.markdown or "(no title)"
    published = format_instant(item.published) if item.published else ""
    about = ", ".join(part for part in (source.markdown, author.markdown, published) if part)
    line = f"- {inert_line(item.id, 64).markdown}: " + (f"[{name}]({link})" if link else name)
    line += f" ({about})" if about else ""
    line += note
    parts = (title, source, author)
    return Inert(
        line,
        tuple(address for part in parts for address in part.addresses),
        sum(part.markup for part in parts),
    )
