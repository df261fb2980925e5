"""``python -m galley_cli`` is the command ``galley``."""

import os
import signal


def main() -> None:
    """Run the command line. A Ctrl-C while it is still being loaded ends it without a word, as a shell expects."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    from galley_cli.main import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
