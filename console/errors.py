"""The errors a person can meet, and how they read.

    WorktopError
    ├── ConfigError        worktop.toml, environment or option: what was found, what was expected
    ├── SourceError        a source of facts failed; the others go on
    │   ├── HostError      the host agent, systemd, /proc, crontabs, journal
    │   │   └── AgentLost  the agent, or the way to it, went away before it answered: what was asked may have been done
    │   └── QueueError     PostgreSQL, its schema, its rows
    ├── RefusedError       an action was not allowed, or not agreed to; nothing was done
    ├── LeaseLost          a token is no longer the row's: somebody else holds the job now
    └── DemoError          the demo host could not be booted

Each says what failed, on what, why, and what to do, in one or two lines. Exit codes of the commands are here
too, so that every command documents the same ones.
"""

from __future__ import annotations

import msgspec

EXIT_OK = 0
EXIT_FAILED = 1  # something asked for could not be done
EXIT_USAGE = 2  # wrong arguments or configuration (click uses the same)
EXIT_FINDINGS = 3  # --check: at least one finding is an error
EXIT_NOTHING = 4  # an action found nothing to do
EXIT_LEFT = 5  # a playbook was left before its end, and can be taken up again


class Problem(msgspec.Struct, frozen=True):
    """What a failing source shows, as data: it crosses the agent's pipe and lives in readings.

    `what` failed on what ("list units of the system manager"), `why` ("permission denied"), and what to `do`.
    None of the three holds a secret; text from outside is made safe where it is shown (console/text.py).
    """

    what: str
    why: str
    do: str = ""

    def line(self) -> str:
        """One line: "what: why; do"."""
        return f"{self.what}: {self.why}" + (f"; {self.do}" if self.do else "")


class WorktopError(Exception):
    """Base of every error a command turns into one line and an exit code."""

    exit_code = EXIT_FAILED

    def __init__(self, what: str, why: str, do: str = "") -> None:
        self.problem = Problem(what, why, do)
        super().__init__(self.problem.line())


class ConfigError(WorktopError):
    """Configuration cannot be used; `what` names the file and the key."""

    exit_code = EXIT_USAGE


class SourceError(WorktopError):
    """A source of facts failed."""


class HostError(SourceError):
    """The host agent or something it reads failed."""


class AgentLost(HostError):
    """The host agent, or the way to it, is gone, or it does not answer: what it was asked for may have been done."""


class QueueError(SourceError):
    """The database of the job table failed."""


class RefusedError(WorktopError):
    """An action is not allowed, or the person did not agree to it; nothing was done."""

    exit_code = EXIT_USAGE


class LeaseLost(WorktopError):
    """The caller's lease token is no longer the row's; its finish, fail or heartbeat was rejected."""


class DemoError(WorktopError):
    """The demo host could not be started, entered or stopped."""
