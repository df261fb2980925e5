"""Ways to spoil a template, to see that a check notices."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from template.expansion import Template

Check = Callable[[Template], list[str]]
"""What must hold of an expanded template; it returns one line for each fault that it finds."""

Spoil = Callable[[Template], object]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, by the check that must notice it."""

    check: Check
    name: str
    spoil: Spoil

    def __str__(self) -> str:
        return f"{self.check.__name__}: {self.name}"


def put(name: str, path: str, value: object) -> Spoil:
    """Set a property of a resource, by its path with dots; places in lists are numbers."""

    def spoil(template: Template) -> None:
        holder, last = _walk(template["Resources"][name]["Properties"], path)
        holder[last] = value

    return spoil


def drop(name: str, path: str) -> Spoil:
    """Take a property of a resource away."""

    def spoil(template: Template) -> None:
        holder, last = _walk(template["Resources"][name]["Properties"], path)
        del holder[last]

    return spoil


def add(name: str, kind: str, **properties: object) -> Spoil:
    """Add a resource."""

    def spoil(template: Template) -> None:
        template["Resources"][name] = {"Type": kind, "Properties": properties}

    return spoil


def remove(name: str, section: str = "Resources") -> Spoil:
    """Take a resource, or an entry of another section, away."""
    return lambda template: template[section].pop(name)


def allow(role: str, action: str, resource: object) -> Spoil:
    """Give a role one more right."""

    def spoil(template: Template) -> None:
        (policy,) = template["Resources"][role]["Properties"]["Policies"]
        policy["PolicyDocument"]["Statement"].append({"Effect": "Allow", "Action": action, "Resource": resource})

    return spoil


def deny(role: str, sid: str) -> Spoil:
    """Take a statement of a role away, by its Sid."""

    def spoil(template: Template) -> None:
        (policy,) = template["Resources"][role]["Properties"]["Policies"]
        statements = policy["PolicyDocument"]["Statement"]
        statements.remove(next(one for one in statements if one.get("Sid") == sid))

    return spoil


def promise(schedule: str, /, **fields: object) -> Spoil:
    """Change fields of a schedule's input; None takes one away."""

    def spoil(template: Template) -> None:
        target = template["Resources"][schedule]["Properties"]["Target"]
        changed = {**json.loads(target["Input"]), **fields}
        target["Input"] = json.dumps({field: value for field, value in changed.items() if value is not None})

    return spoil


def arn(name: str) -> dict[str, list[str]]:
    """Return the reference to a resource's ARN."""
    return {"Fn::GetAtt": [name, "Arn"]}


def _walk(holder: Any, path: str) -> tuple[Any, Any]:
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        holder = holder[step]
    return holder, last
