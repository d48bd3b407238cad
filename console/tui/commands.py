"""Every screen, every key and what it does, in one table: bindings, footer, help, palette and menu are made from it.

A screen names its scopes; each scope's commands are bound where they act: "console" on the app, "table", "pager",
"filter" and "field" on those widgets, the rest on the screen. What changes things lies on capitals or in the menu (x).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

Scope = Literal[
    "console",
    "common",
    "table",
    "list",
    "rows",
    "described",
    "filter",
    "pager",
    "sections",
    "fleet",
    "evidence",
    "workers",
    "worker",
    "diagnosis",
    "log",
    "jobs",
    "job",
    "queue",
    "host",
    "choice",
    "acts",
    "units",
    "plan",
    "field",
    "progress",
    "result",
    "schedules",
    "schedule",
    "playbooks",
    "playbook",
    "wizard",
    "audit",
]

SCOPE_TITLES: dict[Scope, str] = {
    "console": "Everywhere",
    "common": "On every screen with rows",
    "table": "In a table",
    "list": "In a list",
    "rows": "On a row of a list",
    "described": "On a row of the host or the audit",
    "filter": "While typing a filter",
    "fleet": "Fleet",
    "workers": "Workers",
    "worker": "One worker",
    "diagnosis": "A diagnosis",
    "log": "Log",
    "jobs": "Jobs",
    "job": "One job",
    "queue": "Queue",
    "host": "Host",
    "acts": "Actions: each shows its plan first",
    "units": "Actions on workers: each shows its plan first",
    "plan": "The plan",
    "field": "While typing below a plan",
    "progress": "An action that runs",
    "result": "The result of an action",
    "schedules": "Schedules",
    "schedule": "One schedule",
    "playbooks": "Playbooks",
    "playbook": "One playbook",
    "wizard": "A playbook that is followed",
    "audit": "Audit",
    "evidence": "Evidence",
    "sections": "In a detail",
    "pager": "In a text",
    "choice": "In the palette and the menu",
}


@dataclass(frozen=True, kw_only=True)
class ScreenName:
    """A screen that a digit shows."""

    key: str
    name: str  # of the mode
    title: str
    help: str
    short: str = ""  # the title where it is narrow

    def label(self, narrow: bool) -> str:
        return self.short or self.title if narrow else self.title


SCREENS: tuple[ScreenName, ...] = (
    ScreenName(key="1", name="fleet", title="Fleet", help="roles and findings."),
    ScreenName(key="2", name="workers", title="Workers", help="those of every role, desired, missing and stray."),
    ScreenName(key="3", name="jobs", title="Jobs", help="those of a state."),
    ScreenName(key="4", name="queue", title="Queue", help="trends of each role."),
    ScreenName(key="5", name="log", title="Log", help="the journal of a role, followed."),
    ScreenName(key="6", name="schedules", title="Schedules", help="crontabs, timers: what starts what.", short="Sched"),
    ScreenName(key="7", name="host", title="Host", help="accounts, memory and process trees."),
    ScreenName(
        key="8",
        name="playbooks",
        title="Playbooks",
        help="step by step, and back: unfinished runs first.",
        short="Books",
    ),
    ScreenName(key="9", name="audit", title="Audit", help="what was done, by whom, and what came of it."),
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command. `action` is the Textual action; `place` orders the footer, lower stays longer, 0 is not shown.

    One without keys is found in the menu (x) and in the palette.
    """

    id: str
    scope: Scope
    keys: tuple[str, ...]
    action: str
    label: str  # one or two words, for the footer
    help: str  # a sentence
    place: int = 0

    def binding(self) -> Binding:
        return Binding(",".join(self.keys), self.action, self.label, show=False, id=self.id)

    def shown_keys(self, unicode: bool) -> str:
        """The keys as a person reads them: "↑ k"."""
        names = _NAMES if unicode else _ASCII_NAMES
        return " ".join(names.get(key, key) for key in self.keys or ("x",))


_ASCII_NAMES = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "escape": "Esc",
    "enter": "Enter",
    "up": "Up",
    "down": "Down",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "space": "Space",
    "home": "Home",
    "end": "End",
    "left": "Left",
    "right": "Right",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "equals_sign": "=",
}
_NAMES = _ASCII_NAMES | {"enter": "⏎", "up": "↑", "down": "↓", "left": "←", "right": "→"}


def _command(id: str, scope: Scope, keys: str, action: str, label: str, help: str, place: int = 0) -> Command:
    return Command(id=id, scope=scope, keys=tuple(keys.split()), action=action, label=label, help=help, place=place)


