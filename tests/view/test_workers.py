"""The list of workers and the sections of one, purely; with any text in any field."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from console.errors import Problem
from console.fleet.model import (
    Claim,
    Ident,
    Job,
    LogLine,
    Owner,
    Process,
    TreeProcess,
    Unit,
    UnitDetail,
    UnitFile,
    Worker,
)
from console.view.cells import part_columns, plain
from console.view.glyphs import ASCII, UNICODE
from console.view.listing import Look, list_grid
from console.view.sections import place_of, section_lines, section_names, section_starts
from console.view.spark import minutes, spark
from console.view.worker import worker_sections, worker_title
from console.view.workers import COLUMNS, OF_ONE_ROLE, Item, summary_parts, worker_items
from tests.examples import NOW, example_fleet, trend, unit_detail
from tests.tui.hostile import harmless

LOOK = Look(glyphs=UNICODE, now=NOW)


def test_desired_missing_and_strays_are_one_list() -> None:
    items = worker_items(example_fleet())
    assert len(items) == 18
    assert [item.worker.state for item in worker_items(example_fleet(), "webhooks")] == ["missing"]
    reports = worker_items(example_fleet(), "reports")
    assert [item.worker.state for item in reports] == ["running", *["stray"] * 6]
    assert [item.claim.job.id if item.claim else "" for item in reports][1] == "918377"
    assert len({item.key for item in items}) == 18


def test_the_worst_state_is_counted_first() -> None:
    text = [part[0] for part in summary_parts(worker_items(example_fleet()), UNICODE)]
    assert text[:2] == ["× 1 start-limit", "× 1 oom"]
    assert text[-1] == "● 6 ok"


def test_columns_leave_by_priority() -> None:
    items = worker_items(example_fleet())
    keys = [item.key for item in items]
    shown = {
        width: [column.label.strip() for column in list_grid(items, keys, COLUMNS, width, LOOK, marked=()).columns]
        for width in (40, 80, 120, 200)
    }
    assert shown[40] == ["", "STATE", "ROLE", "NAME"], "@1 alone could be of any role"
    assert shown[80] == ["", "STATE", "ROLE", "NAME", "OWNER", "MEM", "JOB", "WHY"]
    assert {"PID", "AGE", "RST/MIN", "CPU", "FOR", "LIMIT", "PEAK"} <= set(shown[200])
    assert "ROLE" not in [column.label.strip() for column in list_grid(items, keys, OF_ONE_ROLE, 200, LOOK).columns]


def item_of(name: str) -> Item:
    return next(item for item in worker_items(example_fleet()) if item.worker.key == name)


def text_of(item: Item, detail: UnitDetail | None, problem: Problem | None = None, asking: bool = False) -> str:
    sections = worker_sections(item, detail, problem, asking, 100, LOOK)
    return "\n".join(plain(line) for line in section_lines(sections))


def test_sections_of_a_worker_with_a_unit() -> None:
    item = item_of("thumbnails-worker@1.service")
    text = text_of(item, unit_detail())
    for line in (
        "ExecStart    /usr/bin/python3 -m console worker --role thumbnails --token ••••",
        "# /etc/systemd/system/thumbnails-worker@.service",
        "MemoryMax=256M",
        "permission denied",
        "440   32M    2 h    /usr/bin/convert in.png -resize 200x out.png",
        "• its cgroup is that of thumbnails-worker@1.service",
        "16:41:58 × error  job 918251 failed: KeyError: 'BUCKET'",
    ):
        assert line in text
    assert "asking…" in text_of(item, None, asking=True)
    told = text_of(item, None, Problem("detail of x", "the agent does not answer", "wait"))
    assert "× detail of x: the agent does not answer" in told
    assert "wait; ctrl+r asks again" in told


def test_sections_of_a_stray_have_no_unit() -> None:
    text = text_of(item_of("4400:94400"), None)
    assert "UNIT FILE" not in text and "JOURNAL" not in text
    assert "cron (deploy)  crontab of deploy, line 4" in text
    assert "918377 monthly, for ?, holder ALIVE_SLOW, STUCK" in text


def test_sections_can_be_jumped_to() -> None:
    sections = worker_sections(item_of("thumbnails-worker@1.service"), unit_detail(), None, False, 80, LOOK)
    lines = section_lines(sections)
    for number, start in enumerate(section_starts(sections)):
        assert plain(lines[start]) == sections[number].name
        assert place_of(sections, start) == number
    assert plain(section_names(sections, 2, 80, UNICODE)).startswith("WORKER · PROPERTIES · UNIT FILE")
    assert plain(section_names(sections, 2, 30, UNICODE)).strip() == "UNIT FILE  3 of 6"


# --- any text in any field -----------------------------------------------------------------------------------------

TEXTS = st.text(max_size=40) | st.sampled_from(
    ["\x1b]52;c;aGk=\x07", "\u202e[/b]\x00", "🇩🇪👍🏽", "a\nb\r\nc", "\ud800"]
)
MAYBE = st.none() | st.floats(allow_nan=False, min_value=-1e18, max_value=1e18)
WHOLE = st.integers(-(2**31), 2**31)


def of(kind: type[Any], **more: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of a struct with any text in its fields of text, and in its tuples of text."""
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for field in msgspec.structs.fields(kind):
        if field.name in more:
            fields[field.name] = more[field.name]
        elif field.type is str:
            fields[field.name] = TEXTS
        elif field.type == tuple[str, ...]:
            fields[field.name] = st.lists(TEXTS, max_size=3).map(tuple)
        elif field.type == (float | None):
            fields[field.name] = MAYBE
    return st.builds(kind, **fields)


