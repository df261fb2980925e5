"""What Galley's functions share: the run protocol, time, storage, queues and settings."""

__version__ = "0.1.0"
