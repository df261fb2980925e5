"""A small bar chart as SVG: shapes and text, no script, no style sheet, nothing that is loaded from anywhere. Pure.

Each panel is one figure: the days of the report in dark bars, beside each the one before in a light bar.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from xml.etree.ElementTree import Element, SubElement, tostring

from galley.texts import counted, one_line

WIDTH = 640
MOST_PANELS = 8
MOST_BARS = 62

_PANEL = 118
_LEFT, _BAR_TOP, _BAR_HEIGHT = 12, 26, 66
_TITLE_CHARS, _LABEL_CHARS = 60, 24
_INK, _FAINT, _NOW, _BEFORE, _PAPER = "#22211e", "#5f5b52", "#1f4f7a", "#c4b99a", "#ffffff"
_NOT_IN_XML = dict.fromkeys((*range(32), 127, 65534, 65535), " ")


@dataclass(frozen=True, slots=True)
class Bar:
    """One period. ``before`` is what stands beside it; None is no bar."""

    label: str
    now: Decimal | None
    before: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure, with what it is over the whole time, as text."""

    title: str
    summary: str
    bars: tuple[Bar, ...]


def draw(title: str, panels: Sequence[Panel], at_most: int = MOST_PANELS) -> str:
    """Return the chart of the first panels, with the first ``MOST_BARS`` bars of each; it says what it leaves out."""
    shown = panels[:at_most]
    height = 30 + _PANEL * len(shown)
    svg = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {height}",
            "width": str(WIDTH),
            "height": str(height),
            "role": "img",
            "font-family": "sans-serif",
            "font-size": "12",
        },
    )
    SubElement(svg, "title").text = _text(title, 200)
    SubElement(svg, "rect", {"width": str(WIDTH), "height": str(height), "fill": _PAPER})
    for place, panel in enumerate(shown):
        _panel(SubElement(svg, "g", {"transform": f"translate(0 {place * _PANEL})"}), panel)
    _legend(SubElement(svg, "g", {"transform": f"translate({_LEFT} {height - 12})"}), len(panels) - len(shown))
    return tostring(svg, encoding="unicode") + "\n"


def _panel(group: Element, panel: Panel) -> None:
    _write(group, _LEFT, 16, _text(panel.title, _TITLE_CHARS), _INK, weight="bold")
    _write(group, WIDTH - _LEFT, 16, _text(panel.summary, _TITLE_CHARS), _INK, anchor="end")
    bars = panel.bars[:MOST_BARS]
    values = [float(value) for bar in bars for value in (bar.now, bar.before) if value is not None]
    high, low = max([0.0, *values]), min([0.0, *values])
    scale = _BAR_HEIGHT / (high / 2 - low / 2) / 2 if high > low else 0.0  # halves: the largest numbers stay finite
    zero = _BAR_TOP + high * scale
    step = (WIDTH - 2 * _LEFT) / max(1, len(bars))
    wide = min(step * 0.36, 40.0)
    for color, shift, amounts in (
        (_BEFORE, -wide, [bar.before for bar in bars]),
        (_NOW, 0.0, [bar.now for bar in bars]),
    ):
        outline = "".join(
            f"M{_round(_LEFT + step * (place + 0.5) + shift)} {_round(zero)}"
            f"v{_round(-float(amount) * scale)}h{_round(wide)}V{_round(zero)}z"
            for place, amount in enumerate(amounts)
            if amount is not None
        )
        if outline:
            SubElement(group, "path", {"d": outline, "fill": color})
    line = f"M{_LEFT} {_round(zero)}H{WIDTH - _LEFT}"
    SubElement(group, "path", {"d": line, "stroke": _FAINT, "fill": "none"})
    _labels(group, bars, step)


def _labels(group: Element, bars: Sequence[Bar], step: float) -> None:
    """Write what the bars are of: each where they are few, else the first and the last."""
    places = range(len(bars)) if len(bars) <= 4 else (0, len(bars) - 1)
    for place in places:
        text = _text(bars[place].label, _LABEL_CHARS)
        if len(bars) <= 4:
            _write(group, _LEFT + step * (place + 0.5), _BAR_TOP + _BAR_HEIGHT + 16, text, _FAINT, anchor="middle")
        else:
            at, anchor = (_LEFT, "start") if place == 0 else (WIDTH - _LEFT, "end")
            _write(group, at, _BAR_TOP + _BAR_HEIGHT + 16, text, _FAINT, anchor=anchor)


def _legend(group: Element, more: int) -> None:
    for at, color, text in ((0, _NOW, "in this report"), (120, _BEFORE, "before")):
        SubElement(group, "rect", {"x": str(at), "y": "-9", "width": "10", "height": "10", "fill": color})
        _write(group, at + 16, 0, text, _FAINT)
    if more:
        _write(group, WIDTH - 2 * _LEFT, 0, f"and {counted(more, 'figure', 'figures')} not drawn", _FAINT, anchor="end")


def _write(
    group: Element, x: float, y: float, text: str, color: str, *, anchor: str = "start", weight: str = "normal"
) -> None:
    attributes = {"x": _round(x), "y": _round(y), "fill": color, "text-anchor": anchor, "font-weight": weight}
    SubElement(group, "text", attributes).text = text


def _round(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _text(text: str, limit: int) -> str:
    """Return a text as XML can hold it; the markup characters in it are escaped when it is written out."""
    return one_line(text.translate(_NOT_IN_XML).encode(errors="replace").decode(), limit)
