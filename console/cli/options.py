"""What the commands share: configuration, output forms, running the sources once."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click
import msgspec

from console.config import Config, load
from console.errors import ConfigError
from console.fleet.model import Fleet

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

WIDTH_WITHOUT_TERMINAL = 120
# SQL that worktop wrote itself, to be run as it is: "lease_token = NULL" is no secret
_OWN_WORDS = {"Statement": ("sql", "psql"), "Plan": ("psql",)}


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(function)


def role_option(function: F) -> F:
    return click.option("--role", metavar="ROLE", help="Only this role.")(function)


def configuration(ctx: click.Context, role: str | None = None) -> Config:
    """The configuration the options and the environment name, narrowed to one role when asked."""
    options = ctx.find_root().obj or {}
    config = load(options.get("config"))
    if options.get("user_manager"):
        config = config.of_user_manager()
    return config.only(role) if role and config.roles else config


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def fleet_once(config: Config) -> Fleet:
    """The fleet, asked once."""
    from console.wiring import ONCE_INTERVAL, Sources

    async def ask() -> Fleet:
        sources = Sources(config, interval=ONCE_INTERVAL)
        try:
            return await sources.once()
        finally:
            await sources.stop()

    return run(ask())


def narrowed(fleet: Fleet, role: str | None) -> Fleet:
    """The fleet with one role; ConfigError names the roles there are."""
    if role is None:
        return fleet
    roles = tuple(status for status in fleet.roles if status.role.name == role)
    if not roles:
        known = ", ".join(status.role.name for status in fleet.roles) or "none"
        raise ConfigError(f"role {role}", f"there is no such role; known roles: {known}")
    return msgspec.structs.replace(
        fleet,
        roles=roles,
        findings=tuple(finding for finding in fleet.findings if finding.role in (role, "")),
        claims=tuple(claim for claim in fleet.claims if claim.role == role),
    )


def print_json(value: object) -> None:
    """One JSON document on stdout, every field always there; secrets are masked, control characters are escaped."""
    click.echo(msgspec.json.format(msgspec.json.encode(masked(value)), indent=2).decode())


def masked(value: Any) -> Any:
    """The value as plain data, every field always there, secrets masked."""
    from console.text import mask

    if isinstance(value, str):
        return mask(value)
    if isinstance(value, bytes):  # of a file
        return mask(value.decode("utf-8", "replace"))
    if isinstance(value, msgspec.Struct):
        own = _OWN_WORDS.get(type(value).__name__, ())
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return {name: field if name in own else masked(field) for name, field in fields.items()}
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return value


def width() -> int:
    """Columns to print: the terminal's, $COLUMNS, or 120 where there is none."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return max(40, shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns)
    return WIDTH_WITHOUT_TERMINAL


def ascii_only() -> bool:
    """Whether what reads our output cannot show the signs of the screens."""
    encoding = (sys.stdout.encoding or "ascii").lower()
    return "utf" not in encoding
