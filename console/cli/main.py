"""The command group: commands are found by name and imported only when used, so that `--help` stays fast."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

import click

from console import __version__
from console.errors import EXIT_FAILED, WorktopError
from console.text import clean

# name -> (module, short help): the help page imports none of them
COMMANDS = {
    "abandon": ("console.cli.abandon", "Give up what is left of a plan that was cut off."),
    "agent": ("console.cli.agent", "Speak for this host on stdin and stdout (started by the console)."),
    "audit": ("console.cli.audit", "List what was applied, by whom, and what came of it."),
    "continue": ("console.cli.continue_", "Go on with a plan that was cut off."),
    "demo": ("console.cli.demo", "Boot a disposable demo host and open the console in it."),
    "diagnose": ("console.cli.diagnose", "Find out what is wrong with a worker before it is restarted."),
    "disable": ("console.cli.disable", "Do not let workers start at boot."),
    "discard": ("console.cli.discard", "Delete waiting and failed jobs."),
    "doctor": ("console.cli.doctor", "Check each source: reachable, as whom, with what rights."),
    "drain": ("console.cli.drain", "Let workers finish what they hold, then stop them."),
    "enable": ("console.cli.enable", "Let workers start at boot."),
    "job": ("console.cli.job", "Show one job with its holder and the evidence."),
    "jobs": ("console.cli.jobs", "List jobs by state."),
    "kill": ("console.cli.kill", "Send a signal to workers."),
    "limits": ("console.cli.limits", "Set limits of the units of a role by a drop-in."),
    "logs": ("console.cli.logs", "Print or follow the journal of a role, a unit or a job."),
    "pause": ("console.cli.pause", "Stop giving out the jobs of a role."),
    "playbook": ("console.cli.playbook", "Follow a playbook step by step: list, show, run, resume, rollback, status."),
    "priority": ("console.cli.priority", "Change the priority of waiting jobs."),
    "quarantine": ("console.cli.quarantine", "Put jobs that kill their workers with the failed ones."),
    "queue": ("console.cli.queue", "Install worktop's own job table."),
    "reclaim": ("console.cli.reclaim", "Return the jobs of dead workers to waiting."),
    "reset-failed": ("console.cli.reset_failed", "Clear the failed state of workers."),
    "restart": ("console.cli.restart", "Restart workers, one after another."),
    "resume": ("console.cli.resume", "Give out the jobs of a role again."),
    "retry": ("console.cli.retry", "Let failed jobs wait again."),
    "run-now": ("console.cli.run_now", "Make waiting jobs due now."),
    "scale": ("console.cli.scale", "Bring a role to so many workers."),
    "schedules": ("console.cli.schedules", "Understand what starts something here: crontabs, timers and others."),
    "start": ("console.cli.start", "Start workers."),
    "status": ("console.cli.status", "Print what the first screen shows."),
    "stop": ("console.cli.stop", "Stop workers."),
    "undo": ("console.cli.undo", "Restore the rows that an action has changed."),
    "worker": ("console.cli.worker", "Run the reference worker."),
    "workers": ("console.cli.workers", "List the workers of every role."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, refused, 3 error findings (status --check), "
    "4 nothing to do, 5 a playbook was left before its end.",
)
@click.version_option(__version__, prog_name="worktop")
@click.option("--config", metavar="FILE", help="worktop.toml to use [default: ./, ~/.config/worktop/, /etc/worktop/].")
@click.option("--read-only", is_flag=True, help="Change nothing, whatever you may do; plans can still be looked at.")
@click.option("--user", "user_manager", is_flag=True, help="Look at the units of your own user manager.")
@click.option(
    "--plain",
    is_flag=False,
    flag_value="fleet",
    default=None,
    type=click.Choice(["fleet", "workers", "jobs", "queue", "log", "schedules", "host"]),
    help="Print a screen as text instead of opening the console [default: fleet].",
)
@click.pass_context
def cli(ctx: click.Context, config: str | None, read_only: bool, user_manager: bool, plain: Any) -> None:
    """A terminal operations console for fleets of background workers.

    Without a command it opens the console. Example: worktop status --check
    """
    reason = "--read-only was given" if read_only else ""
    ctx.obj = {"config": config, "user_manager": user_manager, "read_only": reason}
    if plain is not None:
        from console.cli.plain import print_plain

        ctx.exit(print_plain(ctx, plain))
    if ctx.invoked_subcommand is None:
        from console.cli.open import open_console

        ctx.exit(open_console(ctx))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code; no traceback reaches a person."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    result: Any = None
    try:
        result = cli.main(args=arguments, prog_name="worktop", standalone_mode=False)
    except WorktopError as error:
        click.echo(f"worktop: {clean(error)}", err=True)
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("worktop: interrupted", err=True)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001  a defect: one line for the person, the rest in a log that is masked
        from console.tui.crash import crash_line

        click.echo(crash_line(error, os.environ, "a defect stopped this"), err=True)
        return EXIT_FAILED
    return result if isinstance(result, int) else 0
