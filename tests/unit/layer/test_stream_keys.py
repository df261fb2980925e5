"""The keys of a run's row, as the table's stream tells them."""

import pytest

from galley.runs import InvalidRunKey, RunKey
from galley.store.rows import keys_of_run, run_of_keys

KEY = RunKey.parse("daily-digest:2026-11-27T06:00:00Z")


def test_the_keys_of_a_run_name_it() -> None:
    assert keys_of_run(KEY) == {"pk": {"S": "RUN#daily-digest"}, "sk": {"S": "2026-11-27T06:00:00Z"}}
    assert run_of_keys(keys_of_run(KEY)) == KEY


@pytest.mark.parametrize("partition", ["TEXT#daily-digest", "DRAFTER#daily-digest", "SCHEDULES", "RUN"])
def test_other_rows_are_no_runs(partition: str) -> None:
    assert run_of_keys({"pk": {"S": partition}, "sk": {"S": "2026-11-27T06:00:00Z"}}) is None


def test_a_run_without_a_name_is_told() -> None:
    with pytest.raises(InvalidRunKey):
        run_of_keys({"pk": {"S": "RUN#"}, "sk": {"S": "STATE"}})
