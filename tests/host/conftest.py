"""Unit files of the tests' own inside the demo host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import DemoHost

Template = Callable[[str, str], str]


@pytest.fixture
def template(demo_host: DemoHost) -> Iterator[Template]:
    """Make a template unit: `template("probe", "ExecStart=…")` -> "probe@.service"; gone at the end."""
    with templates(demo_host) as make:
        yield make


@contextlib.contextmanager
def templates(demo_host: DemoHost) -> Iterator[Template]:
    made: list[str] = []

    def make(name: str, service: str, unit: str = "") -> str:
        text = f"[Unit]\n{unit}\n[Service]\n{service}\n"
        demo_host.run(["sh", "-c", f"cat > /run/systemd/system/{name}@.service; systemctl daemon-reload"], input=text)
        made.append(name)
        return f"{name}@.service"

    try:
        yield make
    finally:
        for name in made:
            units, files = f"'{name}@*'", f"/run/systemd/system/{name}@.service"
            gone = f"systemctl stop {units}; systemctl reset-failed {units}; rm -rf {files} {files}.d"
            gone += "; systemctl daemon-reload"
            demo_host.run(["sh", "-c", gone], check=False)
