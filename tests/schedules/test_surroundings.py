from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.schedules.model import LiveSurroundings
from console.schedules.surroundings import DEFAULT_PATH, compare_surroundings, unquoted
from console.schedules.unittext import environment_assignment

UNIT = """[Service]
User=app
WorkingDirectory=/srv/app
Environment="MODE=a b%%c" OTHER=1
ExecStart=/srv/app/worker
"""
SAME = LiveSurroundings(
    user="app", groups=("app",), folder="/srv/app", umask=0o022, limits=(("NOFILE", 1024, 524_288),),
    environment=(("MODE", "a b%c"), ("OTHER", "1"), ("PATH", DEFAULT_PATH), ("SHLVL", "1"), ("HOME", "/home/app")),
)  # fmt: skip


def test_what_is_the_same_is_not_told() -> None:
    assert compare_surroundings(SAME, UNIT, own_groups=("app",)) == ()


def test_each_difference_is_a_sentence() -> None:
    live = LiveSurroundings(
        user="root", groups=("root", "docker"), folder="/root", umask=0o027, nice=10,
        limits=(("NOFILE", 65536, None), ("AS", 1, 2)),
        environment=(("MODE", "x"), ("PATH", "/usr/bin:/bin"), ("EXTRA", "y"), ("API_TOKEN", "hunter2hunter2")),
    )  # fmt: skip
    said = compare_surroundings(live, UNIT, own_groups=("app",), language="C.UTF-8")
    assert said == (
        "API_TOKEN is '••••' now and would not be set",
        "EXTRA is 'y' now and would not be set",
        "MODE is 'x' now and would be 'a b%c'",
        f"PATH is '/usr/bin:/bin' now and would be '{DEFAULT_PATH}'",
        "LANG is not set now and would be 'C.UTF-8'",
        "it works in /root now and would in /srv/app",
        "its umask is 0027 now and would be 0022: UMask=0027 keeps it",
        "it runs as root now and would as app",
        "it is in docker, root now and would not be: SupplementaryGroups=docker root keeps it",
        "it is not in app now and would be",
        "its nice value is 10 now and would be 0: Nice=10 keeps it",
        "its limit of open files is 65536 now and would be 1024: LimitNOFILE=65536:infinity keeps it",
    )


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))))
def test_what_is_quoted_is_read_back(value: str) -> None:
    assert unquoted(environment_assignment("NAME", value)) == [f"NAME={value}"]
