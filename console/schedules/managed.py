"""Crontabs that a program writes: whose they are, and that what is changed by hand comes back. Pure.

Ansible, Puppet, Chef, Salt, whenever and cPanel leave comments by which they find their lines again; the wording is
that of their sources. A commented line is put back as soon as they run.
"""

from __future__ import annotations

import re

from console.fleet.model import Value

_SETTING = re.compile(r"\w+[ \t]*=")


class Manager(Value, frozen=True, kw_only=True):
    """Who owns a line, where that is seen, and where it is to be changed instead."""

    name: str
    line: int  # 1-based: the comment that says so
    text: str  # of that comment
    change: str  # a clause

    @property
    def warning(self) -> str:
        return (
            f"{self.name} wrote this (line {self.line}: {self.text}) and will put it back when it runs: {self.change}"
        )


class _Rule(Value, frozen=True, kw_only=True):
    name: str
    comment: re.Pattern[str]
    change: str
    until: re.Pattern[str] | None = None  # the end of what it owns; None: the next line that is no comment
    whole: bool = False  # the whole file is its own


_RULES = (
    _Rule(
        name="Ansible",
        comment=re.compile(r"#Ansible: .*"),
        change="change the task of ansible.builtin.cron with that name (state: absent, or disabled: true)",
    ),
    _Rule(
        name="Puppet",
        comment=re.compile(r"# Puppet Name: .*"),
        change="change the cron resource of that name in the manifest (ensure => absent)",
    ),
    _Rule(
        name="Chef",
        comment=re.compile(r"# Chef Name: .*"),
        change="change the cron resource of that name in the recipe (action :delete)",
    ),
    _Rule(
        name="Salt",
        comment=re.compile(r"#.*\bSALT_CRON_IDENTIFIER:.*"),
        change="change the cron.present of that identifier in the state (cron.absent)",
    ),
    _Rule(
        name="Salt",
        comment=re.compile(r"# Lines below here are managed by Salt.*"),
        change="change the cron.present in the state (cron.absent)",
        until=re.compile(r"(?!)"),
    ),
    _Rule(
        name="whenever",
        comment=re.compile(r"# Begin Whenever generated tasks for: .*"),
        change="change config/schedule.rb of that application, and deploy it",
        until=re.compile(r"# End Whenever generated tasks for: .*"),
    ),
    _Rule(
        name="cPanel",
        comment=re.compile(r"SHELL=\"?/usr/local/cpanel/.*|#.*\bcPanel\b.*"),
        change="change it in cPanel, under Cron Jobs",
        whole=True,
    ),
    *(
        _Rule(
            name=name,
            comment=re.compile(rf"#+ *(?:this file is )?(?:managed|generated|maintained) by {name}\b.*", re.IGNORECASE),
            change=f"change it in the sources of {name}",
            whole=True,
        )
        for name in ("Ansible", "Puppet", "Chef", "Salt", "CFEngine", "Terraform")
    ),
    _Rule(
        name="Ansible",
        comment=re.compile(r"#+ *Ansible managed.*", re.IGNORECASE),
        change="change the template it is made of",
        whole=True,
    ),
)


def manager_of(data: bytes, line: int) -> Manager | None:
    """Who owns a line of a crontab (numbered as in `data`, which has no header of crontab(1)); None: nobody that says
    so."""
    return managers_of(data).get(line)


def managers_of(data: bytes) -> dict[int, Manager]:
    """Who owns which line, by number; nothing for lines of nobody that says so."""
    texts = [raw.decode("utf-8", "replace").strip(" \t\r") for raw in data.split(b"\n")]
    found: dict[int, Manager] = {}
    for rule in reversed(_RULES):  # the first rule has the last word
        found |= _owned(rule, texts)
    return found


def _owned(rule: _Rule, texts: list[str]) -> dict[int, Manager]:
    """The lines that stand under a comment of the rule, or all where such a comment makes the file its own."""
    owned: dict[int, Manager] = {}
    manager: Manager | None = None
    for number, text in enumerate(texts, start=1):
        if rule.comment.fullmatch(text):
            manager = Manager(name=rule.name, line=number, text=text[:120], change=rule.change)
        if manager is not None:
            owned[number] = manager
            if not rule.whole and manager.line != number and _ends(rule, text):
                manager = None
    return dict.fromkeys(range(1, len(texts) + 1), manager) if rule.whole and manager is not None else owned


def _ends(rule: _Rule, text: str) -> bool:
    """Whether what stands under the comment ends with this line: with the first job, unless the rule says otherwise."""
    if rule.until is not None:
        return rule.until.fullmatch(text) is not None
    return bool(text) and not text.startswith("#") and not _SETTING.match(text)
