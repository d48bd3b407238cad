"""`worktop` and `python -m console`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; every WorktopError ends as one line on stderr and its exit code, never as a traceback."""
    from console.cli.main import run

    sys.exit(run())


if __name__ == "__main__":
    main()
