"""Finds the project's own folder, and puts its code on the import path as Lambda would."""

import sys
from dataclasses import dataclass
from pathlib import Path


class CheckoutMissing(Exception):
    """There is no project here. Its text is one line that says where one was looked for."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with template.yaml, functions/ and layers/galley in it."""

    root: Path

    @property
    def template(self) -> Path:
        """The template of the whole system."""
        return self.root / "template.yaml"

    @property
    def drafters(self) -> Path:
        """The folder of the drafters' files."""
        return self.root / "functions" / "draft" / "drafters"

    @property
    def layer(self) -> Path:
        """The folder that holds the package ``galley``."""
        return self.root / "layers" / "galley"

    @property
    def cli(self) -> Path:
        """The folder that holds the package ``galley_cli``."""
        return self.root / "cli"

    def function(self, name: str) -> Path:
        """Return the code root of a function."""
        return self.root / "functions" / name

    def code_roots(self) -> tuple[Path, ...]:
        """Return every folder that holds modules of the deployed code, the layer first."""
        functions = sorted(path for path in (self.root / "functions").iterdir() if path.is_dir())
        return (self.layer, *functions)


def find_checkout(start: Path | None = None) -> Checkout:
    """Return the project that this command was installed from, else the one around the start folder (or the current).

    Raises:
        CheckoutMissing: when neither is one.
    """
    installed_from = Path(__file__).resolve().parents[2]
    here = (start or Path.cwd()).resolve()
    for folder in (installed_from, here, *here.parents):
        if (folder / "template.yaml").is_file() and (folder / "functions").is_dir():
            return Checkout(folder)
    raise CheckoutMissing(f"no template.yaml with functions/ beside it in {here} or above it; run galley there")


def put_on_path(checkout: Checkout) -> None:
    """Make the layer and all functions importable in this process, before anything else of the same name."""
    missing = [str(root) for root in checkout.code_roots() if str(root) not in sys.path]
    sys.path[:0] = missing
