"""What is known of programs: which go on for ever, which end by themselves, which only help. Pure."""

from __future__ import annotations

import functools
import re
import sys
from typing import Literal, NamedTuple

from console.schedules.commands import words
from console.schedules.model import ScriptText

Life = Literal["long", "short", "unknown"]

# They prepare, ask, tell or wait: a line is never about them when it runs something else.
HELPERS = words(
    "mkdir chmod chown touch rm ln logger mail sendmail wall date sleep usleep ps grep egrep fgrep zgrep pgrep pidof "
    "pkill kill killall wc head tail awk gawk mawk sed cut sort uniq tr hostname id whoami basename dirname seq tee "
    "cat ls stat true which nproc uname tty stty install mktemp readlink realpath lsof fuser ss netstat nc ping df "
    "du free uptime xargs expr env printenv yes tput clear mv cp mkfifo mountpoint systemd-notify flock lockfile "
    "lockfile-create dotlockfile ionice renice ulimit"
)
INTERPRETERS = re.compile(
    r"(?:python|pypy|php|perl|ruby|node|nodejs|bun|deno|java|dotnet|mono|lua|Rscript|tclsh)[\d.]*"
)

_SHORT = words(
    "pg_dump pg_dumpall pg_basebackup mysqldump mariadb-dump mongodump redis-cli psql mysql sqlite3 vacuumdb "
    "reindexdb rsync rclone restic borg borgmatic duplicity rsnapshot tar zip gzip bzip2 xz zstd pigz find tmpwatch "
    "tmpreaper logrotate certbot acme.sh dehydrated curl wget http git svn apt apt-get aptitude dnf yum snap "
    "freshclam updatedb mandb makewhatis fstrim ntpdate sa1 sa2 debian-sa1 debian-sa2 run-parts savelog journalctl "
    "scp sftp lftp aws gsutil az mc s3cmd s5cmd sync e4defrag smartctl mdadm btrfs zpool zfs zfs-auto-snapshot "
    "snapper newsyslog geoipupdate sa-update sendxmpp wp drush mutt"
)
_LONG = words(
    "gunicorn uvicorn hypercorn daphne puma unicorn celery dramatiq huey_consumer huey_consumer.py arq rqworker "
    "sidekiq sidekiqswarm shoryuken autossh socat mosquitto_sub nginx php-fpm memcached redis-server gearmand "
    "beanstalkd resque-pool watchman chokidar nodemon ngrok cloudflared frpc procrastinate faktory-worker "
    "temporal-worker horizon webpack-dev-server airflow-worker prefect-agent streamlit syncthing"
)
_BACKUPS = re.compile(
    r"pg_dump(all)?|pg_basebackup|mysqldump|mariadb-dump|mongodump|restic|borg(matic)?|duplicity|rsnapshot"
)
_BOUNDED = re.compile(
    r"--(once|stop-when-empty|burst|one-?shot|drain|run-once|single|exit-when-(empty|done)|no-daemon-loop|max-runs=1|quit-when-empty)"
    r"(=(1|true|yes))?"
)
_WORDS_OF_WORKERS = re.compile(
    r"work(er)?s?\b|consum|listen|daemon|queue|subscri|dispatch|poller|\bsend(er)?s?\b|watch|\bbots?\b|bot$|relay|pump|"
    r"\bagents?\b|server|bridge|indexer|stream|receiver|processor|runner|gateway|proxy|tunnel|collector|ingest|broker|"
    r"scheduler$|hub\b|monitor|crawler|(?<=[a-z]{3})d$",
    re.IGNORECASE,
)
_WORDS_OF_JOBS = re.compile(
    r"back-?up|dump|clean|purge|prune|report|rotat|vacuum|export|archiv|renew|cron\b|snapshot|optimi[sz]e|expire|digest|"
    r"newsletter|invoice|reindex|refresh|update|warm|sitemap|reconcil|close|import$|sync$|pull|fetch|check|test|stats?$",
    re.IGNORECASE,
)
_ENDLESS = {
    "python": re.compile(
        r"^[ \t]*while[ \t(]+(True|1)\b|run_forever\(|\.start_consuming\(|serve_forever\(|\.work\(", re.M
    ),
    "php": re.compile(r"while\s*\(\s*(true|1)\s*\)|for\s*\(\s*;\s*;\s*\)|->consume\(\s*\)|->wait\(\s*\)", re.I),
    "perl": re.compile(r"while\s*\(\s*1\s*\)|for\s*\(\s*;\s*;\s*\)|while\s*\(\s*\)"),
    "ruby": re.compile(r"^[ \t]*loop\s+(do|\{)|while\s+true\b|\.subscribe\([^)]*block:\s*true", re.M),
    "node": re.compile(r"while\s*\(\s*true\s*\)|setInterval\(|\.listen\(|for\s*\(\s*;\s*;\s*\)"),
}
_IMPORTS = {
    "ruby": r"^\s*(?:require_relative|load)\b|^\s*Bundler\.",
    "php": r"\b(?:require|include)(?:_once)?\b",
    "perl": r"^\s*(?:use|require)\s+(?!strict|warnings|utf8|POSIX|Getopt|File|Time|\d)",
    "node": r"\brequire\(\s*[\"']\.|^\s*import\b",
}
_SPAWNS = re.compile(
    r"subprocess\.(Popen|call|run)|os\.(fork|spawn\w*|exec\w*|system)|multiprocessing|\bfork\s*\(|Process::Daemon|"
    r"proc_open|pcntl_fork|shell_exec|\bexec\s*\(|\bsystem\s*\(|child_process|Process\.spawn|daemonize|\bspawn\s*\("
)
_DETACHES = re.compile(
    r"\bPopen\(|os\.(fork|spawn\w*|posix_spawn)|multiprocessing|\bfork\s*\(|Process::Daemon|proc_open|pcntl_fork|Process\.spawn|"
    r"daemonize|nohup|setsid|start_new_session|detached:\s*true|child_process.*\bspawn\(|&\s*[\"']\s*\)"
)
_WAITS = re.compile(r"\.wait\(|\.communicate\(|waitpid|\.join\(\)|proc_close|wait4|Process\.wait")


