"""What the commands share that act on units."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, carry_out
from console.cli.options import configuration
from console.config import time_span
from console.fleet.plan import Plan, UnitVerb

if TYPE_CHECKING:
    from console.actions.desk import Actions


def unit_command(verb: UnitVerb, help: str, example: str) -> click.Command:
    """The command of a verb that takes roles and units."""

    @click.command(verb, help=help, epilog=f"{EXIT_CODES}\n\nExample: {example}")
    @click.argument("names", metavar="ROLE|UNIT…", nargs=-1, required=True)
    @agreeing
    @click.pass_context
    def command(ctx: click.Context, agreement: Agreement, names: tuple[str, ...]) -> int:
        return act_on_units(ctx, verb, names, agreement)

    return command


def act_on_units(
    ctx: click.Context, verb: UnitVerb, names: tuple[str, ...], agreement: Agreement, signal: str = "KILL"
) -> int:
    """Plan the verb for what is named, show it, ask, apply it; the exit code."""

    async def make(actions: Actions) -> Plan:
        named = await actions.named(names)
        return await actions.plan_units(verb, units=named.units, role=named.role, signal=signal, why=agreement.why)

    return carry_out(ctx, configuration(ctx), make, agreement, holders=True)


def span(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """The value of an option that is a time span, in seconds."""
    return None if value is None else time_span(value, parameter.opts[0])


def span_option(name: str, help: str, **settings: Any) -> Callable[[Any], Any]:
    return click.option(name, metavar="SPAN", callback=span, help=help, **settings)
