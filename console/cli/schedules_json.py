"""The schedules as JSON: one object per entry, the same for this host and for files below another root."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from console.schedules.inventory import Alive, Inventory, Listed, Translated
from console.schedules.model import FoundRole, Scheduled
from console.text import mask, mask_arguments
from console.view.schedules import zone_named


def inventory_json(inventory: Inventory) -> dict[str, Any]:
    """{"entries", "unread", "notes", "dialect", "zone", "host"}; entries without unit text."""
    return {
        "host": inventory.host,
        "dialect": inventory.dialect,
        "zone": inventory.zone,
        "notes": inventory.notes,
        "entries": [_listed(each) for each in inventory.entries],
        "unread": [
            {"source": each.source.path, "kind": each.source.kind, "user": each.source.user, "problem": each.problem}
            for each in inventory.unread
        ],
    }


def entry_json(told: Translated) -> dict[str, Any]:
    """An entry with the text of its units, and what was proved of them."""
    explained = told.listed.explained
    return {
        **_listed(told.listed),
        "units": dict(explained.units),
        "files": {path: {"text": text, "mode": f"{mode:04o}"} for path, text, mode in explained.extras},
        "proved": told.held,
        "not_proved": told.failed,
        "lost": told.lost,
    }


def _listed(listed: Listed) -> dict[str, Any]:
    explained, entry = listed.explained, listed.entry
    return {
        "name": listed.name,
        "source": entry.source.path,
        "kind": entry.source.kind,
        "line": max(1, entry.line),  # a file that is run as a whole begins there
        "user": entry.user,
        "text": entry.raw.decode("utf-8", "replace") or entry.command,
        "command": entry.command,
        "active": entry.active,
        "class": explained.kind,
        "pattern": explained.pattern,
        "confidence": explained.confidence,
        "role": listed.role,
        "roles": [_role(role) for role in explained.roles],
        "schedule": _schedule(explained.scheduled) if explained.scheduled is not None else None,
        "evidence": [{"source": each.source, "text": each.text} for each in explained.evidence],
        "problems": entry.problems,
        "warnings": explained.warnings,
        "hazards": explained.hazards,
        "questions": explained.questions,
        "alive": _alive(listed.alive) if listed.alive is not None else None,
    }


def _role(role: FoundRole) -> dict[str, Any]:
    return {
        "name": role.name,
        "argv": mask_arguments(role.argv),
        "instances": role.instances,
        "names": role.names,
        "user": role.user,
        "group": role.group,
        "workdir": role.workdir,
        "env": {name: mask(f"{name}={value}").partition("=")[2] for name, value in role.environment},
        "output": role.output,
        "limits": [{"tool": limit.tool, "text": limit.text} for limit in role.limits],
        "locks": role.locks,
        "guard": role.guard,
        "guard_works": role.guard_works,
    }


def _schedule(scheduled: Scheduled) -> dict[str, Any]:
    zone = zone_named(scheduled.zone)
    return {
        "expression": scheduled.expression,
        "words": scheduled.words,
        "next_runs": [datetime.fromtimestamp(at, zone).isoformat() for at in scheduled.next_runs],
        "zone": scheduled.zone,
        "on_calendar": scheduled.on_calendar,
        "warnings": scheduled.warnings,
    }


def _alive(alive: Alive) -> dict[str, Any]:
    return {
        "count": alive.count,
        "growing": alive.growing,
        "per_run": alive.per_run,
        "runs": [{"started": run.started, "pids": run.pids} for run in alive.runs],
        "before": {"seconds_ago": alive.before[0], "count": alive.before[1]} if alive.before is not None else None,
        "evidence": alive.evidence,
    }
