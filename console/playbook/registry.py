"""Every action and check that a playbook may name. A new one is a line here."""

from __future__ import annotations

from console.playbook.actions.examine import EXAMINE
from console.playbook.actions.lines import LINE
from console.playbook.actions.plain import NOTE, REPORT
from console.playbook.actions.survey import SURVEY
from console.playbook.actions.swapping import CANARY, RENEW, SWAP
from console.playbook.actions.timers import TIMER
from console.playbook.actions.unit_files import INSTALL
from console.playbook.actions.workers import DRAIN, LIMITS, RECLAIM, SCALE, UNITS
from console.playbook.checks.jobs import JOBS_FLOW, NO_DEAD, NO_STUCK, WORKED
from console.playbook.checks.lines import LINE_ACTIVE, LINE_DISABLED, QUIET_TICK
from console.playbook.checks.plain import WAIT
from console.playbook.checks.setup import JOB_RAN, PROGRAM_RETIRED, UNIT_CONFIGURED
from console.playbook.checks.workers import (
    MEMORY_FITS,
    NO_STRAYS,
    ONE_OWNER,
    RUNNING,
    STEADY,
    UNIT_ACTIVE,
    UNIT_INSTALLED,
)
from console.playbook.kinds import Registry

ACTIONS = (
    NOTE, REPORT, SURVEY, EXAMINE, LINE, INSTALL, TIMER, CANARY, SWAP, RENEW, UNITS, SCALE, DRAIN, RECLAIM,
    LIMITS,
)  # fmt: skip
CHECKS = (
    WAIT, ONE_OWNER, RUNNING, NO_STRAYS, UNIT_ACTIVE, UNIT_INSTALLED, STEADY, MEMORY_FITS, NO_STUCK, JOBS_FLOW,
    NO_DEAD, WORKED, LINE_DISABLED, LINE_ACTIVE, QUIET_TICK, UNIT_CONFIGURED, PROGRAM_RETIRED, JOB_RAN,
)  # fmt: skip
REGISTRY = Registry(ACTIONS, CHECKS)
