"""Pure: what can be asked for with a selection: the entries of the menu (x) and what the capital letters mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from console.fleet.counts import is_paused
from console.fleet.model import Claim, Fleet, Ident, Job, JobState, RoleStatus, Value, Verdict
from console.fleet.plan import Consent, JobVerb, QueueVerb, RowRef, Verb
from console.view.cells import safe

_IDS_AT_MOST = 2  # so many ids are named; more jobs are counted
_OF_ROWS: tuple[Verb, ...] = (*get_args(JobVerb), *get_args(QueueVerb))
NOTHING_HERE = "this console was opened without the means to act"


class Request(Value, frozen=True, kw_only=True):
    """What a plan is to be made of: a verb, and the rows, units, processes, role or applied plan it is for."""

    verb: Verb
    title: str  # until the plan has one of its own; safe
    role: str = ""
    rows: tuple[RowRef, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    priority: int | None = None
    units: tuple[str, ...] = ()
    processes: tuple[Ident, ...] = ()  # verb drain: those outside of units
    count: int | None = None  # verb scale
    signal: str = ""  # verb kill
    settings: tuple[tuple[str, str], ...] = ()  # verb limits; (): those that are proposed
    asks: Literal["", "priority", "count", "signal", "settings"] = ""  # what is asked for first
    note: str = ""  # beside what is asked; safe
    plan: str = ""  # verbs undo and continue: id of the plan
    path: str = ""  # verbs disable-line and restore-line: the crontab, and
    line: int = 0  # which line of it, 1-based, and
    raw: bytes | None = None  # what stands there


class Offer(Value, frozen=True, kw_only=True):
    """One thing that can be asked for with what is selected; `id` is the argument of the screens' command `act`."""

    id: str
    label: str  # safe
    help: str  # safe
    request: Request
    lacking: str = ""  # why there is nothing to do; "" when there is


class Held(Value, frozen=True, kw_only=True):
    """A job and the role whose it is."""

    job: Job
    role: str
    claim: Claim | None = None


def job_offers(held: Sequence[Held], left: int = 0) -> tuple[Offer, ...]:
    """What can be done with these jobs, and with all of their kind where they are of one role.

    `left`: so many more are marked but not loaded, and are not among them.
    """
    if not held:
        return ()
    if left:
        return tuple(
            msgspec.structs.replace(offer, help=f"without {left} marked that are not loaded: scroll to them first")
            if offer.request.rows
            else offer
            for offer in job_offers(held)
        )
    offers: list[Offer] = []
    running, waiting, failed = (_of(held, state) for state in ("running", "waiting", "failed"))
    roles = {entry.role for entry in held}
    role = next(iter(roles)) if len(roles) == 1 else ""
    if running:
        offers += [
            _rows("reclaim", "reclaim {}", running, role, f"back to waiting; {_holders(running)}"),
            _rows("quarantine", "quarantine {}", running, role, "a job that kills: from its holder to failed"),
        ]
    if failed:
        offers.append(_rows("retry", "retry {}", failed, role, "to waiting, its attempts from the beginning"))
    if waiting:
        offers += [
            _rows("run-now", "run {} now", waiting, role, "due at once, whatever time it waits for"),
            _rows("priority", "priority of {}", waiting, role, "asks for the number", asks="priority"),
        ]
    if gone := (*failed, *waiting):
        offers.append(_rows("discard", "discard {}", gone, role, "never run; the plan says what becomes of the row"))
    if role and running:
        offers.append(_all_dead("reclaim-all", role))
    if role and failed:
        offers.append(_all_failed("retry-all", role))
    if role:
        offers += _switches(role)
    return tuple(offers)


def role_offers(status: RoleStatus | None) -> tuple[Offer, ...]:
    """What can be done with a role as a whole."""
    if status is None or not status.role.queues:
        return ()
    role, queue = status.role.name, status.queue
    stuck = status.stuck if status.stuck is not None else (queue.stuck.n if queue is not None else None)
    failed = queue.failed.n if queue is not None else None
    return (
        _all_dead("reclaim", role, "no job is stuck" if stuck == 0 else ""),
        _all_failed("retry", role, "no job failed" if failed == 0 else ""),
        *_switches(role, paused=is_paused(status.role, queue)),
    )


def worker_offers(claims: Sequence[Claim], status: RoleStatus | None) -> tuple[Offer, ...]:
    """What can be done with the jobs that workers hold, and with their role where it is one."""
    held = [Held(job=claim.job, role=claim.role, claim=claim) for claim in claims]
    own = [offer for offer in job_offers(held) if offer.id == "reclaim"]
    taken = {offer.id for offer in own}
    whole = [
        msgspec.structs.replace(offer, id=f"{offer.id}-all") if offer.id in taken else offer
        for offer in role_offers(status)
    ]
    return (*own, *whole)


