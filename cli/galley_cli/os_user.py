"""Who sits at this machine."""

import getpass


def os_user() -> str:
    """Return the operating system's name of the user; ``local`` where it knows none, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "local"
