"""Jobs, holders and processes with anything in every field: what a database or /proc might say."""

from __future__ import annotations

from hypothesis import strategies as st

from console.fleet.model import Claim, Count, Holder, HostDetail, Ident, Job, Owner, TreeProcess

# Text as a terminal must not get it: any code point, and bytes that are no UTF-8 as Python decodes them.
texts = st.one_of(
    st.text(max_size=30),
    st.binary(max_size=20).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    st.binary(max_size=20).map(lambda raw: raw.decode("latin-1")),
    st.sampled_from(["\x1b]52;c;aGk=\x07", "[/red][link=x]", "\x9b2J", "a\nb\r\tc", "\u202e", "日本語 👩\u200d💻"]),
)
numbers = st.one_of(st.none(), st.floats(), st.floats(-1e6, 1e6))
counts = st.builds(Count, st.integers(0, 10**15), st.sampled_from(["exact", "at-least", "estimate"]))
whole = st.one_of(st.none(), st.integers(-(10**12), 10**12))

holders = st.builds(Holder, host=texts, unit=texts, pid=whole, start=whole, boot_id=texts, text=texts)
jobs = st.builds(
    Job,
    id=texts,
    queue=texts,
    type=texts,
    state=st.sampled_from(["waiting", "running", "done", "failed"]),
    attempts=st.integers(0, 10**9),
    max_attempts=whole,
    priority=whole,
    run_after=numbers,
    created=numbers,
    started=numbers,
    finished=numbers,
    lease_expires=numbers,
    heartbeat=numbers,
    overdue=numbers,
    heartbeat_age=numbers,
    running_for=numbers,
    waiting_for=numbers,
    holder=st.one_of(st.none(), holders),
    token=texts,
    error=texts,
    payload=st.one_of(texts, st.just('{"password": "hunter2", "a": [1, 2]}')),
    payload_size=st.integers(0, 10**12),
)
claims = st.builds(
    Claim,
    job=jobs,
    role=texts,
    verdict=st.sampled_from(["DEAD", "ALIVE", "ALIVE_SLOW", "HUNG", "UNKNOWN"]),
    evidence=st.lists(texts, max_size=3).map(tuple),
    stuck=st.booleans(),
    worker=texts,
)
owners = st.builds(Owner, kind=st.sampled_from(["systemd", "cron", "pm2", "unknown"]), name=texts, detail=texts)
processes = st.builds(
    TreeProcess,
    ident=st.builds(Ident, st.just("boot"), st.integers(0, 2**31), st.integers(0, 2**60)),
    depth=st.integers(-3, 200),
    user=texts,
    name=texts,
    command=st.lists(texts, max_size=3).map(tuple),
    state=texts,
    rss=st.one_of(st.none(), st.integers(0, 2**60)),
    cpu_seconds=numbers,
    started=numbers,
    role=texts,
    owner=owners,
)
details = st.builds(HostDetail, trees=st.lists(processes, max_size=6).map(tuple), cut=st.integers(0, 10**6))
