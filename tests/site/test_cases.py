"""A case of the page: the answer first, its steps and its evidence, the files of every kind, and the way to "Will it fit?"."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from page_server import go_to_address
from snapshots.made_snapshots import leaking, pickled

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free."
LOG = f"""Traceback (most recent call last):
  File "/x/site-packages/transformers/trainer.py", line 3675, in compute_loss
    outputs = model(**inputs)
{OOM.format("2.00")}
"""
CONFIG = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
lora_rank: 16
cutoff_len: 4096
per_device_train_batch_size: 4
"""
FIRST_SIGHT = (
    "fragmentation-by-length", "glm4-lora-multi-gpu", "host-kill-dmesg", "llama31-staircase", "llamafactory-p4-qlora", "loader-small-shm",
    "logits-of-a-large-vocabulary", "other-process-named", "pod-oomkilled", "steady-leak", "vllm-cache-too-small", "zero3-offload-killed",
)  # fmt: skip


def paste(page: Page, text: str) -> None:
    """Paste a text into the form, as a browser does."""
    page.locator("#log-text").evaluate(
        """(area, text) => {
            const clipboardData = new DataTransfer()
            clipboardData.setData('text/plain', text)
            area.dispatchEvent(new ClipboardEvent('paste', { clipboardData, cancelable: true, bubbles: true }))
        }""",
        text,
    )


def drop(page: Page, files: dict[str, bytes]) -> None:
    """Drop files on the page."""
    transfer = page.evaluate_handle(
        """files => {
            const transfer = new DataTransfer()
            for (const [name, bytes] of files) transfer.items.add(new File([new Uint8Array(bytes)], name))
            return transfer
        }""",
        [[name, list(data)] for name, data in files.items()],
    )
    page.dispatch_event("main", "drop", {"dataTransfer": transfer})


def answer(page: Page) -> str:
    page.locator("#view-log.answered .report").wait_for()
    return str(page.locator("#view-log .report").inner_text())


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("build/1_setup.txt", "ready\n" * 100)
        archive.writestr("../build/2_train.txt", LOG)
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("run/" + "long" * 40 + "/train.log", "run/other.log"):
            data = (LOG if "train" in name else "ready\n").encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_a_log_that_is_pasted_is_answered_at_once(opened: Page) -> None:
    paste(opened, LOG)
    assert "2.00 GiB requested" in answer(opened)
    assert opened.locator("#log-text").is_hidden() and opened.locator("#view-log .bar .read").inner_text() == "pasted text"


def test_a_piece_that_is_pasted_into_a_text_waits_for_the_rest(opened: Page) -> None:
    opened.locator("#log-text").fill("first line\n")
    paste(opened, LOG)
    assert opened.locator("#view-log .report").count() == 0 and opened.locator("#view-log .working").is_hidden()


@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param("logs.zip", zipped, id="a zip of CI"),
        pytest.param("logs.tar", tarred, id="a tar"),
        pytest.param("logs.tar.gz", lambda: gzip.compress(tarred()), id="a packed tar"),
        pytest.param("train.log.gz", lambda: gzip.compress(LOG.encode()), id="a packed log"),
    ],
)
def test_an_archive_is_read_as_the_files_in_it(opened: Page, name: str, make: Callable[[], bytes]) -> None:
    drop(opened, {name: make()})
    assert "2.00 GiB requested" in answer(opened)
    assert ".." not in opened.locator("#view-log .files").text_content()


def test_an_archive_that_cannot_be_read_is_said(opened: Page) -> None:
    drop(opened, {"logs.zip": b"PK\3\4 and nothing behind it"})
    opened.locator("#view-log [role=alert]").get_by_text("logs.zip").wait_for()
    assert opened.locator("#log-text").is_visible()


KINDS = {
    "a snapshot": ({"rank0.pickle": pickled(leaking())}, "#view-snapshot .report"),
    "a config": ({"sft.yaml": CONFIG.encode()}, "#view-fit .short:has-text('GiB')"),
    "a log": ({"train.log": LOG.encode()}, "#view-log .report"),
}


