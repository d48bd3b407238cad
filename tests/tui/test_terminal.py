"""What the console makes of its environment, and what it writes when it fails."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual import events
from textual.geometry import Region, Size
from textual.screen import Screen

from console.tui.commands import COMMANDS, SCOPE_TITLES, SCREENS, of
from console.tui.crash import crash_line, write_crash_log
from console.tui.screens.audit import AuditScreen, EntryScreen
from console.tui.screens.base import ConsoleScreen
from console.tui.screens.evidence import EvidenceScreen
from console.tui.screens.fleet import FleetScreen
from console.tui.screens.help import HelpScreen
from console.tui.screens.host import HostScreen
from console.tui.screens.job import JobScreen
from console.tui.screens.jobs import JobsScreen
from console.tui.screens.log import LogScreen
from console.tui.screens.plan import PlanScreen
from console.tui.screens.playbook import PlaybookScreen
from console.tui.screens.playbooks import PlaybooksScreen
from console.tui.screens.progress import ProgressScreen
from console.tui.screens.queue import QueueScreen
from console.tui.screens.result import ResultScreen
from console.tui.screens.schedule import ScheduleScreen
from console.tui.screens.schedules import SchedulesScreen
from console.tui.screens.wizard import WizardScreen
from console.tui.screens.worker import WorkerScreen
from console.tui.screens.workers import WorkersScreen
from console.tui.terminal import speaks_utf8, theme_for
from console.tui.widgets.line import keys_parts
from tests.examples import example_fleet
from tests.tui.pilots import console

ROOT = Path(__file__).parents[2]


def test_importing_the_package_does_not_import_textual() -> None:
    code = "import sys, console.tui; sys.exit('textual' in sys.modules or 'rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, "worktop-dark"),
        ({"WORKTOP_THEME": "light"}, "worktop-light"),
        ({"WORKTOP_THEME": "safe", "COLORFGBG": "0;15"}, "worktop-safe"),
        ({"WORKTOP_THEME": "pink"}, "worktop-dark"),
        ({"COLORFGBG": "0;15"}, "worktop-light"),
        ({"COLORFGBG": "15;0"}, "worktop-dark"),
    ],
)
def test_the_theme(environment: dict[str, str], name: str) -> None:
    assert theme_for(environment) == name


@pytest.mark.parametrize(
    ("environment", "utf8"),
    [
        ({"LC_ALL": "C"}, False),
        ({"LC_ALL": "C", "PYTHONUTF8": "1"}, False),
        ({"LC_ALL": "C.UTF-8"}, True),
        ({"LANG": "C.UTF-8"}, True),
        ({"LANG": "C"}, False),
        ({}, False),
        ({"LC_CTYPE": "C.UTF-8"}, True),
        ({"LC_ALL": "C", "WORKTOP_GLYPHS": "unicode"}, True),
        ({"LC_ALL": "C.UTF-8", "WORKTOP_GLYPHS": "ascii"}, False),
    ],
)
def test_the_locale_as_the_person_set_it(environment: dict[str, str], utf8: bool) -> None:
    code = "import os; from console.tui.terminal import speaks_utf8; print(speaks_utf8(os.environ))"
    env = {"PATH": os.environ["PATH"]} | environment
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.stdout.strip() == str(utf8), done.stderr


def test_this_process_has_a_locale() -> None:
    assert speaks_utf8({"WORKTOP_GLYPHS": "unicode"})


def failure() -> Exception:
    password = "hunter2"
    try:
        raise ValueError(f"\x1b[31mcannot reach postgresql://app:{password}@db1/app")
    except ValueError as error:
        return error


def test_the_crash_log_is_private_and_holds_no_secret(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "xterm"}
    line = crash_line(failure(), environment)
    (path,) = (tmp_path / "state" / "worktop").iterdir()
    assert line.count("\n") == 0
    why = "ValueError: ␛[31mcannot reach postgresql://app:••••@db1/app"
    assert line == f"worktop: the console failed: {why}; details in {path}"
    text = path.read_text()
    assert "hunter2" not in text and "\x1b" not in text
    assert "Traceback (most recent call last)" in text
    assert 'in failure\n    raise ValueError(f"' in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_crash_log_is_never_written_through_what_is_already_there(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    first = write_crash_log(failure(), environment, moment)
    first.unlink()
    first.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        write_crash_log(failure(), environment, moment)
    assert not (tmp_path / "elsewhere").exists()


def test_where_no_log_can_be_written_the_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "worktop").write_text("a file")
    line = crash_line(failure(), {"XDG_STATE_HOME": str(tmp_path)})
    assert "no crash log could be written" in line


def test_every_command_has_a_sentence_and_keys_of_its_own() -> None:
    assert len({command.id for command in COMMANDS}) == len(COMMANDS)
    kinds: list[type[ConsoleScreen]] = [FleetScreen, EvidenceScreen, HelpScreen, WorkersScreen, WorkerScreen]
    kinds += [LogScreen, JobsScreen, JobScreen, QueueScreen, HostScreen]
    kinds += [PlanScreen, ProgressScreen, ResultScreen, AuditScreen, EntryScreen]
    kinds += [SchedulesScreen, ScheduleScreen, PlaybooksScreen, PlaybookScreen]
    for scopes in (kind.SCOPES for kind in kinds):
        keys = [key for command in of(*scopes) for key in command.keys]
        assert len(keys) == len(set(keys)), f"a key is bound twice in {scopes}"
    of_wizard = [key for command in of(*WizardScreen.SCOPES) for key in command.keys]
    assert {key for key in of_wizard if of_wizard.count(key) > 1} == {"q"}, "it leaves the run, not the console"
    for command in COMMANDS:
        assert command.help.endswith(".")
        assert command.scope in SCOPE_TITLES


@pytest.mark.parametrize("width", range(0, 130))
def test_the_footer_never_cuts_a_key(width: int) -> None:
    parts, spans = keys_parts(("console", "fleet"), width, False, "fleet")
    text = "".join(piece for piece, _ in parts)
    assert len(text) <= width
    if width >= 70:
        names = "".join(f"{screen.key}{screen.label(narrow=width < 100)}" for screen in SCREENS)
        assert text.replace(" ", "").startswith(names)
    elif width >= 6:
        assert text.startswith("q quit")
    words = [text[span.start : span.end] for span in spans]
    assert all(word == word.strip() for word in words)
    assert "".join(words).replace(" ", "") == text.replace(" ", "")


async def test_resizes_that_end_where_they_began_paint_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual takes resizes that come at once for one, and for none when the size is the same in the end; but the
    terminal has cut off its lines and columns in between.
    """
    async with console(example_fleet()) as driven:
        painted: list[object] = []
        original = driven.app._display

        def display(screen: Screen[object], renderable: object) -> None:
            painted.append(getattr(renderable, "region", None))
            original(screen, renderable)  # type: ignore[arg-type]

        monkeypatch.setattr(driven.app, "_display", display)
        for keys in ((), ("colon",)):
            await driven.press(*keys)
            painted.clear()
            for size in (Size(60, 20), Size(80, 24)):
                driven.app.post_message(events.Resize(size, size))
            await driven.pilot.pause(0.05)
            await driven.shown()
            assert Region(0, 0, 80, 24) in painted
