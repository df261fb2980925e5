"""The model of AWS has the limits that template.yaml sets."""

from pathlib import Path

from galley.queue import MAX_RECEIVES
from galley_cli.template import read_template
from simulation.lambdas import LIMITS, PUBLISH_RETRIES, RETRIES
from simulation.sqs import VISIBILITY

TEMPLATE = read_template(Path(__file__).parents[2] / "template.yaml")


def test_each_function_has_its_time_limit() -> None:
    assert {str(function): limit for function, limit in LIMITS.items()} == {
        name: function.time_limit for name, function in TEMPLATE.functions.items()
    }


def test_what_fails_is_repeated_as_often() -> None:
    assert {str(function): retries for function, retries in RETRIES.items()} == {
        str(function): TEMPLATE.async_retries[function].retries for function in RETRIES
    }
    assert TEMPLATE.stream.retries == PUBLISH_RETRIES


def test_the_queue_hides_and_buries_as_it_does() -> None:
    assert (TEMPLATE.queue.visibility, TEMPLATE.queue.max_receives) == (VISIBILITY, MAX_RECEIVES)
