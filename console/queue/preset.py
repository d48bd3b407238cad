"""A preset says, as data, how one queue library keeps its jobs: presets/*.toml, read here and rendered by reads.py.

Every value that is SQL is an expression over the aliases of `from`, with these placeholders:

    {schema}   the schema of worktop.toml, quoted; {schema_name}: its name, as a text
    {brace}    an opening brace, where one is part of a name
    {now}      the database's clock in the preset's own encoding of time, to compare with columns
    {table}    with `per_queue`: the union of the tables of all queues, with a column `queue`
    {since}    in `recent` only: the moment from which ended rows are asked for, in the encoding of `at`
    {NAME}     the SQL of that name in [parts], which may hold the others

The five ways to mark a claimed job are told by where the rows of the state `running` are found:

    status          [states.running] where = "j.status = 'doing'"
    lock-columns    where = "j.locked_at IS NOT NULL"
    visibility      where = "m.vt > {now} AND m.read_ct > 0"
    claim-table     from = "{schema}.claimed c JOIN {schema}.jobs j ON j.id = c.job_id"
    advisory-lock   from = "{schema}.que_jobs j JOIN pg_locks l ON ..."

`from` and `fields` hold for every state; a state may have a `from` of its own and replace some fields, since the rows
of a state may be in another table (results, failed jobs, an archive). A state that is left out has no rows: they are
deleted. Times are converted in times.py; a field in another encoding is written { sql = "...", time = "epoch-ms" }.
What the console may do to the rows is the section [actions], described in preset_actions.py; without it, nothing.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from console.errors import ConfigError
from console.fleet.model import JobSort
from console.queue.preset_actions import Actions
from console.queue.preset_actions import StateName as StateName
from console.queue.preset_actions import faults as action_faults
from console.queue.times import Encoding

IdType = Literal["bigint", "uuid", "text"]
ListedState = Literal["waiting", "running", "stuck", "failed", "done"]  # as a person asks for them

_PLACEHOLDERS = ("schema", "schema_name", "now", "table", "brace")
_HOLDER_PARTS = ("host", "unit", "pid", "start", "boot_id")


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the parts of a preset."""


class Expression(_Data, frozen=True):
    sql: str
    time: Encoding | None = None  # for a time: its encoding, when it is not the preset's
    unset: tuple[str, ...] = ()  # sentinels, SQL literals that mean "not set": "'9999-01-01 00:00:00+00'"


Field = str | Expression


class Fields(_Data, frozen=True):
    """Where the fields of fleet.model.Job are; "" is unknown. `id` and `queue` must be there."""

    id: Field = ""
    queue: Field = ""
    type: Field = ""
    attempts: Field = ""
    max_attempts: Field = ""
    reclaims: Field = ""  # how often it was taken from a holder that did not end it
    priority: Field = ""
    run_after: Field = ""
    created: Field = ""
    started: Field = ""
    finished: Field = ""
    heartbeat: Field = ""
    error: Field = ""
    payload: Field = ""


class Recent(_Data, frozen=True, rename={"from_": "from"}):
    """Where the rows that ended after {since} are found, when their time of end is in no index: rates and trends.

    `where` may let more pass; it is compared again with `at`.
    """

    from_: str
    where: str
    at: Field


class State(_Data, frozen=True, rename={"from_": "from"}):
    where: str
    due: str = ""  # waiting only: the job may be claimed now; the others are scheduled
    oldest: str = ""  # waiting only: what sorts the longest waiting first, when it is neither run_after nor created
    recent: Recent | None = None  # done and failed only
    index: str = ""  # failed only: where this one of [[indexes]] is missing, a large table is not counted in full
    from_: str = ""  # "" : the preset's
    fields: Fields = Fields()  # those that differ from the preset's
    # orders of pages that an index over (queue, what is sorted by, id) serves, of columns that are never NULL; what
    # "age" and the others sort by is in pages.py. Sorting by id is always taken to be served.
    orders: tuple[JobSort, ...] = ()


class States(_Data, frozen=True):
    waiting: State
    running: State
    scheduled: State | None = None  # waiting for their time in rows of their own
    again: State | None = None  # waiting too, found by another index than the others: put back for a retry
    done: State | None = None
    failed: State | None = None


class Holder(_Data, frozen=True):
    """Who has claimed a running job.

    columns        expressions over the job's row
    text           `text` is matched with `pattern`, whose groups are named host, unit, pid, start, boot_id
    worker-table   expressions over a table of workers joined in [states.running] from
    none           the queue does not say
    """

    kind: Literal["columns", "text", "worker-table", "none"] = "none"
    host: str = ""
    unit: str = ""
    pid: str = ""
    start: str = ""
    boot_id: str = ""
    text: str = ""
    pattern: str = ""
    worker: str = ""  # its id, as [workers] gives it
    pruned: str = ""  # true: the table of workers has no such row any more


