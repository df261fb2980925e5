"""The model that is none: an extract of the items, for a machine without a key. Deterministic."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from galley.drafts import Item
from galley.runs import Usage
from galley.texts import clip, one_line
from writing import OFFLINE, Answer, Brief

_ITEMS = 12
_NAMED = 30
_SENTENCES = 2
_SENTENCE = 320
_HEADING = 120

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\n\s*\n|\n(?=\s*[-*•>])")
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMMON = frozenset(
    "about after all also and any are because been before but can could did does for from get has have her here him his"
    " how into its just like may more most new not now off one only other our out over please she should some such than"
    " that the their them then there these they this those through too under until very was were what when where which"
    " who will with would you your".split()
)


@dataclass(frozen=True, slots=True)
class OfflineModel:
    """Picks from each item the sentences that are most about what sets it apart. It costs nothing and calls no one."""

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        """Return an extract in the form in which a model answers; the draft made of it says what it is."""
        spread = Counter(word for item in brief.items for word in set(_words(f"{item.title} {item.text}")))
        sections = [_extract(item, spread, len(brief.items)) for item in brief.items[:_ITEMS]]
        if rest := brief.items[_ITEMS:]:
            sections.append(_titles(rest))
        if not sections:
            text = "The figures were computed; the offline model writes no text about them."
            sections = [{"heading": "", "text": text if brief.figures else "There is no material.", "cites": []}]
        count = f": {len(brief.items)} item{'s' if len(brief.items) > 1 else ''}" if brief.items else ""
        title = f"{one_line(brief.title, _HEADING)}{count}"
        text = json.dumps({"title": title, "sections": sections}, ensure_ascii=False)
        return Answer(model=OFFLINE, stop="end_turn", text=text, usage=Usage(), cost_nanousd=0)

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        """Return 0: nothing is called."""
        return 0


def _titles(items: Sequence[Item]) -> dict[str, object]:
    named = items[:_NAMED]
    lines = [f"- {_title(item)}" for item in named]
    if len(items) > len(named):
        lines.append(f"- and {len(items) - len(named)} more, see the sources")
    return {"heading": "Also there", "text": "\n".join(lines), "cites": [item.id for item in named]}


def _extract(item: Item, spread: Counter[str], items: int) -> dict[str, object]:
    sentences = [line for line in map(one_line, _SENTENCE_END.split(item.text)) if line]
    own = Counter(_words(item.text))
    weights = {word: count * (0.1 + math.log(items / spread[word])) for word, count in own.items()}
    scores = [_score(sentence, weights) / (1 + place / 10) for place, sentence in enumerate(sentences)]
    ranked = sorted(range(len(sentences)), key=lambda place: (-scores[place], place))
    picked = [sentences[place] for place in sorted(ranked[:_SENTENCES]) if scores[place] >= scores[ranked[0]] / 2]
    text = " ".join(clip(sentence, _SENTENCE) for sentence in picked) or "(no text)"
    return {"heading": _title(item), "text": text, "cites": [item.id]}


def _score(sentence: str, weights: Mapping[str, float]) -> float:
    """Return the mean weight of a sentence's words; one of fewer than eight (a greeting) says little by itself."""
    words = _words(sentence)
    return sum(weights[word] for word in set(words)) / max(len(words), 8)


def _title(item: Item) -> str:
    return one_line(item.title, _HEADING) or "(no title)"


def _words(text: str) -> Sequence[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in _COMMON]
