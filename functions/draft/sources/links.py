"""Links, compared by where they lead."""

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

_TRACKING = frozenset({"fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "igshid", "yclid"})


def canonical(link: str) -> str:
    """Return what stays of a link when all is left out that does not change where it leads.

    That is: the scheme, a leading ``www.``, the default port, a slash at the end, the order of the parameters, those by
    which newsletters and networks follow their readers, and the fragment, unless it is an address within the page
    (``#!/news/1``).
    """
    try:
        parts = urlsplit(link)
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return link
    host = (parts.hostname or "").removeprefix("www.")
    kept = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if not (name.lower() in _TRACKING or name.lower().startswith("utm_"))
    ]
    query = f"?{urlencode(sorted(kept))}" if kept else ""
    fragment = f"#{parts.fragment}" if re.match("!?/", parts.fragment) else ""
    return f"{host}{port}{parts.path.rstrip('/')}{query}{fragment}"
