"""Who uses the system: reviewers at the desk, through its real handler, and the operator."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from galley.drafts import text_hash
from galley.queue import RunQueue
from galley.runs import RunKey, RunMessage, Status
from galley.store import Settled, Store
from simulation.lambdas import Lambda
from simulation.story import Function, Verdict
from simulation.world import Returned, World


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
    """The person at the ``galley`` command, whose process may die too."""

    world: World
    store: Store
    queue: RunQueue
    plain: Store
    resent: list[RunKey] = field(default_factory=list)

    def resend(self, nth: int) -> None:
        """Send the nth failed run again."""
        failed = self.plain.watched(Status.FAILED).runs
        if failed:
            key = failed[nth % len(failed)].key
            self.resent.append(key)
            self.world.count("resends")
            self._do(lambda: self._resend(key))

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

    def _resend(self, key: RunKey) -> None:
        match self.store.resend(key, now=self.world.now):
            case Settled(run):
                self.queue.send([run.message])
            case _:
                self.world.count("resends in conflict")

    def _do(self, work: Any) -> None:
        self.world.start(Function.OPERATOR, self.world.new_id("operator"), work)
