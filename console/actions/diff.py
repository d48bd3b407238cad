"""What an edit of a file changes, as it is shown."""

from __future__ import annotations

import difflib

from console.text import mask


def file_diff(path: str, before: bytes | None, after: bytes | None, around: int = 3) -> str:
    """A unified diff with secrets masked; a file that is not there is /dev/null. Lines end at \\n alone."""
    old, new = (_lines(content) for content in (before, after))
    names = ("/dev/null" if before is None else path, "/dev/null" if after is None else path)
    return mask("\n".join(difflib.unified_diff(old, new, *names, lineterm="", n=around)))


def _lines(content: bytes | None) -> list[str]:
    if not content:
        return []
    lines = content.decode("utf-8", "replace").split("\n")
    return lines if lines[-1] else lines[:-1]
