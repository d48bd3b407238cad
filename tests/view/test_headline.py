"""The head of the screen as plain values."""

from __future__ import annotations

import msgspec
import pytest

from console.errors import Problem
from console.fleet.model import Fleet, SourceStatus
from console.view.cells import part_columns, plain
from console.view.glyphs import ASCII, UNICODE
from console.view.headline import head_lines, identity, notices, source_part, sources
from tests.examples import NOW, example_fleet
from tests.tui.hostile import hostile_fleet


def head(fleet: Fleet | None, width: int, most: int = 2) -> list[str]:
    return [plain(line).rstrip() for line in head_lines(fleet, NOW, width, UNICODE, most=most)]


def six(**changed: SourceStatus) -> Fleet:
    """The example fleet with all six sources live but for the changed ones."""
    names = ("agent", "units", "processes", "host", "schedules", "queue")
    made = tuple(changed.get(name, SourceStatus(name=name, state="live", age=0.5)) for name in names)
    return msgspec.structs.replace(example_fleet(), sources=made)


def test_two_lines_at_80() -> None:
    assert head(example_fleet(), 80) == [
        "worktop · wrk01 · system · deploy · app@127.0.0.1:5432/app · 16:42:07 UTC",
        "● units now  ● processes now  ● queue now  ▲ crontabs 42 s old: not permitted",
    ]


def test_one_line_at_200() -> None:
    (line,) = head(example_fleet(), 200)
    assert line.startswith("worktop · wrk01 · system · deploy · app@127.0.0.1:5432/app · 16:42:07 UTC  ")
    assert line.endswith("  ● units now  ● processes now  ● queue now  ▲ crontabs 42 s old: not permitted")
    assert len(line) == 200


def test_read_only_is_said_also_where_it_is_narrow() -> None:
    for width, said in (
        (200, "worktop · wrk01 · system · deploy · app@127.0.0.1:5432/app · 16:42:07 UTC · read-only"),
        (80, "worktop · wrk01 · deploy · app@127.0.0.1:5432/app · 16:42:07 UTC · read-only"),
        (42, "worktop · wrk01 · 16:42:07 UTC · read-only"),
    ):
        line = plain(identity(example_fleet(), NOW, width, UNICODE, True))
        assert line.rstrip() == said


def test_narrow() -> None:
    assert head(example_fleet(), 40) == [
        "worktop · wrk01 · deploy · 16:42:07 UTC",
        "▲ crontabs 42 s old: not permitted",
    ]
    assert head(example_fleet(), 12) == ["wrk01", "▲ 1 of 4 so…"]
    assert head(example_fleet(), 60, most=1) == ["▲ crontabs 42 s old: not permitted"]


def test_healthy_sources_share_their_age() -> None:
    assert plain(sources(six(), NOW, 66, UNICODE)) == "● agent, units, processes, host, crontabs, queue now"
    assert plain(sources(six(), NOW, 10, UNICODE)) == "● 6 ok"


def test_a_failing_source_is_named_with_its_reason() -> None:
    down = SourceStatus(name="queue", state="down", age=42.0, problem=Problem("connect", "connection refused"))
    assert plain(sources(six(queue=down), NOW, 90, UNICODE)) == (
        "● agent, units, processes, host, crontabs now  × queue 42 s old: connection refused"
    )
    assert plain(sources(six(queue=down), NOW, 60, UNICODE)) == "× queue 42 s old: connection refused  ● 5 ok"
    assert plain(sources(six(queue=down), NOW, 30, UNICODE)) == "× queue 42 s old: connection …"


def test_ages_go_on_when_no_fleet_comes() -> None:
    part = source_part(SourceStatus(name="units", state="live", age=0.5), UNICODE, passed=40.0)
    assert part == ("▲ units 40 s old", "warn")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (SourceStatus(name="queue", state="absent"), "o no database"),
        (SourceStatus(name="units", state="absent"), "o no systemd"),
        (SourceStatus(name="units", state="waiting"), "% units not heard yet"),
        (SourceStatus(name="queue", state="down", problem=Problem("connect", "refused")), "x queue down: refused"),
        (SourceStatus(name="queue", state="live", age=7.2), "* queue 7 s"),
    ],
)
def test_source_states_in_ascii(source: SourceStatus, text: str) -> None:
    assert source_part(source, ASCII)[0] == text


@pytest.mark.parametrize(
    "fleet", [None, example_fleet(), hostile_fleet(), six()], ids=["none", "rich", "hostile", "six"]
)
@pytest.mark.parametrize("most", [0, 1, 2])
def test_no_line_is_too_wide(fleet: Fleet | None, most: int) -> None:
    for width in range(205):
        lines = head_lines(fleet, NOW, width, UNICODE, most=most)
        assert len(lines) <= most
        assert all(part_columns(line) <= width for line in lines)


def test_empty_states_name_the_reason() -> None:
    fleet = example_fleet()
    assert notices(fleet, UNICODE) == ()
    assert notices(None, UNICODE)[0].startswith("asking systemd… asking the queue…")
    waiting = (SourceStatus(name="units", state="waiting"), SourceStatus(name="queue", state="waiting"))
    asked = notices(msgspec.structs.replace(fleet, roles=(), sources=waiting), UNICODE)
    assert asked == ("asking systemd… asking the queue…",)
    none = notices(msgspec.structs.replace(fleet, roles=()), UNICODE)
    assert none[0].startswith("no roles: no worktop.toml names one and there is no template unit")
    guessed = tuple(
        msgspec.structs.replace(status, role=msgspec.structs.replace(status.role, configured=False))
        for status in fleet.roles
    )
    absent = (SourceStatus(name="queue", state="absent"),)
    told = notices(msgspec.structs.replace(fleet, roles=guessed, sources=absent), UNICODE)
    assert told[0].startswith("no worktop.toml: showing every template unit")
    assert told[1].startswith("no database")
