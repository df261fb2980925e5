"""The environment of a function on one machine: the template's own variables, with local values for what AWS makes."""

import os
from collections.abc import Mapping
from pathlib import Path

from galley_cli.template import DRAFT, InvalidTemplate, TemplateFunction

MODEL_KEY = "ANTHROPIC_API_KEY"
MODEL_KEY_ARN = "local:anthropic-api-key"
"""The name by which draft asks for the model's key; the local system answers from its own environment."""

_NOT_INHERITED = ("AWS_", "GALLEY_", "POWERTOOLS_", "PYTHON", "LAMBDA_", "_X_AMZN_")
"""A function on one machine reaches no account, and knows only the settings that it is given."""


def model_provider(environment: Mapping[str, str]) -> str:
    """Return which model drafts: Anthropic's where a key is set, else the extractive summary."""
    return "anthropic" if environment.get(MODEL_KEY) else "offline"


def function_environment(
    function: TemplateFunction, template: Path, *, desk_url: str, inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables of a function's process.

    ``desk_url`` is the review desk's local address. Only draft is given the model's key, which it asks for as a
    secret; ``inherited`` is this process's own environment unless it is named.

    Raises:
        InvalidTemplate: for a variable that refers to something without a local value.
    """
    outside = dict(os.environ if inherited is None else inherited)
    provider = model_provider(outside)
    local = {
        "GALLEY_TABLE": "local:table",
        "GALLEY_RUNS_QUEUE_URL": "local:runs",
        "GALLEY_DEAD_RUNS_QUEUE_URL": "local:dead-runs",
        "GALLEY_BUCKET": "local:bucket",
        "GALLEY_SCHEDULE_GROUP": "galley",
        "GALLEY_DESK_URL": desk_url,
        "GALLEY_MODEL_PROVIDER": provider,
        "GALLEY_MODEL_KEY_ARN": MODEL_KEY_ARN if provider == "anthropic" else "",
        "GALLEY_LOGIN_DOMAIN": "",
        "GALLEY_LOGIN_CLIENT_ID": "",
        "POWERTOOLS_METRICS_NAMESPACE": "Galley/local",
    }
    variables: dict[str, str] = {}
    for name, value in function.environment.items():
        chosen = local.get(name, value)
        if chosen is None:
            raise InvalidTemplate(
                f"{template}: variable {name!r} of function {function.name} has no value on one machine; "
                "give it a literal, or a local value in galley_cli/local/environment.py"
            )
        variables[name] = chosen
    return {**_inherited(function, outside), **variables, **_runtime(function)}


def _inherited(function: TemplateFunction, outside: Mapping[str, str]) -> dict[str, str]:
    hidden = _NOT_INHERITED if function.name == DRAFT else (*_NOT_INHERITED, "ANTHROPIC_")
    return {name: value for name, value in outside.items() if not name.startswith(hidden)}


def _runtime(function: TemplateFunction) -> dict[str, str]:
    """Return what Lambda's runtime itself sets, as far as code may look at it.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
    """
    return {
        "TZ": ":UTC",
        "LANG": "en_US.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
        "AWS_REGION": "local",
        "AWS_DEFAULT_REGION": "local",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "POWERTOOLS_TRACE_DISABLED": "true",
    }
