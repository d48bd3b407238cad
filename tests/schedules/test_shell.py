from __future__ import annotations

import pytest

from console.schedules import marks
from console.schedules.model import ScriptText
from console.schedules.shell.interpret import interpret
from console.schedules.shell.values import Reading


def reading(text: str, environment: dict[str, str] | None = None, **scripts: str) -> Reading:
    """`scripts`: a_sh="…" is /a.sh."""
    files = {f"/{name.replace('_', '.')}": script for name, script in scripts.items()}
    return interpret(
        text,
        environment={"HOME": "/home/u", **(environment or {})},
        home="/home/u",
        user="u",
        read=lambda path: ScriptText(path=path, text=files[path]) if path in files else None,
    )


def run(text: str, environment: dict[str, str] | None = None, **scripts: str) -> list[str]:
    """What is started, as a person writes it down; words with blanks in quotes."""
    found = []
    for command in reading(text, environment, **scripts).commands:
        if command.inner and not command.followed and not command.around.substitution:
            shown = map(marks.shown, command.inner)
            found.append(" ".join(f"'{word}'" if " " in word or not word else word for word in shown))
    return found


@pytest.mark.parametrize(
    ("text", "started"),
    [
        ("""w 'a $A' "b $A" a\\ b $A "$(date +%F)" 2>&1 >/dev/null""", ["w 'a $A' 'b 9' 'a b' 9 '$(date +%F)'"]),
        ("w ${X:-none} ${A:-none} ${Y} ${A:+set}", ["w none 9 ${Y} set"]),
        ("F=/x/y.tar.gz; w ${F##*/} ${F%%.*} ${F%.gz} ${F#/x} ${F/tar/zip} ${#F} ${F:3:1}",
         ["w y.tar.gz /x/y /x/y.tar /y.tar.gz /x/y.zip.gz 11 y"]),
        ("B='a  b'; w $B \"$B\" '' \"\"", ["w a b 'a  b' '' ''"]),
        ("L=(a 'b c'); L+=(d); w \"${L[@]}\" ${#L[@]} ${L[1]}", ["w a 'b c' d 3 b c"]),
        ("w $((2+3*2)) $((A-1)) $(( A > 3 ? 1 : 0 ))", ["w 8 8 1"]),
        ("w $(seq -s, 3) $(printf '%02d' 7) $(basename /a/b.sh .sh) $(dirname /a/b)", ["w 1,2,3 07 b /a"]),
        ("w $'a\\nb' \\\n c", ["w a\nb c"]),
        ("set -- a b c; shift; w \"$@\" $# $1", ["w b c 2 b"]),
        ("f() { w $1 ${2:-d}; return; v; }; f 1; f 1 2", ["w 1 d", "w 1 2"]),
        ("g=1; (g=2; w $g); w $g", ["w 2", "w 1"]),
        ("for i in 1 2; do w $i; done; for j in {a..c}; do v $j; done", ["w <i>", "w <i>", "v <j>", "v <j>", "v <j>"]),
        ("i=0; while [ $i -lt 2 ]; do w $i; i=$((i+1)); done", ["w <i>", "w <i>"]),
        ("for ((n=1; n<=2; n++)); do w $n & done", ["w <n>", "w <n>"]),
        ("for i in 1 2 3; do [ $i = 2 ] && continue; w $i; done", ["w <i>", "w <i>"]),
        ("for i in 1 2 3; do [ $i = 2 ] && break; w $i; done; v", ["w <i>", "v"]),
        ("case $A in 1) w;; 9|8) v;; *) u;; esac", ["v"]),
        ("case $Z in 1) w;; *) u;; esac", ["w", "u"]),
        ("if [ $A -gt 3 ]; then w; else v; fi; if true; then u; fi", ["w", "u"]),
        ("[ -f /x ] && w || v", ["w", "v"]),
        ("true && w || v; false && w; false || v; ! false && u", ["w", "v", "v", "u"]),
        ("[ -n \"$A\" ] && exit; w", []),
        ("[ -f /x ] && exit; w", ["w"]),
        ("exec w; v", ["w"]),
        ("eval \"w $A\"; e='v x'; $e", ["w 9", "v x"]),
        ("sh -c 'w $0 $1' a b; bash -lc \"w '$A'\"", ["w a b", "w 9"]),
        ("/a.sh 1 2", ["w 1 2"]),
        (". /b.sh; w $C", ["w $C"]),
        ("printf 'a\\nb\\n' | while read x; do w $x; done", ["w <x>", "w <x>"]),
        ("while read -r x y; do w $x $y; done <<E\n1 2\nE\n", ["w <x> <y>"]),
        ("echo a b | xargs -n1 w -x; parallel v {} ::: 1 2", ["w -x <item>", "w -x <item>", "v <item>", "v <item>"]),
        ("T='x y'; export T; w $T \"$T\" $T/z", ["w x y $T x y/z"]),
        ("cat <<E | w\nnot run\nE\n# nor this\nv", ["w", "v"]),
        ("w 'à x' 日本 \"…\"", ["w 'à x' 日本 …"]),
    ],
)  # fmt: skip
def test_what_is_run(text: str, started: list[str]) -> None:
    found = run(f"A=9; {text}", a_sh="#!/bin/sh\nw $1 $2\n", b_sh="set -a\nC=5\nset +a\n")
    assert [each for each in found if not each.startswith(("cat", "seq", "printf", "echo", "date"))] == started


def test_folders_users_and_descriptors() -> None:
    found = reading(
        "cd /srv && (cd x; w) && v; pushd /tmp; u; popd; su - app -c 'cd log; w2 >> o 2>&1'; "
        "exec 9>/run/l; flock -n 9; z"
    )
    places = {command.words[0]: command for command in found.commands if command.inner}
    assert [places[name].folder for name in ("w", "v", "u", "z")] == ["/srv/x", "/srv", "/tmp", "/srv"]
    assert (places["w2"].folder, places["w2"].around.user) == ("/home/app/log", "app")
    assert places["w2"].around.outputs == (("1", ">>", "/home/app/log/o"), ("2", ">&", "1"))
    assert places["z"].locks == ("/run/l",) and not places["w"].locks


def test_what_cannot_be_read_is_told() -> None:
    assert "/missing.sh is not there: what it does is not known" in reading("sh /missing.sh").notes
    assert "/a.sh runs itself: it is followed once" in reading("/a.sh", a_sh="#!/bin/sh\n/a.sh\n").notes
    assert not reading("if then ((").complete
    endless = reading("f() { f; }; f; for a in 1 2 3 4 5 6 7 8 9; do for b in 1 2 3 4 5 6 7 8 9; do x; done; done")
    assert any("calls itself" in note for note in endless.notes)
    long = reading("; ".join(f"for i{n} in $(seq 60)" for n in range(1)) + "; do " + "x; " * 90 + "done")
    assert not long.complete and "it is too long to be followed to its end" in long.notes


def test_characters_the_grammar_cannot_stand_do_no_harm() -> None:
    """Its scanner asks isalpha() of code points beyond the table of the C library: the process died of it."""
    for text in ("${\U000eab6a", "<<\U000eab6a", "${日", "\ud800 ${\uffff}"):
        assert reading(text).commands is not None
