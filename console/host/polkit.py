"""The polkit rule that lets a group of operators act on the units of the roles, and on nothing else. Pure.

systemd tells polkit (action org.freedesktop.systemd1.manage-units) the unit and the verb: start, stop, restart,
reset-failed, kill. For enable and disable (manage-unit-files) it tells neither: whoever may, may for every unit of the
host. A rule for that is made apart (`wide_rule`); an operator without it runs the agent through sudo.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from console.fleet.model import Role
from console.fleet.plan import UnitVerb

RULE_PATH = "/etc/polkit-1/rules.d/50-worktop.rules"
GROUP = "worktop"
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}\Z")  # systemd.unit(5): nothing else is the name of a unit
VERBS: tuple[UnitVerb, ...] = ("start", "stop", "restart", "reset-failed", "kill")


def rule(roles: Iterable[Role], group: str = GROUP) -> str:
    """The text of the rule for polkit 0.106 and later (JavaScript); "" when no role has a unit."""
    chosen = [role for role in roles if _UNIT.match(role.template)]
    if not chosen:
        return ""
    units = "|".join(dict.fromkeys(_instances(role.template) for role in chosen))
    names = ", ".join(dict.fromkeys(re.sub(r"[^\w .@-]", "?", role.name) for role in chosen))
    return f"""\
// {RULE_PATH}
// Members of the group {re.sub(r"[^a-zA-Z0-9_.-]", "?", group)} may act on the units of {names}:
// on no other unit, and with no other verb.
polkit.addRule(function(action, subject) {{
    var verbs = {json.dumps(list(VERBS))};
    var units = /^(?:{units})$/;
    if (action.id == "org.freedesktop.systemd1.manage-units" && subject.isInGroup({json.dumps(group)}) &&
        verbs.indexOf(action.lookup("verb")) >= 0 && units.test(action.lookup("unit"))) {{
        return polkit.Result.YES;
    }}
}});
"""


def wide_rule(group: str = GROUP) -> str:
    """The rule for enable, disable and daemon-reload: polkit is not told for which unit, so it is for every one."""
    return f"""\
polkit.addRule(function(action, subject) {{
    var actions = ["org.freedesktop.systemd1.manage-unit-files", "org.freedesktop.systemd1.reload-daemon"];
    if (actions.indexOf(action.id) >= 0 && subject.isInGroup({json.dumps(group)})) {{
        return polkit.Result.YES;
    }}
}});
"""


def _instances(template: str) -> str:
    """`mail-worker@.service` -> a pattern of its instances; other names for themselves alone."""
    prefix, at, suffix = template.partition("@")
    if at and suffix.startswith("."):
        return f"{_escaped(prefix)}@[^@/]+{_escaped(suffix)}"
    return _escaped(template)


def _escaped(text: str) -> str:
    return re.sub(r"([.\\])", r"\\\1", text)
