"""The rights that acting takes, least privilege: the polkit rule for the roles' units, the GRANTs for the job table."""

from __future__ import annotations

import msgspec

from console.config import Config
from console.errors import QueueError, WorktopError
from console.fleet.operations import HostRights, UnitRight
from console.fleet.plan import Verb
from console.host import polkit

QUEUE_VERBS: tuple[Verb, ...] = (
    "reclaim", "retry", "discard", "run-now", "priority", "quarantine", "pause", "resume", "undo",
)  # fmt: skip


class Grants(msgspec.Struct, frozen=True):
    """What would allow everything, and what is lacking now."""

    group: str  # of operators
    rule: str  # the polkit rule; "" when no role has a unit, or each is a unit of one's own user manager
    rule_path: str
    database_user: str  # "" when no database is configured or it cannot be reached
    sql: tuple[str, ...]  # the GRANTs this user lacks
    problem: str  # why the database could not be asked


async def grants_of(config: Config, group: str) -> Grants:
    """What acting on the roles of this configuration takes. Raises nothing: a database that fails is a problem."""
    user, problem = "", ""
    sql: tuple[str, ...] = ()
    if config.database.configured:
        try:
            user, sql = await _lacking(config)
        except WorktopError as error:
            problem = error.problem.line()
    return Grants(
        group=group,
        rule=polkit.rule(config.roles, group) if config.manager == "system" else "",
        rule_path=polkit.RULE_PATH,
        database_user=user,
        sql=sql,
        problem=problem,
    )


async def _lacking(config: Config) -> tuple[str, tuple[str, ...]]:
    """The user of the database, and the GRANTs it lacks for any of the verbs; QueueError, ConfigError."""
    from console.queue.client import QueueClient
    from console.queue.writer import QueueWriter

    reader, writer = QueueClient(config, config.roles), QueueWriter(config, config.roles)
    try:
        rows = await reader.poll()
        if rows.value is None:
            problem = rows.problem
            raise QueueError(problem.what, problem.why, problem.do) if problem else QueueError("queue", "no answer")
        lacking: dict[str, None] = {}
        for verb in QUEUE_VERBS:
            lacking.update(dict.fromkeys(await writer.missing_rights(verb)))
        hidden = any(backend.hidden for backend in rows.value.backends or ())
        if hidden:  # whoever is connected must be seen before a worker without a pid can be called dead
            lacking[f"GRANT pg_read_all_stats TO {rows.value.user};"] = None
        return rows.value.user, tuple(lacking)
    finally:
        await writer.close()
        await reader.close()


def lines_of(grants: Grants) -> list[str]:
    """The rights as text that can be pasted: a shell's, a rule's and psql's part, each under what it is for."""
    lines = []
    if grants.rule:
        verbs = ", ".join(polkit.VERBS)
        lines += [
            f"# {verbs} for the members of the group {grants.group}, as root:",
            f"groupadd --system --force {grants.group}",
            f"usermod --append --groups {grants.group} OPERATOR",
            f"# and in {grants.rule_path} (polkit 0.106 or later reads it at once):",
            *grants.rule.rstrip("\n").split("\n")[1:],
            "# polkit cannot allow enable, disable and daemon-reload for single units. Run the agent through sudo for",
            "# these, which allows everything worktop can do on this host; or allow them for every unit of the host,",
            "# in the same file:",
            *(f"// {line}" for line in polkit.wide_rule(grants.group).rstrip("\n").split("\n")),
        ]
    else:
        lines.append("# No role has a unit of the system manager: no polkit rule is needed.")
    lines.append("")
    if grants.problem:
        lines.append(f"-- The database could not be asked: {grants.problem}")
    elif not grants.database_user:
        lines.append("-- No database is configured.")
    elif grants.sql:
        lines += [f"-- What {grants.database_user} lacks to act on the job table:", *grants.sql]
    else:
        lines.append(f"-- {grants.database_user} lacks nothing to act on the job table.")
    return lines


def told(rights: HostRights) -> tuple[str, str]:
    """What the agent may do, as a sentence; and what it may not ("" when it may do all that a rule can allow)."""
    if rights.read_only:
        return "", "the agent was started with --read-only"
    able = [each for each in rights.units if not _lacks(each)]
    unable = [each for each in rights.units if _lacks(each)]
    may = f"{', '.join(polkit.VERBS)} of {_names(able)}" if able else ""
    may_not = f"may not act on the units of {_names(unable)}" if unable else ""
    return may, may_not


def _lacks(right: UnitRight) -> bool:
    return not set(polkit.VERBS) <= set(right.allowed)


def _names(rights: list[UnitRight]) -> str:
    return ", ".join(each.role for each in rights)
