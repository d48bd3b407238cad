"""Pure: everything about one job as lines: timings, lease, holder and verdict, error, payload."""

from __future__ import annotations

import math
from datetime import datetime, tzinfo
from functools import lru_cache

import msgspec

from console.fleet.model import Claim, Job
from console.text import grouped, size
from console.view.cells import Part, Tone, part_columns, safe, safe_block, wrap
from console.view.glyphs import Glyphs
from console.view.jobs import VERDICT_TONES, holder_text, lasted, verdict_word
from console.view.sections import Section

Lines = tuple[tuple[Part, ...], ...]

FOLD_FROM = 40  # a payload of more lines than this is folded
_FOLDED = 12  # and then shows so many
_MOST_LINES = 5000  # even unfolded; a pager of more lines is slow and helps nobody
_LABEL = 11
_BY_DATABASE = " by the database's clock"
_STATE_TONES: dict[str, Tone] = {"waiting": "", "running": "note", "done": "ok", "failed": "bad"}


def pretty(payload: str) -> str:
    """JSON indented; anything else, also JSON that was cut, as it is."""
    try:
        return msgspec.json.format(payload.encode(), indent=2).decode()
    except (msgspec.DecodeError, UnicodeError):
        return payload


def moment(at: float | None, now: float, zone: tzinfo | None) -> str:
    """ "2025-11-29 16:42:07 UTC, 4:10 ago" in `zone` (None: this machine's), `now` by the same clock as `at`."""
    if at is None:
        return ""
    try:
        local = datetime.fromtimestamp(at, zone) if zone is not None else datetime.fromtimestamp(at).astimezone()
        text = f"{local:%Y-%m-%d %H:%M:%S} {local.tzname() or ''}".rstrip()
    except (OverflowError, ValueError, OSError):  # infinity, or a year that no calendar has
        return "infinity" if at > 0 and math.isinf(at) else "outside the calendar"
    passed = now - at
    return f"{text}, {lasted(passed)} ago" if passed >= 0 else f"{text}, in {lasted(passed)}"


def folds(job: Job) -> bool:
    """The payload is long enough to be folded."""
    return _long(job.payload)


def _long(payload: str) -> bool:
    return len(payload) > 8000 or pretty(payload).count("\n") >= FOLD_FROM


def title_parts(job: Job, claim: Claim | None, place: str, width: int) -> tuple[Part, ...]:
    """ "job 918233  running, stuck  resize of thumbnails  3 of 7"."""
    stuck = claim is not None and claim.stuck
    parts: list[Part] = [
        ("job ", "dim"),
        (safe(job.id, 40), "head"),
        (f"  {job.state}{', stuck' if stuck else ''}", "bad" if stuck else _STATE_TONES.get(job.state, "")),
    ]
    if job.type:
        parts += [("  ", ""), (safe(job.type, 40), "")]
    if place and part_columns(tuple(parts)) + len(place) + 2 <= width:
        parts.append((f"  {place}", "dim"))
    return tuple(parts)


def job_sections(
    job: Job, claim: Claim | None, role: str, width: int, glyphs: Glyphs, now: float, zone: tzinfo | None, folded: bool
) -> tuple[Section, ...]:
    """The job in lines of at most `width` columns; `now` is the database's clock when it was read."""
    sections = [Section("JOB", _job(job, role, width, now, zone))]
    if job.state == "running":
        sections.append(Section("HOLDER", _holder(job, claim, width, now, zone, glyphs)))
    if job.error:
        sections.append(Section("ERROR", tuple(wrap(((safe_block(job.error).rstrip("\n"), ""),), width))))
    if job.payload:
        sections.append(Section("PAYLOAD", _payload(job.payload, job.payload_size, width, folded)))
    return tuple(sections)


