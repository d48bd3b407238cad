"""Findings as plain values."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.model import Finding
from console.text import columns
from console.view.cells import cell, part_columns, plain, wrap
from console.view.findings import detail_lines, entries, evidence_lines, finding_grid, title_parts
from console.view.glyphs import ASCII, UNICODE, to_ascii
from tests.examples import example_fleet
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet
from tests.view.test_rows import whole


def test_worst_first_at_80_columns() -> None:
    assert finding_grid(entries(example_fleet()), 80, UNICODE).text().splitlines()[1:] == [
        "× reports    two owners: crontab of deploy, line 4 (6 pro… ⏎ retire the launcher",
        "× webhooks   nothing runs; its watchdog line can never st… ⏎ move to systemd",
        "× exports    alive but no job finished for 9:55 while 12 … ⏎ diagnose",
        "▲ thumbnails @3 start limit hit 12 min ago, exit status 1… ⏎ diagnose",
        "▲ thumbnails 4 jobs held by dead workers (oldest 31 min)   ⏎ reclaim",
        "▲ mail       start limit can never be reached: 5 × (30 s … ⏎ limits",
        "· host       crontabs cannot be read: permission denied f… ⏎ doctor",
    ]


def test_of_one_role_in_ascii() -> None:
    shown = entries(example_fleet(), "exports")
    assert to_ascii(finding_grid(shown, 100, ASCII).text().splitlines()[1]) == (
        "x exports alive but no job finished for 9:55 while 12 wait                            Enter diagnose"
    )
    assert plain(title_parts(shown, "exports", 80, 0, ASCII)).rstrip() == "FINDINGS of exports  1 error  esc shows all"


def test_the_title_counts_and_says_what_lies_below() -> None:
    title = plain(title_parts(entries(example_fleet()), None, 80, 3, UNICODE))
    assert title.startswith("FINDINGS  3 errors  3 warnings  1 note ")
    assert title.endswith("↓ 3 more")
    assert plain(title_parts((), None, 80, 0, UNICODE)).rstrip() == "FINDINGS  none"


def test_equal_findings_have_keys_of_their_own() -> None:
    fleet = example_fleet()
    doubled = msgspec.structs.replace(fleet, findings=fleet.findings * 2)
    assert len({entry.key for entry in entries(doubled)}) == 2 * len(fleet.findings)


def test_every_width() -> None:
    hostile = entries(hostile_fleet())
    for width in (*range(1, 60), 79, 80, 119, 120, 200):
        whole(finding_grid(entries(example_fleet()), width, UNICODE), width)
        whole(finding_grid(hostile, width, UNICODE), width)
        for entry in hostile[:2]:
            made = (*evidence_lines(entry.finding, width, UNICODE), *detail_lines(entry.finding, width, 9, UNICODE))
            assert all(part_columns(line) <= max(width, 2) for line in made)


def test_all_of_the_evidence_is_there() -> None:
    entry = entries(example_fleet())[0]
    text = " ".join(plain(line).strip() for line in evidence_lines(entry.finding, 60, UNICODE))
    for sentence in (entry.finding.what, *entry.finding.evidence, entry.finding.remedy):
        assert sentence in " ".join(text.split())


def test_the_detail_says_when_there_is_more() -> None:
    lines = detail_lines(entries(example_fleet())[0].finding, 80, 3, UNICODE)
    assert len(lines) == 3
    assert plain(lines[-1]).strip() == "↓ 5 more lines: ⏎"


@given(st.text(max_size=200), st.integers(1, 100))
def test_any_text(text: str, width: int) -> None:
    finding = Finding(code=text, severity="error", role=text, what=text, evidence=(text,), remedy=text, next=text)
    fleet = msgspec.structs.replace(example_fleet(), findings=(finding,))
    whole(finding_grid(entries(fleet), width, UNICODE), width)
    for line in evidence_lines(finding, width, UNICODE):
        assert part_columns(line) <= max(width, 2)
        assert harmless(plain(line))


@given(st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)), st.integers(0, 60))
def test_a_cell_is_exactly_as_wide_as_its_column(texts: list[str], width: int) -> None:
    made = cell(tuple((text, "") for text in texts), width, gap=1)
    assert columns(made.plain) == width + 1
    whole_text = "".join(texts)
    assert made.plain.rstrip() == whole_text.rstrip() or "…" in made.plain or len(whole_text) > width


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300), st.integers(1, 60))
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    lines = wrap(((text, ""),), width)
    assert "".join(plain(line) for line in lines).replace(" ", "") == text.replace(" ", "")


@given(st.text())
def test_ascii_has_the_same_columns(text: str) -> None:
    from console.view.cells import safe

    shown = safe(text)
    assert to_ascii(shown).isascii()
    assert len(to_ascii(shown)) == columns(shown)


def test_hostile_texts_are_visible() -> None:
    finding = entries(hostile_fleet(HOSTILE[:1]))[0].finding
    text = "\n".join(plain(line) for line in evidence_lines(finding, 200, UNICODE))
    assert "␛[31mred␛[0m" in text
