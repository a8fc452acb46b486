"""`oomdoctor explain`: a page for every id, a message for a quoted piece of one, and help where nothing has that name."""

from __future__ import annotations

import json
from functools import cache

import pytest
from click.testing import CliRunner

from oomdoctor.api.handbook.explain import page_id
from oomdoctor.cli.main import cli
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.document import Document, Facts, Heading, Paragraph, Steps, map_text
from oomdoctor.report.handbook.page import contents_page, rule_page
from oomdoctor.report.render.terminal import render as terminal
from oomdoctor.report.wording.handbook import AREAS
from oomdoctor.report.wording.wording import Wording


@cache
def book() -> Book:
    return Book(load_pack())


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["explain", *arguments])
    return done.exit_code, done.output + str(done.exception or "")


def headings(document: Document) -> list[str]:
    return [block.text for block in document.blocks if isinstance(block, Heading)]


def text_of(document: Document) -> str:
    """All texts of a page, a line each; spans of one paragraph on one line."""
    out: list[str] = []
    for block in document.blocks:
        texts: list[str] = []
        map_text(Document("", (block,)), lambda text, texts=texts: texts.append(text) or text)  # type: ignore[misc]
        out.append(("" if isinstance(block, Paragraph) else "\n").join(texts))
    return "\n".join(out)


NAMES = [
    *book().problems,
    *book().pack.names("fixes"),
    *book().pack.names("sources"),
    *book().areas,
    "problems",
    "fixes",
    "signatures",
    "sources",
]
SIGNATURES = book().pack.names("signatures")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_id_has_a_page_without_holes(lang: str) -> None:
    assert [name for name in (*NAMES, *SIGNATURES[::40]) if has_holes(rule_page(book(), name, Wording(lang), "0"))] == []


def has_holes(document: Document) -> bool:
    text = text_of(document)
    is_filled = not any(start in text for start in ("{event.", "{derived.", "{log."))
    return len(document.blocks) < 2 or not is_filled or any(isinstance(block, Facts) and not block.rows for block in document.blocks)


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", ["fragmentation", "smaller-batch", "nvml-procs-assert", "article-llama31-staircase", "training"])
def test_no_line_of_a_page_is_wider_than_the_terminal(name: str, width: int) -> None:
    from rich.cells import cell_len

    for lang in ("en", "zh"):
        lines = terminal(rule_page(book(), name, Wording(lang), "0"), width=width, color=False, full=True).splitlines()
        assert [line for line in lines if cell_len(line) > width] == []


def test_a_problem_is_explained_with_the_figures_of_its_example() -> None:
    document = rule_page(book(), "working-set-fills-card", Wording("en"), "0")
    assert headings(document)[:4] == ["Why it happens, using the figures from the example", "Certainty", "Example", "What it says"]
    assert "22.71 GiB of 23.65 GiB was in live tensors" in text_of(document)


def test_a_problem_lists_its_fixes_in_order_with_the_keys_of_every_framework() -> None:
    steps = next(
        block for block in rule_page(book(), "working-set-fills-card", Wording("en"), "0").blocks if isinstance(block, Steps)
    ).steps
    named = [book().fix(name).title.en for name in book().problems["working-set-fills-card"].fixes]
    assert [step.title.rstrip(".") for step in steps] == [title.rstrip(".") for title in named]
    keys = {row.value.partition(":")[0] for row in steps[named.index(book().fix("smaller-batch").title.en)].settings}
    assert {"per_device_train_batch_size", "micro_batch_size"} <= keys


def test_what_a_cited_article_gets_wrong_is_corrected_and_not_repeated_as_a_source() -> None:
    text = text_of(rule_page(book(), "variable-length-staircase", Wording("en"), "0"))
    assert text.index("What does not help") < text.index("Reduce context") < text.index("In fact:") < text.index("\nSources\n")
    assert "Reduce context" not in text.partition("\nSources\n")[2]


def test_a_source_shows_each_claim_with_its_verdict() -> None:
    source = book().source("article-nvml-assert")
    paragraphs = [block for block in rule_page(book(), "article-nvml-assert", Wording("en"), "0").blocks if isinstance(block, Paragraph)]
    shown = ["".join(span.text for span in block.spans) for block in paragraphs]
    for claim in source.claims:
        assert any(line.startswith(f"{claim.id} {'partly right' if claim.verdict == 'partly' else claim.verdict}: ") for line in shown)


