"""template.yaml as CloudFormation sees it: expanded by the SAM translator, in this process and without an account.

Lint and assertions run on the expansion, since cfn-lint no longer checks what SAM generates from the source
(https://github.com/aws-cloudformation/cfn-lint/pull/4491).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from cfnlint.api import ManualArgs, lint
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "template.yaml"
REGION = "eu-west-2"

Template = dict[str, Any]


def read_source() -> Template:
    """Return template.yaml as it is written, with its intrinsic functions in their long form."""
    source: Template = yaml_parse(TEMPLATE.read_text(encoding="utf-8"))
    return source


def expand(source: Template) -> Template:
    """Return the expansion of a SAM template, which may be changed on the way.

    Code stands under its local path in a bucket that does not exist, as ``sam deploy`` would have put it.
    No managed policy is known, so a function that asks for one by name fails here.
    """
    for resource in source["Resources"].values():
        for field in ("CodeUri", "ContentUri"):
            if field in resource.get("Properties", {}):
                resource["Properties"][field] = f"s3://not-a-bucket/{resource['Properties'][field]}"
    session = boto3.session.Session(region_name=REGION)
    expansion: Template = Translator({}, Parser(), boto_session=session).translate(source, {})
    return expansion


def lint_faults(template: Template) -> list[str]:
    """Return what cfn-lint says of a template: errors and warnings, one line each."""
    matches = lint(json.dumps(template), config=ManualArgs(regions=[REGION]))
    return [f"{match.rule.id} {'/'.join(map(str, match.path or []))}: {match.message}" for match in matches]


def resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    """Return the properties of all resources of one type, by logical id."""
    return {
        name: resource.get("Properties", {})
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def text(value: object) -> str:
    """Return a value as ``Fn::Sub`` would write it: ``${Table.Arn}/index/queue`` for what names a resource."""
    match value:
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::GetAtt": str(path)}:
            return f"${{{path}}}"
        case {"Fn::Sub": str(pattern)} | {"Fn::Sub": [str(pattern), _]}:
            return pattern
        case _:
            return str(value)


def named(value: object) -> set[str]:
    """Return the logical ids (of resources, parameters and pseudo parameters) that a value names directly."""
    return set(re.findall(r"\$\{([A-Za-z0-9:]+)[.}]", text(value)))


def as_list(value: object) -> list[Any]:
    """Return a list where CloudFormation allows one value or many; a condition gives what either branch holds."""
    return list(_flatten(value))


def _flatten(value: object) -> Iterator[Any]:
    match value:
        case None | {"Ref": "AWS::NoValue"}:
            return
        case list():
            for one in value:
                yield from _flatten(one)
        case {"Fn::If": [_, yes, no]}:
            yield from _flatten(yes)
            yield from _flatten(no)
        case _:
            yield value
