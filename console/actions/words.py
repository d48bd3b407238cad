"""The words of plans: titles, commands, sentences."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from console.fleet.model import Claim, Count, Holder, Verdict
from console.fleet.plan import JobVerb, Statement
from console.text import ago, grouped

IDS_AT_MOST = 200  # of a command; more are not typed again
_STATE_WORDS: dict[JobVerb, str] = {"reclaim": "", "retry": "failed ", "run-now": "waiting ", "priority": "waiting "}


def jobs_word(count: Count, kind: str = "") -> str:
    """ "1 job", "412 failed jobs", "more than 10 000 jobs"."""
    number = grouped(count.n)
    told = {"exact": number, "at-least": f"more than {number}", "estimate": f"about {number}"}[count.kind]
    return f"{told} {kind}job{'' if count.n == 1 and count.kind == 'exact' else 's'}"


def title(verb: JobVerb, count: Count, role: str, priority: int | None = None) -> str:
    """ "Reclaim 2 jobs of thumbnails"; raw."""
    kind = _STATE_WORDS.get(verb, "")
    what = jobs_word(count, kind) if count.n else f"{kind}jobs"
    of = f" of {role}" if role else ""
    if verb == "run-now":
        return f"Run {what}{of} now"
    if verb == "priority":
        return f"Set the priority of {what}{of} to {priority}"
    return f"{verb.capitalize()} {what}{of}"


def holder_word(holder: Holder | None) -> str:
    """ "mail-worker@3.service (pid 812)", "pid 9 in cron.service", "pid 7 on wrk02", "a holder that …"; raw."""
    if holder is None:
        return "a holder that the row does not name"
    pid = f"pid {holder.pid}" if holder.pid is not None else ""
    if pid and holder.unit and "@" not in holder.unit:  # a stray lives in the unit of whatever started it
        return f"{pid} in {holder.unit}"
    if holder.unit:
        return f"{holder.unit} ({pid})" if pid else holder.unit
    if pid:
        return f"{pid} on {holder.host}" if holder.host else pid
    return holder.text or holder.host or "a holder that the row does not name"


def command(
    verb: str,
    *,
    role: str = "",
    ids: Sequence[str] = (),
    verdicts: Sequence[Verdict] = (),
    older_than: float | None = None,
    priority: int | None = None,
    quarantine_after: int | None = None,
    batch: int = 1000,
    leave_running: bool = False,
) -> str:
    """The same as a command; "" when it would name too many ids."""
    if len(ids) > IDS_AT_MOST:
        return ""
    words = ["worktop", verb]
    if ids:
        words += ["--id", ",".join(ids)]
    if role:
        words += ["--role", role]
    if verdicts:
        words += ["--verdict", ",".join(verdict.lower().replace("_", "-") for verdict in verdicts)]
    if older_than is not None:
        words += ["--older-than", f"{older_than:g}s"]
    if priority is not None:
        words += ["--to", str(priority)]
    if quarantine_after is not None:
        words += ["--quarantine-after", str(quarantine_after)]
    if batch != 1000:
        words += ["--batch", str(batch)]
    if leave_running:
        words.append("--leave-running")
    return shlex.join(words)


def by_hand(statements: Sequence[Statement]) -> str:
    """The statements as one psql script; they are repeated by hand until they change nothing."""
    return "\n".join(text.rstrip().rstrip(";") + ";" for statement in statements if (text := statement.psql))


def proof(claim: Claim) -> str:
    """Why a holder is what it is said to be, one clause."""
    return "; ".join(claim.evidence) or "no evidence"


def lease_left(claim: Claim) -> str:
    overdue = claim.job.overdue
    return f"its lease is valid for another {ago(-overdue)}" if overdue is not None and overdue <= 0 else "it lives"


def listed(names: Sequence[str], most: int = 3) -> str:
    """ "a, b and 4 more"."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
