"""Where schedules are kept on a host: every crontab and folder that some cron reads, with what that cron thinks of it.

Which files count is decided as cron itself does (database.c of Debian's cron 3.0 and of cronie, run-parts(8)); a file
that is passed over is found all the same, with the reason, because somebody wrote it to be run.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Iterator
from typing import Literal, NamedTuple

from console.host.children import output_of
from console.host.rooted import Content, Root
from console.schedules.model import Dialect, Source

SYSTEM_TAB = "/etc/crontab"
SYSTEM_FOLDER = "/etc/cron.d"
ANACRONTAB = "/etc/anacrontab"
RC_LOCAL = ("/etc/rc.local", "/etc/rc.d/rc.local")
SPOOLS = ("/var/spool/cron/crontabs", "/var/spool/cron")  # Debian; RHEL and others
PARTS: tuple[Literal["hourly", "daily", "weekly", "monthly"], ...] = ("hourly", "daily", "weekly", "monthly")
LONGEST_TAB = 1024 * 1024  # bytes; a crontab of 10,000 lines has half of that
_LIST_SECONDS = 5.0
MORE_RIGHTS = "run the agent with more rights: agent in [host]"

# Debian's cron and its run-parts read names of these characters only; cronie and its run-parts read all but these
_DEBIAN_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")
_CRONIE_SKIPS = re.compile(r"\.|#|.*(?:~|\.rpmsave|\.rpmnew|\.rpmorig|\.swp|,v|\.cfsaved)\Z")


class Tab(NamedTuple):
    """One file. `ignored` says why cron passes it over; `doubt` the same of a copy, whose owner and mode may be those
    of whoever copied."""

    source: Source
    content: Content
    ignored: str = ""
    doubt: str = ""


class Cron(NamedTuple):
    """Which cron there is; `absent` says that there is none, "" when there is or when that cannot be told."""

    dialect: Dialect
    absent: str = ""


def cron_of(root: Root) -> Cron:
    """By its program; in a copy without programs by the package manager's files and the place of its spool."""
    if root.exists("/var/lib/dpkg/info/cronie.list") or root.exists("/usr/sbin/crond"):
        return Cron("cronie")
    if root.exists("/usr/sbin/cron"):
        return Cron("debian")
    debian = root.exists("/etc/debian_version") or root.exists(SPOOLS[0])
    rpm = root.exists("/etc/redhat-release") or root.exists("/etc/SuSE-release")
    dialect: Dialect = "cronie" if rpm or (not debian and root.exists(SPOOLS[1])) else "debian"
    return Cron(dialect, "no cron is installed: nothing runs these lines" if root.exists("/usr/sbin") else "")


def passed_over(name: str, dialect: Dialect) -> str:
    """Why a file of this name in a folder of cron is not read; "" when it is."""
    if dialect == "debian" and not _DEBIAN_NAME.match(name):
        return "its name has other characters than A-Z a-z 0-9 _ -: cron passes it over"
    if dialect == "cronie" and _CRONIE_SKIPS.match(name):
        return "a name like that is passed over by cron"
    return ""


def system_tabs(root: Root, dialect: Dialect) -> Iterator[Tab]:
    """/etc/crontab and /etc/cron.d."""
    if root.exists(SYSTEM_TAB):
        yield _system_tab(root, Source(kind="system", path=SYSTEM_TAB), "")
    for path, name in _files(root, SYSTEM_FOLDER):
        if not name.startswith("."):
            yield _system_tab(root, Source(kind="cron.d", path=path), passed_over(name, dialect))
    folder = root.names(SYSTEM_FOLDER)
    if folder.problem:
        yield Tab(Source(kind="cron.d", path=SYSTEM_FOLDER), Content(problem=folder.problem, denied=folder.denied))


def _system_tab(root: Root, source: Source, ignored: str) -> Tab:
    content = root.read(source.path, LONGEST_TAB)
    status = content.status
    refused = ""
    if status is not None:
        if status.st_uid != 0:
            refused = "the file does not belong to root: cron ignores it"
        elif status.st_mode & 0o022:
            refused = "the file can be written by others than root: cron ignores it"
        elif status.st_nlink != 1:
            refused = "the file has more than one hard link: cron ignores it"
    return _tab(root, source, content, ignored, refused)


