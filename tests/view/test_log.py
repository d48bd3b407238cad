"""Lines of the journal, and the store that keeps the last of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.fleet.model import LogLine
from console.view.cells import part_columns, plain
from console.view.glyphs import ASCII, UNICODE
from console.view.log import LogStore, instance_name, line_text, log_parts, name_width
from tests.examples import log_lines
from tests.tui.hostile import HOSTILE, harmless


def line(text: str, unit: str = "mail-worker@1.service", cursor: str = "") -> LogLine:
    return LogLine(at=0.0, unit=unit, text=text, cursor=cursor)


def test_a_line_has_time_instance_sign_word_and_text() -> None:
    made = [plain(log_parts(one, 80, UNICODE, 3)) for one in log_lines()]
    assert made[0] == "16:41:07 @1    info   job 918233 done in 0.4 s"
    assert made[4] == "16:41:58 @2  × error  job 918251 failed: KeyError: 'BUCKET'"
    assert plain(log_parts(log_lines()[4], 40, ASCII, 2)) == "16:41:58 @2 x job 918251 failed: KeyErr…"
    assert "\N{HORIZONTAL ELLIPSIS}" in plain(log_parts(line("x" * 500), 40, UNICODE, 0))
    assert plain(log_parts(line("0123456789"), 40, UNICODE, 0, aside=4)).endswith("  456789")


def test_instances_have_short_names() -> None:
    assert instance_name("mail-worker@1.service") == "@1"
    assert instance_name("cron.service") == "cron"
    assert name_width(("a@1.service", "a@100.service")) == 4


def test_the_store_is_bounded_and_says_how_many_left() -> None:
    store = LogStore(most=5)
    assert store.add(tuple(line(str(n)) for n in range(4))) == 0
    assert store.add(tuple(line(str(n)) for n in range(4, 7))) == 2
    assert [one.text for one in store.shown] == ["2", "3", "4", "5", "6"]
    store.add(tuple(line(str(n)) for n in range(100)))
    assert [one.text for one in store.shown] == ["95", "96", "97", "98", "99"]


def test_filter_and_instance() -> None:
    store = LogStore()
    store.add((line("Alpha one"), line("beta one", "mail-worker@2.service"), line("alpha two")))
    store.narrow(("alpha",), "")
    assert [one.text for one in store.shown] == ["Alpha one", "alpha two"]
    store.narrow(("one",), "mail-worker@2.service")
    assert [one.text for one in store.shown] == ["beta one"]
    assert (store.total, len(store)) == (1, 3)
    store.add((line("another ONE", "mail-worker@2.service"), line("one", "mail-worker@1.service")))
    assert [one.text for one in store.shown] == ["beta one", "another ONE"]


def test_while_paused_lines_wait_and_the_oldest_of_too_many_are_let_go() -> None:
    store = LogStore(most=3)
    store.add((line("a"),))
    store.paused = True
    store.add(tuple(line(str(n)) for n in range(5)))
    assert (store.waiting, store.lost) == (3, 2)
    assert [one.text for one in store.shown] == ["a"]
    assert store.go_on() == 1
    assert [one.text for one in store.shown] == ["2", "3", "4"]
    assert (store.waiting, store.lost) == (0, 0)


def test_a_journal_read_again_is_not_taken_twice() -> None:
    store = LogStore()
    store.add((line("a", cursor="1"), line("b", cursor="2")))
    store.begin_again()
    store.add((line("b", cursor="2"), line("c", cursor="3"), line("no cursor")))
    assert [one.text for one in store.shown] == ["a", "b", "c", "no cursor"]


@given(st.text(max_size=200), st.text(max_size=30), st.integers(), st.floats(), st.integers(0, 120), st.integers(0, 50))
def test_any_line_fits_and_is_harmless(text: str, unit: str, level: int, at: float, width: int, aside: int) -> None:
    one = LogLine(at=at, unit=unit, priority=level, text=text + HOSTILE[0] + HOSTILE[8])
    parts = log_parts(one, width, UNICODE, name_width((unit,)), aside)
    assert harmless(plain(parts)) and harmless(line_text(one))
    assert part_columns(parts) <= max(width, 40)
