"""What holds for every test: an environment of our own, and nothing installed by the test before."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from galley import system
from support.dynamodb_local import dynamodb_local as dynamodb_local

KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER")
FAKE = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": "eu-west-2",
    "AWS_REGION": "eu-west-2",
    "AWS_EC2_METADATA_DISABLED": "true",
    "POWERTOOLS_SERVICE_NAME": "galley",
    "POWERTOOLS_METRICS_NAMESPACE": "Galley",
}

# Powertools reads these when a handler is first imported, which may be before any test runs.
os.environ.update({name: value for name, value in FAKE.items() if name.startswith("POWERTOOLS_")})
settings.register_profile("galley", deadline=None, derandomize=True)
settings.load_profile("galley")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no test see the developer's own environment, keys or regions."""
    for name in list(os.environ):
        if name not in KEPT:
            monkeypatch.delenv(name)
    for name, value in FAKE.items():
        monkeypatch.setenv(name, value)
    undo = system.install(None)
    yield
    undo()
