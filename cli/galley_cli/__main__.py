"""``python -m galley_cli`` is the command ``galley``."""

from galley_cli.main import main

main()
