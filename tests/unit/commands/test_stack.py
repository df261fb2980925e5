"""A deployed stack is found by its outputs."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, NoRegionError

from galley_cli.stack import OUTPUTS, StackUnreachable, open_sources, open_stack

FOUND = {name: f"https://{name.lower()}.example" for name in (*OUTPUTS, "BucketName", "DeskUrl")}


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The outputs of a stack, as CloudFormation tells them; a test may take some away."""
    outputs = dict(FOUND)

    class CloudFormation:
        def describe_stacks(self, StackName: str) -> dict[str, Any]:
            assert StackName == "galley-prod"
            return {"Stacks": [{"Outputs": [{"OutputKey": key, "OutputValue": one} for key, one in outputs.items()]}]}

    monkeypatch.setattr("boto3.client", lambda service, **_: CloudFormation())
    return outputs


def test_the_bucket_and_the_desk_are_those_of_the_outputs(outputs: dict[str, str]) -> None:
    sources = open_sources("galley-prod")
    assert sources.desk_url == outputs["DeskUrl"]
    assert open_stack("galley-prod").store is not None


@pytest.mark.parametrize("name", ["BucketName", "DeskUrl"])
def test_a_stack_without_an_output_is_told_and_only_where_it_is_needed(outputs: dict[str, str], name: str) -> None:
    del outputs[name]
    with pytest.raises(StackUnreachable, match=f"stack 'galley-prod' has no output {name}; is it deployed from"):
        open_sources("galley-prod")
    open_stack("galley-prod")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ClientError({"Error": {"Code": "ValidationError", "Message": "Stack does not exist"}}, "DescribeStacks"),
            "stack 'galley-prod': Stack does not exist",
        ),
        (NoRegionError(), "stack 'galley-prod': You must specify a region.; set a region and credentials"),
    ],
)
def test_a_stack_that_cannot_be_asked_is_one_line(monkeypatch: pytest.MonkeyPatch, error: Exception, said: str) -> None:
    class CloudFormation:
        def describe_stacks(self, **_: Any) -> None:
            raise error

    monkeypatch.setattr("boto3.client", lambda service, **_: CloudFormation())
    with pytest.raises(StackUnreachable, match=said):
        open_sources("galley-prod")
