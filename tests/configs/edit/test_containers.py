"""Options of servers in compose files and manifests: only their words move, and another reader finds what was meant."""

from __future__ import annotations

import pytest
import yaml

from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.patch import Patched, patch

VLLM, SGLANG = "vllm serve", "python -m sglang.launch_server"
LINES = """\
# our chat service
services:
  chat:
    image: vllm/vllm-openai:v0.11.0  # pinned
    command:
      - org/m
      - --gpu-memory-utilization
      - "0.85"  # of the card
      - --max-num-seqs=256
      - --enforce-eager
    deploy: {}  # kept
  db:
    image: postgres:16
    command: postgres -c max_connections=200
"""
POD = """\
spec:
  containers:
  - name: chat
    image: lmsysorg/sglang:v0.4.6
    command: ["python3", "-m", "sglang.launch_server"]
    args: ["--model-path", "org/m", "--port", "30000"]  # one card
  - name: side
    image: busybox
    args: ["sleep", "1000"]
"""
JOINED = """\
containers:
- image: vllm/vllm-openai:v0.11.0
  args: ['org/m', '--port=1',
         '--max-model-len=4096']
"""
SCRIPT = """\
containers:
- image: any
  command: [/bin/sh, -c]
  args:
  - |
    # wait
    sleep 1
    vllm serve org/m \\
      --max-model-len 4096 \\
      --port 8000
"""
ONE_LINE = """\
containers:
- image: any
  command: ["/bin/sh", "-c"]
  args: ["sleep 1 && vllm serve org/m --max-model-len 4096"]  # one line
"""
FOLDED = """\
services:
  chat:
    image: lmsysorg/sglang:v0.4.6
    command: >
      python3 -m sglang.launch_server
      --model-path org/m
      --port 30000
    restart: always
"""
PLAIN = """\
services:
  chat:
    image: lmsysorg/sglang:v0.4.6
    command: python3 -m sglang.launch_server --model-path org/m
      --port 30000  # as ever
    restart: always
"""


def patched(text: str, program: str, key: str, to: str) -> Patched:
    return patch("compose.yaml", text.encode(), [ConfigChange(file="compose.yaml", key=key, to=to, program=program)])


@pytest.mark.parametrize(("text", "program", "key", "to", "old", "new"), [
    pytest.param(LINES, VLLM, "--gpu-memory-utilization", "0.9", '"0.85"', '"0.9"', id="the word behind an option"),
    pytest.param(LINES, VLLM, "--max-num-seqs", "16", "seqs=256", "seqs=16", id="behind its sign"),
    pytest.param(LINES, VLLM, "--max-model-len", "4096", "- --enforce-eager\n", "- --enforce-eager\n      - --max-model-len\n      - \"4096\"\n",
                 id="a new option and its value, which is text"),
    pytest.param(LINES, VLLM, "--kv-cache-dtype", "fp8", "- --enforce-eager\n", "- --enforce-eager\n      - --kv-cache-dtype\n      - fp8\n",
                 id="a new option and a word"),
    pytest.param(LINES.replace("      - --enforce-eager\n", ""), VLLM, "--enforce-eager", "", "seqs=256\n", "seqs=256\n      - --enforce-eager\n",
                 id="a new option without a value"),
    pytest.param(POD, SGLANG, "--port", "4", '"30000"', '"4"', id="in brackets"),
    pytest.param(POD, SGLANG, "--tp-size", "4", '"30000"]', '"30000", "--tp-size", "4"]', id="new in brackets, in the quotes of the others"),
    pytest.param(JOINED, VLLM, "--enforce-eager", "", "4096']", "4096',\n         '--enforce-eager']", id="new in brackets over several lines"),
    pytest.param(JOINED, VLLM, "--max-num-seqs", "8", "4096']", "4096',\n         '--max-num-seqs=8']", id="with a sign where all have one"),
    pytest.param(SCRIPT, VLLM, "--max-model-len", "2048", "len 4096", "len 2048", id="in a script"),
    pytest.param(SCRIPT, VLLM, "--max-num-seqs", "8", "8000", "8000 \\\n      --max-num-seqs 8", id="new in a script"),
    pytest.param(ONE_LINE, VLLM, "--max-num-seqs", "8", "4096\"", "4096 --max-num-seqs 8\"", id="new in a script of one line"),
    pytest.param(FOLDED, SGLANG, "--port", "4", "30000", "4", id="in a folded text"),
    pytest.param(FOLDED, SGLANG, "--tp-size", "4", "30000", "30000 --tp-size 4", id="new in a folded text"),
    pytest.param(PLAIN, SGLANG, "--tp-size", "4", "30000", "30000 --tp-size 4", id="new in a plain text that goes on"),
])  # fmt: skip
def test_an_option_of_a_container(text: str, program: str, key: str, to: str, old: str, new: str) -> None:
    assert text.count(old) == 1
    found = patched(text, program, key, to)
    assert ([why.why.en for _, why in found.refusals], found.data.decode()) == ([], text.replace(old, new))
    again = patched(found.data.decode(), program, key, to)
    assert (again.data, again.made) == (found.data, ())
    lists = [
        part for each in _containers(yaml.safe_load(found.data)) for name in ("command", "args") if isinstance(part := each.get(name), list)
    ]
    assert all(isinstance(word, str) for words in lists for word in words)


