"""The commands in the demo host, as an unprivileged account and as root, as a person runs them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.conftest import DemoHost
from tests.e2e.faults import FAULTS, Fault

pytestmark = pytest.mark.host


@pytest.fixture(scope="module")
def status(demo_host: DemoHost) -> dict[str, Any]:
    """`worktop status --json --check` as deploy."""
    done = demo_host.run([demo_host.worktop, "status", "--json", "--check"], user="deploy", check=False)
    assert done.returncode == 3, "there are findings that are errors"
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.role}-{fault.code}")
def test_status_json_names_each_fault_with_its_evidence(status: dict[str, Any], fault: Fault) -> None:
    found = [f for f in status["findings"] if f["code"] == fault.code and f.get("role") == fault.role]
    assert found, [(f.get("role"), f["code"], f["what"]) for f in status["findings"]]
    assert any(re.search(fault.on_screen, f["what"]) for f in found), [f["what"] for f in found]
    assert any(re.search(fault.evidence, line) for f in found for line in f["evidence"]), [f["evidence"] for f in found]


def test_a_healthy_role_has_no_finding(status: dict[str, Any]) -> None:
    assert [f["what"] for f in status["findings"] if f.get("role") == "mail"] == []
    mail = next(role for role in status["roles"] if role["role"]["name"] == "mail")
    assert (mail["running"], mail["desired"], mail["owners"]) == (3, 3, ["systemd"])
    assert mail["queue"]["done_per_minute"] > 0


def test_what_deploy_may_not_see_is_said(status: dict[str, Any]) -> None:
    crontabs = next(source for source in status["sources"] if source["name"] == "schedules")
    assert crontabs["state"] == "denied"
    assert "not permitted" in crontabs["problem"]["why"]


def test_root_sees_the_same_faults(demo_host: DemoHost) -> None:
    answer = json.loads(demo_host.run([demo_host.worktop, "status", "--json"]).stdout)
    seen = {(f.get("role"), f["code"]) for f in answer["findings"]}
    assert {(fault.role, fault.code) for fault in FAULTS} <= seen
    assert all(source["state"] == "live" for source in answer["sources"])


def test_check_exits_with_0_for_a_healthy_role(demo_host: DemoHost) -> None:
    healthy = demo_host.run([demo_host.worktop, "status", "--check", "--role", "mail"], user="deploy", check=False)
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr


def test_a_role_that_does_not_exist(demo_host: DemoHost) -> None:
    answer = demo_host.run([demo_host.worktop, "status", "--role", "nope"], user="deploy", check=False)
    assert answer.returncode == 2
    assert "known roles: mail, thumbnails" in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1


def test_workers_shows_every_state(demo_host: DemoHost) -> None:
    text = demo_host.run([demo_host.worktop, "workers"], user="deploy").stdout
    for row in (
        r"mail +@1 +running",
        r"thumbnails +@2 +start-limit",
        r"thumbnails +@3 +memory-killed",
        r"reports +pid \d+ +stray",
    ):
        assert re.search(row, text), text


def test_jobs_and_job_show_hostile_text_harmlessly_and_mask_secrets(demo_host: DemoHost) -> None:
    listed = demo_host.run([demo_host.worktop, "jobs", "--state", "failed", "--json"], user="deploy").stdout
    by_error = {job.get("error", "")[:20]: job["id"] for job in json.loads(listed)["jobs"]}  # one of each kind
    texts = []
    for id in by_error.values():
        texts.append(demo_host.run([demo_host.worktop, "job", id], user="deploy").stdout)
    text = "\n".join(texts) + demo_host.run([demo_host.worktop, "jobs", "--state", "failed"], user="deploy").stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "demo-not-a-real" not in text + listed
    assert "␛[31mOSError" in text
    assert "[/red] [bold red]KeyError[/]" in text
    assert "‹U+202E›" in text
    assert "1 048 6" in text  # the large payload says its size


@pytest.mark.parametrize("state", ["waiting", "running", "stuck", "done"])
def test_jobs_of_each_state(demo_host: DemoHost, state: str) -> None:
    answer = demo_host.run([demo_host.worktop, "jobs", "--state", state, "--json", "--limit", "5"], user="deploy")
    page = json.loads(answer.stdout)
    assert page["jobs"]
    assert {job["state"] for job in page["jobs"]} == {"running" if state == "stuck" else state}
    if state in ("waiting", "done"):
        assert page["next"], "there are thousands of them"


def test_job_judges_the_holder(demo_host: DemoHost) -> None:
    stuck = json.loads(
        demo_host.run(
            [demo_host.worktop, "jobs", "--state", "stuck", "--json", "--role", "webhooks"], user="deploy"
        ).stdout
    )["jobs"]
    text = demo_host.run([demo_host.worktop, "job", stuck[0]["id"]], user="deploy").stdout
    assert "verdict    DEAD" in text
    assert "no longer exists" in text


def test_doctor(demo_host: DemoHost) -> None:
    checks = json.loads(demo_host.run([demo_host.worktop, "doctor", "--json"], user="deploy").stdout)
    states = {check["name"]: check["state"] for check in checks}
    assert states["systemd"] == states["database"] == states["indexes"] == states["clock"] == "ok"
    assert states["crontabs"] == "warning"


def test_doctor_prints_the_index_that_is_missing(demo_host: DemoHost) -> None:
    psql = ["/usr/local/lib/worktop-demo/pgsql/psql", "-h", "/run/postgresql", "-U", "postgres", "-Atqc"]
    name = demo_host.run(
        [*psql, "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'worktop_jobs_failed%'", "app"]
    ).stdout.strip()
    definition = demo_host.run([*psql, f"SELECT pg_get_indexdef('{name}'::regclass)", "app"]).stdout.strip()
    demo_host.run([*psql, f"DROP INDEX {name}", "app"])
    try:
        text = demo_host.run([demo_host.worktop, "doctor"], user="deploy", check=False).stdout
        assert re.search(rf"CREATE INDEX CONCURRENTLY (IF NOT EXISTS )?{name}", text), text
    finally:
        demo_host.run([*psql, definition, "app"])


def test_without_any_configuration_every_template_is_shown(demo_host: DemoHost) -> None:
    demo_host.run(["mv", "/etc/worktop/worktop.toml", "/etc/worktop/away"])
    try:
        text = demo_host.run([demo_host.worktop, "status"]).stdout
    finally:
        demo_host.run(["mv", "/etc/worktop/away", "/etc/worktop/worktop.toml"])
    assert re.search(r"mail-worker +3/3", text), text
    assert "thumbnails-worker" in text
    assert "no worktop.toml" in text
