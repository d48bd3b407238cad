"""Names for roles and words for descriptions, from paths, users and options. Pure."""

from __future__ import annotations

import re

from console.schedules import marks, programs
from console.schedules.commands import words

_GENERIC_FOLDERS = words(
    "var www srv opt usr local home lib lib64 libexec bin sbin share apps app application applications current "
    "releases shared venv .venv env virtualenv virtualenvs public_html htdocs html live deploy production prod "
    "staging sites src code repo repos git scripts script etc init.d cron.d tmp run data system workspace project "
    "projects site web node_modules vendor root wwwroot public storage"
)
_TAG_OPTIONS = re.compile(
    r"--(queues?|feed|stream|role|topic|channel|type|kind|job|task|source|service|consumer|group|tube|subscription|name|pool|mode|worker|process)"
)
_TAG_FIRST = (
    "--role",
    "--queue",
    "--queues",
    "--feed",
    "--stream",
    "--topic",
    "--channel",
    "--tube",
    "--job",
    "--task",
    "--source",
    "--type",
    "--kind",
    "--service",
    "--consumer",
    "--subscription",
)
_GENERIC_STEMS = words(
    "worker workers sender consume consumer consumers main run start app index server daemon job jobs task tasks "
    "process processor listener cli bot queue send receive receiver watcher runner manager service script cron "
    "program launcher poller handler listen poll subscribe subscriber dispatch dispatcher"
)
_AGENTS = {
    "consume": "consumer", "send": "sender", "listen": "listener", "run": "runner", "process": "processor",
    "poll": "poller", "receive": "receiver", "dispatch": "dispatcher", "agg": "aggregator", "consumers": "consumer",
    "workers": "worker", "work": "worker", "subscribe": "subscriber",
    "watch": "watcher", "main": "worker", "index": "worker", "start": "worker", "app": "worker",
}  # fmt: skip
_ENDS_LIKE_AN_AGENT = re.compile(r"(er|or|bot|pump|bridge|agent|daemon|tunnel|d)$")
_NOUNS = words(
    "worker workers consumer sender mailer poller listener pump bridge indexer watcher queue daemon agent server "
    "relay runner receiver processor dispatcher crawler collector gateway proxy scheduler writer reader loader "
    "importer exporter sync bot feed stream"
)
_FRAMEWORKS = words(
    "celery rq sidekiq resque delayed_job gunicorn uvicorn puma unicorn dramatiq huey_consumer arq procrastinate "
    "horizon qcluster shoryuken good_job que sneakers daphne hypercorn"
)
_SLOT = re.compile(r"--(slot|shard|partition|lane)")
_DUMPS = {
    "pg_dump": "pg", "pg_dumpall": "pg", "mysqldump": "mysql", "mariadb-dump": "mariadb", "mongodump": "mongo",
}  # fmt: skip
_SHORT_WORDS = {"hc": "healthcheck", "db": "database"}
_QUALIFIERS = words("full incremental inc diff daily weekly monthly hourly nightly run start main do all auto quick")
_VERBS = words(
    "pull push sync fetch load import export send run start check update refresh poll process clean purge cron job"
)