class Workers(_Data, frozen=True):
    """The queue's table of workers.

    query      gives id text, heartbeat_age (seconds by the database's clock), host text, pid integer, queues text[];
               what is not known is NULL
    limit      seconds after which the queue takes a heartbeat for expired
    listens    pattern (LIKE) of the last statement of the one connection that each worker keeps for LISTEN
    """

    query: str
    limit: float | None = None
    listens: str = ""


class Lease(_Data, frozen=True):
    """Until when the holder may keep the job.

    expiry             `at` is the time itself
    claimed            `at` is the time of the claim, `timeout` what is allowed from then on
    heartbeat          `at` is the job's last heartbeat
    worker-heartbeat   `at` is the worker's last heartbeat; NULL (the worker's row is gone) has expired
    session            the claim ends with the database session that holds it
    none               for ever
    """

    kind: Literal["expiry", "claimed", "heartbeat", "worker-heartbeat", "session", "none"] = "none"
    at: Field = ""
    timeout: float | str = 0.0  # seconds, or an expression that gives seconds


class Fence(_Data, frozen=True):
    token: str = ""  # changes at every claim
    late_finish: Literal["rejected", "accepted"] = "accepted"  # does the library reject the end of a former holder?


class Wakeup(_Data, frozen=True):
    """How an idle worker learns of a job that was put back: NOTIFY, or by polling every so many seconds."""

    channel: str = ""  # its name
    channels: tuple[str, ...] = ()  # instead: expressions, where there are several or they depend on the row
    payload: str = ""  # expression
    poll: float | None = None


class Version(_Data, frozen=True):
    query: str
    expected: int


class Index(_Data, frozen=True):
    name: str
    table: str
    serves: str  # which question of the console
    create: str  # CREATE INDEX CONCURRENTLY ...


class PerQueue(_Data, frozen=True):
    """One table per queue: its name is `prefix` and the queue's name; `queues` lists the queues."""

    prefix: str
    queues: str


class Preset(_Data, frozen=True, rename={"from_": "from"}):
    name: str
    title: str
    claim: Literal["status", "lock-columns", "visibility", "claim-table", "advisory-lock"]
    time: Encoding
    tables: tuple[str, ...]  # must be there and readable
    from_: str
    fields: Fields
    states: States
    schema: str = "public"  # where they are when nobody says where
    # what tells the queue, and its version, from others: its tables with the columns that this preset speaks of
    fingerprint: dict[str, tuple[str, ...]] = {}
    zone: str = ""  # naive-zone only: the application's, "Europe/Berlin"
    parts: dict[str, str] = {}  # SQL that is used more than once
    id_type: IdType = "bigint"
    by_id: str = ""  # what else holds for every row, where no index begins with the id: "j.queue = ANY (...)"
    queues: str = ""  # a query that lists the queues; "" : a loose scan over the index that starts with the queue
    install: str = ""  # the command that makes the tables
    holder: Holder = Holder()
    workers: Workers | None = None
    lease: Lease = Lease()
    fence: Fence = Fence()
    wakeup: Wakeup = Wakeup()
    version: Version | None = None
    per_queue: PerQueue | None = None
    indexes: tuple[Index, ...] = ()
    actions: Actions | None = None  # None: it can only be looked at

    @property
    def names_process(self) -> bool:
        """Whether the row of a running job says which process holds it."""
        return bool(self.holder.pid) or "?P<pid>" in self.holder.pattern


def names() -> tuple[str, ...]:
    """The presets that come with worktop."""
    folder = files("console.queue").joinpath("presets")
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load(name: str) -> Preset:
    """The preset of that name, or in that file (a name with / or ending in .toml); ConfigError."""
    if "/" in name or name.endswith(".toml"):
        try:
            return parse(Path(name).read_text(encoding="utf-8"), name)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"preset {name}", f"cannot be read: {error}") from error
    if name not in names():
        raise ConfigError(
            "database.preset", f"found {name!r}", f"expected one of: {', '.join(names())}, or a file.toml"
        )
    text = files("console.queue").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")
    return parse(text, f"{name}.toml")


def parse(text: str, path: str = "preset.toml") -> Preset:
    """The text of a preset; ConfigError names the key, what was found and what was expected."""
    try:
        preset = msgspec.convert(tomllib.loads(text), Preset)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"preset {path}", f"not TOML: {error}") from error
    except msgspec.ValidationError as error:
        expected, _, place = str(error).partition(" - at ")
        raise ConfigError(f"preset {path}: {place.strip('`').removeprefix('$.') or 'top'}", expected) from error
    for key, why, expected in faults(preset):
        raise ConfigError(f"preset {path}: {key}", why, f"expected {expected}")
    return preset