OWNERS = of(Owner)
IDENTS = st.builds(Ident, TEXTS, WHOLE, WHOLE)
UNITS = of(Unit, main_pid=WHOLE, memory_now=st.none() | WHOLE)
PROCESSES = of(Process, ident=IDENTS, owner=OWNERS)
JOBS = of(Job)
WORKERS = of(
    Worker,
    unit=st.none() | UNITS,
    processes=st.lists(PROCESSES, max_size=2).map(tuple),
    owner=OWNERS,
    memory=st.none() | WHOLE,
    memory_max=st.none() | WHOLE,
)
ITEMS = st.builds(Item, worker=WORKERS, claims=st.lists(of(Claim, job=JOBS), max_size=2).map(tuple))
LINES = of(LogLine, at=st.floats(), priority=WHOLE)
DETAILS = of(
    UnitDetail,
    properties=st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple),
    files=st.lists(of(UnitFile), max_size=2).map(tuple),
    tree=st.lists(of(TreeProcess, ident=IDENTS, depth=st.integers(0, 300)), max_size=3).map(tuple),
    log=st.lists(LINES, max_size=3).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ITEMS, max_size=3), st.integers(1, 200), st.booleans())
def test_any_worker_is_a_row(items: list[Item], width: int, unicode: bool) -> None:
    look = Look(glyphs=UNICODE if unicode else ASCII, now=NOW)
    grid = list_grid(items, [item.key for item in items], COLUMNS, width, look, marked=())
    for row in grid.rows:
        assert [part_columns(cell.parts) for cell in row.cells] == [column.width for column in grid.columns]
        assert all(harmless(cell.plain) for cell in row.cells)


@settings(max_examples=60, deadline=None)
@given(ITEMS, st.none() | DETAILS, st.integers(1, 200))
def test_any_detail_is_sections(item: Item, detail: UnitDetail | None, width: int) -> None:
    sections = worker_sections(item, detail, Problem("\x1b", "\x1b", "\x1b"), False, width, LOOK)
    for line in (*section_lines(sections), worker_title(item, UNICODE)):
        assert harmless(plain(line))
    for line in section_lines(sections):
        assert part_columns(line) <= max(width, 12)


# --- trends --------------------------------------------------------------------------------------------------------


def test_a_trend_is_a_bar_a_minute() -> None:
    assert spark([0, 4, 8], UNICODE.bars) == "▁▅█"
    assert spark([0, 0], UNICODE.bars) == "▁▁"
    assert spark([None, 8.0], ASCII.bars) == " #"
    made = minutes(trend("mail", (1, None, 3)), lambda point: point.waiting, 5)
    assert made == [None, None, 1, None, 3]