def safe(name: str) -> str:
    """A name systemd and people can live with."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "worker"


def app_of(folder: str, paths: tuple[str, ...], user: str) -> str:
    """The application a command belongs to: from its folder, else from the paths it names, else the user."""
    for path in (folder, *paths):
        for part in marks.concrete(path).strip("/").split("/")[: None if path == folder else -1]:
            if part and part not in _GENERIC_FOLDERS and not part.startswith((".", "~")) and not part[0].isdigit():
                return part
    if folder.startswith("~") and len(folder) > 1:
        return folder[1:].partition("/")[0]
    return "" if user in ("root", "deploy", "www-data", "nobody", "daemon", "ubuntu", "debian", "admin") else user


def worker_name(argv: tuple[str, ...], folder: str, user: str, given: str = "") -> str:
    """The role's name: what a supervisor calls it, else application and task."""
    if given:
        return safe(given)
    plain = tuple(map(marks.concrete, argv))
    program = programs.program_of(plain)
    app = app_of(folder, _paths(plain), user)
    if program.name in ("autossh", "ssh"):
        host = next((word.rpartition("@")[2] for word in reversed(plain[1:]) if not word.startswith("-")), "")
        return safe(f"{host.partition('.')[0]}-tunnel")
    tag = _tag(argv)
    base = _base(program, tag)
    if base in _GENERIC_STEMS and tag:
        return safe(f"{app}-{tag}" if app and app != tag else tag)
    if base in _FRAMEWORKS:
        return safe(f"{app}-{base}" if app else base)
    if base.startswith("watch-"):
        return safe(base)
    if app and base.startswith(f"{app}d-"):
        return safe(f"{app}-{base[len(app) + 2 :]}")
    own = (
        "-" in base
        or "_" in base
        or re.search(r"[a-z]{3}d$", base)
        or (len(app) > 1 and base.lower().startswith(app.lower()))
    )
    if own and base not in _GENERIC_STEMS:
        return safe(base)
    return safe(f"{app}-{base}" if app and app != base else base)


def worker_words(argv: tuple[str, ...], name: str, given: str = "") -> str:
    """The description of a worker's unit, without its instance."""
    plain = tuple(map(marks.concrete, argv))
    program = programs.program_of(plain)
    tag = _tag(argv)
    base = _base(program, tag)
    parts = name.split("-")
    if given and safe(given) == name:
        text = " ".join(parts)
        if any(re.match(r"--queues?\b", word) for word in plain) and not _ENDS_LIKE_AN_AGENT.search(text):
            text += " worker"
    elif parts[0] == "watch" and len(parts) > 1:
        text = f"{' '.join(parts[1:])} watcher"
    elif base in _GENERIC_STEMS and tag and base != tag:
        agent = "worker" if base == "queue" else _AGENTS.get(base, base)
        text = " ".join(parts) + ("" if parts[-1] == agent else f" {agent}")
    else:
        text = " ".join([*parts[:-1], _AGENTS.get(parts[-1], parts[-1]) if len(parts) > 1 else parts[-1]])
        if program.verb in ("worker", "queue:work", "queue:listen", "queue:consume") or (
            program.name == "artisan" and "work" in program.verb
        ):
            text += "" if text.endswith("worker") else " worker"
    if any(
        _SLOT.match(word) and (marks.turns(word) or marks.turns("".join(argv[at + 1 : at + 2])))
        for at, word in enumerate(argv)
    ):
        text += " slot"
    return text


def split_app(words_of: str, app: str) -> str:
    """mqpump of the application mq is the mq pump."""
    if app and words_of.startswith(app) and words_of[len(app) :] in _NOUNS:
        return f"{app} {words_of[len(app) :]}"
    return words_of


def _paths(plain: tuple[str, ...]) -> tuple[str, ...]:
    program = programs.program_of(plain)
    return tuple(path for path in (program.path, plain[0] if plain else "") if path.startswith("/"))


def _base(program: programs.Program, tag: str) -> str:
    """The word for what runs; of `tool worker --role mail` it is the worker."""
    if tag and program.verb in ("worker", "work", "consume", "listen") and program.stem not in _FRAMEWORKS:
        return program.verb
    if program.name == "artisan":
        return {"queue:work": "queue", "queue:listen": "queue", "schedule:work": "schedule"}.get(
            program.verb, program.verb.partition(":")[0]
        )
    if program.name == "console" and ":" in program.verb:
        return next(
            (word for word in program.arguments[1:2] if not word.startswith("-")), program.verb.partition(":")[0]
        )
    if program.stem in ("manage", "rake", "cake", "yii", "magento", "occ", "craft", "symfony") and program.verb:
        task = next(
            (
                word
                for word in program.arguments
                if not word.startswith("-") and word != "environment" and "=" not in word
            ),
            "",
        )
        return re.sub(r"[:/].*", "", task) if program.stem == "rake" else safe(task)
    return program.stem or program.name