def test_a_signature_shows_what_is_read_and_what_must_stay_quiet() -> None:
    text = text_of(rule_page(book(), "nvml-procs-assert", Wording("en"), "0"))
    assert "nvmlDeviceGetComputeRunningProcesses" in text
    assert "a monitor without NVML" in text


@pytest.mark.parametrize(("text", "name"), [
    pytest.param("fragmentation", "fragmentation", id="an id"),
    pytest.param("Smaller Batch", "smaller-batch", id="an id with blanks and capitals"),
    pytest.param("near_limit", "near-limit", id="a cause, with an underscore"),
    pytest.param("device", "device", id="an area"),
    pytest.param("DefaultCPUAllocator: can't allocate memory: you tried to allocate 81920 bytes.", "cpu-allocator-linux", id="a message"),
    pytest.param("NCCL WARN Cuda failure", "nccl-cuda-failure-oom", id="a message that is cut"),
    pytest.param("CUDA out of memory", "torch-cuda-oom-head", id="a piece that no message consists of"),
])  # fmt: skip
def test_what_a_text_means(text: str, name: str) -> None:
    assert page_id(book(), text) == name


@pytest.mark.parametrize(("text", "near"), [
    pytest.param("fragmentatin", "fragmentation", id="a slip of the finger"),
    pytest.param("checkpointing", "gradient-checkpointing", id="a word of an id"),
    pytest.param("碎片", "fragmentation-hint-does-not-apply", id="a word of a Chinese title"),
])  # fmt: skip
def test_a_near_miss_is_suggested(text: str, near: str) -> None:
    with pytest.raises(UsageError, match="similar: .*" + near):
        page_id(book(), text)


@pytest.mark.parametrize("text", ["qwertyuiop asdfgh", "\x1b[31m", "x" * 50_000, "{", "\udc80"])
def test_nonsense_is_a_clear_message(text: str) -> None:
    with pytest.raises(UsageError, match="nothing is called"):
        page_id(book(), text)


def test_without_a_name_the_areas_are_listed() -> None:
    text = text_of(contents_page(book(), Wording("en"), "0"))
    assert [area for area in book().areas if f"\n{area}\n" not in f"\n{text}"] == []
    assert run()[0] == 0


def test_json_gives_the_records_and_the_fixes_that_they_name() -> None:
    report = json.loads(run("fragmentation", "--format", "json")[1])
    assert (report["schema"], report["part"], report["records"][0]["id"]) == ("oomdoctor/explain/v1", "problems", "fragmentation")
    assert [fix["id"] for fix in report["fixes"]] == book().problems["fragmentation"].fixes
    assert json.loads(run("--format", "json")[1])["areas"].keys() == book().areas.keys()


def test_every_area_has_a_text() -> None:
    assert set(AREAS) >= set(book().areas)


@pytest.mark.parametrize(("text", "first"), [
    pytest.param("显存不足", "device-memory-full", id="what Chinese users call it"),
    pytest.param("爆显存", "device-memory-full", id="and what they call it among themselves"),
    pytest.param("显存碎片", "fragmentation", id="fragmentation in Chinese"),
    pytest.param("内存不足", "host-ram-exhausted", id="memory of the host"),
    pytest.param("共享内存", "shm-too-small", id="shared memory"),
    pytest.param("梯度检查点", "activations-are-kept", id="words of a text, not of a title"),
    pytest.param("out of memory", "device-memory-full", id="words that stand in hundreds of messages"),
    pytest.param("OOM", "device-memory-full", id="in capitals"),
    pytest.param("显存泄漏", "memory-grows", id="a leak"),
    pytest.param("被杀", "killed-without-a-word", id="a process that vanished"),
])  # fmt: skip
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_few_words_find_the_pages_that_speak_of_them(text: str, first: str, lang: str) -> None:
    status, said = run(text, "--lang", lang)
    lines = [line.split()[0] for line in said.splitlines() if line.startswith("  ") and line.strip()]
    assert (status, lines[0]) == (0, first)


def test_words_of_which_no_page_speaks_are_answered_with_what_is_near() -> None:
    status, said = run("量子纠缠态")
    assert status != 0
    assert "nothing is called" in said
