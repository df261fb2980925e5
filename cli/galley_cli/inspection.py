"""Looks through the project's own files, so that a mistake is told before it costs a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from galley.contract import read_tick
from galley_cli.checkout import Checkout, put_on_path
from galley_cli.template import Template, read_template

if TYPE_CHECKING:
    from drafter import Drafter


@dataclass(frozen=True, slots=True)
class Inspection:
    """The template and the good drafters, and a line for everything that is wrong."""

    template: Template
    drafters: tuple["Drafter", ...]
    problems: tuple[str, ...]


def inspect(checkout: Checkout) -> Inspection:
    """Read the template and every drafter's file; what is broken is a line of ``problems`` and stops nothing else.

    Raises:
        galley_cli.template.InvalidTemplate: when nothing at all could run from the template.
    """
    template = read_template(checkout.template)
    drafters, broken = _read_drafters(checkout)
    known = {drafter.name for drafter in drafters} | set(broken)
    problems = (*template.problems, *broken.values(), *_unknown_drafters(template, known))
    return Inspection(template, drafters, problems)


def _read_drafters(checkout: Checkout) -> tuple[tuple["Drafter", ...], dict[str, str]]:
    put_on_path(checkout)
    from drafter import InvalidDrafter, drafter_names, read_drafter

    good: list[Drafter] = []
    broken: dict[str, str] = {}
    for name in drafter_names(checkout.drafters):
        try:
            good.append(read_drafter(checkout.drafters / f"{name}.toml"))
        except InvalidDrafter as error:
            broken[name] = str(error)
    return tuple(good), broken


def _unknown_drafters(template: Template, known: set[str]) -> Iterator[str]:
    for schedule in template.schedules:
        for name in read_tick(schedule.input).drafters:
            if name not in known:
                yield (
                    f"{template.path}: DispatchFunction.Events.{schedule.name}: Input names drafter {name!r}, "
                    f"which has no file; the drafters are: {', '.join(sorted(known)) or 'none'}"
                )