def undo_offer(plan: str, title: str) -> Offer:
    """Undo an applied plan."""
    return Offer(
        id="undo",
        label=f"undo: {safe(title, 60)}",
        help="puts back what nobody has changed since",
        request=Request(verb="undo", title=f"Undo: {safe(title, 80)}", plan=plan),
    )


def choice_offer(command: str) -> Offer | None:
    """The offer that is the same as a command such as "worktop discard --id 12"; None for any other command."""
    words = command.split()
    if len(words) != 4 or words[0] != "worktop" or words[2] != "--id":
        return None
    verbs: dict[str, JobVerb] = {"discard": "discard", "retry": "retry", "reclaim": "reclaim", "run-now": "run-now"}
    verb = verbs.get(words[1])
    if verb is None:
        return None
    rows = tuple(RowRef(id) for id in words[3].split(","))
    label = f"{words[1]} job {safe(words[3], 40)}"
    return Offer(
        id=f"{verb} {words[3]}", label=label, help=safe(command, 80), request=Request(verb=verb, title=label, rows=rows)
    )


def refusal(request: Request, consents: Mapping[Verb, Consent] | None) -> Consent | None:
    """Why this cannot be asked for; None when it can, as far as is known."""
    if consents is None:
        return None
    consent = consents.get(request.verb)
    return consent if consent is not None and consent.kind == "refused" else None


def read_only_reason(consents: Mapping[Verb, Consent] | None) -> str:
    """Why no job can be changed: the reason of the first refusal when all of those verbs are refused; else "". Raw."""
    of_rows = [consents[verb] for verb in _OF_ROWS if verb in consents] if consents is not None else []
    if not of_rows or any(consent.kind != "refused" for consent in of_rows):
        return ""
    return next((why for consent in of_rows for why in consent.why), "nothing may be changed")


def find_role(fleet: Fleet | None, name: str | None) -> RoleStatus | None:
    """The role of that name."""
    return next((status for status in fleet.roles if status.role.name == name), None) if fleet is not None else None


def _of(held: Iterable[Held], state: JobState) -> tuple[Held, ...]:
    return tuple(entry for entry in held if entry.job.state == state)


def _named(held: Sequence[Held]) -> str:
    """ "job 918233", "2 jobs"; safe."""
    if len(held) < _IDS_AT_MOST:
        return f"job {safe(held[0].job.id, 40)}"
    return f"{len(held)} jobs"


def _holders(held: Sequence[Held]) -> str:
    """What is known of the holders, for the menu."""
    words = {"DEAD": "dead", "ALIVE_SLOW": "slow but alive", "ALIVE": "alive", "HUNG": "hung", "UNKNOWN": "unknown"}
    verdicts = {entry.claim.verdict if entry.claim is not None else "" for entry in held}
    if len(verdicts) == 1 and (only := verdicts.pop()):
        word = words.get(only, "done with it")
        return f"the holder is {word}" if len(held) == 1 else f"every holder is {word}"
    return "the plan says who holds them" if len(held) > 1 else "the plan says who holds it"


def _rows(
    id: JobVerb, form: str, held: Sequence[Held], role: str, help: str, asks: Literal["", "priority"] = ""
) -> Offer:
    what = _named(held)
    rows = tuple(RowRef(entry.job.id, entry.job.token) for entry in held)
    title = form.format(what + (f" of {safe(role, 24)}" if role else ""))
    return Offer(id=id, label=title, help=help, request=Request(verb=id, title=title, role=role, rows=rows, asks=asks))


def _all_dead(id: str, role: str, lacking: str = "") -> Offer:
    return _all(id, "reclaim", "all dead", role, "every job whose holder is proved dead", lacking, ("DEAD",))


def _all_failed(id: str, role: str, lacking: str = "") -> Offer:
    return _all(id, "retry", "all failed", role, "every failed job, to waiting", lacking)


def _all(
    id: str, verb: JobVerb, which: str, role: str, help: str, lacking: str, verdicts: tuple[Verdict, ...] = ()
) -> Offer:
    title = f"{verb} {which} of {safe(role, 24)}"
    return Offer(
        id=id,
        label=title,
        help=help,
        request=Request(verb=verb, title=title, role=role, verdicts=verdicts),
        lacking=f"{lacking} of {safe(role, 24)}" if lacking else "",
    )


def _switches(role: str, *, paused: bool = False) -> tuple[Offer, ...]:
    """`paused`: it is known to be."""
    name = safe(role, 24)
    return (
        Offer(
            id="pause",
            label=f"pause {name}",
            help="its queue gives out no job until it is resumed",
            lacking="it is paused" if paused else "",
            request=Request(verb="pause", title=f"pause {name}", role=role),
        ),
        Offer(
            id="resume",
            label=f"resume {name}",
            help="its queue gives out jobs again",
            request=Request(verb="resume", title=f"resume {name}", role=role),
        ),
    )
