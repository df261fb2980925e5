"""The command ``galley``: runs the system on one machine, and operates it anywhere."""
