"""The review desk: a page on which a person reads drafts and decides, and the API behind it.

Nothing is decided on a GET. A decision names the version and the hash of the text that was read; whoever comes
second gets a conflict and the state as it is now.
"""

import json
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock
from typing import Any, assert_never

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext

import desk_page
from desk_answers import draft_page, gates_answer, runs_answer, waiting_answer
from desk_headers import login_origin, with_security_headers
from desk_reads import NoSuchPlace, list_runs, waiting
from desk_requests import (
    ApproveRequest,
    DraftersQuery,
    DraftsQuery,
    InvalidRequest,
    NoReviewer,
    RejectRequest,
    RunsQuery,
    read_body,
    reviewer_of,
    run_key,
)
from galley import system
from galley.answers import conflict_line, run_answer
from galley.observe import logger
from galley.reading import NotFound, TextMismatch, read_draft, read_run
from galley.retry import NeverSucceeds
from galley.runs import InvalidRunKey
from galley.settings import ReviewSettings
from galley.store import Conflict, NoSuchRun, RowsDisagree, Settled, Store, StoreBusy, UnreadableRow

HTTP: dict[type[object], tuple[HTTPStatus, str]] = {
    Settled: (HTTPStatus.OK, "decided"),
    Conflict: (HTTPStatus.CONFLICT, "conflict"),
    NoSuchRun: (HTTPStatus.NOT_FOUND, "not_found"),
    NotFound: (HTTPStatus.NOT_FOUND, "not_found"),
    NotFoundError: (HTTPStatus.NOT_FOUND, "not_found"),
    InvalidRequest: (HTTPStatus(422), "invalid"),
    InvalidRunKey: (HTTPStatus(422), "invalid"),
    NoSuchPlace: (HTTPStatus(422), "invalid"),
    NoReviewer: (HTTPStatus.UNAUTHORIZED, "no_reviewer"),
    StoreBusy: (HTTPStatus.SERVICE_UNAVAILABLE, "busy"),
    NeverSucceeds: (HTTPStatus(422), "refused"),
    TextMismatch: (HTTPStatus.INTERNAL_SERVER_ERROR, "text_mismatch"),
    UnreadableRow: (HTTPStatus.INTERNAL_SERVER_ERROR, "unreadable_row"),
    RowsDisagree: (HTTPStatus.INTERNAL_SERVER_ERROR, "rows_disagree"),
    Exception: (HTTPStatus.INTERNAL_SERVER_ERROR, "failed"),
}
"""What each outcome and each exception is in HTTP, and the code by which a program tells it."""

_HEADERS = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": "1"},
}

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

Answer = Response[str]
Route = Callable[..., Answer]

app = APIGatewayHttpResolver(debug=False)  # its debug mode prints whole events and shows tracebacks
_allowed: dict[str, set[str]] = {}
_one_at_a_time = Lock()


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request of the HTTP API (payload 2.0).

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    """
    settings = ReviewSettings.from_environment()
    head = event["requestContext"]["http"]["method"] == "HEAD"
    # The resolver keeps the event in a class, for one invocation at a time as in Lambda. Elsewhere two threads would
    # read each other's event, and with it each other's reviewer.
    with _one_at_a_time:
        app.context["settings"] = settings
        answer = app.resolve(_as_get(event) if head else event, context)
    if head:
        answer["body"] = ""
    https = event.get("headers", {}).get("x-forwarded-proto") == "https"
    return with_security_headers(answer, login_domain=settings.login_domain, https=https)


def _as_get(event: dict[str, Any]) -> dict[str, Any]:
    context = event["requestContext"]
    return {**event, "requestContext": {**context, "http": {**context["http"], "method": "GET"}}}


def _route(method: str, path: str) -> Callable[[Route], Route]:
    _allowed.setdefault(path, set()).add(method)
    return app.route(path, method=method)


@_route("GET", "/")
def page() -> Answer:
    """The page, without data."""
    return Response(HTTPStatus.OK, "text/html; charset=utf-8", desk_page.page())


@_route("GET", "/assets/<name>")
@_route("GET", "/assets/<version>/<name>")
def asset(name: str, version: str = "") -> Answer:
    """The page's script and style; for good where they are named by their version."""
    found = desk_page.asset(name)
    if found is None:
        raise NotFound(f"there is no asset {name!r}")
    kept = {"Cache-Control": "public, max-age=31536000, immutable"} if version == desk_page.version() else {}
    return Response(HTTPStatus.OK, found.content_type, found.text, headers=kept)


@_route("GET", "/config")
def config() -> Answer:
    """Where reviewers log in; ``local`` where the desk itself knows its reviewer."""
    settings = _settings()
    if not settings.login_domain:
        return _json(HTTPStatus.OK, {"login": "local"})
    return _json(
        HTTPStatus.OK,
        {
            "login": "cognito",
            "domain": login_origin(settings.login_domain),
            "client_id": settings.login_client_id,
        },
    )


@_route("GET", "/health")
def health() -> Answer:
    """That the desk answers, and nothing else."""
    return _json(HTTPStatus.OK, {"status": "ok"})


