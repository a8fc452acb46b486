"""Each view answers, with the keyboard alone; in Chinese, on a narrow screen and on paper too."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from page_server import go_to_address
from snapshots.made_snapshots import leaking, pickled

if TYPE_CHECKING:
    from page_server import PageServer
    from playwright.sync_api import Browser, Page

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free."
VIEWS = ("log", "fit", "snapshot")
QUESTION = "#fit?purpose=train&model=Qwen/Qwen3-8B&gpu=24GB&finetuning=lora&micro_batch=2&sequence_length=4096"
CHINESE = re.compile("[\u4e00-\u9fff]")
CONFIG = Path(__file__).parents[2] / "fixtures" / "compare" / "today.yaml"


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is there."""
    for _ in range(80):
        if page.evaluate("selector => document.activeElement?.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no way by Tab to {selector}")


def go_to(page: Page, view: str) -> None:
    """Open a view with the keyboard, from the top of the page."""
    page.evaluate("document.activeElement?.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    tab_to(page, f'nav a[href="#{view}"]')
    page.keyboard.press("Enter")
    page.locator(f"#view-{view}").wait_for()


def short(page: Page) -> str:
    return str(page.locator(".short").inner_text())


def settled(page: Page, before: str) -> str:
    """Wait until the short answer of the form is another one, and return it."""
    page.locator(".short").filter(has_not_text=re.compile(f"^{re.escape(before)}$")).filter(has_text=re.compile(r"\d")).wait_for()
    return short(page)


@pytest.fixture
def diagnosed(opened: Page) -> Page:
    """Return the page with the report of a pasted log."""
    opened.locator("#log-text").fill(OOM)
    opened.locator("#log-text").press("Control+Enter")
    opened.locator("#view-log .share").wait_for()
    return opened


@pytest.fixture
def estimated(opened: Page) -> Page:
    """Return the page with an answer to the question of the form."""
    go_to_address(opened, QUESTION)
    opened.locator("#engine-text.ready").wait_for()
    opened.locator(".short").get_by_text(re.compile(r"\d")).wait_for()
    return opened


def test_a_log_is_diagnosed_with_the_keyboard_alone(opened: Page) -> None:
    go_to(opened, "log")
    tab_to(opened, "#log-text")
    opened.keyboard.insert_text(OOM)
    opened.keyboard.press("Control+Enter")
    report = opened.locator("#view-log .report")
    report.wait_for()
    assert "2.00 GiB" in report.locator("p").first.inner_text()
    assert opened.evaluate("document.activeElement.id") == "log-result"
    opened.locator("#announce").get_by_text("2.00 GiB").wait_for(state="attached")


@pytest.mark.parametrize("form", ["reply", "issue", "markdown"])
def test_what_is_copied_is_shown(diagnosed: Page, form: str) -> None:
    tab_to(diagnosed, "#view-log .share summary")
    diagnosed.keyboard.press("Enter")
    tab_to(diagnosed, f"#view-log .share button:nth-of-type({['reply', 'issue', 'markdown'].index(form) + 1})")
    diagnosed.keyboard.press("Enter")
    copied = diagnosed.locator("#view-log .copied textarea")
    copied.wait_for()
    assert "GiB" in copied.input_value()


@pytest.mark.parametrize("form", ["html", "json"])
def test_a_report_is_saved(diagnosed: Page, form: str) -> None:
    diagnosed.locator("#view-log .share").evaluate("share => { share.open = true }")
    button = diagnosed.locator(f"#view-log .share button:nth-of-type({['html', 'json'].index(form) + 4})")
    with diagnosed.expect_download() as download:
        button.press("Enter")
    assert download.value.suggested_filename.endswith(f".{form}")
    assert "GiB" in Path(download.value.path()).read_text(encoding="utf-8")


def test_names_are_hidden_until_somebody_shows_them(opened: Page) -> None:
    go_to(opened, "log")
    opened.locator("#log-text").fill(f"/home/jane.roe/train.py:7: {OOM}")
    opened.locator("#log-text").press("Control+Enter")
    report = opened.locator("#view-log .report")
    opened.locator("#view-log .share").wait_for()
    assert "jane.roe" not in report.inner_text()
    opened.locator("#view-log .share").evaluate("share => { share.open = true }")
    tab_to(opened, "#view-log .share input")
    opened.keyboard.press("Space")
    opened.locator("#view-log .share input:not(:checked)").wait_for()
    report.get_by_text("jane.roe").first.wait_for(state="attached")
    opened.keyboard.press("Space")
    opened.locator("#view-log .result:not(:has-text('jane.roe')) .share input:checked").wait_for()


def test_files_are_read_with_the_config_beside_them(opened: Page, tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    log.write_text(OOM)
    go_to(opened, "log")
    with opened.expect_file_chooser() as chooser:
        tab_to(opened, "#view-log [data-act=files]")
        opened.keyboard.press("Enter")
    chooser.value.set_files([log, CONFIG])
    names = opened.locator("#view-log .files .file")
    names.nth(1).wait_for()
    assert names.all_inner_texts() == ["rank0.log", "today.yaml"]
    assert opened.locator("#view-log .files select").evaluate_all("all => all.map(each => each.value)") == ["log", "config"]
    tab_to(opened, "#view-log .primary")
    opened.keyboard.press("Enter")
    opened.locator("#view-log .report").get_by_text("rank0.log").first.wait_for()


def test_a_folder_of_ranks_is_one_run(opened: Page, tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"rank{rank}.log").write_text(f"[rank{rank}]: {OOM}\n")
    go_to(opened, "log")
    with opened.expect_file_chooser() as chooser:
        opened.locator("#view-log [data-act=folder]").press("Enter")
    chooser.value.set_files(tmp_path)
    line = opened.locator("#view-log .files .file")
    line.wait_for()
    assert line.inner_text() == f"{tmp_path.name}/ × 3"
    opened.locator("#view-log .primary").press("Enter")
    opened.locator("#view-log .report").get_by_text("rank0.log").first.wait_for()


def drop(page: Page, name: str, data: bytes) -> None:
    """Drop a file on the page."""
    transfer = page.evaluate_handle(
        """([name, bytes]) => {
            const transfer = new DataTransfer()
            transfer.items.add(new File([new Uint8Array(bytes)], name))
            return transfer
        }""",
        [name, list(data)],
    )
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event("main", event, {"dataTransfer": transfer})


def test_a_packed_log_that_is_dropped_is_read_at_once(opened: Page) -> None:
    go_to(opened, "log")
    drop(opened, "train.log.gz", gzip.compress(OOM.encode()))
    opened.locator("#view-log .report").get_by_text("train.log.gz").first.wait_for()
    assert opened.locator("body.dropping").count() == 0


def test_a_log_that_is_dropped_after_the_example_is_answered_alone(opened: Page) -> None:
    go_to(opened, "log")
    opened.locator("[data-act=example]").click()
    opened.locator("#view-log.answered .todo").wait_for()
    drop(opened, "mine.log", OOM.replace("2.00 GiB", "3.25 GiB").encode())
    opened.locator("#view-log .report").get_by_text("mine.log").first.wait_for()
    assert "3.25 GiB requested" in opened.locator("#view-log .report").inner_text()
    assert opened.locator("#log-text").input_value() == "" and opened.locator("#view-log .files li").count() == 1
    drop(opened, "another.log", OOM.encode())
    opened.locator("#view-log .report").get_by_text("another.log").first.wait_for()
    assert opened.locator("#view-log .files li").count() == 1


def test_with_an_answer_the_form_is_small_and_a_new_case_begins_empty(diagnosed: Page) -> None:
    headline = diagnosed.locator("#view-log .report p").first
    diagnosed.evaluate("scrollTo(0, 0)")
    box = headline.bounding_box()
    assert box is not None and box["y"] + box["height"] < 500
    diagnosed.locator("[data-act=new]").click()
    assert diagnosed.locator("#log-text").input_value() == ""
    assert diagnosed.locator("#view-log .report").count() == 0 and diagnosed.locator("#view-log.answered").count() == 0


def test_what_was_pasted_in_the_documents_is_read_once(opened: Page) -> None:
    opened.evaluate("text => sessionStorage.setItem('oomdoctor.pasted', text)", OOM)
    go_to_address(opened, "#fit")
    go_to_address(opened, "#log")
    opened.locator("#view-log .share").wait_for()
    assert opened.locator("#log-text").input_value() == OOM
    assert opened.evaluate("sessionStorage.getItem('oomdoctor.pasted')") is None


def test_what_runs_can_be_cancelled_and_asked_again(opened: Page, tmp_path: Path) -> None:
    large = tmp_path / "train.log"
    large.write_text("step 1 loss 2.31 grad_norm 0.73 tokens 8192 memory 18.2 GiB reserved\n" * 400_000 + OOM)
    go_to(opened, "log")
    with opened.expect_file_chooser() as chooser:
        opened.locator("#view-log [data-act=files]").press("Enter")
    chooser.value.set_files([large])
    opened.locator("#view-log .primary").press("Enter")
    opened.locator("#view-log .working button").press("Enter")
    opened.locator("#view-log .result").get_by_text("Cancelled.").wait_for()
    assert opened.locator("#view-log .working").is_hidden()
    opened.locator("#view-log .primary").press("Enter")
    opened.locator("#view-log .report").get_by_text("train.log").first.wait_for()


def test_nothing_to_read_is_said(opened: Page) -> None:
    go_to(opened, "log")
    opened.locator("#view-log .primary").press("Enter")
    assert opened.locator("#view-log [role=alert]").inner_text()


def test_the_form_answers_as_it_is_filled_in(estimated: Page) -> None:
    opened = estimated
    first = short(opened)
    tab_to(opened, "#fit-model")
    opened.keyboard.press("Control+A")
    opened.keyboard.type("qwen2.5 1.5b")
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("Enter")
    assert "Qwen2.5-" in opened.locator("#fit-model").input_value()
    assert opened.locator("#fit-model-list").is_hidden()
    second = settled(opened, first)
    tab_to(opened, "#fit-micro_batch")
    opened.keyboard.press("Control+A")
    opened.keyboard.type("64")
    assert settled(opened, second) != second
    assert opened.evaluate("document.activeElement.id") == "fit-micro_batch"
    opened.locator("#tab-sweep").press("Enter")
    opened.locator(".answer.sweep:not([aria-busy]) .report").wait_for()
    opened.locator("#tab-sweep").press("Home")
    opened.locator("#tab-estimate").press("ArrowRight")
    assert opened.evaluate("document.activeElement.id") == "tab-plan"
    opened.locator(".answer.plan ol").wait_for()


def test_the_address_holds_the_question(estimated: Page, served: PageServer) -> None:
    opened = estimated
    before = short(opened)
    opened.locator("#fit-micro_batch").fill("3")
    answered = settled(opened, before)
    address = opened.url
    assert "micro_batch=3" in address
    opened.goto(f"{served.url}#log")
    opened.goto(address)
    opened.locator("#fit-micro_batch").wait_for()
    assert opened.locator("#fit-micro_batch").input_value() == "3"
    opened.locator(".short").get_by_text(answered).wait_for()


def test_what_answers_an_older_question_is_marked_until_it_is_answered_anew(estimated: Page) -> None:
    estimated.locator("#tab-sweep").click()
    estimated.locator(".answer.sweep:not([aria-busy]) .report").wait_for()
    estimated.locator("#fit-micro_batch").fill("3")
    estimated.locator(".answer.sweep[aria-busy]").wait_for()
    estimated.locator(".answer.sweep:not([aria-busy]) .report").wait_for()
    assert estimated.locator(".answer[aria-busy]").count() == 0


def test_a_server_is_asked_about_as_a_server(estimated: Page) -> None:
    opened = estimated
    before = short(opened)
    tab_to(opened, "input[name=purpose]")
    opened.keyboard.press("ArrowRight")
    assert opened.locator("#fit-memory_share").is_visible() and opened.locator("#fit-micro_batch").is_hidden()
    opened.locator("#tab-estimate").click()
    opened.locator(".fit-result .answer").first.get_by_text("KV").first.wait_for(state="attached")
    assert short(opened) != before


def test_a_config_that_is_chosen_is_the_run(estimated: Page) -> None:
    opened = estimated
    opened.get_by_role("button", name="Clear").press("Enter")
    with opened.expect_file_chooser() as chooser:
        opened.get_by_role("button", name="Use the run's files").press("Enter")
    chooser.value.set_files([CONFIG])
    opened.locator(".fit-form .files .file").wait_for()
    opened.locator(".short").get_by_text(re.compile(r"\d GiB")).wait_for()


def test_a_model_that_is_not_known_is_said(estimated: Page) -> None:
    opened = estimated
    opened.locator("#fit-model").fill("nobody/nothing-at-all")
    opened.locator(".fit-result [role=alert]").wait_for()
    assert opened.locator(".fit-result a[href$='/nobody/nothing-at-all/raw/main/config.json']").count() == 1
    opened.locator("#fit-model").fill("Qwen/Qwen3-8B")
    opened.locator(".fit-result [role=alert]").wait_for(state="detached")


def read_snapshot(page: Page, folder: Path) -> None:
    """Choose a snapshot with the keyboard and wait for its report."""
    path = folder / "rank0.pickle"
    path.write_bytes(pickled(leaking()))
    go_to(page, "snapshot")
    with page.expect_file_chooser() as chooser:
        tab_to(page, "#view-snapshot [data-act=files]")
        page.keyboard.press("Enter")
    chooser.value.set_files([path])
    page.locator("#snapshot-result:focus").wait_for()


def test_a_snapshot_is_read_with_the_keyboard_alone(opened: Page, tmp_path: Path) -> None:
    read_snapshot(opened, tmp_path)
    report = opened.locator("#view-snapshot .report")
    assert "300.00 MiB" in report.inner_text()
    assert report.locator("svg, img").count() > 0


@pytest.fixture
def answered(diagnosed: Page, estimated: Page, tmp_path: Path) -> Page:
    """Return the page with a report in each view."""
    read_snapshot(diagnosed, tmp_path)
    assert diagnosed is estimated
    return diagnosed


@pytest.mark.parametrize("view", VIEWS)
def test_all_is_told_in_the_other_language_too(answered: Page, view: str) -> None:
    go_to(answered, view)
    tab_to(answered, "#language")
    answered.keyboard.press("Enter")
    answered.locator("html[lang=zh-CN]").wait_for()
    answered.locator(f"#view-{view} h1").get_by_text(CHINESE).wait_for()
    answered.locator(f"#view-{view} .report").first.get_by_text(CHINESE).first.wait_for()
    answered.keyboard.press("Enter")
    answered.locator("html[lang=en]").wait_for()
    answered.locator(f"#view-{view} .report:not(:has-text('显存'))").first.wait_for()


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("view", VIEWS)
def test_a_narrow_screen_never_scrolls_sideways(answered: Page, view: str, width: int) -> None:
    answered.set_viewport_size({"width": width, "height": 844})
    go_to(answered, view)
    assert answered.evaluate("document.documentElement.scrollWidth") <= width


def test_on_paper_all_is_open_and_the_tools_are_gone(diagnosed: Page) -> None:
    opened = diagnosed
    opened.evaluate(
        "addEventListener('beforeprint', () => { window.closed_on_paper = document.querySelectorAll('#view-log .report details:not([open])').length })"
    )
    paper = opened.pdf()
    assert paper.startswith(b"%PDF") and opened.evaluate("window.closed_on_paper") == 0
    assert opened.locator("#view-log .report details:not([open])").count() > 0
    opened.emulate_media(media="print")
    assert opened.locator("header.top, .share, form, nav").filter(visible=True).count() == 0


def test_on_paper_the_question_stands_above_its_answer(estimated: Page) -> None:
    question = estimated.locator(".fit-result .on-paper")
    assert question.is_hidden()
    estimated.emulate_media(media="print")
    said = question.inner_text()
    assert "Model: Qwen/Qwen3-8B · Card: 24GB" in said and "Sequence length, tokens: 4096" in said and "Server" not in said


@pytest.mark.parametrize("locale", ["zh-CN", "en-GB", "fr-FR"])
def test_the_language_is_that_of_the_browser_or_english(browser: Browser, served: PageServer, locale: str) -> None:
    context = browser.new_context(locale=locale)
    page = context.new_page()
    page.goto(served.url)
    page.locator("header.top").wait_for()
    assert page.locator("html").get_attribute("lang") == ("zh-CN" if locale == "zh-CN" else "en")
    context.close()


def test_a_browser_that_cannot_start_python_is_told(browser: Browser, served: PageServer) -> None:
    context = browser.new_context(locale="en-US", service_workers="block")
    page = context.new_page()
    page.route("**/worker/*.js", lambda route: route.abort())
    page.goto(served.url)
    page.locator("#notice").get_by_text("could not start").wait_for()
    page.locator("#log-text").fill(OOM)
    page.locator("#log-text").press("Control+Enter")
    page.locator("#view-log [role=alert]").get_by_text("could not start").wait_for()
    context.close()


def test_without_scripts_the_page_says_what_it_needs(browser: Browser, served: PageServer) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(served.url)
    assert "oomdoctor diagnose train.log" in page.locator("main").inner_text()
    context.close()
