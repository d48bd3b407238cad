"""`worktop` and `python -m console`."""

from __future__ import annotations

import sys
from itertools import pairwise


def main() -> None:
    """Run the command line; every WorktopError ends as one line on stderr and its exit code, never as a traceback."""
    if _stays_open(sys.argv[1:]):
        from console import heap

        heap.without_openssl()
    from console.cli.main import run

    sys.exit(run())


def _stays_open(arguments: list[str]) -> bool:
    """It is the console itself or its agent; above all not the worker, which runs other people's handlers."""
    words = [
        word
        for before, word in pairwise(("worktop", *arguments))
        if not word.startswith("-") and before != "--config"  # whose value it is
    ]
    return words in ([], ["agent"])


if __name__ == "__main__":
    main()
