"""The expanded template, for every test of it."""

import copy
from functools import cache

import pytest

from template.expansion import Template, expand, read_source


@cache
def _expansion() -> Template:
    return expand(read_source())


@pytest.fixture
def template() -> Template:
    """A copy of the expanded template, to look at or to spoil."""
    return copy.deepcopy(_expansion())
