"""The built page's Python, in Node: the answers of the library here, errors as the protocol has them, and hostile inputs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import bridge
import pytest
from bridge.answer import Silent
from site_build.requests import all_requests, as_json

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("OOMDOCTOR_SITE") or ROOT / "dist/site")
NODE = shutil.which("node")
pytestmark = [
    pytest.mark.skipif(NODE is None, reason="no node here"),
    pytest.mark.skipif(not (SITE / "version.json").exists(), reason="the page is not built (python tools/build_site.py --out dist/site)"),
]
Message = dict[str, Any]
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.50 GiB."
HOSTILE = {
    "markup in a message": f"{OOM}\nRuntimeError: {MARKUP}\n",
    "markup in a path of a traceback": f'Traceback (most recent call last):\n  File "/x/{MARKUP}.py", line 3, in f\n{OOM}\n',
    "escapes of a terminal": f"\x1b]0;title\x07\x1b[2J{OOM}\x1b[31m\n",
    "half of a surrogate": f"\ud800 {OOM}",
    "one line of a megabyte": "x" * (1 << 20) + OOM,
    "nothing but NUL": "\0" * 100_000,
}
HOSTILE_CONFIGS = {
    "a bomb of aliases": "a: &a [x, x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)),
    "a tag that makes objects": "model_name_or_path: !!python/object/apply:os.system ['true']\n",
    "very deep": "[" * 20_000,
    "markup": f"model_name_or_path: '{MARKUP}'\nfinetuning_type: lora\nstage: sft\n",
}


def ask(folder: Path, requests: list[Message]) -> tuple[list[list[Message]], Message]:
    file = folder / "requests.json"
    file.write_text(as_json(ROOT, requests))
    done = subprocess.run([str(NODE), str(ROOT / "tests/site/answers.mjs"), str(SITE), str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    return told["answers"], told


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Message], list[list[Message]], Message]:
    requests = all_requests(ROOT)
    answers, told = ask(tmp_path_factory.mktemp("asked"), requests)
    return requests, answers, told


def here(request: Message, folder: Path) -> Message:
    """What the same bridge says in this Python."""

    folder.mkdir()
    inputs = []
    for given in request.get("inputs", []):
        place = folder / given["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(_bytes(given))
        inputs.append({"path": given["path"], "role": given.get("role")})
    before = os.getcwd()
    try:
        answer: Message = json.loads(bridge.answer(json.dumps({**request, "inputs": inputs}), str(folder), Silent()))
        return answer
    finally:
        os.chdir(before)


def _bytes(given: Message) -> bytes:
    if "text" in given:
        return str(given["text"]).encode()
    return bytes(given["bytes"]) if "bytes" in given else (ROOT / given["at"]).read_bytes()


def test_every_request_over_the_fixtures_has_the_answer_of_the_library(
    fixtures: tuple[list[Message], list[list[Message]], Message], tmp_path: Path
) -> None:
    requests, answers, _ = fixtures
    assert len(answers) == len(requests) >= 70
    differing = []
    for number, (request, messages) in enumerate(zip(requests, answers)):
        own, last = here(request, tmp_path / str(number)), messages[-1]
        assert last["type"] == "result", last
        if {key: last.get(key) for key in own} != own:
            differing.append(request["id"])
    assert differing == []


def test_python_takes_little_memory(fixtures: tuple[list[Message], list[list[Message]], Message]) -> None:
    assert fixtures[2]["heap"] <= 66 << 20


NO_SENSE: dict[str, tuple[str, Message]] = {
    "no log": ("usage", {"type": "diagnose"}),
    "an empty log": ("unreadable", {"type": "diagnose", "inputs": [{"path": "empty.log", "text": ""}]}),
    "a model that nobody knows": ("usage", {"type": "estimate", "question": {"model": "no such model"}}),
    "a card that nobody knows": ("usage", {"type": "estimate", "question": {"model": "Qwen2.5-7B", "gpu": "no such card"}}),
    "a misspelt field of a question": ("usage", {"type": "estimate", "question": {"modell": "Qwen2.5-7B"}}),
    "a setting that is no value": ("usage", {"type": "estimate", "question": {"settings": {"micro_batch": [1]}}}),
    "a check of nothing": ("usage", {"type": "check", "inputs": []}),
    "a type that nobody knows": ("usage", {"type": "dance"}),
    "a form of nothing": ("unknown-result", {"type": "render", "of": "never asked", "form": "html"}),
    "a path that leads out": ("usage", {"type": "diagnose", "inputs": [{"path": "../x.log", "text": OOM}]}),
    "a path with an empty part": ("usage", {"type": "diagnose", "inputs": [{"path": "a//b", "text": OOM}]}),
    "two inputs of one name": ("usage", {"type": "diagnose", "inputs": [{"path": "a", "text": OOM}] * 2}),
    "a file that is a folder, too": ("usage", {"type": "diagnose", "inputs": [{"path": "a", "text": OOM}, {"path": "a/b", "text": OOM}]}),
    "another version of the protocol": ("usage", {"type": "diagnose", "v": 2, "text": OOM}),
    "a snapshot that is none": ("usage", {"type": "snapshot", "inputs": [{"path": "s.pickle", "text": "no pickle"}]}),
}


def test_what_makes_no_sense_is_an_error_and_python_lives_on(tmp_path: Path) -> None:
    asked = [{"id": name, **request} for name, (_, request) in NO_SENSE.items()]
    answers, _ = ask(tmp_path, [*asked, {"id": "after", "type": "diagnose", "text": OOM}])
    *errors, after = [messages[-1] for messages in answers]
    assert {error["id"]: error.get("code") for error in errors} == {name: code for name, (code, _) in NO_SENSE.items()}
    assert [error["id"] for error in errors if not error["text"] or "Traceback" in error["text"] or error["detail"]] == []
    assert after["type"] == "result" and after["data"]["verdict"]["memory_failure"] == "yes"


def test_hostile_inputs_give_answers_without_their_markup(tmp_path: Path) -> None:
    def log(name: str, text: str) -> Message:
        return {"type": "diagnose", "id": name, "inputs": [{"path": "x.log", "bytes": text.encode("utf-8", "surrogatepass")}]}

    def config(name: str, text: str) -> Message:
        return {"type": "check", "id": name, "gpu": "24GB", "inputs": [{"path": "c.yaml", "text": text}]}

    asked = [log(name, text) for name, text in HOSTILE.items()] + [config(name, text) for name, text in HOSTILE_CONFIGS.items()]
    asked += [{"type": "diagnose", "id": f"pasted: {name}", "text": text} for name, text in HOSTILE.items()]
    asked += [{"type": "diagnose", "id": "markup in a name", "inputs": [{"path": f"{MARKUP.replace('/', '')}.log", "text": OOM}]}]
    answers, _ = ask(tmp_path, asked)
    for messages in answers:
        last = messages[-1]
        assert last["type"] == "result" or last["code"] in ("usage", "unreadable"), last
        assert not re.search(r"<(script|img|iframe|object|style|link|meta|base)\b", last.get("html", ""), re.IGNORECASE)
        assert "\\u001b" not in json.dumps(last)


def test_a_newer_estimate_takes_the_place_of_one_that_waits() -> None:
    script = f"""
        import {{ Session }} from {json.dumps((ROOT / "site/worker/session.js").as_uri())};
        const told = [];
        const bridge = {{ answer: (text) => JSON.stringify({{ kind: "estimate", data: JSON.parse(text).id }}), forget() {{}} }};
        const session = new Session({{ bridge, post: (message) => told.push([message.id, message.type, message.code ?? null]), heap: () => 0, mount() {{}}, unmount() {{}} }});
        for (const id of [1, 2, 3]) session.take({{ v: 1, id, type: "estimate" }});
        session.take({{ v: 1, id: 4, type: "check" }});
        setTimeout(() => console.log(JSON.stringify(told)), 50);
    """
    done = subprocess.run([str(NODE), "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [
        [1, "error", "replaced"], [2, "error", "replaced"], [3, "result", None], [4, "result", None],
    ]  # fmt: skip


def test_the_files_are_those_of_the_list_and_within_the_budgets() -> None:
    listed = json.loads((SITE / "version.json").read_text())["files"]
    there = {path.relative_to(SITE).as_posix(): path for path in SITE.rglob("*") if path.is_file()}
    assert {*listed, "version.json", "sw.js"} == set(there)
    assert {name: entry["bytes"] for name, entry in listed.items()} == {name: there[name].stat().st_size for name in listed}