class _Fields:
    """Lines of a label and what it says; what says nothing is left out."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.lines: list[tuple[Part, ...]] = []

    def add(self, label: str, *parts: Part) -> None:
        if any(text for text, _ in parts):
            self.lines += wrap(((f"{label:<{_LABEL}}", "dim"), *parts), self._width, _LABEL)


def _job(job: Job, role: str, width: int, now: float, zone: tzinfo | None) -> Lines:
    fields = _Fields(width)
    fields.add("role", (safe(role), ""), (f"  queue {safe(job.queue)}" if job.queue != role else "", "dim"))
    fields.add("type", (safe(job.type), ""))
    tries = f"{job.attempts} of {job.max_attempts}" if job.max_attempts is not None else str(job.attempts)
    spent = job.max_attempts is not None and job.attempts >= job.max_attempts
    fields.add("attempts", (tries, "warn" if spent and job.state != "done" else ""), (_priority(job), "dim"))
    for label, at in (
        ("created", job.created),
        ("due", job.run_after),
        ("started", job.started),
        ("finished", job.finished),
    ):
        fields.add(label, (moment(at, now, zone), ""))
    fields.add("took" if job.state in ("done", "failed") else "runs for", (_took(job), ""))
    if job.state == "waiting" and job.waiting_for is not None and job.waiting_for >= 0:
        fields.add("waits for", (lasted(job.waiting_for), ""), (_BY_DATABASE, "dim"))
    return tuple(fields.lines)


def _holder(job: Job, claim: Claim | None, width: int, now: float, zone: tzinfo | None, glyphs: Glyphs) -> Lines:
    fields = _Fields(width)
    fields.add("held by", (safe(holder_text(job.holder)), "" if job.holder else "dim"), (_where(job), "dim"))
    if claim is not None:
        fields.add("verdict", (verdict_word(claim.verdict), VERDICT_TONES[claim.verdict]))
        for sentence in claim.evidence:
            fields.add("", (f"{glyphs.bullet} ", "dim"), (safe(sentence), ""))
    else:
        fields.add("verdict", ("not judged: the host has not been asked", "dim"))
    if job.heartbeat_age is not None:
        fields.add("heartbeat", (f"{lasted(job.heartbeat_age)} ago", ""))
    if job.overdue is None:
        fields.add("lease", ("the row has none", "dim"))
    elif job.overdue > 0:
        fields.add("lease", (f"ran out {lasted(job.overdue)} ago", "bad"), (_BY_DATABASE, "dim"))
    else:
        fields.add("lease", (f"valid for {lasted(job.overdue)}", "ok"), (_BY_DATABASE, "dim"))
    fields.add("until", (moment(job.lease_expires, now, zone), ""))
    return tuple(fields.lines)


def _priority(job: Job) -> str:
    return f"  priority {job.priority}" if job.priority is not None else ""


def _where(job: Job) -> str:
    if job.holder is None or not job.holder.host:
        return ""
    return f"  on {safe(job.holder.host, 60)}"


def _took(job: Job) -> str:
    if job.state == "running":
        return f"{lasted(job.running_for)}{_BY_DATABASE}" if job.running_for is not None else ""
    if job.started is None or job.finished is None:
        return ""
    seconds = job.finished - job.started
    return f"{seconds:.2f} s" if 0 <= seconds < 10 else lasted(seconds)


@lru_cache(maxsize=4)  # a running job is shown anew every few seconds, its payload stays
def _payload(payload: str, payload_size: int, width: int, folded: bool) -> Lines:
    """How large the payload is, and its lines, masked; the first ones only when it is folded."""
    whole = len(payload.encode(errors="surrogatepass")) >= payload_size
    body = safe_block(pretty(payload))  # masked whole: a cut could part a secret from the name that betrays it
    total = body.count("\n") + 1
    long = _long(payload)
    fold = folded and long
    told = size(max(payload_size, len(payload)))
    heading: list[Part] = [(told, "dim")]
    if not whole:
        heading.append((f", here the first {grouped(len(payload))} characters", "warn"))
    if fold:
        heading.append((", e shows more", "key"))
    elif long:
        heading.append((", e shows less", "key"))
    lines = wrap(tuple(heading), width)
    shown = wrap(((body[: width * _FOLDED * 2] if fold else body, ""),), width)
    most = _FOLDED if fold else _MOST_LINES
    lines += shown[:most]
    if fold:
        lines.append(((f"… {grouped(max(0, total - most))} more lines" if total > most else "…", "dim"),))
    elif len(shown) > most:
        lines.append(((f"… {grouped(len(shown) - most)} more lines", "dim"),))
    return tuple(lines)
