"""`worktop limits`: set limits of a role's units by a drop-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from console.cli.act import EXIT_CODES, Agreement, agreeing, carry_out
from console.cli.options import configuration
from console.fleet.limits import SECTIONS
from console.fleet.plan import Plan

if TYPE_CHECKING:
    from console.actions.desk import Actions


def _settings(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in value:
        name, equals, setting = text.partition("=")
        if not equals:
            raise click.BadParameter(f"found {text!r}, expected NAME=VALUE such as MemoryMax=512M")
        found[name] = setting
    return found


@click.command("limits", epilog=f"{EXIT_CODES}\n\nExample: worktop limits thumbnails --set MemoryMax=512M --dry-run")
@click.argument("role")
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_settings,
    help=f"One of {', '.join(SECTIONS)}; NAME= takes back what worktop set. May be repeated.",
)
@agreeing
@click.pass_context
def command(ctx: click.Context, agreement: Agreement, role: str, settings: dict[str, str]) -> int:
    """Set limits of the units of ROLE by a drop-in; the unit's own file is not changed.

    Without --set those are proposed that what was measured speaks for: MemoryMax from the highest peak, a start limit
    that can be reached, a stop that ends. The drop-in is checked by systemd-analyze before it is installed, systemd
    reads its files again once, and worktop undo puts everything back.
    """
    config = configuration(ctx)

    async def make(actions: Actions) -> Plan:
        return await actions.plan_limits(role, settings or None, why=agreement.why)

    return carry_out(ctx, config, make, agreement, holders=True)