def user_tabs(root: Root, uids: dict[str, int]) -> Iterator[Tab]:
    """Every user's crontab; `uids` of the accounts that there are, {} when that is not known."""
    spool = next((folder for folder in SPOOLS if root.exists(folder)), None)
    if spool is None:
        return
    folder = root.names(spool)
    if folder.problem:
        problem = Content(problem=folder.problem, denied=folder.denied)
        yield Tab(Source(kind="user", path=spool), problem)
    for name in folder.names:
        path = f"{spool}/{name}"
        status = root.status(path)
        if name.startswith((".", "tmp.")) or (status is not None and stat.S_ISDIR(status.st_mode)):
            continue
        content = root.read(path, LONGEST_TAB)
        ignored = refused = ""
        if uids and name not in uids:
            ignored = f"there is no account {name}: cron ignores the file"
        elif status is not None and status.st_nlink != 1:
            refused = "the file has more than one hard link: cron ignores it"
        elif status is not None and status.st_mode & 0o7577 != 0o400:
            refused = f"the file's mode is {status.st_mode & 0o7777:04o} instead of 0600: cron ignores it"
        elif status is not None and uids and status.st_uid not in (0, uids[name]):
            refused = f"the file does not belong to {name}: cron ignores it"
        yield _tab(root, Source(kind="user", path=path, user=name), content, ignored, refused)


async def own_tab(root: Root) -> tuple[Tab | None, str]:
    """The account's own crontab by `crontab -l`, where it may not read the spool; or why it could not be asked for.

    Having no crontab is no failure: status 1 and "no crontab for NAME".
    """
    spool = next((folder for folder in SPOOLS if root.exists(folder)), None)
    if not root.here or spool is None or not root.names(spool).denied:
        return None, ""
    account = pwd.getpwuid(os.geteuid()).pw_name
    listed = await output_of(["env", "CRONTAB_NOHEADER=N", "crontab", "-l"], _LIST_SECONDS)
    if listed.status == 0:
        source = Source(kind="user", path=f"{spool}/{account}", user=account)
        return Tab(source, Content(listed.out[:LONGEST_TAB])), ""
    why = listed.err.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return None, "" if "no crontab for" in why else f"crontab -l of {account}: {why or 'failed'}"


def parts(root: Root, dialect: Dialect) -> Iterator[Tab]:
    """The scripts of /etc/cron.hourly and so on; their bytes are not needed."""
    for kind in PARTS:
        folder = f"/etc/cron.{kind}"
        for path, name in _files(root, folder):
            status = root.status(path)
            if name.startswith(".") or name == "placeholder":
                continue
            ignored = passed_over(name, dialect)
            if not ignored and status is not None and not status.st_mode & 0o111:
                ignored = "it may not be executed: run-parts passes it over"
            yield Tab(Source(kind=kind, path=path, user="root"), Content(status=status), ignored)
        if problem := root.names(folder).problem:
            yield Tab(Source(kind=kind, path=folder, user="root"), Content(problem=problem, denied=True))


def single_files(root: Root) -> Iterator[Tab]:
    """/etc/anacrontab and rc.local."""
    if root.exists(ANACRONTAB):
        yield Tab(Source(kind="anacron", path=ANACRONTAB, user="root"), root.read(ANACRONTAB, LONGEST_TAB))
    for path in RC_LOCAL:
        status = root.status(path)
        if status is None:
            continue
        ignored = "" if status.st_mode & 0o111 else "it may not be executed: systemd passes it over"
        yield Tab(Source(kind="rc.local", path=path, user="root"), root.read(path, LONGEST_TAB), ignored)
        return


def _files(root: Root, folder: str) -> Iterator[tuple[str, str]]:
    for name in root.names(folder).names:
        path = f"{folder}/{name}"
        status = root.status(path)
        if status is None or not stat.S_ISDIR(status.st_mode):
            yield path, name


def _tab(root: Root, source: Source, content: Content, ignored: str, refused: str) -> Tab:
    """`refused` for its owner, its mode or its links."""
    if root.here or ignored or not refused:
        return Tab(source, content, ignored or refused)
    return Tab(source, content, doubt=f"{refused}, if it has that there too: this is a copy")
