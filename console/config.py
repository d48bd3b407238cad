"""worktop.toml -> Config. Every error names the file, the key, what was found and what was expected.

[database]
dsn = "postgresql://app@db1/app"     # or: service = "app"; or leave both out and use PGHOST, PGSERVICE, ...
preset = "auto"                      # the queue that is there; or: worktop, procrastinate, pg-boss, custom, a file.toml
schema = "public"                    # default: where the queue is found

[database.custom]                    # with preset = "custom": a table of your own, see docs/queues.md
table = "tasks"
id = "id"
status = "state"
waiting = ["new", "retry"]
running = "processing"
done = "ok"
failed = "error"
updated = "updated_at"

[host]
manager = "system"                   # or "user"
agent = ["sudo", "-n", "worktop", "agent"]   # how the host agent is started; default: worktop agent
reserve = "1G"                       # memory kept for everything that is no worker
account_processes = 400              # budget of processes of the account that runs the workers

[roles.mail]
unit = "mail-worker@.service"
instances = 3                        # or names: ["eu", "us"]
budget = 8
queue = "mail"                       # or a list; default: the role's name
match = "worker --role mail"         # regular expression(s) on the command line
oldest = "15min"
progress = "5min"
watch = "20s"                        # how long each new worker is watched while the role grows
health = "finishes jobs"             # or a command (["curl", …], %i is the instance), or an http(s) address
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from console.errors import ConfigError
from console.fleet.model import Limits, Role, Value

_SIZE_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_SPAN_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class Custom(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job table of one's own: [database.custom]. Names of columns as they are in the table, without quotes."""

    table: str
    id: str
    status: str
    waiting: str | int | tuple[str | int, ...]  # values of `status`; the first is what is written
    running: str | int | tuple[str | int, ...]
    done: str | int | tuple[str | int, ...] = ()
    failed: str | int | tuple[str | int, ...] = ()
    discarded: str | int = ""  # what discarded jobs get; "" : they are deleted
    queue: str = ""  # a column; "" : there is one queue
    queue_name: str = ""  # of the one queue; "" : the table's name
    type: str = ""
    payload: str = ""
    error: str = ""
    attempts: str = ""
    max_attempts: str = ""
    priority: str = ""
    lowest_first: bool = False  # priority: a low number is urgent
    created: str = ""
    run_after: str = ""
    started: str = ""
    finished: str = ""
    updated: str = ""  # when the row was changed last
    heartbeat: str = ""
    locked_by: str = ""  # who holds it, "web1:4711" or as `holder` says
    holder: str = ""  # regular expression over locked_by with groups named host, pid, unit, start, boot_id
    host: str = ""
    pid: str = ""
    lease: str = ""  # until when it is held
    timeout: float | str = 900.0  # without a lease: a running job is stuck so long after heartbeat, updated or started
    fence: str = ""  # a column that a worker compares when it ends a job, and every claim changes
    reclaims: str = ""  # how often it was taken from its holder
    notify: str = ""  # the channel on which idle workers listen; the payload is the queue
    zone: str = "UTC"  # of times without a zone
    epoch: Literal["s", "ms"] = "s"  # of times that are numbers


class Database(Value, frozen=True, kw_only=True):
    """Where the job table is. The DSN may hold a password: it is never logged, shown or put in an error."""

    dsn: str = ""
    service: str = ""
    preset: str = "worktop"
    schema: str = "public"
    schema_named: bool = False  # the file says so; else the schema is where the queue is found
    custom: Custom | None = None
    configured: bool = False  # the file or the environment names a database

    @property
    def only_schema(self) -> str:
        """The schema that a person has named; "" : the queue may be in any."""
        return self.schema if self.schema_named or self.schema != "public" else ""

    def __repr__(self) -> str:
        return f"Database(preset={self.preset!r}, schema={self.schema!r}, service={self.service!r}, dsn=…)"


