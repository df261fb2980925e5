"""Who uses the system: reviewers at the desk, through its real handler, and the operator."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from galley.drafts import text_hash
from galley.queue import RunQueue
from galley.runs import RunKey, RunMessage
from galley.store import Store
from galley_cli.dead import Report, Resending, discard_dead, list_dead
from simulation.lambdas import Lambda
from simulation.story import Function, Verdict
from simulation.world import Returned, Task, World


@dataclass(eq=False)
class Asked:
    """A decision that a reviewer sent: for which text, what the published text would be, and what came back."""

    run: str
    verdict: Verdict
    read_hash: str
    version: int
    title: str
    body: str
    statuses: list[int | None] = field(default_factory=list)

    @property
    def text_hash(self) -> str:
        """The hash of the text that this decision would publish."""
        return text_hash(self.title, self.body)


@dataclass
class Desk:
    """Reviewers at work. ``asked`` are all decisions that were ever sent."""

    world: World
    lambdas: Lambda
    asked: list[Asked] = field(default_factory=list)

    def review(self, nth: int, verdicts: tuple[Verdict, ...], tamper: Callable[[RunKey], None] | None = None) -> None:
        """Let reviewers read the nth waiting draft, each for himself, and then decide; before, somebody may tamper."""
        readings = {"left": len(verdicts)}

        for number, verdict in enumerate(verdicts):
            name = f"reviewer-{number}"
            self.world.start(
                Function.ANY, self.world.new_id(name), lambda n=name, v=verdict: self._sit(n, nth, v, readings, tamper)
            )

    def _sit(
        self,
        name: str,
        nth: int,
        verdict: Verdict,
        readings: dict[str, int],
        tamper: Callable[[RunKey], None] | None,
    ) -> None:
        read = self._read(name, nth)
        readings["left"] -= 1
        for _ in range(20):
            if readings["left"]:
                self.world.rest(timedelta(milliseconds=50))
        if read is None:
            return
        run, title, body = read
        if tamper is not None:
            tamper(RunKey.parse(run["run"]))
        sent: dict[str, Any] = {"version": run["version"], "text_hash": run["text_hash"]}
        if verdict is Verdict.EDIT:
            title, body = f"{title} as {name} likes it", f"{body}\n\nSeen by {name}."
            sent |= {"title": title, "body": body}
        if verdict in (Verdict.REJECT, Verdict.OLD_VERSION):
            sent["reason"] = "other"
        if verdict is Verdict.OLD_VERSION:
            sent["version"] -= 1
        if verdict is Verdict.OTHER_TEXT:
            sent["text_hash"] = text_hash(title, f"{body} and more")
        asked = Asked(run["run"], verdict, run["text_hash"], run["version"], title, body)
        self.asked.append(asked)
        self.world.rest(self.world.seconds(0, 0.02))
        word = "reject" if "reason" in sent else "approve"
        path = f"/drafts/{run['drafter']}/{run['slot']}/{word}"
        for _ in range(self.world.random.choice((1, 1, 2))):  # some click twice
            status, _ = self._ask(name, "POST", path, sent)
            asked.statuses.append(status)
            self.world.count(f"decisions answered {status}")

    def _read(self, name: str, nth: int) -> tuple[dict[str, Any], str, str] | None:
        status, waiting = self._ask(name, "GET", "/drafts")
        if status != 200 or not waiting["drafts"]:
            return None
        one = waiting["drafts"][nth % len(waiting["drafts"])]
        status, page = self._ask(name, "GET", f"/drafts/{one['drafter']}/{one['slot']}")
        if status != 200:
            return None
        return page["run"], page["title"], page["body"]

    def _ask(self, name: str, method: str, path: str, body: object = None) -> tuple[int | None, Any]:
        """Ask the desk; None is API Gateway's answer when the function died."""
        event = {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": "",
            "queryStringParameters": {},
            "headers": {"x-forwarded-proto": "https"},
            "requestContext": {
                "http": {"method": method, "path": path, "sourceIp": "203.0.113.7"},
                "requestId": "request-1",
                "stage": "$default",
                "authorizer": {"jwt": {"claims": {"sub": f"sub-{name}", "username": name}, "scopes": []}},
            },
            "body": None if body is None else json.dumps(body),
            "isBase64Encoded": False,
        }
        end = self.world.wait_for(lambda back: self.lambdas.invoke(Function.REVIEW, event, back))
        if not isinstance(end, Returned):
            return None, None
        return int(end.value["statusCode"]), json.loads(end.value["body"])


@dataclass
class Operator:
    """The person at the ``galley`` command, whose process may die too. ``discarding`` are the names of its tasks."""

    world: World
    store: Store
    queue: RunQueue
    plain: Store
    discarding: set[str] = field(default_factory=set)

    def resend(self, nth: int) -> None:
        """Send the nth of the dead again, run or tick."""

        def work() -> None:
            things = list_dead(self.store, self.queue).all
            if things:
                resending = self._resending()
                resending.resend([things[nth % len(things)]])
                self._record(resending.report)

        self._do(work)

    def resend_all(self) -> None:
        """Send all of the dead again."""

        def work() -> None:
            resending = self._resending()
            resending.resend_all()
            self._record(resending.report)

        self._do(work)

    def discard(self, nth: int) -> None:
        """Discard the nth of the dead."""

        def work() -> None:
            things = list_dead(self.store, self.queue).all
            if things:
                report = Report()
                discard_dead(self.store, self.queue, [things[nth % len(things)]], now=self.world.now, report=report)
                self._record(report)

        self.discarding.add(self._do(work).name)

    def send(self, message: RunMessage) -> None:
        """Send a run message."""
        self._do(lambda: self.queue.send([message]))

    def pause(self, drafter: str) -> None:
        """Pause a drafter."""
        self._do(lambda: self.store.pause(drafter, "by hand", now=self.world.now))

    def resume(self, drafters: Sequence[str]) -> None:
        """Resume whoever is paused."""
        for drafter in drafters:
            if self.plain.drafter(drafter).paused is not None:
                self._do(lambda name=drafter: self.store.resume(name, now=self.world.now))

    def _resending(self) -> Resending:
        return Resending(self.store, self.queue, now=lambda: self.world.now, trace=self.world.new_id("resending"))

    def _record(self, report: Report) -> None:
        """Count what the command would print."""
        self.world.note(f"the operator reads {report}")
        for what in ("sent", "sent_before", "discarded", "refused", "not_found"):
            self.world.count(f"dead: {what.replace('_', ' ')}", len(getattr(report, what)))

    def _do(self, work: Callable[[], Any]) -> Task:
        return self.world.start(Function.OPERATOR, self.world.new_id("operator"), work)