@_route("GET", "/drafts")
def drafts() -> Answer:
    """The drafts that wait for a person, the urgent ones first, then the longest waiting."""
    query = DraftsQuery.of(app.current_event.query_string_parameters)
    return _json(HTTPStatus.OK, waiting_answer(waiting(_store(), query.after), system.current().now()))


@_route("GET", "/drafts/<drafter>/<slot>")
def draft(drafter: str, slot: str) -> Answer:
    """One draft with everything that a reviewer needs to decide."""
    run, stored = read_draft(_store(), run_key(drafter, slot))
    return _json(HTTPStatus.OK, draft_page(run, stored, system.current().now()))


@_route("POST", "/drafts/<drafter>/<slot>/approve")
def approve(drafter: str, slot: str) -> Answer:
    """A yes, to the text that was read or to the reviewer's edit of it."""
    return _decide(drafter, slot, ApproveRequest)


@_route("POST", "/drafts/<drafter>/<slot>/reject")
def reject(drafter: str, slot: str) -> Answer:
    """A no, with its reason."""
    return _decide(drafter, slot, RejectRequest)


@_route("GET", "/runs")
def runs() -> Answer:
    """A drafter's runs, or the runs in a state that somebody must look at."""
    query = RunsQuery.of(app.current_event.query_string_parameters)
    return _json(HTTPStatus.OK, runs_answer(list_runs(_store(), query.drafter, query.status, query.after)))


@_route("GET", "/runs/<drafter>/<slot>")
def run(drafter: str, slot: str) -> Answer:
    """One run's row."""
    return _json(HTTPStatus.OK, {"run": run_answer(read_run(_store(), run_key(drafter, slot)))})


@_route("GET", "/drafters")
def drafters() -> Answer:
    """The gates of the drafters that are named."""
    query = DraftersQuery.of(app.current_event.query_string_parameters)
    store = _store()
    return _json(HTTPStatus.OK, gates_answer([store.drafter(name) for name in query.names]))


def _decide(drafter: str, slot: str, model: type[ApproveRequest] | type[RejectRequest]) -> Answer:
    reviewer = reviewer_of(app.current_event.request_context.authorizer.jwt_claim)
    key = run_key(drafter, slot)
    request: ApproveRequest | RejectRequest = read_body(model, _body())
    outcome = _store().decide(
        key,
        request.verdict,
        version=request.version,
        read_hash=request.text_hash,
        reviewer=reviewer,
        now=system.current().now(),
    )
    status, code = HTTP[type(outcome)]
    logger.info("decision: %s", code, extra={"run": str(key), "reviewer": reviewer})
    match outcome:
        case Settled(run=row):
            return _json(status, {"run": run_answer(row)})
        case Conflict(run=row):
            return _error(status, code, conflict_line(row, request.version), run=run_answer(row))
        case NoSuchRun():
            return _error(status, code, f"there is no run {key}")
        case _:
            assert_never(outcome)


def _store() -> Store:
    return system.current().store(_settings().table)


def _settings() -> ReviewSettings:
    """Return the settings that this request was begun with."""
    settings: ReviewSettings = app.context["settings"]
    return settings


def _body() -> str | None:
    try:
        return app.current_event.decoded_body
    except ValueError as error:
        raise InvalidRequest("body: is not UTF-8; send JSON") from error


def _json(status: HTTPStatus, answer: dict[str, Any]) -> Answer:
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return Response(status, "application/json; charset=utf-8", text)


def _error(status: HTTPStatus, code: str, line: str, **more: object) -> Answer:
    return _json(status, {"error": {"code": code, "message": line}, **more})


def _refuse(error: Exception) -> Answer:
    """Shape what was raised; what is in no row of the table is our fault, and its details stay in the log."""
    status, code = next(HTTP[kind] for kind in type(error).__mro__ if kind in HTTP)
    line = error.detail if isinstance(error, StoreBusy | RowsDisagree) else str(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.exception("%s %s failed", app.current_event.http_method, app.current_event.path)
    if isinstance(error, NotFoundError):
        line = f"there is nothing at {app.current_event.path}"
    elif code == "failed":
        line = f"the desk failed; its log tells more under {app.lambda_context.aws_request_id}"
    answer = _error(status, code, line)
    answer.headers.update(_HEADERS.get(status, {}))
    return answer


def _refuse_method(allowed: set[str]) -> Route:
    allow = ", ".join(sorted(allowed | {"OPTIONS"} | ({"HEAD"} if "GET" in allowed else set())))

    def refuse(**_: str) -> Answer:
        if app.current_event.http_method == "OPTIONS":
            return Response(HTTPStatus.NO_CONTENT, None, "", headers={"Allow": allow})
        line = f"{app.current_event.path} takes {allow}, not {app.current_event.http_method}"
        answer = _error(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", line)
        answer.headers["Allow"] = allow
        return answer

    return refuse


for _path, _its_methods in _allowed.items():
    app.route(_path, method=[method for method in _METHODS if method not in _its_methods])(_refuse_method(_its_methods))
app.exception_handler(Exception)(_refuse)
