"""Opening the console: its agent starts before Textual is imported, so that both load side by side."""

from __future__ import annotations

import click


def open_console(ctx: click.Context) -> int:
    """Run the console and return its true exit status. ConfigError before anything is drawn."""
    from console import heap
    from console.cli.options import configuration
    from console.host.spawn import spawn

    config = configuration(ctx)
    agent = spawn(config.agent, config.manager == "user")
    try:
        # psycopg takes Python's ssl only to tell libpq that OpenSSL is set up; without it libpq sets up its own.
        heap.load_without("ssl", "psycopg")
        from console.tui import run_console
        from console.wiring import Sources

        return run_console(lambda: Sources(config, agent, read_only=ctx.find_root().obj["read_only"]))
    finally:
        if agent.stdin is not None and not agent.stdin.closed:
            agent.stdin.close()
        if agent.poll() is None:
            agent.terminate()
