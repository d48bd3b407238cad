"""worktop: a terminal operations console for fleets of background workers on Linux."""

__version__ = "0.1.0"
