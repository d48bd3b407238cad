"""The command line itself: what it imports, how it fails, what its help says."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from console.cli.main import COMMANDS, cli, run

ROOT = Path(__file__).resolve().parents[2]


def loaded_after(statement: str) -> set[str]:
    """Top-level modules in sys.modules after a statement, in a fresh interpreter without configuration."""
    code = (
        f"import sys\n{statement}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd="/",
        env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def test_help_imports_none_of_the_heavy_ones() -> None:
    assert not loaded_after("from console.cli.main import run; run(['--help'])") & {
        "textual",
        "psycopg",
        "pystemd",
        "psutil",
    }


def test_status_does_not_import_textual() -> None:
    loaded = loaded_after("from console.cli.main import run; run(['status', '--json'])")
    assert "textual" not in loaded
    assert "console" in loaded


def test_the_agent_imports_no_textual_psycopg_or_shell_grammar() -> None:
    assert not loaded_after("import console.host.agent") & {"textual", "psycopg", "tree_sitter"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_its_exit_codes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"]) == 0
    text = capsys.readouterr().out
    if name == "queue":
        assert run([name, "install", "--help"]) == 0
        text = capsys.readouterr().out
    text = " ".join(text.split())
    assert "Example" in text
    assert "xit code" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert "worktop, version" in capsys.readouterr().out


def test_wrong_usage_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nonsense"]) == 2
    assert run(["jobs", "--state", "asleep"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_configuration_that_cannot_be_used_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "worktop.toml"
    path.write_text("[roles.mail]\nbudgets = 3\n")
    assert run(["--config", str(path), "status"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "roles.mail.budgets" in error


def test_a_defect_is_one_line_and_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**options: object) -> None:
        raise RuntimeError("password=hunter2 \x1b[31m")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(cli, "main", broken)
    assert run([]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "hunter2" not in error
    assert "\x1b" not in error
    logs = list((tmp_path / "worktop").iterdir())
    assert len(logs) == 1
    assert "hunter2" not in logs[0].read_text()


def test_the_wheel_holds_every_module_and_every_data_file(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            str(tmp_path),
            str(ROOT),
        ],
        check=True,
    )
    packed = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    wanted = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "console").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted |= {f"console/playbooks/{path.name}" for path in (ROOT / "playbooks").glob("*.md")}
    assert wanted <= packed, sorted(wanted - packed)
