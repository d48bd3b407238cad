"""What each hazard means, in a sentence. Pure."""

from __future__ import annotations

WARNINGS = {
    "lock_file_in_tmp": "the lock file lies in /tmp, where others can take it and where it may be cleaned away",
    "release_symlink_cwd": (
        "the folder is a release's symlink: it is resolved when the worker starts, so a deploy must restart it"
    ),
    "USER_unset_in_cron": "cron sets LOGNAME but not USER: the check looks for the processes of nobody and finds none",
    "pile_up": "nothing that works keeps a run from adding to what the last one started",
    "recycler": "it kills the workers to start them anew: what they were doing is lost",
    "never_fires": "cron accepts the schedule, and there is no moment that fits it: it never runs",
    "crlf_line_ends": "the line ends in a carriage return, which the shell takes for a part of the last word",
    "no_restart_after_crash": "it is started once at boot and stays away after a crash",
    "truncating_redirect": "the log is emptied at every start: the unit writes to the journal instead",
    "self_daemonizing": "the program goes into the background by itself: a unit runs it in the foreground",
    "user_differs_from_crontab_user": "the worker runs as another user than the crontab line",
    "percent_escaping": "a literal % is written differently in a crontab and in a unit (%%)",
    "two_lines_one_role": "another line of this file starts the same: both must be disabled together",
    "multiple_origins": "the same is started from elsewhere too: every origin must go before a unit owns it",
    "shell_env_file": (
        "its environment comes from a shell file, which systemd would read differently: the values are written out"
    ),
    "login_shell_environment": "its environment comes from a login shell's profile, which systemd does not read",
    "orphans_in_session_scope": "what is running now lives in a login session's scope, not in cron's",
    "pty_expected": "it has a terminal now and will have none",
    "stale_pidfile": "a pid file that is left over can name somebody else's process",
    "other_supervisor_restarts_killed_processes": (
        "another supervisor starts it again when it is killed: stop it there, by its own command"
    ),
    "fixed_port_blocks_parallel_canary": "it holds a fixed port: a second one cannot run beside it",
    "parent_respawns_killed_child": "its shell starts it again when it is killed: the shell goes first",
    "multi_process_worker": "several processes are one worker",
    "guard_pattern_mismatch": "the check never finds what it starts: every run adds another",
    "guard_matches_itself": (
        "the check finds cron's own shell, whose command line is this very line: it never starts anything"
    ),
    "fleet_singleton": "it is meant to run on one host only",
    "owned_by_container_runtime": (
        "the container runtime owns what runs: a restart policy belongs there, no unit of the client"
    ),
    "anacron_format": "anacron runs it once in a period: after a boot it may be away for days",
    "bashism_in_sh": "it is written for bash, and cron runs it with /bin/sh, which may be dash",
    "background_children_of_tick": (
        "what the tick leaves in the background outlives it: only its own process is ended with the unit"
    ),
    "background_ampersand": "the & means nothing to a unit: what is left in the background is ended with the service",
    "weekly_shorthand_differs": "@weekly is Sunday for cron and Monday for systemd",
    "already_inactive_under_systemd": "it does nothing where systemd runs: the package brings a timer of its own",
    "package_owned_file": "the file belongs to a package, which may bring it back",
    "accidental_parallelism": (
        "nothing keeps runs from overlapping: a unit never overlaps itself, and the throughput may have come from that"
    ),
    "dst_gap_02_hour": "it runs between 02:00 and 03:00, which is missing or doubled when the clocks change",
}
