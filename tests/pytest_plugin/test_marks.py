"""What marks and options may say, and which tests are skipped for what they need."""

from __future__ import annotations

import pytest
from pytest_plugin.sessions import Run, outcomes, text_of

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        pytest.param("gpu_memory(limit='much')", "limit: 'much' is not a size (8 GiB, or a number of bytes)", id="a limit that is no size"),
        pytest.param("gpu_memory(limit=-1)", "limit: -1 is not a size", id="a negative limit"),
        pytest.param("gpu_memory(limit=True)", "limit: True is not a size", id="a limit that is a truth value"),
        pytest.param("gpu_memory('1 GiB', '2 GiB')", "one positional argument", id="two limits"),
        pytest.param("gpu_memory(most='1 GiB')", "gpu_memory got an unexpected keyword argument 'most'", id="an unknown argument"),
        pytest.param("gpu_memory(of='card')", "of: 'card' is neither 'test' nor 'process'", id="of something else"),
        pytest.param(
            "gpu_memory(tolerance='some')", "tolerance: 'some' is neither a percentage (10%) nor a size (64MiB)", id="a tolerance"
        ),
        pytest.param("gpu_memory(estimate='Qwen')", "estimate: pass the arguments of oomdoctor.estimate", id="an estimate that is a name"),
        pytest.param("gpu_memory_leak(repeats=2)", "repeats: 2 is less than 3", id="too few repeats"),
        pytest.param("gpu_memory_leak(allowed='a bit')", "allowed: 'a bit' is not a size", id="what is allowed is no size"),
    ],
)
def test_a_mark_that_cannot_be_read_names_its_test(run: Run, mark: str, why: str) -> None:
    result = run(f"@pytest.mark.{mark}\ndef test_a(): pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR and "test_memory.py::test_a: " in text_of(result) and why in text_of(result)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(("--max-vram", "big"), "--max-vram: 'big' is not a size", id="a card that is no size"),
        pytest.param(("--gpu-memory-write",), "--gpu-memory-write needs a file", id="no file to write"),
        pytest.param(("--gpu-memory-tolerance", "x"), "--gpu-memory-tolerance: 'x' is neither", id="no tolerance"),
    ],
)
def test_an_option_that_cannot_be_read(run: Run, options: tuple[str, ...], why: str) -> None:
    result = run("def test_a(): pass\n", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR and why in text_of(result)


RUN = "{'model': 'Qwen2.5-7B', 'settings': {'finetuning': 'full', 'micro_batch': 1, 'sequence_length': 1024}}"


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        pytest.param("gpu_memory(needs='9 GiB')", "needs 9.00 GiB of device memory (as marked); --max-vram allows 8.00 GiB", id="marked"),
        pytest.param("gpu_memory('9 GiB')", "needs 9.00 GiB of device memory (its limit)", id="by its limit"),
        pytest.param(f"gpu_memory(estimate={RUN})", "GiB of device memory (estimated)", id="estimated"),
        pytest.param("skipif(False, reason='')", "needs 8.98 GiB of device memory (recorded in the baseline)", id="by the kept peak"),
        pytest.param("gpu_memory('9 GiB', needs='8 GiB')", None, id="it needs less than its limit"),
        pytest.param("gpu_memory('8 GiB')", None, id="just the size of the card"),
        pytest.param("gpu_memory", None, id="nobody knows"),
    ],
)
def test_what_needs_too_much_is_skipped(run: Run, pytester: pytest.Pytester, mark: str, reason: str | None) -> None:
    kept = {"skipif(False, reason='')": '{"peaks": {"test_memory.py::test_a": 9642000000}}'}.get(mark, "{}")
    (pytester.path / "peaks.json").write_text(kept)
    options = ("--max-vram", "8GiB", "-rs", "--gpu-memory-baseline", "peaks.json")
    result = run(f"@pytest.mark.{mark}\ndef test_a(): pass\ndef test_b(): pass\n", *options)
    assert outcomes(result) == ({"passed": 2} if reason is None else {"passed": 1, "skipped": 1})
    assert reason is None or reason in " ".join(text_of(result).split())


def test_an_estimate_that_cannot_be_made_names_its_test(run: Run) -> None:
    result = run("@pytest.mark.gpu_memory(estimate={'model': 'no such model'})\ndef test_a(): pass\n", "--max-vram", "8GiB")
    assert result.ret == pytest.ExitCode.USAGE_ERROR and "test_memory.py::test_a: the estimate could not be made: " in text_of(result)


def test_the_marks_are_known_to_strict_sessions(run: Run) -> None:
    code = "@pytest.mark.gpu_memory('1 GiB')\n@pytest.mark.gpu_memory_leak\ndef test_a(): pass\n"
    assert outcomes(run(code, "--strict-markers")) == {"passed": 1}