@pytest.mark.parametrize("ends", [pytest.param("\r\n", id="of Windows"), pytest.param("\n", id="of Unix")])
@pytest.mark.parametrize("text", [pytest.param(LINES, id="a list"), pytest.param(POD, id="brackets"), pytest.param(FOLDED, id="a text")])
def test_ends_of_lines_stay(text: str, ends: str) -> None:
    program = VLLM if text is LINES else SGLANG
    data = text.replace("\n", ends).encode()
    found = patch("c.yaml", data, [ConfigChange(file="c.yaml", key="--seed", to="7", program=program)])
    assert [why.why.en for _, why in found.refusals] == []
    assert found.data.count(b"\n") - found.data.count(b"\r\n") == (0 if ends == "\r\n" else found.data.count(b"\n"))


@pytest.mark.parametrize(("text", "program", "key", "why"), [
    pytest.param(LINES, SGLANG, "--port", "neither YAML", id="a program that no container runs"),
    pytest.param(LINES + LINES.replace("services:", "more:"), VLLM, "--seed", "which command", id="two containers that run it"),
    pytest.param(LINES.replace("command:\n", "command: &a\n"), VLLM, "--seed", "an anchor", id="a list that an anchor shares"),
    pytest.param(LINES.replace("- --enforce-eager", "- --max-num-seqs=8"), VLLM, "--max-num-seqs", "several times", id="an option that stands there twice"),
    pytest.param(LINES.replace("      - \"0.85\"  # of the card\n", ""), VLLM, "--gpu-memory-utilization", "not have exactly one value", id="an option without its value"),
    pytest.param(ONE_LINE.replace("org/m", "\\\"org/m\\\""), VLLM, "--seed", "easy to get wrong", id="quotes in quotes"),
    pytest.param(SCRIPT.replace("sleep 1", "vllm serve a --port 1"), VLLM, "--seed", "which command", id="two commands of a script"),
])  # fmt: skip
def test_what_is_refused(text: str, program: str, key: str, why: str) -> None:
    found = patched(text, program, key, "7")
    ((_, refusal),) = found.refusals
    assert why in refusal.why.en
    assert found.data == text.encode()


def _containers(document: dict[str, object]) -> list[dict[str, object]]:
    inner = document.get("services") or document.get("containers") or document["spec"]["containers"]  # type: ignore[index]
    return list(inner.values()) if isinstance(inner, dict) else inner  # type: ignore[return-value]
