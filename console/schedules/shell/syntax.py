"""Shell text as a tree, by the bash grammar of tree-sitter. Pure: it parses, nothing is executed.

The grammar goes on after what it cannot read, so that one strange line does not hide the rest of a script.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 64 * 1024  # characters of a script that are read


@functools.lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter  # here: a host without scripts to read does not pay for the grammar
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


@functools.lru_cache(maxsize=64)
def parse(text: str) -> Node:
    """The root of the tree; `root.has_error` tells that a part could not be read."""
    text = text[:LONGEST].replace("\r\n", "\n")
    return _parser().parse(_narrow(text)).root_node


def _narrow(text: str) -> bytes:
    """The text with a character for each of its bytes: the grammar's scanner asks isalpha() of them, which reads
    outside of its table, and may crash, above U+00FF."""
    return text.encode("utf-8", "replace").decode("latin-1").encode("utf-8")


def text_of(node: Node) -> str:
    """The node as it is written."""
    return _wide(node.text or b"")


def between(node: Node, start: int, end: int) -> str:
    """What is written in a node between two of the tree's byte offsets."""
    return _wide((node.text or b"")[start - node.start_byte : end - node.start_byte])


def _wide(text: bytes) -> str:
    if text.isascii():
        return text.decode("ascii")
    return text.decode("utf-8", "replace").encode("latin-1", "replace").decode("utf-8", "replace")


def statements(node: Node) -> Iterator[tuple[Node, bool]]:
    """The statements in a block, each with whether `&` stands behind it."""
    children = node.children
    for place, child in enumerate(children):
        if child.is_named and child.type not in ("comment", "heredoc_body", "heredoc_end", "ERROR"):
            following = children[place + 1] if place + 1 < len(children) else None
            yield child, following is not None and following.type == "&"
        elif child.type == "ERROR":
            yield from statements(child)


def braces(word: str) -> list[str]:
    """{1..4}, {a,b} as bash expands them; the word alone when there is nothing to expand."""
    found = re.search(r"\{([^{}]*)\}", word)
    if not found or word[: found.start()].endswith("$"):
        return [word]
    before, inner, after = word[: found.start()], found[1], word[found.end() :]
    span = re.fullmatch(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?", inner)
    if span:
        values = _span(span[1], span[2], span[3])
    elif "," in inner:
        values = inner.split(",")
    else:
        return [word]
    return [done for value in values for done in braces(f"{before}{value}{after}")][:10_000]


def _span(low: str, high: str, step: str | None) -> list[str]:
    if low.isalpha() or high.isalpha():
        if not (low.isalpha() and high.isalpha()):
            return [f"{{{low}..{high}}}"]
        first, last = ord(low), ord(high)
        return [chr(code) for code in range(first, last + (1 if last >= first else -1), 1 if last >= first else -1)]
    first, last = int(low), int(high)
    stride = abs(int(step)) if step and int(step) else 1
    width = max(len(low), len(high)) if low.lstrip("-").startswith("0") or high.lstrip("-").startswith("0") else 0
    if abs(last - first) // stride > 10_000:
        return [f"{{{low}..{high}}}"]
    numbers = range(first, last + 1, stride) if last >= first else range(first, last - 1, -stride)
    return [str(number).zfill(width) for number in numbers]
