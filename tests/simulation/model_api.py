"""The model's API: it answers, or fails in one of the ways in which it is known to fail, and keeps its own ledger."""

import json
from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta

import model
from galley.runs import Usage
from simulation.drafters import WORST_COST
from simulation.story import ModelSays, Says, Service
from simulation.world import Task, World
from writing import Answer, Brief


@dataclass(eq=False)
class Call:
    """A call that reached the API: what it cost there, and whether its whole answer came back."""

    run: str
    drafter: str
    task: Task
    cost_nanousd: int
    worked: bool


@dataclass
class ModelApi:
    """Stands in the place of ``model.AnthropicModel``. ``script`` is what it does next, before it answers again."""

    world: World
    script: deque[ModelSays] = field(default_factory=deque)
    slow: deque[int] = field(default_factory=deque)
    calls: list[Call] = field(default_factory=list)

    def worst_cost(self, model: str, max_input_tokens: int, max_output_tokens: int) -> int:
        """Return the same worst cost for each."""
        return WORST_COST

    def write(self, brief: Brief, *, remaining: timedelta) -> Answer:
        """Answer, or fail as the story has it."""
        world = self.world
        task = world.current
        assert task is not None
        takes = self.slow.popleft() if self.slow else world.random.uniform(1, 20)
        key = f"{brief.drafter}:{brief.slot:%Y-%m-%dT%H:%M:%SZ}"
        told = self._next(key)
        world.count(f"model: {told.says}")
        left = (remaining - model.MARGIN).total_seconds()
        if left <= 0:
            raise model._timeout(left)
        if told.says is Says.NEVER_ANSWERS or takes >= left:
            takes = left

        def work() -> Answer:
            return self._answer(told, brief, key, task, timed_out=takes >= left, left=left)

        return world.call(Service.MODEL, f"the model for {key}", work, seconds=(takes / 2, takes / 2))

    def _next(self, key: str) -> ModelSays:
        if self.script:
            return self.script.popleft()
        if not self.world.strikes(10 * self.world.weather.model):
            return ModelSays(Says.ANSWERS)
        return ModelSays(self.world.random.choice(tuple(Says)), retry_after=self.world.random.choice((None, None, 90)))

    def _answer(self, told: ModelSays, brief: Brief, key: str, task: Task, *, timed_out: bool, left: float) -> Answer:
        after = None if told.retry_after is None else timedelta(seconds=told.retry_after)
        match told.says:
            case Says.RATE_LIMITED:
                raise model.sort_failure(429, "rate_limit_error", None, "too many requests", after)
            case Says.OVERLOADED:
                raise model.sort_failure(529, "overloaded_error", None, "overloaded", after)
            case Says.BROKEN:
                raise model.sort_failure(500, "api_error", None, "internal error", after)
            case Says.BAD_REQUEST:
                raise model.sort_failure(400, "invalid_request_error", None, "no such field")
            case Says.SPEND_LIMIT:
                raise model.sort_failure(400, "invalid_request_error", None, "your credit balance is too low")
            case Says.NO_CONNECTION:
                raise model._unconnected("refused")
            case _:
                pass
        cost = self.world.random.choice((WORST_COST, WORST_COST // 2, WORST_COST // 10))
        lost = timed_out or told.says in {Says.HANGS_UP, Says.BREAKS_OFF}
        call = Call(key, brief.drafter, task, cost, worked=not lost)
        self.calls.append(call)
        task.asked.append(call)
        if timed_out:
            raise model._timeout(left)
        if told.says is Says.HANGS_UP:
            raise model._broken("reset by peer")
        return self._said(told.says, brief, cost)

    def _said(self, says: Says, brief: Brief, cost: int) -> Answer:
        stop: str | None = "end_turn"
        text = json.dumps(
            {
                "title": f"Draft of {brief.drafter} {self.world.new_id('text')}",
                "sections": [{"heading": "News", "text": "So it is.", "cites": [item.id for item in brief.items]}],
            }
        )
        failure: model.Failure | None = None
        match says:
            case Says.TRUNCATED:
                stop, text = "max_tokens", text[:40]
            case Says.REFUSES:
                stop, text = "refusal", ""
            case Says.RAMBLES:
                text = "Dear reader"
            case Says.BREAKS_OFF:
                stop, text, cost, failure = None, text[:40], WORST_COST, model._broken("reset by peer")
            case _:
                pass
        return Answer(brief.model, stop, text, Usage(900, 50), cost, failure=failure)
