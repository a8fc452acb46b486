"""What a script keeps in variables and arrays reaches the command as a real shell hands it over."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoctor.case.settings import WrittenSetting
from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.patch import patch
from oomdoctor.configs.readers.command_line import read_command_line

BASH = shutil.which("bash")
PROGRAM = "python() { printf '%s\\0' \"$@\"; }\n"
"""Shows what the program would get."""
needs_bash = pytest.mark.skipif(BASH is None, reason="needs bash")


def handed_over(script: str) -> list[str]:
    """The words after `python`, as bash gives them."""
    done = subprocess.run([str(BASH), "-c", PROGRAM + script], capture_output=True, text=True, check=True, timeout=600)
    return done.stdout.split("\0")[:-1]


def program(script: str) -> list[WrittenSetting]:
    """The settings of the program."""
    return [one for sheet in read_command_line("r.sh", script) if sheet.form == "command" for one in sheet.written]


def said(script: str) -> list[tuple[str, object]]:
    return [(one.key, one.value) for one in program(script)]


SCRIPTS = [
    ("options in double quotes", 'A="--a 1 --b"\npython t.py $A --c 2\n'),
    ("options in single quotes", "A='--a 1 --b'\npython t.py $A\n"),
    ("one option in quotes", 'A="--b"\npython t.py $A\n'),
    ("options over several lines", 'A="\n  --a 1\n  --b x\n"\npython t.py $A\n'),
    ("options over several lines that go on", 'A=" \\\n  --a 1 \\\n  --b x"\npython t.py ${A} --c\n'),
    ("an array", 'A=(--a 1 --b)\npython t.py "${A[@]}"\n'),
    ("an array with a line for each option and comments", 'A=(\n  --a 1  # one\n  # --z 9\n  --b "x y"\n)\npython t.py "${A[@]}" --c 3\n'),
    ("an array with a blank after its bracket", "A=( --a 1 )\npython t.py ${A[*]}\n"),
    ("an array that grows", 'A=(--a 1)\nA+=(--b 2)\npython t.py "${A[@]}"\n'),
    ("an empty array", 'A=()\npython t.py "${A[@]}" --c 3\n'),
    ("an array of an array", 'A=(--a 1)\nB=("${A[@]}" --b 2)\npython t.py "${B[@]}"\n'),
    ("a text that grows", 'A="--a 1"\nA="$A --b 2"\npython t.py $A\n'),
    ("a text that is added to", 'A="--a 1"\nA+=" --b 2"\npython t.py $A\n'),
    ("an array whose words have blanks, not in quotes", 'A=("--a 1" "--b 2")\npython t.py ${A[@]} --c 3\n'),
    ("an array whose words have blanks, in quotes", 'A=(--a "x y")\npython t.py "${A[@]}" --c 3\n'),
    ("a text that begins empty", 'A=""\nA="$A --b 2"\npython t.py $A --c 3\n'),
    ("a variable in a list", 'N=4\nA="--a $N --b ${N}x"\npython t.py $A\n'),
    ("a variable that changes afterwards", 'N=4\nA="--a $N"\nN=5\npython t.py $A\n'),
    ("the whole command in a variable", 'C="python t.py --a 1"\n$C --b 2\n'),
    ("the whole command for eval", 'O="--a 1"\nC="python t.py $O --b 2"\neval "$C"\n'),
    ("variables of its own in the command", 'C="X=1 python t.py --a 1"\neval $C\n'),
    ("the whole command in an array", 'C=(python t.py --a 1)\n"${C[@]}" --b 2\n'),
    ("two lists in one line", 'A="--a 1" B="--b 2"\npython t.py $A $B\n'),
    ("an exported list", 'export A="--a 1 --b"\npython t.py $A\n'),
    ("a list of a function", 'f() {\nlocal A=(--a 1)\npython t.py "${A[@]}"\n}\nf\n'),
    ("a text in quotes stays one word", 'A="x y"\npython t.py --a "$A"\n'),
    ("a sentence with a bracket stays one word", 'A="what (x"\npython t.py --a "$A" --b 1\n'),
    ("a list in quotes stays one word", 'A="--a 1"\npython t.py --z "$A"\n'),
    ("a word with brackets is no array", "python t.py --a 'f=(x' --b 'y)'\n"),
    ("an override with blanks is no list", 'python t.py a="x y" b=1\n'),
    ("a text with two commands is no list", 'A="x; y"\npython t.py --a "$A"\n'),
    (
        "a default that an argument replaces",
        'A=7\nwhile [ "$1" != "" ]; do\n  case $1 in\n    -a | --a )\n      shift\n      A=$1\n      ;;\n  esac\ndone\npython t.py --b "$A"\n',
    ),
    ("an argument with a default", "A=${1:-7}\npython t.py --b $A\n"),
    ("a variable that a branch sets", 'if true; then A="--a 1 --c"; fi\npython t.py --b 2 $A\n'),
    ("an empty variable is no word", 'A=""\npython t.py $A --c 3\n'),
    ("an empty word in quotes is one", 'python t.py --a "" --c 3\n'),
]


@needs_bash
@pytest.mark.parametrize("script", [pytest.param(script, id=says) for says, script in SCRIPTS])
def test_a_shell_hands_over_the_same(script: str) -> None:
    assert said(script) == said(shlex.join(["python", *handed_over(script)]))
    assert said(script)


WORDS = st.sampled_from(["--a", "--b=2", "1", "x", "c.yaml", "'x y'", '"p q"', "k=v", "-3", "--flag"])
LISTS = st.lists(WORDS, min_size=1, max_size=6)
BETWEEN = st.sampled_from([" ", "  ", "\n", "\n    ", "  # why\n", "\t"])
PLAIN = st.lists(st.sampled_from(["--a", "--b=2", "1", "x", "k=v", "-3", "--flag"]), min_size=2, max_size=6)


@needs_bash
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrays=st.lists(LISTS, min_size=1, max_size=3), texts=st.lists(PLAIN, max_size=3), between=BETWEEN)
def test_any_arrays_and_texts(arrays: list[list[str]], texts: list[list[str]], between: str) -> None:
    script = "".join(f"A{number}=({between.join(words)}{between})\n" for number, words in enumerate(arrays))
    joined = " \\\n " if "\n" in between else " "
    script += "".join(f'T{number}="{joined.join(words)}"\n' for number, words in enumerate(texts))
    used = [f'"${{A{number}[@]}}"' for number in range(len(arrays))] + [f"$T{number}" for number in range(len(texts))]
    script += f"python t.py --first 0 {' '.join(used)}\n"
    assert said(script) == said(shlex.join(["python", *handed_over(script)]))


def test_every_option_of_a_list_keeps_its_line() -> None:
    script = 'A=(\n  --a 1\n  --b 2\n)\nB=" \\\n  --c 3 \\\n  --d 4"\npython t.py "${A[@]}" $B --e 5\n'
    assert [(one.key, one.line) for one in program(script)] == [("--a", 2), ("--b", 3), ("--c", 6), ("--d", 7), ("--e", 8)]


@pytest.mark.parametrize("script", [
    pytest.param('A="-x y"\n' + 'A="$A $A"\n' * 60 + "python t.py $A\n", id="a text that doubles"),
    pytest.param("A=(-x y)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60 + 'python t.py "${A[@]}"\n', id="an array that doubles"),
    pytest.param("A=(" + "-x " * 200_000, id="an array without an end"),
    pytest.param('A="' + "-x y " * 5000 + '"\n' + "python t.py $A\n" * 200, id="a list that is used again and again"),
])  # fmt: skip
def test_what_grows_without_bound_is_cut(script: str) -> None:
    assert len(program(script)) <= 20_000


EDITS = [
    ("an option of an array", 'A=(\n  --bs 8  # big\n)\npython t.py "${A[@]}"\n', "--bs", "2", 'A=(\n  --bs 2  # big\n)\npython t.py "${A[@]}"\n'),
    ("the last option of an array", 'A=(--x 1 --bs 8)\npython t.py "${A[@]}"\n', "--bs", "2", 'A=(--x 1 --bs 2)\npython t.py "${A[@]}"\n'),
    ("an option of a text", 'A=" \\\n  --bs 8 \\\n  --x"\npython t.py $A\n', "--bs", "2", 'A=" \\\n  --bs 2 \\\n  --x"\npython t.py $A\n'),
    ("a variable of a text", 'N=8\nA="--bs $N --x"\npython t.py $A\n', "--bs", "2", 'N=2\nA="--bs $N --x"\npython t.py $A\n'),
    ("a new option of a command with an array", 'A=(--x 1)\npython t.py "${A[@]}"\n', "--bs", "2", 'A=(--x 1)\npython t.py "${A[@]}" --bs 2\n'),
    ("a new option of a command in a text", 'C="python t.py --x 1"\neval $C\n', "--bs", "2", 'C="python t.py --x 1 --bs 2"\neval $C\n'),
    ("a new option of a command in an array", 'C=(python t.py\n  --x 1\n)\n"${C[@]}"\n', "--bs", "2", 'C=(python t.py\n  --x 1 --bs 2\n)\n"${C[@]}"\n'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "to", "after"), [pytest.param(*row[1:], id=row[0]) for row in EDITS])
def test_an_edit_goes_where_the_option_stands(text: str, key: str, to: str, after: str) -> None:
    change = ConfigChange(file="r.sh", key=key, to=to, program="python t.py")
    found = patch("r.sh", text.encode(), [change])
    assert ([why.why.en for _, why in found.refusals], found.data.decode()) == ([], after)
    assert patch("r.sh", found.data, [change]).already == (change,)


@pytest.mark.parametrize(("text", "key", "to", "why"), [
    pytest.param('A="--bs 8 --x"\npython t.py $A\n', "--bs", "a b", "quotes inside quotes", id="a value with a blank in a text"),
    pytest.param('A="--bs 8"\npython a.py $A\npython b.py $A\n', "--bs", "2", "more than this setting", id="a text for two commands"),
    pytest.param('python t.py --x 1 "$@"\n', "--bs", "2", "outside the script", id="words from outside"),
])  # fmt: skip
def test_an_edit_is_refused(text: str, key: str, to: str, why: str) -> None:
    ((_, refused),) = patch("r.sh", text.encode(), [ConfigChange(file="r.sh", key=key, to=to)]).refusals
    assert why in refused.why.en