_VALUED_OF_INTERPRETERS = words("-W -X -d -c -I -cp -classpath --require -r --module-path -S -z --import")
_VALUED_OF_RUNNERS = words("-n --name -p --prefix --cwd --directory -C -f --gemfile -e")
_VALUED_OF_FRAMEWORKS = words(
    "-A --app -l --loglevel -c --config -C -e --env --workdir -b --broker -n -P -p -u -s -d -r --require"
)


class Judged(NamedTuple):
    life: Life
    why: str  # a clause: "artisan queue:work runs until it is stopped"
    known: bool = True  # False: taken from the name only


class Program(NamedTuple):
    """What a command is, seen through its interpreter."""

    name: str  # basename of what decides: celery, artisan, worker.py
    stem: str  # without its suffix
    verb: str  # of a framework's command: queue:work, worker, exec
    arguments: tuple[str, ...]
    language: str = ""  # of the interpreter
    path: str = ""  # of the script, as written


@functools.lru_cache(maxsize=2048)
def program_of(argv: tuple[str, ...]) -> Program:
    """Through php FILE, python -m MODULE, bundle exec, npm run, java -jar, dotnet, poetry run, and the like."""
    name = argv[0].rpartition("/")[2] if argv else ""
    rest = argv[1:]
    if name in (
        "bundle",
        "poetry",
        "pipenv",
        "uv",
        "pdm",
        "hatch",
        "conda",
        "rye",
        "npx",
        "yarn",
        "npm",
        "pnpm",
        "rbenv",
        "dotenv",
    ):
        while rest and (rest[0] in ("exec", "run", "run-script", "--") or rest[0].startswith("-")):
            rest = rest[2 if rest[0] in _VALUED_OF_RUNNERS else 1 :]
        if rest:
            inner = program_of(rest)
            return inner._replace(language=inner.language or ("node" if name in ("npm", "npx", "yarn", "pnpm") else ""))
    if INTERPRETERS.fullmatch(name):
        return _interpreted(re.sub(r"[\d.]+$", "", name), rest)
    return Program(name, _stem(name), _verb(rest), rest, path=argv[0] if argv else "")


