"""A diagnosis as lines: all of it is said, within the width, and nothing of it harms a terminal."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from console.fleet.diagnosis.model import Diagnosis
from console.view.cells import part_columns, plain
from console.view.diagnosis import TONES, diagnosis_sections, diagnosis_text, title_parts
from console.view.glyphs import ASCII, UNICODE
from console.view.sections import section_lines
from tests.examples import diagnoses
from tests.tui.hostile import HOSTILE, harmless, spoil


def test_a_role_says_its_verdict_its_workers_and_its_examination() -> None:
    text = diagnosis_text(diagnoses(), 100, UNICODE)
    assert text.startswith("VERDICT\n× crash loop  thumbnails\n")
    assert "@4  × killed by limit  it was killed by its memory limit 256M" in text
    assert "restart?    Do not restart" in text and "EXAMINATION" in text
    assert "Does its main process exist" not in text
    assert "Does its main process exist" in diagnosis_text(diagnoses(), 100, UNICODE, every=True)


def test_every_worker_can_be_jumped_to() -> None:
    names = [section.name for section in diagnosis_sections(diagnoses(), 80, UNICODE)]
    assert names == ["VERDICT", "WORKERS", "EXAMINATION", "@1", "@2", "@3", "@4"]


def test_commands_are_not_broken_by_a_capital() -> None:
    one = Diagnosis(
        role="mail", verdict="hung", sentence="x.service y", next="pid 3", do_not="do not", commands=("kill -CONT 3",)
    )
    text = diagnosis_text((one,), 80, ASCII)
    assert "x hung  mail\nx.service y\nnext step   pid 3\n" in text and "with        kill -CONT 3" in text


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 140),
    st.sampled_from([UNICODE, ASCII]),
    st.lists(st.sampled_from(HOSTILE) | st.text(max_size=20), max_size=3),
)
def test_lines_fit_and_are_harmless(width: int, glyphs: object, texts: list[str]) -> None:
    assert glyphs in (UNICODE, ASCII)
    found = spoil(diagnoses(), "".join(texts))
    shown = UNICODE if glyphs is UNICODE else ASCII
    for line in section_lines(diagnosis_sections(found, width, shown)):
        if line and line[0][1] != "head":
            assert part_columns(line) <= width, plain(line)
        assert harmless(plain(line))
    assert harmless(plain(title_parts(found[0], shown)))


def test_every_verdict_has_a_tone() -> None:
    from typing import get_args

    from console.fleet.diagnosis.model import WORST_FIRST, DiagnosisVerdict

    assert set(TONES) == set(WORST_FIRST) == set(get_args(DiagnosisVerdict))
