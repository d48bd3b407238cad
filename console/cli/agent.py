"""worktop agent: the host agent, started by the console on this host, with sudo, or over ssh."""

from __future__ import annotations

import click


@click.command("agent")
@click.option("--user", "user_manager", is_flag=True, help="Follow the units of your own user manager.")
@click.option("--read-only", is_flag=True, help="Refuse everything that changes something: units, signals.")
@click.pass_context
def command(ctx: click.Context, user_manager: bool, read_only: bool) -> int:
    """Speak for this host: JSON lines on stdin and stdout.

    The console starts it by itself. It ends when its stdin closes. Exit codes: 0 ended, 2 wrong usage.

    Example: echo '{"id":1,"method":"watch","params":{}}' | worktop agent
    """
    from console.host.agent import main

    above = ctx.obj.get("user_manager", False) if isinstance(ctx.obj, dict) else False
    return main(user_manager or bool(above), read_only)
