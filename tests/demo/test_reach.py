"""The checkout and the interpreter are usable inside wherever they lie, and nothing is changed outside."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import console
from console.demo import overlay, reach
from console.demo.enter import WORKTOP, exec_argv
from console.demo.state import read
from tests.conftest import need_root

pytestmark = pytest.mark.host


@pytest.fixture(params=["/tmp", "/opt"])
def closed_checkout(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A copy of the package that only root can read, in a folder that only root can enter."""
    need_root()
    top = Path(tempfile.mkdtemp(prefix="closed, ", dir=request.param))
    shutil.copytree(Path(console.__file__).parent, top / "worktop/console")
    for path in (top, *top.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o077)
    yield top / "worktop"
    shutil.rmtree(top)


def test_a_checkout_that_only_root_can_read(closed_checkout: Path) -> None:
    name = f"reach-{os.getpid()}"
    command = [sys.executable, "-m", "console", "demo", "--name", name]
    environment = os.environ | {"PYTHONPATH": str(closed_checkout)}
    demo = subprocess.Popen(
        [*command, "--keep"], env=environment, stdin=subprocess.DEVNULL, cwd="/", stderr=-1, text=True
    )
    try:
        assert demo.stderr is not None
        said = []
        for line in demo.stderr:
            said.append(line)
            if "filling the job table" in line:
                break
        else:
            pytest.fail("".join(said))
        found = read(name)
        assert found
        where = "import console; print(console.__file__)"
        probe = f"import sys; sys.path.insert(0, {str(closed_checkout)!r}); {where}"
        inside = exec_argv(found.leader_pid, [sys.executable, "-c", probe], "deploy")
        done = subprocess.run(inside, capture_output=True, text=True)
        assert done.stdout.strip() == str(closed_checkout / "console/__init__.py"), done.stderr
        version = subprocess.run(
            exec_argv(found.leader_pid, [WORKTOP, "--version"], "deploy"), capture_output=True, text=True
        )
        assert version.stdout.startswith("worktop"), version.stderr
        write = subprocess.run(exec_argv(found.leader_pid, ["touch", str(closed_checkout / "x")]), capture_output=True)
        assert write.returncode != 0
    finally:
        subprocess.run([*command, "stop"], capture_output=True, env=environment, cwd="/")
        demo.communicate()
    assert stat.S_IMODE(closed_checkout.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((closed_checkout / "console/__init__.py").stat().st_mode) == 0o600


def test_the_distribution_is_not_bound() -> None:
    assert not [path for path in reach._needed() if path == Path("/usr") or Path("/usr") in path.parents]


def test_the_worktop_script_runs_with_an_interpreter_whose_path_has_blanks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = tmp_path / "it's a python"
    interpreter.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    script = tmp_path / "worktop"
    script.write_text(overlay.worktop_script())
    script.chmod(0o755)
    done = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("worktop"), done.stderr
