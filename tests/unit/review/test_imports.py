"""What the desk costs to start: it never loads the model's SDK, and AWS's only when it asks AWS."""

import subprocess
import sys

from support.outside import ROOT

HEAVY = ("anthropic", "boto3", "feedparser", "markdown_it", "nh3")


def test_importing_the_desk_loads_nothing_heavy() -> None:
    folders = [str(ROOT / "functions" / "review"), str(ROOT / "layers" / "galley")]
    code = f"import sys; sys.path[:0] = {folders}; import review; print([one for one in {HEAVY} if one in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == "[]"
