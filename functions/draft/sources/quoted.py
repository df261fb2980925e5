"""What a mail repeats of earlier ones, and its signature, cut out of its words; a mark says how much was cut.

Cut is only what marks itself: lines that begin with ``>``, what a mail program encloses as a quotation, what stands
under "Original Message" or under the block of headers that Outlook puts over the mail it answers, and what follows the
signature's own line (RFC 3676, 4.3). A forwarded mail stays: it is what is sent. So does a mail that would have no
words left. The patterns look at one line of bounded length at a time, so that no mail takes long.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from galley.texts import counted
from sources.clean import QUOTE_BEGINS, QUOTE_ENDS

MOST_SIGNATURE_LINES = 15
"""A longer text under a line of two hyphens and a blank is no signature."""
MOST_LINES_UNDER_BARE_HYPHENS = 5
"""Many programs lose the blank; but two hyphens alone are also what divides the parts of a newsletter."""
_MOST_LINE_CHARS = 300
_MOST_ATTRIBUTION_LINES = 3
_HEADERS_LOOKED_AT = 8
_FEWEST_HEADERS = 3

# "On Monday, Ada wrote:" as mail programs put it, in the languages of their larger user bases.
_WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|a écrit|escribió|escreveu|ha scritto|schreef|geschreven|skrev|kirjoitti|napisała?)\b"
    r"|написал|写道|のメール",
    re.IGNORECASE,
)
_ORIGINAL = re.compile(
    r"[-_ ]{3,}(?:original message|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale|"
    r"mensagem original|oorspronkelijk bericht|originalmeddelande|oprindelig meddelelse|исходное сообщение)[-_ ]{3,}",
    re.IGNORECASE,
)
_FORWARDED = re.compile(
    r"(?:[-_ ]{3,})?(?:begin forwarded message|forwarded message|weitergeleitete nachricht|"
    r"anfang der weitergeleiteten (?:nachricht|e-mail)|message transféré|début du message (?:réexpédié|transféré)|"
    r"mensaje reenviado|messaggio inoltrato|mensagem encaminhada|doorgestuurd bericht|пересылаемое сообщение)"
    r"\b[^:]{0,40}:?(?:[-_ ]{3,})?",
    re.IGNORECASE,
)
_FORWARDING_SUBJECT = re.compile(r"\s*(?:\[[^\]]{0,60}\]\s*)?(?:fwd?|wg|tr|rv|i|enc|doorst|vb)\s*:", re.IGNORECASE)
_HEADER = re.compile(
    r"\*?(from|von|de|da|van|fra|från|от|sent|gesendet|envoyé|enviado(?: el)?|inviato|verzonden|sendt|skickat|date|"
    r"datum|fecha|data|dato|отправлено|to|an|à|para|a|aan|til|till|кому|cc|subject|betreff|objet|asunto|oggetto|assunto|"
    r"onderwerp|emne|ämne|тема)\s?:\*?\s",
    re.IGNORECASE,
)
_RULE = re.compile("_{10,}|-{10,}")
_SENDER = frozenset("from von de da van fra från от".split())
_FROM_A_PHONE = re.compile(
    r"(?:sent from (?:my|mail for|outlook|yahoo)|get outlook for|von meinem .* gesendet|gesendet von|"
    r"envoyé de(?:puis)? mon|enviado desde mi|enviado do meu|inviato da|verzonden vanaf mijn)\b.{0,80}",
    re.IGNORECASE,
)


def forwards(subject: str) -> bool:
    """Whether a mail with this subject passes another one on."""
    return _FORWARDING_SUBJECT.match(subject[:_MOST_LINE_CHARS]) is not None


def without_quotes(text: str, *, subject: str = "") -> str:
    """Return the text without what it quotes and without its signature, each replaced by a line that says so.

    ``text`` has ``\\n`` for its line breaks, and the blanks at the ends of its lines still: a signature begins with a
    line of two hyphens and a blank.
    """
    lines = _leveled(text)
    kept = _cut_signatures([line.text for line in lines] if forwards(subject) else _cut_quotes(lines))
    if not any(isinstance(line, str) and line.strip() for line in kept):
        return "\n".join(line.text for line in lines)
    return "\n".join(str(line) for line in kept)


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    is_quoted: bool

    @property
    def short(self) -> str:
        return self.text.strip()[:_MOST_LINE_CHARS]


@dataclass(frozen=True, slots=True)
class _Cut:
    """What was cut: it stands in the text in the place of its lines."""

    what: str
    lines: int

    def __str__(self) -> str:
        return f"[{self.what} cut, {counted(self.lines, 'line', 'lines')}]"


_HYPHENS = {"-- ": MOST_SIGNATURE_LINES, "--": MOST_LINES_UNDER_BARE_HYPHENS}
_QUOTE = "quoted text"
_SIGNATURE = "signature"


def _leveled(text: str) -> list[_Line]:
    """Return the lines, each with whether it is quoted. An mbox file writes ``>From`` where a line begins with From."""
    lines: list[_Line] = []
    depth = 0
    for raw in text.split("\n"):
        depth = max(0, depth + raw.count(QUOTE_BEGINS))
        line = raw.replace(QUOTE_BEGINS, "").replace(QUOTE_ENDS, "")
        if line.strip() or line == raw:
            marked = line.lstrip(" ").startswith(">") and not line.startswith(">From ")
            lines.append(_Line(line, is_quoted=bool(line.strip()) and (depth > 0 or marked)))
        depth = max(0, depth - raw.count(QUOTE_ENDS))
    return lines


def _cut_quotes(lines: Sequence[_Line]) -> list[str | _Cut]:
    kept: list[str | _Cut] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if not line.text.strip():
            kept.append(line.text)
            place += 1
            continue
        if _FORWARDED.fullmatch(line.short):
            # What follows is what the mail is sent for.
            return [*kept, *(line.text for line in lines[place:])]
        if _begins_an_answered_mail(lines, place):
            return [*kept, _Cut(_QUOTE, _filled(lines[place:]))]
        end = _end_of_quote(lines, place)
        if end > place:
            kept.append(_Cut(_QUOTE, _filled(lines[place:end])))
            place = end
        else:
            kept.append(line.text)
            place += 1
    return kept


def _filled(lines: Sequence[_Line]) -> int:
    return sum(bool(line.text.strip()) for line in lines)


def _begins_an_answered_mail(lines: Sequence[_Line], place: int) -> bool:
    line = lines[place].short
    if _ORIGINAL.fullmatch(line):
        return True
    if _RULE.fullmatch(line):
        place += 1
    if place == len(lines) or _header(lines[place]) not in _SENDER:
        return False
    names = [_header(line) for line in lines[place : place + _HEADERS_LOOKED_AT] if line.text.strip()]
    headers = next((count for count, name in enumerate(names) if name is None), len(names))
    return headers >= _FEWEST_HEADERS


def _header(line: _Line) -> str | None:
    match = _HEADER.match(f"{line.short} ")
    return match[1].lower() if match else None


def _end_of_quote(lines: Sequence[_Line], place: int) -> int:
    """Return where the quotation ends that begins here, with the line that says whose it is; ``place`` if none does."""
    begin = place if lines[place].is_quoted else _after_attribution(lines, place)
    if begin is None:
        return place
    end = begin
    for later in range(begin, len(lines)):
        if lines[later].is_quoted:
            end = later + 1
        elif lines[later].text.strip():
            break
    return end


def _after_attribution(lines: Sequence[_Line], place: int) -> int | None:
    """Return where a quotation begins whose author is named here, in a line that may have been wrapped."""
    for end in range(place + 1, min(place + _MOST_ATTRIBUTION_LINES, len(lines) - 1) + 1):
        if lines[end - 1].is_quoted or not lines[end - 1].text.strip():
            return None
        if lines[end - 1].short.endswith((":", "：")) and _WROTE.search(" ".join(map(_short, lines[place:end]))):
            after = next((later for later in range(end, min(end + 3, len(lines))) if lines[later].text.strip()), None)
            return after if after is not None and lines[after].is_quoted else None
    return None


def _short(line: _Line) -> str:
    return line.short


def _cut_signatures(kept: Sequence[str | _Cut]) -> list[str | _Cut]:
    """Cut the signatures: each from its own line to the next quotation, or to the end."""
    cut: list[str | _Cut] = []
    for part in _between_cuts(kept):
        begin = _signature(part)
        if begin is None:
            cut += part
            continue
        signature = [line for line in part[begin:] if line not in _HYPHENS]
        cut += [*part[:begin], _Cut(_SIGNATURE, sum(bool(str(line).strip()) for line in signature))]
    return cut


def _between_cuts(kept: Sequence[str | _Cut]) -> Iterator[list[str | _Cut]]:
    part: list[str | _Cut] = []
    for line in kept:
        if isinstance(line, _Cut):
            yield part
            yield [line]
            part = []
        else:
            part.append(line)
    yield part


def _signature(part: Sequence[str | _Cut]) -> int | None:
    """Return where the signature begins in lines up to a quotation or the end, or None."""
    lines = [line for line in part if isinstance(line, str)]
    if len(lines) != len(part):
        return None
    for place in range(len(lines) - 1, max(-1, len(lines) - 2 * MOST_SIGNATURE_LINES), -1):
        if lines[place] in _HYPHENS:
            under = sum(bool(line.strip()) for line in lines[place + 1 :])
            return place if 0 < under <= _HYPHENS[lines[place]] else None
    last = next((place for place in reversed(range(len(lines))) if lines[place].strip()), None)
    if last is not None and _FROM_A_PHONE.fullmatch(lines[last].strip()[:_MOST_LINE_CHARS]):
        return last
    return None
