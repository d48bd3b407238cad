"""The host: memory, load, accounts, and trees by owner."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.model import Account, Fleet, HostDetail, Ident, Owner, TreeProcess
from console.view.cells import Grid, part_columns, plain
from console.view.glyphs import ASCII, UNICODE
from console.view.host import (
    TREE_COLUMNS,
    TreeRow,
    account_grid,
    bar,
    group_keys,
    host_lines,
    tree_row_text,
    tree_rows,
    trees_title,
)
from console.view.listing import Look, list_grid
from tests.examples import NOW, M, example_fleet, host_detail
from tests.tui.hostile import HOSTILE, harmless, spoil
from tests.view import anything

_NARROWEST = 6  # columns that never leave are left in any terminal
LOOK = Look(glyphs=UNICODE, now=NOW)
ACCOUNTS = (
    Account(user="root", uid=0, processes=61, tasks=150, memory=300 * M),
    Account(user="deploy", uid=1000, processes=120, tasks=970, limit=1000, limit_source="RLIMIT_NPROC", memory=700 * M),
)


def with_accounts(*accounts: Account) -> Fleet:
    fleet = example_fleet()
    assert fleet.host is not None
    return msgspec.structs.replace(fleet, host=msgspec.structs.replace(fleet.host, accounts=accounts))


def grid(rows: list[TreeRow], width: int, look: Look = LOOK) -> Grid:
    return list_grid(rows, [row.key for row in rows], TREE_COLUMNS, width, look)


def test_memory_and_load() -> None:
    assert [plain(line).rstrip() for line in host_lines(example_fleet(), 120, UNICODE)] == [
        "MEMORY ████░░░░░░ 3G of 8G, 5G free   LOAD 0.40 0.50 0.60 on 4 CPUs   181 processes"
    ]
    assert [plain(line).rstrip() for line in host_lines(example_fleet(), 42, ASCII)] == [
        "MEMORY 3G of 8G, 5G free",
        "LOAD 0.40 0.50 0.60 on 4 CPUs   181 proce…",
    ]
    assert "not said anything" in plain(host_lines(None, 80, UNICODE)[0])


def test_what_runs_low_is_said() -> None:
    fleet = example_fleet()
    assert fleet.host is not None
    low = msgspec.structs.replace(fleet.host, memory_available=100 * M, load=(9.0, 2.0, 1.0))
    lines = host_lines(msgspec.structs.replace(fleet, host=low), 80, UNICODE)
    assert "below the reserve of 512M" in plain(lines[0])
    assert ("9.00 2.00 1.00", "bad") in lines[1]
    unknown = msgspec.structs.replace(fleet.host, memory_available=None, load=None)
    assert plain(host_lines(msgspec.structs.replace(fleet, host=unknown), 80, UNICODE)[0]).startswith(
        "MEMORY ?   LOAD ?"
    )


def test_accounts_against_their_limits() -> None:
    assert account_grid(with_accounts(*ACCOUNTS), 80, LOOK).text() == (
        "ACCOUNT   PROCESSES     TASKS USED        MEMORY LIMIT BY\n"
        "deploy          120 970/1 000 ██████████    700M RLIMIT_NPROC\n"
        "root             61       150               300M no limit known"
    )
    cells = account_grid(with_accounts(*ACCOUNTS), 80, LOOK).rows[0].cells
    assert cells[2].parts[0][1] == "bad"
    assert account_grid(example_fleet(), 80, LOOK) == Grid()
    assert account_grid(None, 80, LOOK) == Grid()
    for width in range(6, 150):
        assert account_grid(with_accounts(*ACCOUNTS), width, LOOK).width <= width


def test_a_bar() -> None:
    assert bar(0.5, 10, UNICODE) == ("█████░░░░░", "ok")
    assert bar(7.0, 4, ASCII) == ("####", "bad")
    assert bar(-1.0, 4, ASCII) == ("....", "ok")


def test_trees_by_owner() -> None:
    rows, matching = tree_rows(host_detail(), ())
    assert matching == 3
    assert grid(rows, 80).text() == (
        "PROCESSES BY OWNER                          PID USER   S MEMORY CPU TIME     AGE\n"
        "▾ systemd mail-worker@1.service          2 proc             64M     0:25\n"
        "  python3 -m console worker --role mail     431 deploy S    32M     0:12 2:00:00\n"
        "    convert in.png out.png                  440 deploy S    32M     0:12 2:00:00\n"
        "▾ cron deploy                            1 proc             32M     0:12\n"
        "  python3 -m console worker --role repo…   4400 deploy S    32M     0:12 2:00:00"
    )
    assert "▸" not in grid(rows, 80).text()


def test_an_owner_is_collapsed() -> None:
    group = tree_rows(host_detail(), ())[0][0].key
    rows, _ = tree_rows(host_detail(), {group})
    assert [row.process is None for row in rows] == [True, True, False]
    assert grid(rows, 80).text().splitlines()[1].startswith("▸ systemd mail-worker@1.service")
    assert group_keys(host_detail()) == {row.key for row in rows if row.process is None}


def test_a_filter_keeps_the_ancestors() -> None:
    rows, matching = tree_rows(host_detail(), group_keys(host_detail()), "convert")
    assert matching == 1
    assert [row.process.ident.pid if row.process else None for row in rows] == [None, 431, 440]
    assert tree_rows(host_detail(), (), "nothing such") == ([], 0)
    assert [row.process.ident.pid if row.process else None for row in tree_rows(host_detail(), (), "CRON")[0]] == [
        *(None, 4400)
    ]


def test_trees_of_one_owner_stand_together() -> None:
    cron, unit = Owner(kind="cron", name="deploy"), Owner(kind="systemd", name="a.service")
    trees = tuple(
        TreeProcess(ident=Ident("b", pid, 1), owner=owner, name=f"p{pid}")
        for pid, owner in ((1, cron), (2, unit), (3, cron))
    )
    rows, _ = tree_rows(HostDetail(trees=trees), ())
    assert [row.process.ident.pid if row.process else row.owner.kind for row in rows] == ["cron", 1, 3, "systemd", 2]
    assert "[p1]" in grid(rows, 80).text()


def test_title() -> None:
    assert plain(trees_title(host_detail(), NOW, 80)) == "TREES  3 processes, 3 more left out  read at 16:42:07 UTC"
    assert plain(trees_title(None, None, 80)) == "TREES"


def test_text_to_copy() -> None:
    rows, _ = tree_rows(host_detail(), ())
    assert tree_row_text(rows[0]) == "systemd mail-worker@1.service"
    assert tree_row_text(rows[1]) == "431\tdeploy\t/usr/bin/python3 -m console worker --role mail"


def test_hostile_texts() -> None:
    for text in HOSTILE:
        detail = spoil(host_detail(), text)
        check(detail, 40)
        shown = account_grid(with_accounts(*(spoil(account, text) for account in ACCOUNTS)), 60, LOOK)
        assert harmless(shown.text().replace("\n", ""))


@given(anything.details, st.integers(1, 160), anything.texts)
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_anything_in_any_field(detail: HostDetail, width: int, contains: str) -> None:
    check(detail, width)
    rows, _ = tree_rows(detail, (), contains)
    assert grid(rows, width).width <= max(_NARROWEST, width)


def check(detail: HostDetail, width: int) -> None:
    rows, matching = tree_rows(detail, ())
    assert matching == len(detail.trees)
    shown = grid(rows, width)
    assert shown.width <= max(_NARROWEST, width)
    for row in shown.rows:
        for column, made in zip(shown.columns, row.cells, strict=True):
            assert part_columns(made.parts) == column.width
            assert harmless(made.plain)
    assert all(harmless(tree_row_text(row).replace("\t", "")) for row in rows)