def _switch(screen: ScreenName) -> Command:
    help = f"{screen.title}: {screen.help}"
    return _command(f"show-{screen.name}", "console", screen.key, f"app.show({screen.name!r})", screen.title, help)


COMMANDS: tuple[Command, ...] = (
    *(_switch(screen) for screen in SCREENS),
    _command("palette", "console", "colon ctrl+p", "app.palette", "command", "Any screen or command by name.", 6),
    _command("help", "console", "question_mark f1", "app.help", "help", "Show the keys and the signs.", 2),
    _command("back", "console", "escape", "app.go_back", "back", "Go back one level.", 12),
    _command("refresh", "console", "ctrl+r", "app.refresh_now", "refresh", "Ask every source again now.", 14),
    _command("theme", "console", "t", "app.next_theme", "theme", "Next theme: dark, light, colour-blind safe.", 20),
    _command("work", "console", "0", "app.show_work", "action", "The action that runs, or the result of the last."),
    _command("suspend", "console", "ctrl+z", "app.suspend_process", "suspend", "Stop the console; fg brings it back."),
    _command("quit", "console", "q ctrl+c", "app.leave", "quit", "Leave the console; ctrl+c copies selected text.", 1),
    # On every screen with rows.
    _command("pause", "common", "p", "screen.pause", "pause", "Freeze the rows; collecting goes on.", 11),
    _command("copy", "common", "y", "screen.copy", "copy", "Copy by the terminal (OSC 52).", 16),
    _command("menu", "common", "x", "app.menu", "actions", "What can be done with the selection.", 15),
    # In a table.
    _command("up", "table", "up k", "cursor_up", "up", "One line up."),
    _command("down", "table", "down j", "cursor_down", "down", "One line down."),
    _command("page-up", "table", "pageup", "page_up", "page up", "One page up."),
    _command("page-down", "table", "pagedown", "page_down", "page down", "One page down."),
    _command("first", "table", "home g", "scroll_top", "first", "First line."),
    _command("last", "table", "end G", "scroll_bottom", "last", "Last line."),
    # An action of the screen, not DataTable's message: a key typed right after it would overtake the message.
    _command(
        "open", "table", "enter", "screen.open", "open", "Open what is under the cursor; on a role: its workers.", 3
    ),
    # In a list.
    _command(
        "filter", "list", "slash", "screen.filter", "filter", "Show only rows with all these words; Esc ends it.", 5
    ),
    _command("mark", "list", "space", "screen.mark", "mark", "Mark the row, or take its mark away.", 9),
    _command("mark-all", "list", "a", "screen.mark_all", "mark all", "Mark all rows shown, or none.", 17),
    _command("sort", "list", "s", "screen.sort", "sort", "Sort by the next column.", 8),
    _command("invert", "list", "i", "screen.invert", "invert", "Sort the other way round.", 18),
    _command("describe-row", "described", "d", "screen.describe", "describe", "Everything about the row.", 4),
    _command("log-row", "rows", "l", "screen.log", "log", "The log of what is under the cursor.", 7),
    _command(
        "filter-keep", "filter", "enter down", "screen.filter_done", "keep", "Keep the filter, go to the rows.", 1
    ),
    # Fleet and evidence.
    _command(
        "other", "fleet", "tab", "screen.other_table", "roles/findings", "Go to the roles or to the findings.", 10
    ),
    _command(
        "diagnose-role", "fleet", "d", "screen.diagnose", "diagnose", "What is wrong with the role, or a finding's.", 4
    ),
    _command(
        "role-findings", "fleet", "f", "screen.findings", "findings", "Findings of the role only; Esc: of all.", 9
    ),
    _command("role-log", "fleet", "l", "screen.log", "log", "The log of the role.", 7),
    _command(
        "fleet-filter", "fleet", "slash", "screen.filter", "filter", "Only roles and findings with all these words.", 5
    ),
    _command("fleet-sort", "fleet", "s", "screen.sort", "sort", "Sort roles by the next column, findings by role.", 8),
    _command("fleet-invert", "fleet", "i", "screen.invert", "invert", "Sort the other way round.", 18),
    _command("next-finding", "evidence", "right n", "screen.step(1)", "next", "Evidence of the next finding.", 3),
    _command("previous-finding", "evidence", "left p", "screen.step(-1)", "previous", "Evidence of the one before.", 6),
    _command("diagnose-finding", "evidence", "d", "screen.diagnose", "diagnose", "What is wrong with its role.", 4),
    _command("copy-evidence", "evidence", "y", "screen.copy", "copy", "Copy the text.", 7),
    _command("evidence-menu", "evidence", "x", "app.menu", "actions", "What can be done with its role.", 15),
    _command("mend-role", "fleet", "P", "screen.playbook", "mend", "The playbook for the role's finding.", 9),
    _command("mend-finding", "evidence", "P", "screen.playbook", "mend", "The playbook that mends it.", 5),
    # In a text and its sections.
    _command("text-up", "pager", "up k", "scroll_up", "up", "One line up."),
    _command("text-down", "pager", "down j", "scroll_down", "down", "One line down."),
    _command("text-page-up", "pager", "pageup b", "page_up", "page up", "One page up."),
    _command("text-page-down", "pager", "pagedown space", "page_down", "page down", "One page down."),
    _command("text-first", "pager", "home g", "scroll_home", "first", "First line."),
    _command("text-last", "pager", "end G", "scroll_end", "last", "Last line."),
    _command("next-section", "sections", "right n tab", "screen.section(1)", "next", "The next section.", 3),
    _command("previous-section", "sections", "left shift+tab", "screen.section(-1)", "previous", "The one before.", 8),
    _command("copy-text", "sections", "y", "screen.copy", "copy", "Copy the text, or what the mouse selected.", 9),
    _command("detail-menu", "sections", "x", "app.menu", "actions", "What can be done with it.", 15),
    _command("worker-log", "worker", "l", "screen.log", "log", "The log of this worker.", 5),
    _command("diagnose-this", "worker", "d", "screen.diagnose", "diagnose", "What is wrong with this worker.", 4),
    _command("take-next", "diagnosis", "enter", "screen.next_step", "next step", "Plan what the verdict names.", 3),
    _command("diagnosis-log", "diagnosis", "l", "screen.log", "log", "The log of the worker, or of its role.", 5),
    _command("diagnose-worker", "workers", "d", "screen.diagnose", "diagnose", "What is wrong with the worker.", 4),
    # Log.
    _command("log-up", "log", "up k", "screen.scroll(-1)", "up", "One line up; following ends."),
    _command("log-down", "log", "down j", "screen.scroll(1)", "down", "One line down."),
    _command("log-page-up", "log", "pageup b", "screen.page(-1)", "page up", "One page up; following ends."),
    _command("log-page-down", "log", "pagedown space", "screen.page(1)", "page down", "One page down."),
    _command("log-first", "log", "home g", "screen.first", "first", "First line kept; following ends."),
    _command("log-last", "log", "G end F", "screen.follow", "follow", "Last line, and follow from there.", 4),
    _command("log-left", "log", "left", "screen.aside(-1)", "left", "Read the beginning of long lines."),
    _command("log-right", "log", "right", "screen.aside(1)", "right", "Read on in long lines."),
    _command(
        "log-next", "log", "tab", "screen.instance(1)", "instance", "Only the next instance; after the last: all.", 7
    ),
    _command("log-before", "log", "shift+tab", "screen.instance(-1)", "instance before", "Only the instance before."),
    _command("log-role", "log", "right_square_bracket", "screen.role(1)", "next role", "The next role.", 9),
    _command("log-role-before", "log", "left_square_bracket", "screen.role(-1)", "role before", "The role before."),
    _command("log-export", "log", "w", "screen.export", "write", "Write the lines that are shown to a file.", 12),
    _command("log-filter", "log", "slash", "screen.filter", "filter", "Show only lines with all these words.", 5),
    # In the palette and the menu.
    _command("choice-up", "choice", "up ctrl+k", "screen.move(-1)", "up", "One entry up."),
    _command("choice-down", "choice", "down ctrl+j", "screen.move(1)", "down", "One entry down."),
    _command("choice-take", "choice", "enter", "screen.take", "run", "Run it.", 1),
    _command("choice-back", "choice", "escape ctrl+c", "screen.leave", "back", "Close the window.", 2),
    # Jobs, one job, queue, host.
    _command("diagnose-job", "jobs", "d", "screen.diagnose", "diagnose", "What is wrong with its holder.", 4),
    _command("diagnose-holder", "job", "d", "screen.diagnose", "diagnose", "What is wrong with its holder.", 4),
    _command("next-state", "jobs", "tab", "screen.state(1)", "next state", "Jobs of the next state.", 3),
    _command("state-before", "jobs", "shift+tab", "screen.state(-1)", "state before", "Jobs of the state before."),
    _command("next-role", "jobs", "right_square_bracket", "screen.role(1)", "next role", "Jobs of the next role.", 6),
    _command("role-before", "jobs", "left_square_bracket", "screen.role(-1)", "role before", "The role before."),
    _command("kind", "jobs", "equals_sign", "screen.kind", "this type", "Only the type under the cursor, or all.", 10),
    _command("next-job", "job", "right n", "screen.step(1)", "next job", "The next job of the list.", 3),
    _command("previous-job", "job", "left p", "screen.step(-1)", "previous job", "The job before.", 5),
    _command("fold", "job", "e", "screen.fold", "fold", "Show the whole payload, or its first lines.", 6),
    _command("job-section", "job", "tab", "screen.section(1)", "next section", "The next section of the text.", 7),
    _command("job-section-before", "job", "shift+tab", "screen.section(-1)", "section before", "The section before."),
    _command("job-log", "job", "l", "screen.log", "log", "The log of the unit that holds it, or of its role.", 8),
    _command("mentions", "job", "m", "screen.mentions", "mentions", "Every line of a log that mentions the job."),
    _command("copy-job", "job", "y", "screen.copy", "copy", "Copy the text, or what the mouse selected.", 9),
    _command("job-menu", "job", "x", "app.menu", "actions", "What can be done with it.", 15),
    _command("measure", "queue", "m", "screen.measure", "one plot", "One plot large, then the next; at last all.", 3),
    _command("queue-role", "queue", "right_square_bracket tab", "screen.role(1)", "next role", "The next role.", 5),
    _command("queue-role-before", "queue", "left_square_bracket shift+tab", "screen.role(-1)", "before", "One before."),
    # Actions. Each opens a plan; none changes anything by itself.
    _command(
        "reclaim", "acts", "R", "screen.act('reclaim')", "reclaim", "Take stuck jobs back from their holders.", 13
    ),
    _command("retry", "acts", "T", "screen.act('retry')", "retry", "Let failed jobs run again.", 13),
    _command("discard", "acts", "D", "screen.act('discard')", "discard", "Let waiting or failed jobs never run."),
    _command("run-now", "acts", "", "screen.act('run-now')", "run now", "Make waiting jobs due at once."),
    _command("priority", "acts", "", "screen.act('priority')", "priority", "Change the priority of waiting jobs."),
    _command("quarantine", "acts", "", "screen.act('quarantine')", "quarantine", "Move jobs that kill to failed."),
    _command("pause-role", "acts", "", "screen.act('pause')", "pause role", "The role's queue gives out no job."),
    _command(
        "resume-role", "acts", "", "screen.act('resume')", "resume role", "The role's queue gives out jobs again."
    ),
    _command("drain", "units", "W", "screen.act('drain')", "drain", "Ask workers to stop, and wait for their jobs."),
    _command("restart", "units", "B", "screen.act('restart')", "restart", "Restart workers, one after another."),
    _command("start", "units", "N", "screen.act('start')", "start", "Start workers."),
    _command("stop", "units", "O", "screen.act('stop')", "stop", "Stop workers; their jobs are cut off."),
    _command("scale", "units", "C", "screen.act('scale')", "scale", "Another number of workers of the role."),
    _command("limits", "units", "L", "screen.act('limits')", "limits", "Limits of the role's units, as proposed."),
    _command("kill", "units", "K", "screen.act('kill')", "kill", "Send workers a signal."),
    _command("plan-next", "plan", "tab right", "screen.stop(1)", "choose", "Go from Cancel to Apply and on.", 3),
    _command("plan-before", "plan", "shift+tab left", "screen.stop(-1)", "before", "Go back to the choice before."),
    _command("plan-take", "plan", "enter", "screen.take", "take", "Take what is chosen: at first that is Cancel."),
    _command("plan-apply", "plan", "A", "screen.apply", "apply", "Apply the plan.", 2),
    _command("plan-why", "plan", "w", "screen.why", "why", "Write what it is for: it is kept in the audit.", 7),
    _command("copy-plan", "plan", "y", "screen.copy", "copy", "Copy the plan, or what the mouse selected.", 9),
    _command("field-next", "field", "enter tab down", "screen.stop(1)", "next", "Go to the next field or choice."),
    _command("field-before", "field", "shift+tab up", "screen.stop(-1)", "before", "Go to the one before."),
    _command("field-leave", "field", "escape", "screen.leave_field", "leave", "Back to the plan, with Cancel chosen."),
    _command("translate", "schedules", "T", "screen.translate", "translate", "The units it would become.", 4),
    _command("disable-line", "schedules", "D", "screen.act('disable-line')", "switch off", "Switch the line off.", 13),
    _command("restore-line", "schedules", "E", "screen.act('restore-line')", "switch on", "Switch the line on again."),
    _command("schedule-units", "schedule", "T", "screen.translate", "units", "Go to the units it would become.", 4),
    _command("disable-this", "schedule", "D", "screen.act('disable-line')", "switch off", "Switch the line off.", 13),
    _command("restore-this", "schedule", "E", "screen.act('restore-line')", "switch on", "Switch it on again."),
    _command("playbook-for-line", "schedules", "P", "screen.playbook", "mend", "The playbook for the line."),
    _command("playbook-for-this", "schedule", "P", "screen.playbook", "mend", "The playbook for the line."),
    # Playbooks.
    _command("begin", "playbook", "enter", "screen.begin", "begin", "Begin it: its first step is shown.", 1),
    _command("wizard-next", "wizard", "enter", "screen.next", "next", "Do the step, or look at the next one.", 1),
    _command("wizard-back", "wizard", "b", "screen.take_back", "back", "Take the last step back.", 2),
    _command("wizard-skip", "wizard", "s", "screen.skip", "skip", "Pass over the step, where it may be.", 4),
    _command("wizard-edit", "wizard", "e", "screen.edit", "edit", "Edit a file that the step installs.", 5),
    _command("wizard-log", "wizard", "l", "screen.log", "log", "The log of the role.", 6),
    _command("wizard-leave", "wizard", "q", "screen.leave", "leave", "Leave it; it can be taken up again.", 2),
    _command("wizard-menu", "wizard", "x", "app.menu", "actions", "What can be done with the run.", 9),
    _command("wizard-copy", "wizard", "y", "screen.copy", "copy", "Copy the text, or what the mouse selected.", 10),
    _command("wizard-steps", "wizard", "tab", "screen.steps", "steps", "All steps, or the text, where it is narrow."),
    _command("wizard-up", "wizard", "up k", "screen.scroll(-1)", "up", "One line up."),
    _command("wizard-down", "wizard", "down j", "screen.scroll(1)", "down", "One line down."),
    _command("wizard-page-up", "wizard", "pageup", "screen.page(-1)", "page up", "One page up."),
    _command("wizard-page-down", "wizard", "pagedown space", "screen.page(1)", "page down", "One page down."),
    _command("wizard-first", "wizard", "home g", "screen.end(False)", "first", "First line."),
    _command("wizard-last", "wizard", "end G", "screen.end(True)", "last", "Last line."),
    _command("abandon-run", "wizard", "", "screen.abandon", "give up", "Give the run up; what was done stays."),
    _command("stop-work", "progress", "S", "screen.stop_work", "stop", "End it after the batch or step it is in.", 3),
    _command("copy-work", "progress", "y", "screen.copy", "copy", "Copy the text, or what the mouse selected.", 9),
    _command("undo", "result", "u", "screen.act('undo')", "undo", "Plan to restore what it changed.", 4),
    _command("result-next", "result", "enter", "screen.next_step", "next step", "Plan what is proposed to be next."),
    _command("undo-entry", "audit", "u", "screen.act('undo')", "undo", "Plan to restore what the action changed.", 4),
    _command("other-host", "host", "tab", "screen.other_table", "accounts/trees", "Accounts or process trees.", 3),
    _command("fold-all", "host", "c", "screen.fold_all", "collapse", "Hide every owner's processes, or show them.", 6),
)


def of(*scopes: Scope) -> list[Command]:
    """The commands of these scopes, in the table's order."""
    return [command for command in COMMANDS if command.scope in scopes]


def bindings(*scopes: Scope) -> list[Binding]:
    """The bindings of these scopes."""
    return [command.binding() for command in of(*scopes) if command.keys]


def footer_keys(
    scopes: tuple[Scope, ...], unicode: bool, idle: frozenset[str] = frozenset()
) -> list[tuple[str, str, str]]:
    """(key as it is read, label, key as Textual names it) of what the footer shows, most needed first. `idle` names the
    commands that would do nothing now."""
    own = {key for command in of(*scopes) if command.scope != "console" for key in command.keys}
    shown = (c for c in of(*scopes) if c.place and c.id not in idle and (c.scope != "console" or c.keys[0] not in own))
    chosen = sorted(shown, key=lambda c: c.place)
    return [(c.shown_keys(unicode).split(" ")[0], c.label, c.keys[0]) for c in chosen]
