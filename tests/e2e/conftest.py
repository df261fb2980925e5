"""What the tests of whole paths share."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from aws_lambda_powertools.utilities import parameters

from e2e.on_moto import Moto, moto_stack
from support.model_fake import ModelFake
from support.outside import ROOT, SLOT


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """Time, which stands still a minute after the slot of the sample events, until the test moves it."""
    with time_machine.travel(SLOT + timedelta(minutes=1), tick=False) as traveller:
        yield traveller


@pytest.fixture
def moto(clock: time_machine.Traveller) -> Iterator[Moto]:
    """A stack that drafts offline."""
    with moto_stack() as stack:
        yield stack


@pytest.fixture
def moto_with_a_model(clock: time_machine.Traveller, fake: ModelFake) -> Iterator[Moto]:
    """A stack that drafts with Anthropic's API, which is the fake."""
    with moto_stack("anthropic") as stack:
        yield stack
    parameters.clear_caches()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, _sdk_is_imported: None) -> Iterator[ModelFake]:
    """A scripted Messages API on loopback."""
    with ModelFake() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        yield server


@pytest.fixture(scope="session")
def _sdk_is_imported() -> None:
    """Pay for the import once, before any test counts seconds."""
    import anthropic  # noqa: F401


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data beside the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    return folder