def faults(preset: Preset) -> list[tuple[str, str, str]]:
    """What the types cannot say: (key, what was found, what was expected)."""
    faults: list[tuple[str, str, str]] = []
    lease, holder = preset.lease, preset.holder

    def need(holds: bool, key: str, found: str, expected: str) -> None:
        if not holds:
            faults.append((key, found, expected))

    need(bool(preset.fields.id), "fields.id", "nothing", "an expression")
    need(bool(preset.fields.queue), "fields.queue", "nothing", "an expression, a constant when there is one queue")
    encodings = {preset.time, *(field.time for _, field in _all_fields(preset) if isinstance(field, Expression))}
    need("naive-zone" not in encodings or bool(preset.zone), "zone", "nothing", 'a zone such as "Europe/Berlin"')
    timed = lease.kind in ("expiry", "claimed", "heartbeat", "worker-heartbeat")
    need(not timed or bool(lease.at), "lease.at", "nothing", f"an expression, for the kind {lease.kind}")
    need(
        lease.kind in ("expiry", "session", "none") or bool(lease.timeout),
        "lease.timeout",
        "nothing",
        f"seconds or an expression, for the kind {lease.kind}",
    )
    need(preset.claim != "advisory-lock" or lease.kind == "session", "lease.kind", f"{lease.kind}", '"session"')
    if holder.kind == "text":
        need(bool(holder.text), "holder.text", "nothing", "an expression")
        try:
            groups = set(re.compile(holder.pattern).groupindex)
            need(bool(groups), "holder.pattern", "no named group", f"groups among {', '.join(_HOLDER_PARTS)}")
            need(groups <= set(_HOLDER_PARTS), "holder.pattern", f"groups {sorted(groups)}", ", ".join(_HOLDER_PARTS))
        except re.error as error:
            faults.append(("holder.pattern", f"{holder.pattern!r}: {error}", "a regular expression"))
    elif holder.kind != "none":
        parts = [getattr(holder, part) for part in (*_HOLDER_PARTS, "text", "worker")]
        need(any(parts), "holder", "no expression", f"one of {', '.join(_HOLDER_PARTS)}, text, worker")
    need(
        preset.claim != "claim-table" or bool(preset.states.running.from_),
        "states.running.from",
        "nothing",
        "the table of the claims",
    )
    need(
        preset.per_queue is not None or "{table}" not in preset.from_, "per_queue", "nothing", "it, because of {table}"
    )
    if preset.actions:
        there = {name for name in States.__struct_fields__ if getattr(preset.states, name)}
        faults += action_faults(preset.actions, frozenset(there))
    for name in preset.parts:
        need(name not in (*_PLACEHOLDERS, "since"), f"parts.{name}", "a name that is taken", "another")
    names = {index.name for index in preset.indexes}
    for name in States.__struct_fields__:
        if (state := getattr(preset.states, name)) is not None and state.index:
            need(state.index in names, f"states.{name}.index", state.index, "the name of one of [[indexes]]")
    for key, text in _texts(preset):
        allowed = (*_PLACEHOLDERS, *(["since"] if ".recent." in key or key.startswith("parts.") else []))
        if not key.startswith("parts."):
            allowed = (*allowed, *preset.parts)
        for name in re.findall(r"\{(\w+)\}", text):
            need(name in allowed, key, f"{{{name}}}", f"one of {', '.join(f'{{{one}}}' for one in allowed)}")
    return faults


def _all_fields(preset: Preset) -> list[tuple[str, Field]]:
    found = [(f"fields.{name}", getattr(preset.fields, name)) for name in Fields.__struct_fields__]
    return [*found, ("lease.at", preset.lease.at)]


def _texts(preset: Preset) -> list[tuple[str, str]]:
    states = [
        (f"states.{name}.{key}", getattr(state, attribute))
        for name in States.__struct_fields__
        if (state := getattr(preset.states, name)) is not None
        for key, attribute in (("where", "where"), ("due", "due"), ("from", "from_"), ("oldest", "oldest"))
    ]
    states += [
        (f"states.{name}.recent.{key}", text)
        for name in States.__struct_fields__
        if (state := getattr(preset.states, name)) is not None and (recent := state.recent) is not None
        for key, text in (("from", recent.from_), ("where", recent.where))
    ]
    parts = [(f"parts.{name}", text) for name, text in preset.parts.items()]
    fields = [(key, field if isinstance(field, str) else field.sql) for key, field in _all_fields(preset)]
    indexes = [(f"indexes.{index.name}", index.create) for index in preset.indexes]
    whole = [("from", preset.from_), ("queues", preset.queues), ("by_id", preset.by_id)]
    return [*whole, *states, *fields, *indexes, *parts]
