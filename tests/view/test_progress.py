"""An action while it is applied."""

from __future__ import annotations

import pytest

from console.fleet.model import Count
from console.fleet.plan import Progress
from console.view.cells import part_columns, plain
from console.view.glyphs import ASCII, UNICODE, to_ascii
from console.view.progress import Run, amount_text, progress_lines, progress_title, work_line
from tests.examples import NOW
from tests.tui.hostile import HOSTILE, harmless, spoil
from tests.tui.still_actions import reclaim_plan


def run(*heard: tuple[Progress, float], stopping: bool = False) -> Run:
    made = Run(plan=reclaim_plan(), began=NOW, stopping=stopping)
    for progress, at in heard:
        made = made.heard(progress, NOW + at)
    return made


def text(run: Run, at: float, width: int = 80) -> list[str]:
    return [plain(line).rstrip() for line in progress_lines(run, NOW + at, width, UNICODE)]


def test_steps_that_are_done_and_those_to_come() -> None:
    first = Progress(step=0, done=2, total=Count(2), per_second=40.0)
    second = Progress(step=1, text="asking", remaining=30.0)
    assert text(run((first, 0.5), (second, 3.5)), 13.5) == [
        "Reclaim 2 jobs of thumbnails",
        "",
        "●  1 return 2 jobs to waiting  0:03",
        "↻  2 wake idle workers",
        "     asking",
        "     at most 0:20 more",
        "○  3 see that they wait again",
    ]


def test_amounts() -> None:
    assert amount_text(Progress(step=0), 0) == ""
    assert amount_text(Progress(step=0, done=5), 0) == "5 rows"
    half = Progress(step=0, done=6000, total=Count(12000), per_second=1000.0)
    assert amount_text(half, 0) == "6 000 of 12 000 rows · 1 000 a second · about 0:06 left"
    assert amount_text(Progress(step=0, remaining=3), 10) == "at most 0:00 more"
    at_least = Progress(step=0, done=1, total=Count(10_000, "at-least"))
    assert amount_text(at_least, 0) == "1 of > 10 000 rows"


def test_stopping_is_said() -> None:
    stopping = run((Progress(step=0), 0.0), stopping=True)
    assert "what is done stays done" in text(stopping, 1)[-1]
    assert plain(progress_title(stopping, NOW + 5, 60, UNICODE)).startswith("↻ stopping 0:05 · step 1 of 3")
    assert "stopping" in plain(work_line(stopping, NOW, 80, UNICODE))


@pytest.mark.parametrize("width", [10, 24, 40, 80, 200])
def test_one_line_for_the_head_fits(width: int) -> None:
    busy = run((Progress(step=0, done=1200, total=Count(12000), per_second=3400.0), 0.0))
    for glyphs in (UNICODE, ASCII):
        line = work_line(busy, NOW, width, glyphs)
        assert part_columns(line) == width
    if width == 200:
        assert "1 200 of 12 000 rows" in plain(line)
        assert to_ascii(plain(line)).isascii()


def test_nothing_hostile_comes_through() -> None:
    bad = Run(plan=spoil(reclaim_plan(), "".join(HOSTILE)), began=NOW)
    bad = bad.heard(Progress(step=0, text="".join(HOSTILE)), NOW)
    for width in (20, 80):
        for line in (*progress_lines(bad, NOW, width, UNICODE), work_line(bad, NOW, width, UNICODE)):
            assert harmless(plain(line))
            assert part_columns(line) <= width


def test_a_plan_without_steps() -> None:
    empty = Run(plan=reclaim_plan(steps=()), began=NOW)
    assert text(empty, 0) == ["Reclaim 2 jobs of thumbnails", ""]
    assert "step 1 of 0" in plain(progress_title(empty, NOW, 60, UNICODE))
