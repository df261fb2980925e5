"""``make bench``: measure everything, print it, and write it into docs/benchmarks.md."""

import sys

from bench import dynamodb, end_to_end, enumerating, sweeping
from bench.figures import machine, write_section
from support.dynamodb_local import Unavailable
from support.outside import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
PACKAGES = ("APScheduler", "SQLAlchemy", "boto3", "aws-lambda-powertools", "pydantic", "cronsim", "tzdata")


def main() -> None:
    """Run all benchmarks; it takes some minutes."""
    _tell("Slots of five years, seven rounds of each side ...")
    slots = enumerating.measure()
    _tell("Sweeps over up to 10,000 schedules, five rounds of each ...")
    sweeps = sweeping.measure()
    _tell("DynamoDB Local: CPU time, then up to 100,000 rows ...")
    try:
        costs, cpu = dynamodb.measure()
    except Unavailable as unavailable:
        sys.exit(f"make bench: {unavailable}")
    _tell("End to end, seven rounds of each side ...")
    whole = end_to_end.measure()
    sections = (
        f"Measured on {machine(*PACKAGES)}.",
        f"### Requests and capacity units\n\n{costs.report()}",
        f"### From messages sent to drafts stored, on one machine\n\n{whole.report()}",
        f"### Our own CPU time\n\n{cpu.report()}",
        f"### Enumerating slots\n\n{slots.report()}",
        f"### A sweep over many schedules\n\n{sweeps.report()}",
    )
    text = "\n\n".join(sections)
    write_section(PAGE, text)
    print(text)  # noqa: T201


def _tell(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