class Config(Value, frozen=True, kw_only=True):
    path: str = ""  # "" when there is no file
    database: Database = Database()
    manager: Literal["system", "user"] = "system"
    agent: tuple[str, ...] = ()  # () : this worktop's own agent
    limits: Limits = Limits()
    roles: tuple[Role, ...] = ()

    def of_user_manager(self) -> Config:
        """The configuration for the units of the person's own user manager."""
        return msgspec.structs.replace(self, manager="user")

    def only(self, role: str) -> Config:
        """The configuration with one role; ConfigError names the roles there are."""
        chosen = tuple(candidate for candidate in self.roles if candidate.name == role)
        if not chosen:
            known = ", ".join(candidate.name for candidate in self.roles) or "none"
            raise ConfigError(f"role {role}", f"not in {self.path or 'any worktop.toml'}; known roles: {known}")
        return msgspec.structs.replace(self, roles=chosen)


class _DatabaseTable(msgspec.Struct, forbid_unknown_fields=True):
    dsn: str = ""
    service: str = ""
    preset: str = "auto"
    schema: str | None = None
    custom: Custom | None = None


class _HostTable(msgspec.Struct, forbid_unknown_fields=True):
    manager: Literal["system", "user"] = "system"
    agent: list[str] = []
    reserve: str | int = "512M"
    account_processes: int | None = None


class _RoleTable(msgspec.Struct, forbid_unknown_fields=True):
    unit: str = ""
    instances: int | list[str] = 1
    budget: int | None = None
    queue: str | list[str] | None = None
    type: str | list[str] = []
    match: str | list[str] = []
    oldest: str | int = "15min"
    progress: str | int = "5min"
    watch: str | int = "20s"
    health: str | list[str] = []


class _File(msgspec.Struct, forbid_unknown_fields=True):
    database: _DatabaseTable = msgspec.field(default_factory=_DatabaseTable)
    host: _HostTable = msgspec.field(default_factory=_HostTable)
    roles: dict[str, _RoleTable] = {}


def find(explicit: str | None = None) -> Path | None:
    """The file to use: --config, $WORKTOP_CONFIG, ./worktop.toml, the person's, then /etc/worktop/worktop.toml.

    ConfigError when a file was named and is not there.
    """
    named = explicit or os.environ.get("WORKTOP_CONFIG")
    if named:
        path = Path(named)
        if not path.is_file():
            raise ConfigError(str(path), "no such file", "name a worktop.toml with --config or WORKTOP_CONFIG")
        return path
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    for path in (Path("worktop.toml"), home / "worktop/worktop.toml", Path("/etc/worktop/worktop.toml")):
        if path.is_file():
            return path
    return None


def load(explicit: str | None = None) -> Config:
    """The configuration to use; without any file, one that shows every template unit and the database of PG*."""
    path = find(explicit)
    if path is None:
        return Config(database=_database(_DatabaseTable()))
    try:
        text = path.read_text(encoding="utf-8")
    except PermissionError as error:
        raise ConfigError(str(path), "permission denied", "run as its owner or name another with --config") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}") from error
    return parse(text, str(path))


