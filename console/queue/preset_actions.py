"""The section [actions] of a preset: what the verbs of the console do to the rows, as data. writes.py renders it.

    [actions]
    table = "{schema}.worktop_jobs"   # the table whose rows are changed
    alias = "j"                       # its alias in `from` of every state (the default)
    key = ["id"]                      # columns of it that identify a row ("name", "id" where an index needs both)

    [actions.reclaim]                 # also: retry, discard, run-now, priority, quarantine
    states = ["running"]              # rows of these states; one statement for each
    where = "j.run_after > {now}"     # only these rows of them. A verb that leaves a row in its state must leave it
                                      # out here afterwards: else it would find the same rows for ever
    set = { status = "'waiting'", run_after = "{now}" }     # column -> expression over the row as it was
    delete = true                     # instead of `set`: the row is removed, and undo inserts it again
    also = ["INSERT INTO {schema}.log (job) SELECT id::bigint FROM changed"]
                                      # more statements in the same one, over `changed` (its column id, text):
                                      # undo does not know of them, so `irreversible` must say what stays
    irreversible = ""                 # why undo cannot bring the row back, a clause; "" : it can
    notes = ["..."]                   # sentences shown with the plan
    needs = ["INSERT ON {schema}.log", "USAGE ON SEQUENCE {schema}.log_id_seq"]
                                      # rights beside SELECT, and UPDATE of the columns set, or DELETE: triggers' too

    [[actions.reclaim.spare]]         # rows that must not be touched, and why; they are counted and told
    where = "j.abort_requested"
    why = "an abort of it was requested: it would be refused by a check"

    [[actions.behind]]                # jobs that wait for something the rows hold
    query = "SELECT lock AS name, count(*) AS n FROM ... WHERE lock IN (... id = ANY ({ids}) ...) GROUP BY 1"
    text = "{n} jobs wait for the lock {name}"       # {column}s of the query

    [[actions.traps]]                 # constraints that a changed row may violate: the row stays, this is told
    constraint = "procrastinate_jobs_queueing_lock_idx_v1"  # regular expression over the whole name
    why = "another job with the queueing_lock {lock} is waiting"   # {column}s of the query; {id} is this row
    query = "SELECT o.id::text AS by, j.queueing_lock AS lock FROM ... j.id = {id} ..."  # `by`: the row in the way
    choices = ["worktop discard --id {id}", "worktop discard --id {by}"]

    [actions.pause]                   # left out: the queue has no such switch
    paused = "SELECT queue FROM {schema}.worktop_queues WHERE paused"
    change = "INSERT ... RETURNING queue"            # {queues}, {paused}: gives back the queues that it changed
    needs = ["SELECT, INSERT, UPDATE ON {schema}.worktop_queues"]

    [actions.refused]                 # verbs that cannot be done safely, and why
    retry = "..."

Placeholders, beside those of preset.py: in a verb {note} (text, NULL when there is none), {priority} (integer); in
`behind` {ids}; in a trap's query {id}; in `change` {queues}, {paused}. Whether a late finish of the former holder is
rejected after a reclaim is said by [fence]: `set` must then change `token`, or make the next claim change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

StateName = Literal["waiting", "scheduled", "again", "running", "done", "failed"]  # as the rows are kept

VERBS = ("reclaim", "retry", "discard", "run-now", "priority", "quarantine")
_IN_VERB = ("schema", "schema_name", "now", "brace", "note", "priority")
_RIGHT = re.compile(r"[A-Z]+(, [A-Z]+)* ON ((SEQUENCE|FUNCTION|SCHEMA) )?\S.*")


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the parts."""


class Spare(_Data, frozen=True):
    where: str
    why: str


class VerbAction(_Data, frozen=True):
    states: tuple[StateName, ...]
    where: str = ""
    set: dict[str, str] = {}
    delete: bool = False
    also: tuple[str, ...] = ()
    irreversible: str = ""
    notes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    spare: tuple[Spare, ...] = ()


class Behind(_Data, frozen=True):
    query: str
    text: str


class Trap(_Data, frozen=True):
    constraint: str
    why: str
    query: str = ""
    choices: tuple[str, ...] = ()


class Pause(_Data, frozen=True):
    paused: str
    change: str
    needs: tuple[str, ...] = ()


class Actions(_Data, frozen=True, rename={"run_now": "run-now"}):
    table: str
    key: tuple[str, ...]
    alias: str = "j"
    reclaim: VerbAction | None = None
    retry: VerbAction | None = None
    discard: VerbAction | None = None
    run_now: VerbAction | None = None
    priority: VerbAction | None = None
    quarantine: VerbAction | None = None
    behind: tuple[Behind, ...] = ()
    traps: tuple[Trap, ...] = ()
    pause: Pause | None = None
    refused: dict[str, str] = {}

    def verb(self, name: str) -> VerbAction | None:
        found: VerbAction | None = getattr(self, name.replace("-", "_")) if name in VERBS else None
        return found


def faults(actions: Actions, states: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """What the types cannot say: (key, what was found, what was expected)."""
    if not actions.key:
        yield "actions.key", "nothing", "the columns that identify a row"
    for name in sorted(set(actions.refused) - {*VERBS, "pause", "resume"}):
        yield f"actions.refused.{name}", "no verb", f"one of {', '.join(VERBS)}, pause, resume"
    for name in VERBS:
        if verb := actions.verb(name):
            yield from _verb_faults(f"actions.{name}", verb, states)
            if name in actions.refused:
                yield f"actions.refused.{name}", "it is described too", "one of the two"
    for trap in actions.traps:
        yield from _unknown("actions.traps.query", trap.query, ("schema", "now", "id"))
        try:
            re.compile(trap.constraint)
        except re.error as error:
            yield "actions.traps.constraint", f"{trap.constraint!r}: {error}", "a regular expression"
    for behind in actions.behind:
        yield from _unknown("actions.behind.query", behind.query, ("schema", "now", "ids"))
    if actions.pause:
        yield from _unknown("actions.pause.change", actions.pause.change, ("schema", "now", "queues", "paused"))
        yield from _rights("actions.pause.needs", actions.pause.needs)


def _verb_faults(key: str, verb: VerbAction, states: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    if not verb.states or not set(verb.states) <= states:
        yield f"{key}.states", f"{list(verb.states)}", f"states that [states] has: {', '.join(sorted(states))}"
    if bool(verb.set) == verb.delete:
        yield key, "both `set` and `delete`" if verb.delete else "neither `set` nor `delete`", "one of the two"
    if verb.also and not verb.irreversible:
        yield f"{key}.also", "no `irreversible`", "it: undo does not know what these statements do"
    texts = [(f"{key}.set.{column}", text) for column, text in verb.set.items()]
    texts += [(f"{key}.where", verb.where), *((f"{key}.spare", spare.where) for spare in verb.spare)]
    for where, text in [*texts, *((f"{key}.also", text) for text in verb.also)]:
        yield from _unknown(where, text, _IN_VERB)
    yield from _rights(f"{key}.needs", verb.needs)


def _rights(key: str, needs: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    for right in needs:
        if not _RIGHT.fullmatch(right):
            yield key, f"{right!r}", "as in GRANT: INSERT ON {schema}.t, USAGE ON SEQUENCE {schema}.s"


def _unknown(key: str, text: str, allowed: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    for name in re.findall(r"\{(\w+)\}", text):
        if name not in allowed:
            yield key, f"{{{name}}}", f"one of {', '.join(f'{{{one}}}' for one in allowed)}"
