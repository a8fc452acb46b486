"""Logs, configs and snapshots that mean harm: nothing of them runs, nothing of them becomes markup, nothing is asked of anybody."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from snapshots.made_snapshots import Program, pickled

if TYPE_CHECKING:
    from page_server import PageServer
    from playwright.sync_api import Page

OUT = "http://elsewhere.example"
PAYLOADS = {
    "a script": "<script>window.ran=1</script>",
    "a script of another host": f'<script src="{OUT}/x.js"></script>',
    "an image with a handler": f'<img src="{OUT}/x.png" onerror="window.ran=1">',
    "a drawing with a handler": "<svg onload=window.ran=1><a href='javascript:window.ran=1'><text>x</text></a></svg>",
    "a drawing that uses another": f'<svg><use href="{OUT}/x.svg#a"/><image href="{OUT}/x.png"/></svg>',
    "a fill from elsewhere": f'<svg><rect fill="url({OUT}/x.svg#a)" width="9" height="9"/></svg>',
    "a frame": f'<iframe srcdoc="<script>parent.ran=1</script>" src="{OUT}"></iframe>',
    "a style": f"<style>@import url({OUT}/x.css); body {{ background: url({OUT}/y.png) }}</style>",
    "a link to a style": f'<link rel="stylesheet" href="{OUT}/x.css"><link rel="prefetch" href="{OUT}/y">',
    "another base": f'<base href="{OUT}/"><meta http-equiv="refresh" content="0;url={OUT}">',
    "a form": f'<form action="{OUT}"><button autofocus onfocus=window.ran=1>x</button></form>',
    "a link that runs": '<a href="javascript:window.ran=1" id="log-text" name="body">x</a>',
    "the end of the report": "</main></p></pre></code></details></table><script>window.ran=1</script><main>",
    "the end of a text field": "</textarea></title></style></noscript><img src=x onerror=window.ran=1>",
    "markup that changes when it is read twice": '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.ran=1&gt;">',
    "an attribute that ends": '" onmouseover="window.ran=1" autofocus onfocus="window.ran=1" x="',
    "entities": "&lt;img src=x onerror=window.ran=1&gt;&#60;script&#62;window.ran=1&#60;/script&#62;",
    "a comment": "<!--><script>window.ran=1</script>--><![CDATA[<script>window.ran=1</script>]]>",
    "a terminal's commands": "\x1b]8;;javascript:window.ran=1\x07x\x1b]8;;\x07\x1b[2J\x00\u202e<img src=x onerror=window.ran=1>",
    "a template and a prototype": "${window.ran=1}{{constructor.constructor('window.ran=1')()}}__proto__",
}
LEFT = """() => ({
    ran: window.ran ?? null,
    elements: [...document.querySelectorAll('.report *, .files *, .problem *')].map(each => each.localName)
        .filter(name => ['script', 'img', 'image', 'iframe', 'style', 'link', 'base', 'meta', 'form', 'use', 'object', 'embed', 'math'].includes(name)),
    handlers: [...document.querySelectorAll('main *')].flatMap(each => [...each.attributes].map(each => each.name))
        .filter(name => name.startsWith('on') || ['style', 'src', 'srcdoc', 'xlink:href', 'formaction', 'action'].includes(name)),
    links: [...document.querySelectorAll('main a[href]')].map(each => each.protocol).filter(each => !['http:', 'https:'].includes(each)),
    twice: [...document.querySelectorAll('[id]')].map(each => each.id).filter((id, at, all) => all.indexOf(id) !== at),
})"""
NOTHING: dict[str, object] = {"ran": None, "elements": [], "handlers": [], "links": [], "twice": []}


class _Calls:
    """What a pickle calls when somebody loads it without care."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.system, ("touch ran",))


def log_of(harm: str) -> str:
    return (
        f'[rank0]: {harm}\n  File "/srv/{harm}/train.py", line 3, in {harm}\n'
        f"model_name_or_path: {harm}\noutput_dir={harm}\n  - per_device_train_batch_size: {harm}\n"
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free. {harm}\n"
    )


def config_of(harm: str) -> str:
    written = harm.replace("'", "''").replace("\x1b", "").replace("\x00", "").replace("\x07", "")
    return f"model_name_or_path: '{written}'\n'{written}': '{written}'\nstage: sft\nfinetuning_type: lora\nper_device_train_batch_size: '{written}'\ncutoff_len: 4096\n"


def snapshot_of(harm: str) -> bytes:
    program = Program()
    program.ask(64 << 20, "FILE:7:NAME")
    program.fail(300 << 20, "FILE:7:NAME", free=1 << 20)
    value = pickle.loads(pickled(program))
    for request in value["device_traces"][0]:
        for frame in request["frames"]:
            frame.update(filename=f"/home/ann/{harm}.py", name=harm)
    return pickle.dumps(value, protocol=4)