def _interpreted(language: str, rest: tuple[str, ...]) -> Program:
    place = 0
    valued = _VALUED_OF_INTERPRETERS
    while place < len(rest):
        word = rest[place]
        if word == "-m" and language in ("python", "pypy"):
            module = rest[place + 1] if place + 1 < len(rest) else ""
            stem = module.removesuffix(".__main__").removesuffix(".cli")
            stem = stem.rpartition(".")[2]
            return Program(stem, stem, _verb(rest[place + 2 :]), rest[place + 2 :], language, module)
        if word in ("-c", "-e", "-r", "-E") and language in ("python", "perl", "ruby", "php", "node", "pypy"):
            return Program(language, language, "", rest[place:], language)
        if word in ("-jar", "-f", "-q", "--") or (word.startswith("-") and word not in valued):
            place += 1
        elif word.startswith("-"):
            place += 2
        else:
            break
    if place >= len(rest):
        return Program(language, language, "", rest, language)
    name = rest[place].rpartition("/")[2]
    if language == "java" and "/" not in rest[place] and not name.endswith(".jar"):
        name = name.rpartition(".")[2]
    after = rest[place + 1 :]
    return Program(name, _stem(name), _verb(after), after, language, rest[place])


def _stem(name: str) -> str:
    stem = re.sub(r"\.(py|php|js|mjs|cjs|ts|rb|pl|sh|bash|jar|dll|exe|phar|phpt|lua)$", "", name)
    if name.endswith(".jar"):
        stem = re.sub(r"-\d[\w.-]*$", "", stem)
    return stem


def _verb(arguments: tuple[str, ...]) -> str:
    """The first word that is no option; -A crm worker is worker."""
    valued = _VALUED_OF_FRAMEWORKS
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word in valued:
            skip = True
        elif not word.startswith("-"):
            return word
    return ""


@functools.lru_cache(maxsize=2048)
def judge(argv: tuple[str, ...], script: ScriptText | None) -> Judged:
    """Whether the command goes on for ever."""
    program = program_of(argv)
    name, verb = program.name, program.verb
    if any(_BOUNDED.fullmatch(word) for word in argv):
        return Judged("short", "its options make it end when the work is done")
    framework = _framework(program)
    if framework is not None:
        return framework
    if name in _SHORT:
        return Judged("short", f"{name} ends when it is done")
    if name in _LONG:
        return Judged("long", f"{name} runs until it is stopped")
    if (name == "inotifywait" and _has(argv, "m", "--monitor")) or (name == "tail" and _has(argv, "fF", "--follow")):
        return Judged("long", f"{name} follows until it is stopped")
    if name in ("nc", "ncat", "netcat") and _has(argv, "k", "--keep-open"):
        return Judged("long", f"{name} -k listens until it is stopped")
    if name == "ssh" and _has(argv, "N", ""):
        return Judged("long", "ssh -N holds its connection until it is stopped")
    if script is not None and script.text:
        language = program.language or _language(script.text)
        endless = _ENDLESS.get(language)
        if endless is not None and endless.search(script.text):
            return Judged("long", f"{script.path} holds a loop without an end")
        if endless is not None and not _SPAWNS.search(script.text) and not _runs_others(script.text, language):
            return Judged("short", f"{script.path} has no loop without an end", known=False)
    text = (
        f"{program.stem} {verb}"
        if program.language and program.stem in ("manage", "console", "cli", "main")
        else program.stem
    )
    if _WORDS_OF_WORKERS.search(text):
        return Judged("long", f"{program.name} is called like a worker", known=False)
    if _WORDS_OF_JOBS.search(text):
        return Judged("short", f"{program.name} is called like a job", known=False)
    return Judged("unknown", f"nothing tells how long {program.name} runs", known=False)


def _runs_others(text: str, language: str) -> bool:
    """Code of other files does the work: that none of these lines is a loop says nothing."""
    if language in ("python", "pypy"):
        modules = re.findall(r"^\s*(?:from|import)\s+([A-Za-z_]\w*)", text, re.MULTILINE)
        return any(module not in sys.stdlib_module_names for module in modules)
    return re.search(_IMPORTS.get(language, r"(?!)"), text, re.MULTILINE) is not None


