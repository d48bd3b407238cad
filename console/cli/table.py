"""Aligned columns of safe text for the commands that list things."""

from __future__ import annotations

from collections.abc import Sequence

from console.text import clean, columns, fit, pad

GAP = "  "


def table(
    heads: Sequence[str], rows: Sequence[Sequence[object]], width: int, right: frozenset[str] = frozenset()
) -> str:
    """Lines of a table at most `width` columns wide; the last column takes what is left, `right` ones align right."""
    texts = [[clean(cell) for cell in row] for row in rows]
    widths = [max(columns(cell) for cell in column) for column in zip(heads, *texts, strict=True)]
    fixed = sum(widths[:-1]) + len(GAP) * (len(heads) - 1)
    widths[-1] = max(columns(heads[-1]), min(widths[-1], width - fixed))
    lines = []
    for cells in (list(heads), *texts):
        padded = [pad(cell, size, head in right) for cell, size, head in zip(cells, widths, heads, strict=True)]
        lines.append(fit(GAP.join(padded).rstrip(), width))
    return "\n".join(lines)
