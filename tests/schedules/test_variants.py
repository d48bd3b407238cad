"""Other crontabs of the same kinds: other runtimes, wrappers, quoting and shell, in tests/cases/variants.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.schedules.model import Source
from tests.schedules.case import explained

VARIANTS: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parents[1] / "cases" / "variants.json").read_bytes()
)["cases"]
_LINES = ("WorkingDirectory=", "Environment", "ExecStart=", "Standard", "Group=", "KillMode=process")


@pytest.mark.parametrize("case", VARIANTS, ids=[case["id"] for case in VARIANTS])
def test_a_variant_is_what_it_is(case: dict[str, Any]) -> None:
    found = explained(case["crontab"], msgspec.convert(case["source"], Source), case["scripts"])[0]
    services = [text for name, text in found.units if not name.endswith(".timer")]
    lines = [line for text in services for line in text.split("\n")]
    is_ = {
        "kind": found.kind,
        "pattern": found.pattern,
        "confidence": found.confidence,
        "roles": [
            {
                "name": role.name,
                "argv": list(role.argv),
                "instances": role.instances,
                "user": role.user,
                "workdir": role.workdir,
            }
            for role in found.roles
        ],
        "files": [name for name, _ in found.units],
        "lines": [
            line
            for line in lines
            if line.startswith(_LINES) or (line.startswith("Restart=") and line != "Restart=always")
        ],
    }
    assert is_ == case["expected"]


PIECES = [
    *"abc'\"`$(){}[];&|<>#\\\n \t", "for i in 1 2; do ", "done", "if ", "then", "fi", "pgrep -f w ", "flock -n /l ",
    "worker ", "sh -c ", "nohup ", "$((", "))", "<<E\nx\nE\n", "${A:-", "${A[@]}", "seq 3", " & ", "sudo -u u ",
    "case $1 in a) ", "esac", "while true; do ", "while read x; do ", "xargs -I{} ", "A=1 ", "A=(1 2) ", "export ",
    "cd /x && ", ". /s.sh", "/s.sh ", "celery multi start 2 ", "pm2 start x.js ", "supervisord ", "f() { f; }; f ",
    "exit ", "exec ", "%", "\\%", "\r", "getopts ab: o", "docker start ", "start-stop-daemon --exec ", "su - u -c ",
    "eval ", "timeout 5 ", ">> log ", "2>&1 ", "\ue000q\ue001", "\U000eab6a", "é",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@settings(max_examples=300, deadline=None)
@given(texts, texts)
def test_no_text_breaks_the_reading(command: str, script: str) -> None:
    source = Source(kind="user", path="/var/spool/cron/crontabs/u", user="u")
    files = {"/s.sh": f"#!/bin/sh\n{script}", "/home/u/supervisord.conf": script, "/home/u/.profile": script}
    for found in explained(f"* * * * * x {command}\n@reboot {command}\n", source, files):
        assert found.evidence and found.kind in ("launcher", "short_cycle", "periodic", "none", "invalid")
        for _, text in found.units:
            assert "\ue000" not in text or "\ue000" in command + script