@pytest.mark.parametrize("open_view", ["log", "fit", "snapshot"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_goes_to_its_view_wherever_it_is_dropped(opened: Page, kind: str, open_view: str) -> None:
    files, place = KINDS[kind]
    go_to_address(opened, f"#{open_view}")
    drop(opened, files)
    opened.locator(place).first.wait_for()
    assert opened.locator(f"nav a[aria-current][href='{'#' + place.split()[0].removeprefix('#view-')}']").count() == 1


def test_a_config_that_is_dropped_beside_a_log_belongs_to_it(opened: Page) -> None:
    drop(opened, {"train.log": LOG.encode()})
    answer(opened)
    drop(opened, {"sft.yaml": CONFIG.encode()})
    opened.locator("#view-log .bar .read").get_by_text("train.log · sft.yaml").wait_for()
    opened.locator("#view-log .todo").get_by_text("sft.yaml").first.wait_for()


def test_a_step_is_copied_and_the_figures_that_count_are_underlined(opened: Page) -> None:
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    paste(opened, LOG)
    answer(opened)
    step = opened.locator("#view-log .todo li").first
    typed = "\n".join(step.locator("code").all_inner_texts())
    step.locator(".copy").press("Enter")
    step.get_by_text("Copied").wait_for()
    assert opened.evaluate("navigator.clipboard.readText()") == typed
    assert opened.locator("#view-log .shown pre mark").all_inner_texts() == ["2.00 GiB", "23.69 GiB", "1.02 GiB"]


def test_what_asks_for_a_config_is_a_button(opened: Page, tmp_path: Path) -> None:
    paste(opened, LOG)
    answer(opened)
    assert "--config" not in opened.locator("#view-log .todo").inner_text()
    (tmp_path / "sft.yaml").write_text(CONFIG)
    with opened.expect_file_chooser() as chooser:
        opened.get_by_role("button", name="Add the config…").press("Enter")
    chooser.value.set_files([tmp_path / "sft.yaml"])
    opened.locator("#view-log .bar .read").get_by_text("sft.yaml").wait_for()


def test_a_case_of_before_is_shown_again(opened: Page) -> None:
    drop(opened, {"first.log": LOG.encode()})
    answer(opened)
    drop(opened, {"second.log": OOM.format("3.25").encode()})
    opened.locator("#view-log .report").get_by_text("second.log").first.wait_for()
    cases = opened.locator("#view-log .bar select")
    cases.select_option(label="first.log")
    opened.locator("#view-log .report").get_by_text("first.log").first.wait_for()
    assert "2.00 GiB requested" in answer(opened)
    assert "second.log" in cases.locator("option").all_inner_texts()


def test_what_a_diagnosis_knows_is_tried_in_the_form(opened: Page) -> None:
    drop(opened, {"train.log": LOG.encode(), "sft.yaml": CONFIG.encode()})
    answer(opened)
    opened.locator("#view-log .try").press("Enter")
    opened.locator("#view-fit .short").get_by_text("GiB").wait_for()
    shown = {name: opened.locator(f"#fit-{name}").input_value() for name in ("model", "gpu", "micro_batch", "sequence_length", "lora_rank")}
    assert shown == {"model": "Qwen/Qwen2.5-7B-Instruct", "gpu": "24GB", "micro_batch": "4", "sequence_length": "4096", "lora_rank": "16"}
    assert opened.locator("#from-micro_batch").inner_text() == "from sft.yaml:6"
    assert opened.locator("#from-gpu").inner_text() == "from the log"
    assert opened.locator("#panel-estimate").get_by_text("batch 4, 4,096 tokens").count() == 1


def test_a_dropped_config_fills_the_form_and_each_field_says_who_set_it(opened: Page) -> None:
    go_to_address(opened, "#fit")
    drop(opened, {"sft.yaml": CONFIG.encode()})
    opened.locator("#panel-estimate").get_by_text("Qwen2.5-7B").first.wait_for()
    assert opened.locator("#from-lora_rank").inner_text() == "from sft.yaml:4"
    assert opened.locator("#from-gradient_checkpointing").inner_text().startswith("assumed: ")
    opened.locator("#fit-micro_batch").fill("1")
    opened.locator("#panel-estimate").get_by_text("batch 1, 4,096 tokens").wait_for()
    assert opened.locator("#from-micro_batch").inner_text() == "set here"
    assert "micro_batch=1" in opened.url and "lora_rank" not in opened.url


def test_the_closest_yes_is_filled_into_the_form(opened: Page) -> None:
    go_to_address(opened, "#fit?purpose=train&model=Qwen/Qwen3-8B&gpu=24GB&gpus=1&finetuning=qlora&micro_batch=8&sequence_length=2048")
    opened.locator(".closest button").get_by_text("Apply").press("Enter")
    opened.locator(".short.yes").wait_for()


def test_formats_of_a_run_that_trains_all_weights_are_said_to_be_one(opened: Page) -> None:
    go_to_address(opened, "#fit?purpose=train&model=Qwen/Qwen3-8B&gpu=24GB&finetuning=full&tab=formats")
    opened.locator("#panel-formats").get_by_text("in one format").wait_for()
    assert "--" not in opened.locator("#panel-formats").inner_text()


@pytest.mark.parametrize("case", FIRST_SIGHT)
def test_the_answer_and_the_first_step_are_seen_at_first_sight(opened: Page, case: str) -> None:
    folder = ROOT / "fixtures" / "cases" / case
    logs = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in (".log", ".txt")}
    drop(opened, logs)
    answer(opened)
    ends = {}
    for screen, (width, height) in {"desk": (1280, 800), "phone": (390, 844)}.items():
        opened.set_viewport_size({"width": width, "height": height})
        opened.evaluate("scrollTo(0, 0)")
        box = opened.locator("#view-log .report ol li, #view-log .report > p").first.bounding_box()
        step = opened.locator("#view-log .report ol li").first
        box = step.bounding_box() if step.count() else box
        assert box is not None
        ends[screen] = (box["y"] + box["height"]) / height
    assert ends["desk"] <= 1 and ends["phone"] <= 1.5, ends
