"""The desk's page and its own script and style. They hold no data: the script fetches that.

The page names its assets by a version that is a hash of them all, so that a browser may keep them for good and
still never mixes two versions.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "assets"
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_PAGE = "index.html"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page."""

    content_type: str
    text: str


@cache
def _assets() -> dict[str, Asset]:
    """Read the files once. A request only ever looks a name up here, so no path of its making reaches the disk."""
    return {
        path.name: Asset(_TYPES[path.suffix], path.read_text(encoding="utf-8"))
        for path in sorted(_FOLDER.iterdir())
        if path.suffix in _TYPES
    }


@cache
def version() -> str:
    """Return the hash of all assets, 16 hex digits."""
    digest = hashlib.sha256()
    for name, asset in _assets().items():
        digest.update(f"{name}\n{len(asset.text)}\n{asset.text}".encode())
    return digest.hexdigest()[:16]


def asset(name: str) -> Asset | None:
    """Return one asset, or None where there is none by that name."""
    return _assets().get(name)


@cache
def page() -> str:
    """Return the page, which is the same for everybody."""
    return (_FOLDER / _PAGE).read_text(encoding="utf-8").replace("{{version}}", version())
