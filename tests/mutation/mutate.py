"""Does a test notice, for each condition, write and number that a guarantee rests on, when it is taken away?

    make mutate                                        all of them
    make mutate ARGS="-k dynamodb.py -k _gate"         those in whose name both words are
    make mutate ARGS="-k dynamodb.py -k _gate --every" and every test that notices, not only the first
    make mutate ARGS="--equivalent"                    those of which it is said that no test can notice them
    make mutate ARGS="--list"                          only what would be done

Prints each mutant as it is judged: where it is, what was changed, and the test that fails. Exits with 1 if one survives
that is not in ``equivalent.EQUIVALENT``, where each stands with the reason why no test can notice it.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence

from mutation.by_hand import all_mutants
from mutation.equivalent import EQUIVALENT
from mutation.mutants import ROOT, Mutant
from mutation.running import Verdict, judge, preload, reach_of


def main(arguments: Sequence[str]) -> int:
    """Judge the mutants and return the exit code."""
    asked = _parser().parse_args(arguments)
    os.chdir(ROOT)
    found = [mutant for mutant in all_mutants() if all(word in mutant.name for word in asked.k)]
    argued = [mutant for mutant in found if mutant.name in EQUIVALENT]
    chosen = argued if asked.equivalent else [mutant for mutant in found if mutant.name not in EQUIVALENT]
    if asked.list:
        for mutant in chosen:
            _say(_place(mutant))
        _say(f"{len(chosen)} mutants")
        return 0
    began = time.monotonic()
    preload()
    reach = reach_of({mutant.path for mutant in chosen})
    _say(f"{len(reach.seconds)} tests and {len(chosen)} mutants; what the tests reach took {_minutes_since(began)}")
    for test in reach.left_out:
        _say(f"left out, since it fails without a mutant: {test}")
    verdicts = []
    for verdict in judge(chosen, reach, jobs=asked.jobs, every_test=asked.every):
        verdicts.append(verdict)
        _say(_line(verdict))
    survivors = [verdict for verdict in verdicts if not verdict.noticed_by]
    _say("")
    if asked.equivalent:
        wrong = [verdict for verdict in verdicts if verdict.noticed_by]
        _say(f"of {len(verdicts)} mutants that no test can notice {len(wrong)} are noticed; {_minutes_since(began)}")
        return 1 if wrong else 0
    for mutant in argued:
        _say(f"no test can notice {_place(mutant)}\n    {EQUIVALENT[mutant.name]}")
    _say(f"\n{_by_file(chosen, argued)}\n")
    for survivor in survivors:
        _say(_line(survivor))
    _say(
        f"{len(chosen)} mutants: {len(chosen) - len(survivors)} noticed, {len(survivors)} survived; "
        f"{len(argued)} more that no test can notice; {_minutes_since(began)}"
    )
    return 1 if survivors else 0


def _place(mutant: Mutant) -> str:
    return f"{mutant.path}:{mutant.line} {mutant.where}: {mutant.what}"


def _line(verdict: Verdict) -> str:
    if verdict.noticed_by:
        return "\n    ".join([f"noticed  {_place(verdict.mutant)}", *verdict.noticed_by])
    return f"SURVIVED {_place(verdict.mutant)}\n    {verdict.asked} tests come by it, and none fails"


def _by_file(chosen: Sequence[Mutant], argued: Sequence[Mutant]) -> str:
    judged, unnoticeable = (Counter(mutant.path for mutant in mutants) for mutants in (chosen, argued))
    return "\n".join(
        f"{path}: {number} mutants, and {unnoticeable[path]} that no test can notice" for path, number in judged.items()
    )


def _minutes_since(began: float) -> str:
    return f"{(time.monotonic() - began) / 60:.1f} minutes"


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutate", description="Take each condition away, and see a test fail.")
    parser.add_argument(
        "-k", action="append", default=[], metavar="WORD", help="only those with this word in their name"
    )
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--every", action="store_true", help="ask each test, not only up to the first that fails")
    parser.add_argument("--equivalent", action="store_true", help="judge those that no test can notice, not the others")
    parser.add_argument("--list", action="store_true", help="say what would be done, and do nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
