"""``make mutate`` takes minutes; this makes sure at every run of the tests that it cannot rot."""

import ast
from collections import Counter

import pytest

from mutation.by_hand import TARGETS, all_mutants
from mutation.equivalent import EQUIVALENT
from mutation.mutants import ROOT, Mutant, dynamodb_conditions, sql_conditions


@pytest.fixture(scope="module")
def mutants() -> list[Mutant]:
    return all_mutants()


def test_each_mutant_is_another_program_than_the_code(mutants: list[Mutant]) -> None:
    for mutant in mutants:
        source = (ROOT / mutant.path).read_bytes()
        assert source[mutant.begin : mutant.end].decode() != mutant.text, mutant.name
        ast.parse(mutant.applied(source))


def test_no_two_mutants_bear_one_name(mutants: list[Mutant]) -> None:
    assert [name for name, times in Counter(mutant.name for mutant in mutants).items() if times > 1] == []


def test_each_file_that_guarantees_rest_on_has_mutants(mutants: list[Mutant]) -> None:
    assert {target.path for target in TARGETS} <= {mutant.path for mutant in mutants}


def test_what_is_said_to_be_unnoticeable_is_there_and_argued(mutants: list[Mutant]) -> None:
    assert EQUIVALENT.keys() <= {mutant.name for mutant in mutants}
    assert all(len(reason.split()) > 5 for reason in EQUIVALENT.values())


def test_each_term_of_a_condition_in_a_string_is_taken_away() -> None:
    condition = '"attribute_not_exists(paused) AND pending < :limit"'
    assert [condition[: edit.begin] + edit.text + condition[edit.end :] for edit in dynamodb_conditions(condition)] == [
        '"(attribute_not_exists(paused) OR NOT attribute_not_exists(paused)) AND pending < :limit"',
        '"(attribute_not_exists(paused) AND NOT attribute_not_exists(paused)) AND pending < :limit"',
        '"attribute_not_exists(paused) AND (pending < :limit OR NOT pending < :limit)"',
        '"attribute_not_exists(paused) AND (pending < :limit AND NOT pending < :limit)"',
        '"attribute_not_exists(paused) AND pending <= :limit"',
    ]
    statement = '"UPDATE runs SET version = ? WHERE drafter = ? AND owner IS ?"'
    assert [statement[: edit.begin] + edit.text + statement[edit.end :] for edit in sql_conditions(statement)] == [
        '"UPDATE runs SET version = ? WHERE (drafter = ? OR 1) AND owner IS ?"',
        '"UPDATE runs SET version = ? WHERE drafter = ? AND (owner IS ? OR 1)"',
    ]