def parse(text: str, path: str = "worktop.toml") -> Config:
    """The text of a worktop.toml as a Config; ConfigError names file, key, what was found and what was expected."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, f"not TOML: {error}") from error
    try:
        file = msgspec.convert(data, _File)
    except msgspec.ValidationError as error:
        raise _wrong_key(path, data, str(error)) from error
    return Config(
        path=path,
        database=_database(file.database, path),
        manager=file.host.manager,
        agent=tuple(file.host.agent),
        limits=Limits(
            memory_reserve=_bytes(file.host.reserve, path, "host.reserve"),
            account_processes=file.host.account_processes,
        ),
        roles=tuple(_role(name, table, path) for name, table in file.roles.items()),
    )


def _wrong_key(path: str, data: Any, message: str) -> ConfigError:
    """msgspec says "Expected `int`, got `str` - at `$.roles[...].budget`"; a person needs the key and the value."""
    text, _, place = message.partition(" - at ")
    keys = re.findall(r"\.(\w+)|(\[\.\.\.\])|\[(\d+)\]", place)
    expected = text
    unknown = re.search(r"unknown field `([^`]*)`", text)
    for trail, found in _walk(data, [next(part for part in key if part) for key in keys]):
        probe: Any = found
        for part in reversed(trail):
            probe = {part: probe}
        try:
            msgspec.convert(probe, _File)
        except msgspec.ValidationError as again:
            if str(again) == message:
                key = ".".join(trail)
                if unknown:
                    allowed = ", ".join(sorted(_allowed(trail)))
                    return ConfigError(
                        f"{path}: {key + '.' if key else ''}{unknown[1]}", "unknown key", f"expected one of: {allowed}"
                    )
                shown = "…" if trail[:1] == ["database"] else repr(found)
                return ConfigError(f"{path}: {key}", f"found {shown}", expected[:1].lower() + expected[1:])
    return ConfigError(path, expected)


def _walk(data: Any, keys: list[str], trail: tuple[str, ...] = ()) -> list[tuple[list[str], Any]]:
    if not keys or not isinstance(data, dict):
        return [(list(trail), data)]
    names = list(data) if keys[0] == "[...]" else [keys[0]] if keys[0] in data else []
    return [hit for name in names for hit in _walk(data[name], keys[1:], (*trail, name))]


def _allowed(trail: list[str]) -> tuple[str, ...]:
    if trail[:2] == ["database", "custom"]:
        return Custom.__struct_fields__
    table = {"database": _DatabaseTable, "host": _HostTable, "roles": _RoleTable}.get(trail[0]) if trail else _File
    return table.__struct_fields__ if table else ()


def _database(table: _DatabaseTable, path: str = "") -> Database:
    if table.dsn and table.service:
        raise ConfigError(f"{path}: database", "found both dsn and service", "expected one of them")
    by_environment = any(os.environ.get(name) for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE", "PGUSER"))
    return Database(
        dsn=table.dsn,
        service=table.service,
        preset=table.preset,
        schema="public" if table.schema is None else table.schema,
        schema_named=table.schema is not None,
        custom=_custom(table, path),
        configured=bool(table.dsn or table.service or by_environment),
    )


def _custom(table: _DatabaseTable, path: str) -> Custom | None:
    custom = table.custom
    key = f"{path}: database.custom"
    if (table.preset == "custom") != (custom is not None):
        found = "nothing" if custom is None else f'found it, and preset = "{table.preset}"'
        raise ConfigError(key, found, 'expected both, or neither: preset = "custom" and [database.custom]')
    if custom is None:
        return None
    for name in ("table", "id", "status", "waiting", "running"):
        if getattr(custom, name) in ("", ()):
            raise ConfigError(f"{key}.{name}", "found nothing", "expected a name, or values of the status")
    for name in custom.__struct_fields__:
        value = getattr(custom, name)
        if isinstance(value, str) and ("\0" in value or "\ufffd" in value):
            raise ConfigError(f"{key}.{name}", f"found {value!r}", "expected a name without control characters")
    given = [values if isinstance(values, tuple) else (values,) for values in _states(custom).values()]
    every = [str(value) for values in given for value in values]
    twice = sorted({value for value in every if every.count(value) > 1})
    if twice:
        raise ConfigError(key, f"found the status {twice[0]!r} twice", "expected each value in one state")
    try:
        re.compile(custom.holder)
    except re.error as error:
        raise ConfigError(
            f"{key}.holder", f"found {custom.holder!r}: {error}", "expected a regular expression"
        ) from error
    timeout = _seconds(custom.timeout, path, "database.custom.timeout") if isinstance(custom.timeout, str) else 0.0
    if (timeout or custom.timeout) in (0, 0.0) or (not isinstance(custom.timeout, str) and custom.timeout <= 0):
        raise ConfigError(f"{key}.timeout", f"found {custom.timeout!r}", 'expected a time span such as "15min"')
    return msgspec.structs.replace(custom, timeout=timeout or custom.timeout)


def _states(custom: Custom) -> dict[str, str | int | tuple[str | int, ...]]:
    return {"waiting": custom.waiting, "running": custom.running, "done": custom.done, "failed": custom.failed}


def _role(name: str, table: _RoleTable, path: str) -> Role:
    key = f"{path}: roles.{name}"
    if table.unit and not re.fullmatch(r"[A-Za-z0-9:_.\\-]+@\.service", table.unit):
        raise ConfigError(
            f"{key}.unit", f"found {table.unit!r}", 'expected a template unit such as "mail-worker@.service"'
        )
    if isinstance(table.instances, int):
        if not 0 <= table.instances <= 1000:
            raise ConfigError(
                f"{key}.instances", f"found {table.instances}", "expected a number from 0 to 1000, or names"
            )
        instances = tuple(str(number) for number in range(1, table.instances + 1))
    else:
        instances = tuple(table.instances)
    if table.budget is not None and table.budget < 1:
        raise ConfigError(f"{key}.budget", f"found {table.budget}", "expected a number from 1 on")
    match = _texts(table.match)
    for pattern in match:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"{key}.match", f"found {pattern!r}: {error}", "expected a regular expression") from error
    return Role(
        name=name,
        template=table.unit,
        instances=instances,
        budget=table.budget,
        queues=(name,) if table.queue is None else _texts(table.queue),
        types=_texts(table.type),
        match=match,
        oldest_limit=_seconds(table.oldest, path, f"roles.{name}.oldest"),
        progress_limit=_seconds(table.progress, path, f"roles.{name}.progress"),
        watch=_seconds(table.watch, path, f"roles.{name}.watch"),
        health=_health(table.health, f"{key}.health"),
    )


def _health(value: str | list[str], key: str) -> tuple[str, ...]:
    """ "finishes jobs", one address, or the arguments of a command, which no shell reads."""
    if isinstance(value, list):
        check = tuple(value)
    elif value == "finishes jobs" or value.startswith(("http://", "https://")):
        check = (value,)
    else:
        try:
            check = tuple(shlex.split(value))
        except ValueError as error:
            raise ConfigError(
                key, f"found {value!r}: {error}", "expected a command, an address or finishes jobs"
            ) from error
    if check and (not check[0] or any("\0" in word for word in check)):
        raise ConfigError(key, f"found {value!r}", "expected a command, an address or finishes jobs")
    return check


def _texts(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _bytes(value: str | int, path: str, key: str) -> int:
    """1073741824, "1G", "512M" (powers of 1024, as systemd reads them)."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", str(value).strip(), re.IGNORECASE)
    if not found:
        raise ConfigError(f"{path}: {key}", f"found {value!r}", 'expected an amount of memory such as "512M" or "1G"')
    return int(float(found[1]) * _SIZE_UNITS[found[2].upper()])


def _seconds(value: str | int, path: str, key: str) -> float:
    return time_span(value, f"{path}: {key}")


def time_span(value: str | int, what: str) -> float:
    """Seconds of 90, "90s", "15min", "1h 30min" (as systemd writes time spans). ConfigError for anything else."""
    text = str(value).strip()
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
    if (
        not parts
        or re.sub(r"(\d+(?:\.\d+)?)\s*([a-z]*)|\s", "", text)
        or any(unit not in _SPAN_UNITS for _, unit in parts)
    ):
        raise ConfigError(what, f"found {value!r}", 'expected a time span such as "90s" or "15min"')
    return sum(float(number) * _SPAN_UNITS[unit] for number, unit in parts)
