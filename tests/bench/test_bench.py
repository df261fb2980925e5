"""The benchmarks still run: at the smallest size, and without a look at any time."""

from datetime import timedelta
from pathlib import Path

import pytest

from bench import dynamodb, end_to_end, enumerating, sweeping
from bench.figures import BEGIN, END, write_section
from support.dynamodb_local import LOOPBACK, Unavailable
from support.outside import ROOT


@LOOPBACK
def test_the_benchmark_over_dynamodb_still_runs_and_requests_do_not_grow_with_rows() -> None:
    try:
        costs, cpu = dynamodb.measure(levels=((10, 1), (60, 20)), rounds=1, runs=2)
    except Unavailable as unavailable:
        pytest.skip(f"DynamoDB Local does not run here: {unavailable}")

    asked = {(cost.outcome, cost.rows): cost.operations for cost in costs.found if cost.side == dynamodb.OURS}
    assert asked == {
        (outcome, rows): operations
        for rows in (10, 60)
        for outcome, operations in (
            (dynamodb.DRAFTED, ["TransactWriteItems", "Query", "TransactWriteItems"]),
            (dynamodb.DUPLICATE, ["TransactWriteItems"]),
            (dynamodb.GATED, ["TransactWriteItems", "TransactWriteItems"]),
        )
    }
    assert costs.stays_the_same(dynamodb.OURS)
    assert dynamodb.DRAFTED in costs.report()
    assert "botocore" in cpu.report()


@pytest.mark.enable_socket
def test_the_local_systems_side_still_runs_and_fires_no_slot_twice(tmp_path: Path) -> None:
    _, refired = end_to_end.time_ours(tmp_path, drafters=2, of_slots=2)

    assert refired == end_to_end.Refired(delivered=4, model_calls=0, new_drafts=0)


@pytest.mark.enable_socket
def test_apschedulers_side_still_runs() -> None:
    pytest.importorskip("apscheduler", reason="only make bench installs APScheduler")

    found = end_to_end.measure(drafters=2, of_slots=2, rounds=1)

    assert "APScheduler" in found.report()


def test_both_sides_of_the_enumeration_find_the_same_slots() -> None:
    pytest.importorskip("cronsim", reason="only make bench installs cronsim")

    found = enumerating.measure(span=timedelta(days=400), rounds=2)

    assert found.slots == 12_540
    assert f"{found.slots:,} slots" in found.report()


def test_the_benchmark_of_the_sweep_still_runs_and_asks_for_what_changed_and_what_was_due_alone() -> None:
    found = sweeping.measure(sizes=(20, 120), rounds=1)

    quiet = {"Query schedules": 1, "Query watched": 3}
    asked = {(one.case, one.size): dict(one.requests) for one in found.found}
    for size, pages in ((20, 1), (120, 2)):
        listed = {**quiet, "ListSchedules": pages}
        assert asked[sweeping.NEW, size] == {**listed, "GetSchedule": size, "Write schedule": size}
        assert asked[sweeping.QUIET, size] == listed
        assert asked[sweeping.SOME, size] == {**listed, "GetSchedule": 10, "Write schedule": 10}
        assert asked[sweeping.DUE, size] == {**listed, "Query slots": size, "Write schedule": size}
    assert sweeping.DUE in found.report()


def test_the_figures_go_where_the_page_has_its_marks(tmp_path: Path) -> None:
    real = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert real.count(BEGIN) == real.count(END) == 1

    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_section(page, "new \\1")
    assert page.read_text() == f"before\n{BEGIN}\n\nnew \\1\n\n{END}\nafter\n"

    page.write_text("no marks")
    with pytest.raises(ValueError, match="has no section"):
        write_section(page, "new")
