"""What a run would make of a slot, without a claim, a row or an object: the functions' own code on a dry bucket.

It imports the modules of the function draft: put the checkout on the path first.
"""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from attempt import Workplace
from authoring import brief_of, collect, draft_of
from draft_rules import rules_of
from drafter import Drafter
from galley.drafts import Draft
from galley.instants import utc_now
from galley.money import usd
from galley.retry import NeverSucceeds, RetryLater
from galley.rules import Rules
from galley.runs import RunMessage
from galley.store import NO_CURSORS, Cursor, Memory
from galley.store.changes import utc_day
from galley.texts import counted
from galley_cli.dry_bucket import DryBucket
from prices import US_PERCENT, worst_cost
from prompt import SCHEMA_TOKENS, Prompt, build_prompt, estimate_tokens
from shapes.shape import Material, Window
from windows import window_of
from writing import Answer, Brief


class Unfit(Exception):
    """The model's answer makes no draft. Its text is one line with the reason and what the call cost."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """The draft that would be stored, the answer that it was made of, and the rules that it would be stored with."""

    draft: Draft
    answer: Answer
    rules: Rules


@dataclass(frozen=True, slots=True)
class Sent:
    """What the model would be sent; it was not called."""

    prompt: Prompt
    brief: Brief

    @property
    def input_tokens(self) -> int:
        """How many tokens it has at most, by the estimate that keeps it within the drafter's limit."""
        return estimate_tokens(self.prompt.system) + estimate_tokens(self.prompt.user) + SCHEMA_TOKENS

    @property
    def cost_nanousd(self) -> int:
        """What the call of Anthropic's API would cost at the most, with an answer as long as it may be."""
        return _most(self.brief.model, self.input_tokens, self.brief.max_output_tokens)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One drafter's run for one slot, as it would be.

    ``outside`` is the real system but for its bucket, which is ``bucket``. ``deadline`` is when the run's time would be
    up, in UTC. ``afresh`` is to read the sources without their cursors, as a first run does.
    """

    drafter: Drafter
    message: RunMessage
    outside: Workplace
    bucket: DryBucket
    deadline: datetime
    afresh: bool

    @property
    def window(self) -> Window:
        """What the run would be about."""
        return window_of(self.message, self.drafter, self.outside.schedules)

    @property
    def reserved_nanousd(self) -> int:
        """What a run would reserve before it calls Anthropic's API, also where the offline model writes here."""
        return _most(self.drafter.model, self.drafter.max_input_tokens, self.drafter.max_output_tokens)

    def collect(self) -> Material:
        """Return what the drafter's shape collects.

        Raises:
            galley.retry.RetryLater: when a run would be tried again.
            galley.retry.NeverSucceeds: when a run would fail.
        """
        return collect(self.message, self.drafter, self.outside, deadline=self.deadline, cursors=self._cursors)

    def prompt(self, material: Material) -> Sent:
        """Return what the model would be sent. Each call has a tag of its own, which is random.

        Raises:
            galley.retry.NeverSucceeds: ``input_limit``.
        """
        brief = brief_of(self.drafter, material, self.message.slot, self._memory())
        return Sent(build_prompt(brief, secrets.token_hex(16)), brief)

    def write(self, material: Material) -> Drafted:
        """Have the model write, and make the draft of its answer.

        Raises:
            galley.retry.RetryLater: when a run would be tried again.
            galley.retry.NeverSucceeds: when a run would fail.
            Unfit: when it would fail for what the model answered.
        """
        memory = self._memory()
        brief = brief_of(self.drafter, material, self.message.slot, memory)
        answer = self.outside.model.write(brief, remaining=self.deadline - self.outside.now())
        try:
            draft = draft_of(answer, brief, self.drafter, material, memory)
        except (NeverSucceeds, RetryLater) as error:
            raise Unfit(f"{error}; the call cost {usd(answer.cost_nanousd)}") from error
        return Drafted(draft, answer, rules_of(self.drafter, material, self.outside.now()))

    def over_budget(self) -> str | None:
        """Return why a run would be skipped now for its cost, None if it would not: the ceiling holds here too."""
        drafter, now = self.drafter, self.outside.now()
        ceiling = drafter.daily_budget_nanousd
        worst = self.outside.model.worst_cost(drafter.model, drafter.max_input_tokens, drafter.max_output_tokens)
        if ceiling is None:
            return None
        may = f"this call may cost {usd(worst)}"
        if worst > ceiling:
            return f"{may}, and daily_budget_usd is {usd(ceiling)}; raise it or lower max_input_tokens"
        spent = self.outside.store.committed_nanousd(drafter.name, utc_day(now))
        if spent + worst > ceiling:
            return f"{usd(spent)} of {usd(ceiling)} are spent or reserved today, and {may}"
        return None

    def notes(self) -> Iterator[str]:
        """Yield what else would come of a run now: what has become of the slot, a pause, a full gate."""
        store, name = self.outside.store, self.drafter.name
        row = store.run(self.message.key)
        if row is not None:
            yield f"run {row.key} is {row.status} already; it stays as it is"
        gate = store.drafter(name)
        if gate.paused is not None:
            yield f"a run now would be skipped: drafter {name} is paused {gate.paused}"
        elif gate.pending >= self.drafter.pending_limit:
            undecided = counted(gate.pending, "undecided draft", "undecided drafts")
            yield f"a run now would be skipped: {name} has {undecided}, and its limit is {self.drafter.pending_limit}"

    def _cursors(self) -> Mapping[str, Cursor]:
        return NO_CURSORS if self.afresh else self._memory().cursors

    def _memory(self) -> Memory:
        return self.outside.store.memory(self.drafter.name)


def _most(model: str, input_tokens: int, output_tokens: int) -> int:
    return worst_cost(model, input_tokens, output_tokens, utc_now().date(), US_PERCENT)
