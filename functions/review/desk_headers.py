"""The headers of every answer of the desk, in one place.

What they are for: https://cheatsheetseries.owasp.org/cheatsheets/HTTP_Headers_Cheat_Sheet.html
"""

import re
from typing import Any

_HOST = re.compile(r"[a-z0-9.-]+")


def login_origin(login_domain: str) -> str:
    """Return the origin of the login domain, given with or without ``https://``; empty where there is none.

    Raises:
        ValueError: when the domain could not stand in a header.
    """
    domain = login_domain.removeprefix("https://").rstrip("/")
    if domain and not _HOST.fullmatch(domain):
        raise ValueError(f"GALLEY_LOGIN_DOMAIN is {login_domain!r}: give a host like login.example.org")
    return f"https://{domain}" if domain else ""


def with_security_headers(answer: dict[str, Any], *, login_domain: str, https: bool) -> dict[str, Any]:
    """Return the answer with the headers that keep a hostile draft from doing or sending anything.

    ``trusted-types`` lets only the one policy of the page's script, for text the server sanitised, make HTML.
    ``img-src blob:`` lets the page show a drawing that it already has, and load none from any address: only its own
    script makes such an image, and as an image an SVG runs no script and loads nothing
    (https://www.w3.org/TR/SVG2/conform.html#secure-static-mode).
    An answer that says how long it may be cached keeps that; every other is never stored.
    """
    connect = " ".join(["'self'", login_origin(login_domain)]).strip()
    headers = {
        "Content-Security-Policy": "; ".join(
            [
                "default-src 'none'",
                "script-src 'self'",
                "style-src 'self'",
                f"connect-src {connect}",
                "img-src blob:",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
                "require-trusted-types-for 'script'",
                "trusted-types sanitised-by-server",
            ]
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
    if https:
        headers["Strict-Transport-Security"] = "max-age=31536000"
    return {**answer, "headers": {**headers, **answer.get("headers", {})}}
