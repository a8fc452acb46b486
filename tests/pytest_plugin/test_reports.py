"""What the report of a failing test is given: the diagnosis, what its traceback held, what it leaks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_plugin.sessions import Run, outcomes, text_of

from oomdoctor.pytest_plugin.leaks import growth
from oomdoctor.pytest_plugin.session import key_of_test

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
FAILS = "def test_a():\n    x = mib(3000)\n    parts = [mib(1000), {'y': mib(2000)}]\n    mib(4000)\n"


def test_a_failure_of_memory_has_its_diagnosis(run: Run) -> None:
    text = text_of(run(FAILS))
    assert "- oomdoctor -" in text and "GPU memory ran out on GPU 0: 3.91 GiB requested, 2.14 GiB of 8.00 GiB free." in text
    assert "\n1. " in text and "\n3. " in text and "\n4. " not in text


def test_the_diagnosis_is_in_the_language_of_the_locale(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    text = text_of(run(FAILS))
    assert "GPU 0 显存不足" in text and "它的 traceback 仍在 cuda:0 上占着" in text


@pytest.mark.parametrize(
    ("body", "is_memory"),
    [
        pytest.param("raise MemoryError", True, id="the host's memory"),
        pytest.param("try: mib(9000)\n    except RuntimeError as error: raise ValueError('no batch') from error", True, id="its cause"),
        pytest.param("assert 'out of memory' == 'x'", False, id="a test about the message"),
        pytest.param("raise ValueError('a wrong value')", False, id="another error"),
        pytest.param("pytest.skip('out of memory')", False, id="a skip"),
    ],
)
def test_only_failures_of_memory_are_diagnosed(run: Run, body: str, is_memory: bool) -> None:
    assert ("- oomdoctor -" in text_of(run(f"def test_a():\n    {body}\n"))) == is_memory


def test_what_a_traceback_held_is_named_and_let_go(run: Run) -> None:
    result = run(FAILS + "def test_b(): assert torch.cuda.memory_allocated(0) == 0\n")
    assert outcomes(result) == {"failed": 1, "passed": 1}
    text = " ".join(text_of(result).split())
    assert "kept 5.86 GiB alive on cuda:0 after it ended: x in test_memory.py:6 (2.93 GiB), parts in test_memory.py:6 (2.93 GiB)" in text


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("KEPT = mib(50)\ndef test_a():\n    x = KEPT\n    assert 0\n", id="the module holds it too"),
        pytest.param(
            "@pytest.fixture(scope='session')\ndef model(): return mib(50)\ndef test_a(model): assert 0\n",
            id="a fixture of the session does",
        ),
        pytest.param("def test_a():\n    x = mib(50)\n    del x\n    assert 0\n", id="the test let it go"),
        pytest.param("def test_a():\n    x = mib(50)\n", id="the test passes"),
    ],
)
def test_what_is_held_elsewhere_is_not_the_tracebacks(run: Run, code: str) -> None:
    assert "This test's traceback kept" not in text_of(run(code))


def test_what_led_to_the_failure_is_held_too(run: Run) -> None:
    code = "def inner():\n    y = mib(9)\n    raise KeyError\ndef test_a():\n    try: inner()\n    except KeyError: raise ValueError\n"
    assert "y in test_memory.py:5 (9.00 MiB)" in text_of(run(code))


def test_a_leak_names_what_is_left(run: Run) -> None:
    text = text_of(run("KEPT = []\n@pytest.mark.gpu_memory_leak\ndef test_a(): KEPT.append(mib(2))\n"))
    assert (
        "each run leaves about 2.00 MiB; over 10 runs, memory in use went from 12.00 MiB to 32.00 MiB; left behind: 10 x uint8[2097152]"
        in text
    )


def test_without_a_device_a_test_is_not_repeated(run: Run) -> None:
    assert outcomes(run("RUNS = []\n@pytest.mark.gpu_memory_leak\ndef test_a():\n    RUNS.append(1)\n    assert len(RUNS) == 1\n")) == {
        "passed": 1
    }


@pytest.mark.parametrize(
    ("sizes", "each"),
    [
        pytest.param((0, 1, 2, 3, 4, 5), 1.0, id="each run"),
        pytest.param((0, 0, 1, 1, 2, 2, 3, 3), 0.5, id="every second run"),
        pytest.param((0, 9, 9, 10, 11, 12), 1.0, id="behind a cache"),
        pytest.param((0, 5, 5, 5, 5, 5), None, id="a cache that fills"),
        pytest.param((0, 1, 2, 2, 2, 2), None, id="a cache that fills in the first half"),
        pytest.param((0, 1, 0, 1, 0, 1), None, id="by turns"),
        pytest.param((0, 3, 4, 2, 5, 6), None, id="it fell once"),
        pytest.param((4, 4, 4, 4, 4, 5), None, id="one rise"),
        pytest.param((7,), None, id="no run"),
    ],
)
def test_growth(sizes: tuple[int, ...], each: float | None) -> None:
    assert growth(sizes, 0, rises=2) == each
    assert each is None or growth(sizes, round(each + 0.5), rises=2) is None, "what is allowed is no leak"


@pytest.mark.parametrize(
    ("nodeid", "key"),
    [
        pytest.param("a.py::test_b@group", "a.py::test_b", id="a group"),
        pytest.param("a.py::test_b[x@y]@group", "a.py::test_b[x@y]", id="a group behind a value with the sign"),
        pytest.param("a.py::test_b[x@y]", "a.py::test_b[x@y]", id="a value with the sign"),
        pytest.param("a@b.py::test_b", "a@b.py::test_b", id="a file with the sign"),
    ],
)
def test_the_group_of_xdist_is_no_part_of_a_name(nodeid: str, key: str) -> None:
    assert key_of_test(nodeid) == key


def test_nothing_heavy_is_loaded_for_tests_without_marks(tmp_path: Path) -> None:
    heavy = ("torch", "msgspec", "yaml", "click", "rich", "oomdoctor.api", "oomdoctor.report", "oomdoctor.record")
    (tmp_path / "test_x.py").write_text(f"import sys\ndef test_x(): assert [name for name in {heavy!r} if name in sys.modules] == []\n")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "oomdoctor.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
