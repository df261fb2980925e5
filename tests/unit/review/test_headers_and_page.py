"""The page holds no data, runs only its own script, and every answer says so to the browser."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from support.outside import ROOT
from unit.review.asking import DeskClient, path_of

ASSETS = ROOT / "functions" / "review" / "assets"


def _policy(header: str) -> dict[str, str]:
    return dict((*directive.split(" ", 1), "")[:2] for directive in header.split("; "))


def test_every_answer_has_the_security_headers(desk: DeskClient) -> None:
    run = desk.pending()
    answers = [
        desk.get("/"),
        desk.get("/assets/desk.js"),
        desk.get("/config"),
        desk.get("/health"),
        desk.get("/drafts"),
        desk.get(path_of(run)),
        desk.get("/nowhere"),
        desk.get("/runs"),
        desk.ask("OPTIONS", "/drafts"),
        desk.ask("HEAD", "/drafts"),
        desk.ask("DELETE", "/drafts"),
        desk.decide("approve", run, version=7),
        desk.decide("approve", run),
        desk.ask("POST", f"{path_of(run)}/approve", {}, claims=None),
    ]
    assert {answer.status for answer in answers} == {200, 204, 401, 404, 405, 409, 422}
    for answer in answers:
        assert _policy(answer.headers["Content-Security-Policy"]) == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "connect-src": "'self'",
            "img-src": "blob:",
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": "'none'",
            "require-trusted-types-for": "'script'",
            "trusted-types": "sanitised-by-server",
        }
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "camera=()" in answer.headers["Permissions-Policy"]
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
        assert "Access-Control-Allow-Origin" not in answer.headers


def test_strict_transport_is_only_promised_over_https(desk: DeskClient) -> None:
    for headers in ({}, {"x-forwarded-proto": "http"}):
        assert "Strict-Transport-Security" not in desk.ask("GET", "/", headers=headers).headers


@pytest.mark.parametrize("domain", ["login.galley.example", "https://login.galley.example/"])
def test_the_page_may_also_ask_the_login(desk: DeskClient, monkeypatch: pytest.MonkeyPatch, domain: str) -> None:
    monkeypatch.setenv("GALLEY_LOGIN_DOMAIN", domain)
    monkeypatch.setenv("GALLEY_LOGIN_CLIENT_ID", "client-1")
    answer = desk.get("/config")
    assert answer.json == {"login": "cognito", "domain": "https://login.galley.example", "client_id": "client-1"}
    assert _policy(answer.headers["Content-Security-Policy"])["connect-src"] == "'self' https://login.galley.example"


def test_a_login_that_is_no_host_never_comes_into_a_header(desk: DeskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALLEY_LOGIN_DOMAIN", "login.example; script-src *")
    with pytest.raises(ValueError, match=r"GALLEY_LOGIN_DOMAIN is 'login\.example; script-src \*'"):
        desk.get("/")


def test_without_a_login_the_desk_says_that_it_is_local(desk: DeskClient) -> None:
    assert desk.get("/config").json == {"login": "local"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._within = tag
        for name, value in attrs:
            if name in ("src", "href") and not (value or "").startswith("#"):
                self.addresses.append(value or "")
            if name == "style" or name.startswith("on"):
                self.inline.append(name)

    def handle_data(self, data: str) -> None:
        if self._within in ("script", "style") and data.strip():
            self.inline.append(data)


def test_the_page_has_only_its_own_script_and_style(desk: DeskClient) -> None:
    desk.pending()
    page = _Page()
    page.feed(desk.get("/").body)
    assert page.inline == []
    assert [address.rsplit("/", 1)[1] for address in page.addresses if address != "#/"] == ["desk.css", "desk.js"]
    for address in page.addresses:
        assert desk.get(f"/{address}").status == (404 if address == "#/" else 200)


def test_every_module_that_the_script_imports_is_there(desk: DeskClient) -> None:
    seen, left = set(), {"desk.js"}
    while left:
        name = left.pop()
        seen.add(name)
        answer = desk.get(f"/assets/{name}")
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
        left |= set(re.findall(r'from "\./([\w-]+\.js)"', answer.body)) - seen
    assert seen == {path.name for path in ASSETS.glob("*.js")}


def test_the_script_makes_markup_in_one_place_only() -> None:
    source = {path.name: path.read_text() for path in ASSETS.glob("*.js")}
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc"
    assert [(name, found) for name, text in source.items() for found in re.findall(sinks, text)] == [
        ("desk-dom.js", "innerHTML")
    ]


def test_the_script_shows_no_image_but_what_it_made_itself() -> None:
    source = {path.name: path.read_text() for path in ASSETS.glob("*.js")}
    images = [(name, found) for name, text in source.items() for found in re.findall(r'"img"|createObjectURL', text)]
    assert sorted(images) == [("desk-views.js", '"img"'), ("desk-views.js", "createObjectURL")]


def test_the_script_decides_by_post_alone() -> None:
    text = (ASSETS / "desk-api.js").read_text()
    assert re.findall(r'ask\("(\w+)", `\$\{draftPath\(draft\)\}/(approve|reject)`', text) == [
        ("POST", "approve"),
        ("POST", "reject"),
    ]


def test_an_asset_named_by_its_version_is_kept_and_any_other_is_not(desk: DeskClient) -> None:
    version = re.findall(r"assets/([0-9a-f]{16})/desk\.js", desk.get("/").body)[0]
    kept = desk.get(f"/assets/{version}/desk.css")
    assert kept.headers["Content-Type"] == "text/css; charset=utf-8"
    assert kept.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert desk.get("/assets/0123456789abcdef/desk.css").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../review.py",
        "/assets/..%2freview.py",
        "/assets/%2e%2e/review.py",
        "/assets/%2e%2e%2freview.py",
        "/assets/..\\review.py",
        "/assets//etc/passwd",
        "/assets/index.html",
        "/assets/desk.js%00.css",
        "/assets/x/y/desk.js",
        "/assets/",
        "/assets",
        "/assets/.",
    ],
)
def test_no_other_file_can_be_had(desk: DeskClient, path: str) -> None:
    assert desk.get(path).status == 404


def test_the_assets_hold_no_address_but_their_own() -> None:
    for path in sorted(ASSETS.iterdir()):
        assert re.findall(r"https?://\S+", Path(path).read_text()) == [], path.name
