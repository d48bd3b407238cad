"""What can be asked for with a selection."""

from __future__ import annotations

import msgspec

from console.fleet.model import Job, JobState
from console.fleet.plan import Consent, RowRef
from console.view.offers import (
    Held,
    Offer,
    choice_offer,
    find_role,
    job_offers,
    read_only_reason,
    refusal,
    role_offers,
    undo_offer,
    worker_offers,
)
from tests.examples import counts, example_fleet, with_paused
from tests.tui.still_actions import dead_claim


def held(state: JobState, id: str = "1", role: str = "mail", token: str = "t") -> Held:
    return Held(job=Job(id=id, state=state, token=token), role=role)


def ids(offers: tuple[Offer, ...]) -> list[str]:
    return [offer.id for offer in offers]


def test_each_state_has_its_own() -> None:
    switches = ["pause", "resume"]
    assert job_offers([]) == ()
    assert ids(job_offers([held("running")])) == ["reclaim", "quarantine", "reclaim-all", *switches]
    assert ids(job_offers([held("failed")])) == ["retry", "discard", "retry-all", *switches]
    assert ids(job_offers([held("waiting")])) == ["run-now", "priority", "discard", *switches]
    assert ids(job_offers([held("done")])) == switches


def test_the_rows_that_were_seen_and_no_others() -> None:
    offers = job_offers([held("running", "1", token="a"), held("running", "2", token="b"), held("failed", "3")])
    reclaim = offers[0]
    assert reclaim.request.rows == (RowRef("1", "a"), RowRef("2", "b"))
    assert reclaim.label == "reclaim 2 jobs of mail"
    assert next(offer for offer in offers if offer.id == "discard").request.rows == (RowRef("3", "t"),)


def test_marked_jobs_that_are_not_loaded_are_left_out_and_that_is_said() -> None:
    offers = job_offers([held("failed")], 3)
    assert offers[0].help == "without 3 marked that are not loaded: scroll to them first"
    assert "3 marked" not in offers[2].help


def test_jobs_of_several_roles_have_no_action_on_a_role() -> None:
    offers = job_offers([held("running", "1", "mail"), held("running", "2", "reports")])
    assert ids(offers) == ["reclaim", "quarantine"]
    assert offers[0].request.role == ""


def test_the_menu_says_what_is_known_of_the_holders() -> None:
    claim = dead_claim()
    one = Held(job=claim.job, role=claim.role, claim=claim)
    assert "the holder is dead" in job_offers([one])[0].help
    assert "every holder is dead" in job_offers([one, one])[0].help
    assert "who holds them" in job_offers([one, held("running")])[0].help
    ended = msgspec.structs.replace(claim, verdict="FINISHED_BUT_CLAIMED")
    assert "done with it" in job_offers([Held(job=claim.job, role="x", claim=ended)])[0].help


def test_a_role_says_when_there_is_nothing_to_do() -> None:
    fleet = example_fleet()
    thumbnails, mail = find_role(fleet, "thumbnails"), find_role(fleet, "mail")
    assert thumbnails is not None and mail is not None
    assert role_offers(None) == () == role_offers(find_role(fleet, "nobody"))
    assert role_offers(thumbnails)[0].request.verdicts == ("DEAD",)
    assert role_offers(thumbnails)[0].lacking == ""
    assert role_offers(mail)[0].lacking == "no job is stuck of mail"
    none = msgspec.structs.replace(mail, queue=counts("mail", 1, 1.0, 0, 0, 0), stuck=0)
    assert role_offers(none)[1].lacking == "no job failed of mail"
    assert [offer.lacking for offer in role_offers(find_role(with_paused(fleet, "mail"), "mail"))[2:]] == [
        "it is paused",
        "",
    ]
    unread = msgspec.structs.replace(mail, queue=None, stuck=None)
    assert [offer.lacking for offer in role_offers(unread)] == ["", "", "", ""]


def test_a_worker_offers_the_jobs_it_holds() -> None:
    status = find_role(example_fleet(), "thumbnails")
    offers = worker_offers([dead_claim()], status)
    assert ids(offers) == ["reclaim", "reclaim-all", "retry", "pause", "resume"]
    assert offers[0].request.rows == (RowRef("918233", "t-1"),)
    assert ids(worker_offers([], status)) == ["reclaim", "retry", "pause", "resume"]


def test_choices_for_rows_that_could_not_be_moved() -> None:
    offer = choice_offer("worktop discard --id 12,13")
    assert offer is not None
    assert offer.request.verb == "discard" and offer.request.rows == (RowRef("12"), RowRef("13"))
    for other in ("rm -rf /", "worktop undo 12", "worktop discard --role mail", "worktop restart --id 1", ""):
        assert choice_offer(other) is None


def test_refused_and_read_only() -> None:
    no = Consent(kind="refused", why=("--read-only was given",))
    offer = undo_offer("p", "Reclaim [/x]\x1b")
    assert "\x1b" not in offer.label
    assert refusal(offer.request, None) is None
    assert refusal(offer.request, {"undo": no}) is no
    assert refusal(offer.request, {"undo": Consent()}) is None
    assert read_only_reason(None) == "" == read_only_reason({"pause": no, "retry": Consent()})
    assert read_only_reason({"pause": no, "retry": no, "stop": Consent()}) == "--read-only was given"
    assert read_only_reason({"pause": Consent(kind="refused")}) == "nothing may be changed"
