"""Whether one more worker was worth it."""

from __future__ import annotations

import pytest

from console.fleet.growth import Window, worth


def window(
    done: int, failed: int = 0, waiting: int | None = 100, seconds: float = 20.0, capped: bool = False
) -> Window:
    return Window(seconds=seconds, done=done, failed=failed, waiting=waiting, capped=capped)


@pytest.mark.parametrize(
    ("before", "after", "workers", "verdict"),
    [
        (window(10), window(20), 2, "better"),
        (window(70), window(80), 8, "better"),
        (window(70), window(70), 8, "no better"),
        (window(70), window(71), 8, "no better"),
        (window(70), window(60), 8, "no better"),
        (window(10), window(20, waiting=0), 2, "enough"),
        (window(10), window(20, failed=5), 2, "worse"),
        (window(10, failed=5), window(20, failed=10), 2, "better"),
        (window(100), window(98, failed=2), 2, "no better"),
        (window(1), window(2), 2, "unsure"),
        (window(0), window(10), 1, "better"),
        (window(1000, capped=True), window(1000, capped=True), 2, "unsure"),
        (window(10), window(40, seconds=40), 2, "better"),
        (window(10), window(20, waiting=None), 2, "better"),
    ],
)
def test_verdicts(before: Window, after: Window, workers: int, verdict: str) -> None:
    assert worth(before, after, workers).verdict == verdict


def test_it_says_what_was_counted() -> None:
    found = worth(window(70), window(60), 8)
    assert found.text == "one more made it no faster: 180 jobs a minute with 8, 210 before, 100 wait"
    assert worth(window(10), window(6, failed=4), 2).text.startswith(
        "40% of the jobs fail, 0% before; 18 jobs a minute"
    )
