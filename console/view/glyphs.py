"""The signs of the screen, in Unicode and in ASCII, and the word that goes with each: a sign never stands alone."""

from __future__ import annotations

import unicodedata

import msgspec

from console.fleet.model import Severity, WorkerState
from console.text import columns

# The state of a worker in one word short enough for a table; the rest read as they are.
WORDS: dict[WorkerState, str] = {"running": "ok", "memory-killed": "oom"}


def word(state: WorkerState) -> str:
    """The word shown for a worker's state: "ok", "oom", "start-limit"."""
    return WORDS.get(state, state)


class Glyphs(msgspec.Struct, frozen=True, kw_only=True):
    """One set of signs; each of the one-character signs is one column wide."""

    unicode: bool
    good: str
    changing: str
    bad: str
    off: str
    half: str
    stray: str
    unknown: str
    warning: str
    note: str
    enter: str
    most: str  # before a budget: "≤8"
    none: str  # nothing to show
    dot: str  # between the parts of a line
    bullet: str
    down: str
    up: str
    mark: str
    paused: str
    bars: str  # from the lowest to the highest

    def state(self, state: WorkerState) -> str:
        """The sign of a worker's state."""
        return getattr(self, _STATES[state])  # type: ignore[no-any-return]

    def severity(self, severity: Severity) -> str:
        """The sign of a finding."""
        return {"error": self.bad, "warning": self.warning, "note": self.note}[severity]


_STATES: dict[WorkerState, str] = {
    "running": "good",
    "starting": "changing",
    "stopping": "changing",
    "restarting": "changing",
    "looping": "changing",
    "start-limit": "bad",
    "memory-killed": "bad",
    "failed": "bad",
    "stopped": "off",
    "missing": "off",
    "hung": "half",
    "stray": "stray",
    "unknown": "unknown",
}

UNICODE = Glyphs(
    unicode=True,
    good="●",
    changing="↻",
    bad="×",
    off="○",
    half="◐",
    stray="◇",
    unknown="?",
    warning="▲",
    note="·",
    enter="⏎",
    most="≤",
    none="–",
    dot="·",
    bullet="•",
    down="↓",
    up="↑",
    mark="▪",
    paused="‖",
    bars="▁▂▃▄▅▆▇█",
)

ASCII = Glyphs(
    unicode=False,
    good="*",
    changing="~",
    bad="x",
    off="o",
    half="%",
    stray="+",
    unknown="?",
    warning="!",
    note="-",
    enter="Enter",
    most="<",
    none="-",
    dot="-",
    bullet="-",
    down="v",
    up="^",
    mark="#",
    paused="=",
    bars="_.-~=+*#",
)

_ASCII_OF = {
    "…": ">",
    "–": "-",
    "—": "-",
    "·": "-",
    "•": "-",
    "‹": "<",
    "›": ">",
    "≤": "<",
    "×": "x",
    "→": ">",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "█": "#",
    "│": "|",
    "┃": "|",
    "─": "-",
    "━": "-",
    "═": "=",
}


def to_ascii(text: str) -> str:
    """The text in ASCII, taking the same number of columns: é becomes e, what has no likeness becomes ?."""
    if text.isascii():
        return text
    out: list[str] = []
    for char in text:
        if char.isascii():
            out.append(char)
            continue
        code = ord(char)
        likeness = _ASCII_OF.get(char, "")
        if not likeness and 0x2400 <= code <= 0x2421:  # control pictures
            likeness = "^"
        if not likeness and 0x2500 <= code < 0x2580:  # box drawing
            likeness = "+"
        if not likeness and 0x2580 <= code < 0x25A0:  # blocks, as the ends of scroll bars
            likeness = "#"
        if not likeness:
            likeness = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
        width = columns(char)
        out.append(likeness if len(likeness) == width else "?" * width)
    return "".join(out)
