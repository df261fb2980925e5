from collections.abc import Iterator

import pytest

from support.model_fake import ModelFake


@pytest.fixture(scope="session")
def _sdk_is_imported() -> None:
    """Pay for the import once, before any test counts seconds."""
    import anthropic  # noqa: F401


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, _sdk_is_imported: None) -> Iterator[ModelFake]:
    with ModelFake() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_BEDROCK_MANTLE_BASE_URL", server.url)
        yield server