def upload(page: Page, selector: str, name: str, data: bytes) -> None:
    with page.expect_file_chooser() as chooser:
        page.locator(selector).click()
    chooser.value.set_files([{"name": name, "mimeType": "text/plain", "buffer": data}])


@pytest.fixture(autouse=True)
def quiet(opened: Page, served: PageServer) -> object:
    """Hold that a test asks nothing of anybody and opens nothing."""
    before = len(served.own)
    dialogs: list[str] = []
    opened.once("dialog", lambda dialog: dialogs.append(dialog.message))
    yield
    assert (dialogs, opened.evaluate(LEFT)) == ([], NOTHING)
    assert (served.own[before:], served.hosts) == ([], {served.host})
    assert len(opened.context.pages) == 1


@pytest.mark.parametrize("harm", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_a_log(opened: Page, harm: str) -> None:
    opened.evaluate("location.hash = '#log'")
    upload(opened, "#view-log [data-act=files]", f"{harm.replace('/', '_')[:60]}.log".replace("\x00", ""), log_of(harm).encode())
    opened.locator("#view-log .primary").click()
    opened.locator("#view-log .share summary").click()
    opened.locator("#view-log .share input").click()
    opened.locator("#view-log .share input:not(:checked)").wait_for()
    assert opened.locator("#view-log .report pre").count() > 0
    assert opened.evaluate(LEFT) == NOTHING


@pytest.mark.parametrize("harm", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_a_config(opened: Page, harm: str) -> None:
    opened.evaluate("location.hash = '#fit'")
    opened.locator("#fit-model").fill("Qwen/Qwen3-8B")
    upload(opened, ".fit-form .actions button >> nth=0", "sft.yaml", config_of(harm).encode())
    opened.locator(".fit-form .files .file").wait_for()
    opened.locator(".fit-result .report").filter(visible=True).first.wait_for()
    opened.evaluate(f"location.hash = '#fit?model={quote(harm)}&gpu={quote(harm)}&framework={quote(harm)}&{quote(harm)}={quote(harm)}'")
    opened.locator(".fit-result [role=alert]").first.wait_for()
    opened.locator("#fit-gpu").fill("24GB")
    opened.evaluate("location.hash = '#fit?model=Qwen/Qwen3-8B&gpu=24GB'")
    opened.locator(".short:is(.no, .yes, .close, .depends)").wait_for()


@pytest.mark.parametrize("harm", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_a_snapshot(opened: Page, harm: str) -> None:
    opened.evaluate("location.hash = '#snapshot'")
    upload(opened, "#view-snapshot [data-act=files]", "rank0.pickle", snapshot_of(harm))
    opened.locator("#view-snapshot .report").wait_for()
    assert "300.00 MiB" in opened.locator("#view-snapshot .report").inner_text()


def test_a_snapshot_that_would_call_something_is_refused(opened: Page) -> None:
    opened.evaluate("location.hash = '#snapshot'")
    upload(opened, "#view-snapshot [data-act=files]", "rank0.pickle", pickle.dumps({"segments": [_Calls()], "device_traces": []}))
    opened.locator("#view-snapshot .problem, #view-snapshot .report").first.wait_for()


def test_the_second_lock_holds_by_itself(opened: Page) -> None:
    """Markup that no report has, given to what writes reports into the page: only what is listed comes through."""
    opened.evaluate(
        """async all => {
            const { reportNodes } = await import('/app/report_html.js')
            const place = document.querySelector('#view-log .result')
            place.hidden = false
            place.replaceChildren(place.querySelector('h2'), ...all.map(html => {
                const box = document.createElement('div')
                box.className = 'report'
                box.append(reportNodes(html))
                return box
            }))
        }""",
        list(PAYLOADS.values()),
    )
    assert opened.evaluate(LEFT) == NOTHING


@pytest.mark.parametrize("case", sorted((Path(__file__).parents[2] / "fixtures" / "cases").iterdir())[::6], ids=lambda path: path.name)
def test_the_second_lock_loses_nothing_of_a_report(opened: Page, case: Path) -> None:
    import oomdoctor
    from oomdoctor.report.diagnosis.compose import compose
    from oomdoctor.report.render.html import render
    from oomdoctor.report.wording.wording import Wording

    page = render(compose(oomdoctor.diagnose(case), Wording("en"), "0"))
    kept, whole = opened.evaluate(
        """async html => {
            const { reportNodes } = await import('/app/report_html.js')
            const main = new DOMParser().parseFromString(html, 'text/html').querySelector('main')
            return [reportNodes(html).textContent, main.textContent]
        }""",
        page,
    )
    assert kept == whole
