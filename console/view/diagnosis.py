"""Pure: a diagnosis as sections of lines; the screen and `worktop diagnose` show the same ones."""

from __future__ import annotations

from collections.abc import Sequence

from console.fleet.diagnosis.model import Diagnosis, DiagnosisVerdict, Examined, StepState
from console.text import pad
from console.view.cells import Part, Tone, columns, fit_parts, plain, safe, safe_block, wrap
from console.view.glyphs import Glyphs
from console.view.sections import Section, section_lines

Parts = tuple[Part, ...]
TONES: dict[DiagnosisVerdict, Tone] = {
    "healthy": "ok",
    "working slowly": "warn",
    "hung": "bad",
    "crash loop": "bad",
    "stopped on purpose": "warn",
    "killed by limit": "bad",
    "misconfigured": "bad",
    "owned by somebody else": "bad",
    "not permitted to see": "note",
}
_STEP_TONES: dict[StepState, Tone] = {"ok": "ok", "warning": "warn", "fault": "bad", "unknown": "note"}
_STEP_WORDS: dict[StepState, str] = {"ok": "ok", "warning": "look", "fault": "fault", "unknown": "?"}
_WIDEST = 120
_WORD = max(columns(word) for word in _STEP_WORDS.values()) + 2
_LABEL = 12
_EVIDENCE = 8  # sentences of one answer


def sign(verdict: DiagnosisVerdict, glyphs: Glyphs) -> str:
    """The sign that stands before a verdict."""
    tone = TONES[verdict]
    return {"ok": glyphs.good, "warn": glyphs.warning, "note": glyphs.unknown}.get(tone, glyphs.bad)


def subject_parts(diagnosis: Diagnosis) -> Parts:
    """ "thumbnails @2"."""
    name = f" {safe(diagnosis.name, 40)}" if diagnosis.name else ""
    return ((safe(diagnosis.role, 40), "head"), (name, "head"))


def title_parts(diagnosis: Diagnosis, glyphs: Glyphs) -> Parts:
    """ "thumbnails @2  × crash loop"."""
    word = f"  {sign(diagnosis.verdict, glyphs)} {diagnosis.verdict}"
    return (*subject_parts(diagnosis), (word, TONES[diagnosis.verdict]))


def diagnosis_sections(
    found: Sequence[Diagnosis], width: int, glyphs: Glyphs, every: bool = True
) -> tuple[Section, ...]:
    """The first one in full; of a role that is the role, and its workers follow: in one line each, and with `every`
    in full as well."""
    if not found:
        return ()
    width = max(1, min(_WIDEST, width))
    first, *workers = found
    sections = [Section("VERDICT", verdict_lines(first, width, glyphs))]
    if workers:
        sections.append(Section("WORKERS", _worker_lines(workers, width, glyphs)))
    sections.append(Section("EXAMINATION", examination_lines(first.steps, width, glyphs)))
    for diagnosis in workers if every else ():
        lines = (*verdict_lines(diagnosis, width, glyphs), (), *examination_lines(diagnosis.steps, width, glyphs))
        sections.append(Section(safe(diagnosis.name, 24) or "WORKER", lines))
    return tuple(sections)


def verdict_lines(diagnosis: Diagnosis, width: int, glyphs: Glyphs) -> tuple[Parts, ...]:
    """The verdict, the next step and why not to restart."""
    lines = wrap(
        (
            (f"{sign(diagnosis.verdict, glyphs)} {diagnosis.verdict}", TONES[diagnosis.verdict]),
            (f"  {plain(subject_parts(diagnosis))}", "strong"),
        ),
        width,
        2,
    )
    lines += wrap(((safe_block(_sentence(diagnosis.sentence)), ""),), width)
    lines += _field("next step", diagnosis.next, "key", width)
    lines += _field("restart?", diagnosis.do_not, "", width)
    for number, command in enumerate(diagnosis.commands):
        lines += _field("with" if not number else "", command, "strong", width, whole=False)
    return tuple(lines)


def _field(label: str, text: str, tone: Tone, width: int, whole: bool = True) -> list[Parts]:
    said = _sentence(text) if whole else text
    return wrap(((f"{pad(label, _LABEL)}", "dim"), (safe(said, 600), tone)), width, _LABEL) if text else []


def _sentence(text: str) -> str:
    """With a capital letter; file names, units and ids keep theirs."""
    head = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if head.isalpha() and head.islower() and head != "pid" else text


def _worker_lines(workers: Sequence[Diagnosis], width: int, glyphs: Glyphs) -> tuple[Parts, ...]:
    names = max(min(columns(safe(each.name, 24)), 24) for each in workers)
    words = max(len(each.verdict) for each in workers)
    return tuple(
        fit_parts(
            (
                (f"{pad(safe(each.name, 24), names)}  ", "strong"),
                (f"{sign(each.verdict, glyphs)} {each.verdict:<{words}}  ", TONES[each.verdict]),
                (safe(each.sentence, 400), ""),
            ),
            width,
        )
        for each in workers
    )


def examination_lines(steps: Sequence[Examined], width: int, glyphs: Glyphs) -> tuple[Parts, ...]:
    """Each question with its answer and what that rests on."""
    lines: list[Parts] = []
    for step in steps:
        lines += wrap(((" " * _WORD, ""), (safe(step.asked), "dim")), width, _WORD)
        word = _STEP_WORDS[step.state]
        tone = _STEP_TONES[step.state]
        lines += wrap(((f"{word:<{_WORD}}", tone), (safe(step.answer, 600), "")), width, _WORD)
        for sentence in step.evidence[:_EVIDENCE]:
            lines += wrap(((f"{' ' * _WORD}{glyphs.bullet} ", "dim"), (safe(sentence, 400), "dim")), width, _WORD + 2)
        if len(step.evidence) > _EVIDENCE:
            lines += wrap(((f"{' ' * _WORD}  {len(step.evidence) - _EVIDENCE} more", "dim"),), width, _WORD + 2)
    return tuple(lines)


def diagnosis_text(found: Sequence[Diagnosis], width: int, glyphs: Glyphs, every: bool = False) -> str:
    """The sections as plain text."""
    return "\n".join(plain(line).rstrip() for line in section_lines(diagnosis_sections(found, width, glyphs, every)))