def _tag(argv: tuple[str, ...]) -> str:
    """What an option says the worker is for: --queue outbound; "" when it differs by instance or is a list."""
    found: dict[str, str] = {}
    for place, word in enumerate(argv):
        key, equals, value = word.partition("=")
        if not equals and place + 1 < len(argv):
            value = argv[place + 1]
        if (
            _TAG_OPTIONS.fullmatch(key)
            and value
            and not marks.has_marks(value)
            and re.fullmatch(r"[A-Za-z][\w-]*", value)
        ):
            found.setdefault(key, value)
    return next((found[key] for key in _TAG_FIRST if key in found), "")


# --- commands that end by themselves --------------------------------------------------------------------------------


def job_name(argv: tuple[str, ...], folder: str, user: str, label: str) -> tuple[str, str]:
    """Name and description of a command that ends by itself. `label`: the name of the file its line stands in."""
    plain = tuple(map(marks.concrete, argv))
    program = programs.program_of(plain)
    app = app_of(folder, _paths(plain), user)
    name = program.name
    if name in ("curl", "wget", "http"):
        return _url_name(plain)
    if programs.is_backup(plain) and name in _DUMPS:
        return f"{_DUMPS[name]}-backup", f"{_DUMPS[name]} dump"
    if programs.is_backup(plain):
        return safe(f"{app}-{name}"), f"{app} {name}".strip()
    if name == "rsync":
        target = app_of("", tuple(f"{word}/x" for word in reversed(plain[1:]) if word.startswith("/")), user)
        return safe(f"{user if user != 'root' else target}-sync"), f"{user if user != 'root' else target} sync"
    if name == "find" and any(word in ("-delete", "-exec", "-execdir") for word in plain):
        place = next((word for word in plain[1:] if word.startswith(("/", "~", "."))), "")
        return "cleanup", f"{place.rstrip('/').rpartition('/')[2] or 'file'} cleanup"
    if name == "logrotate":
        what = next(
            (re.sub(r"\.(conf|state|status)$", "", word.rpartition("/")[2]) for word in reversed(plain) if "/" in word),
            "",
        )
        what = re.sub(r"^logrotate-?|-?logrotate$", "", what) or label
        return safe(f"{what}-logrotate"), f"{what} logrotate"
    if name == "artisan" and program.verb == "schedule:run":
        return safe(f"{app}-schedule"), f"{app} scheduler tick".strip()
    if programs.is_tick(plain):
        return safe(f"{app}-{program.verb.partition(':')[0]}"), f"{app} {program.verb.replace(':', ' ')} tick".strip()
    if not program.language and "/" not in plain[0] and program.verb and re.fullmatch(r"[a-z][a-z-]+", program.verb):
        return safe(program.stem), f"{program.stem} {program.verb}"
    stem = program.stem
    if name in ("artisan", "console", "manage.py", "rake", "rails") and program.verb:
        found = worker_name(argv, folder, user)
        return found, worker_words(argv, found)
    if stem in _GENERIC_STEMS and app:
        return safe(f"{app}-{stem}"), f"{app} {name}"
    if stem in _QUALIFIERS and app:
        return safe(f"{stem}-{app}"), f"{stem} {app}"
    if stem in _VERBS and app:
        return safe(f"{app}-{stem}"), f"{app} {stem}"
    return safe(stem), re.sub(r"[-_.]+", " ", stem)


def _url_name(plain: tuple[str, ...]) -> tuple[str, str]:
    url = next((word for word in plain[1:] if "://" in word), "")
    host, _, path = url.partition("://")[2].partition("/")
    label = host.partition(".")[0].partition(":")[0]
    words_of = _SHORT_WORDS.get(label.removesuffix("-ping"), label)
    if "ping" in path or label in ("hc", "healthchecks", "hc-ping"):
        return safe(f"{label.removesuffix('-ping')}-ping"), f"{words_of.removesuffix('-ping')} ping"
    last = re.sub(r"\W.*", "", path.rstrip("/").rpartition("/")[2]) or "request"
    return safe(f"{label}-{last}"), f"{label} {last}".strip()