def spawns(script: ScriptText) -> bool:
    """A script of another language that starts processes itself, which nothing here can follow."""
    return _SPAWNS.search(script.text) is not None


def leaves_behind(script: ScriptText) -> bool:
    """A script of another language that starts processes and does not wait for them."""
    return _DETACHES.search(script.text) is not None and not _WAITS.search(script.text)


def is_backup(argv: tuple[str, ...]) -> bool:
    return _BACKUPS.fullmatch(program_of(argv).name) is not None


def _has(argv: tuple[str, ...], letters: str, long: str) -> bool:
    return any(
        (long and word.startswith(long)) or (re.fullmatch(r"-[A-Za-z]+", word) and set(letters) & set(word[1:]))
        for word in argv[1:]
    )


def _language(text: str) -> str:
    first = text.partition("\n")[0]
    return next(
        (name for name in _ENDLESS if first.startswith("#!") and name in first),
        "php" if first.startswith("<?php") else "",
    )


_WORKING = {
    "artisan": r"queue:(work|listen)|horizon|(schedule|pulse):work|(octane|reverb):start|websockets:serve|"
    r"short-schedule:run",
    "console": r"messenger:consume(-messages)?|rabbitmq:(multiple-)?consumer|enqueue:consume|gearman:worker:execute|"
    r".*:(consume|work(er)?|listen)",
    "manage.py": r"qcluster|rqworker|process_tasks|runworker|db_worker|run_huey|celery|runserver|rundramatiq|"
    r"consume\w*|\w*_?worker|listen\w*",
    "rake": r"(environment\s+)?(resque|jobs|que|sneakers|queue_classic|backburner|delayed|shoryuken)[:\w]*:?"
    r"(work|run|workers)\b|\w+:work(er)?s?",
    "rails": r"jobs:work|solid_queue:start|server",
    "rq": r"worker(-pool)?",
    "good_job": r"start",
    "celery": r"worker|beat|flower|multi|events",
    "cake": r"queue|queue run|queue worker",
    "yii": r".*/(listen|work)",
    "craft": r"queue/listen",
    "magento": r"queue:consumers:start",
    "occ": r"taskprocessing:worker|notify_push:.*",
    "symfony": r"messenger:consume|server:start",
    "wp": r"queue work",
}
_TICKS = {
    "artisan": r"schedule:run",
    "console": r"(schedule|cron|scheduler):(run|start|execute)|swiftmailer:spool:send|messenger:stop-workers",
    "manage.py": r"runcrons|cron|crontab|send_queued_mail|runjobs|run_jobs|retry_deferred|send_mail",
    "wp": r"cron|cron event",
    "drush": r"cron|core-cron|queue:run|queue-run",
    "magento": r"cron:run",
    "occ": r"system:cron|background:cron",
    "rails": r"runner",
    "yii": r"queue/run|schedule/run",
    "craft": r"queue/run",
    "cake": r"scheduler|cron",
}


def _framework(program: Program) -> Judged | None:
    key = "console" if program.name == "console" else program.name
    if program.stem in _WORKING and program.name not in _WORKING:
        key = program.stem
    if key == "rake":
        text = " ".join(word for word in program.arguments if not word.startswith("-") and "=" not in word)
    else:
        text = program.verb
    if key in _TICKS and re.fullmatch(_TICKS[key], text):
        return Judged("short", f"{program.name} {text} is a tick that ends by itself")
    if key in _WORKING and (re.fullmatch(_WORKING[key], text) or (key == "rake" and re.search(_WORKING[key], text))):
        return Judged("long", f"{program.name} {text} runs until it is stopped".replace("  ", " "))
    if key in _TICKS or key in ("rake", "artisan", "console", "manage.py"):
        return Judged("short", f"{program.name} {text} is a command that ends", known=False) if text else None
    return None


def is_tick(argv: tuple[str, ...]) -> bool:
    program = program_of(argv)
    key = program.name if program.name in _TICKS else program.stem
    return key in _TICKS and re.fullmatch(_TICKS[key], program.verb) is not None
