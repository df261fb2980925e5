"""A review desk over a real store on disk, asked as API Gateway asks it."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from aws_lambda_powertools.utilities.typing import LambdaContext

import review
from galley.drafts import Channel, Draft, Item
from galley.instants import format_instant
from galley.rules import NO_RULES, Rules
from galley.runs import Run, Usage
from galley.store import Bill, Claimed, Limits, Settled, Store
from support.outside import SLOT, Context, Outside, message

TITLE = "Morning digest: an invoice and a headcount"
BODY = (
    "Two things need an answer today.\n\n"
    "- The invoice of Harbour Print is due on Friday [m1](https://mail.example/m1).\n"
    "- The venue wants the headcount by noon.\n"
)
DRAFT = Draft(
    title=TITLE,
    body=BODY,
    items=(
        Item("m1", "Invoice 4711", "It is due on Friday.", "mail", "https://mail.example/m1", "Ana Lima", SLOT),
        Item("m2", "Headcount", "By noon, please.", "mail"),
    ),
    warnings=("Message 17 could not be decoded.",),
    model="claude-haiku-5-5",
    channels=(Channel("email", "team@galley.example"),),
)
CLAIMS = {"ana": {"sub": "sub-ana", "username": "ana"}, "ben": {"sub": "sub-ben", "username": "ben"}}


@dataclass(frozen=True)
class Answer:
    """What the desk answered. ``json`` is only there where the answer is JSON."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        assert self.headers["Content-Type"].startswith("application/json")
        return json.loads(self.body)

    @property
    def line(self) -> str:
        return str(self.json["error"]["message"])


@dataclass
class DeskClient:
    """Asks the handler over the store, in the name of a reviewer (None for nobody)."""

    store: Store
    outside: Outside

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: dict[str, str] | None = None,
        claims: dict[str, str] | None = CLAIMS["ana"],
        headers: dict[str, str] | None = None,
    ) -> Answer:
        context: dict[str, Any] = {
            "http": {"method": method, "path": path, "sourceIp": "203.0.113.7"},
            "requestId": "request-1",
            "stage": "$default",
        }
        if claims is not None:
            context["authorizer"] = {"jwt": {"claims": claims, "scopes": ["review/approve"]}}
        return self.invoke(
            {
                "version": "2.0",
                "routeKey": "$default",
                "rawPath": path,
                "rawQueryString": "",
                "queryStringParameters": query or {},
                "headers": {"x-forwarded-proto": "https"} if headers is None else headers,
                "requestContext": context,
                "body": body if isinstance(body, str | None) else json.dumps(body),
                "isBase64Encoded": False,
            }
        )

    def invoke(self, event: dict[str, Any]) -> Answer:
        given = review.handler(event, cast("LambdaContext", Context()))
        return Answer(int(given["statusCode"]), given["headers"], given["body"])

    def get(self, path: str, **query: str) -> Answer:
        return self.ask("GET", path, query=query)

    def decide(self, verdict: str, run: Run, *, by: str = "ana", **fields: object) -> Answer:
        """Approve or reject the run as it was read; ``fields`` are added to the body, or replace a part of it."""
        body = {"version": run.version, "text_hash": run.text_hash, **fields}
        return self.ask("POST", f"{path_of(run)}/{verdict}", body, claims=CLAIMS[by])

    def pending(
        self, slot: datetime = SLOT, drafter: str = "daily-digest", draft: Draft = DRAFT, rules: Rules = NO_RULES
    ) -> Run:
        """Put a draft before the reviewers, or past them, forty seconds after its slot."""
        claimed = self.claimed(slot, drafter)
        bill = Bill(Usage(1200, 300), 2_700_000, draft.model)
        stored = self.store.store(claimed, draft, {}, bill, now=slot + timedelta(seconds=40), rules=rules)
        assert isinstance(stored, Settled)
        return stored.run

    def claimed(self, slot: datetime = SLOT, drafter: str = "daily-digest") -> Run:
        outcome = self.store.claim(
            message(drafter, slot),
            Limits(pending=100, daily_budget_nanousd=None, worst_cost_nanousd=10_000_000),
            owner="invocation-1",
            now=slot,
            lease_until=slot + timedelta(minutes=5),
        )
        assert isinstance(outcome, Claimed)
        return outcome.run


def path_of(run: Run, kind: str = "drafts") -> str:
    return f"/{kind}/{run.drafter}/{format_instant(run.slot)}"
