"""Commands of containers in YAML files, and the versions that scripts and images name."""

from __future__ import annotations

import pytest

from oomdoctor.configs.readers.read import read_config

_COMPOSE = """services:
  chat:
    image: vllm/vllm-openai:v0.8.5
    command: [--model, org/small, --max-model-len, "8192"]
"""
_TEXT = """services:
  chat:
    image: registry:5000/team/sglang:v0.4.6.post2-cu124
    command: >
      python3 -m sglang.launch_server
      --model-path org/small --tp 2
"""
_POD = """spec:
  containers:
  - name: chat
    image: vllm/vllm-openai:latest
    command: ["/bin/sh", "-c"]
    args: ["vllm serve org/small --max-model-len 4096"]
"""
_NO_COMMAND = """image: vllm/vllm-openai:v0.8.5
model_name_or_path: org/small
"""


def found(file: str, text: str) -> list[tuple[str | None, str | None, dict[str, object]]]:
    configs = read_config(file, text.encode()) or []
    return [(one.program, one.version, {given.name: given.value for given in one.written}) for one in configs if one.form == "command"]


@pytest.mark.parametrize(("text", "program", "version", "key", "value"), [
    pytest.param(_COMPOSE, "python -m vllm.entrypoints", "0.8.5", "max_model_len", 8192, id="options behind an image that starts the server"),
    pytest.param(_COMPOSE.replace("--model, org", "org"), "vllm serve", "0.8.5", "model_tag", "org/small", id="a model behind it"),
    pytest.param(_TEXT, "python -m sglang.launch_server", "0.4.6.post2", "tp", 2, id="a command as one text"),
    pytest.param(_POD, "vllm serve", None, "max_model_len", 4096, id="a pod whose shell has a script; latest is no version"),
])  # fmt: skip
def test_the_command_of_a_container(text: str, program: str, version: str | None, key: str, value: object) -> None:
    (one,) = found("compose.yaml", text)
    assert (one[0], one[1], one[2][key]) == (program, version, value)


def test_an_image_without_a_command_is_no_container() -> None:
    assert found("train.yaml", _NO_COMMAND) == []


def test_a_word_keeps_its_line() -> None:
    configs = read_config("compose.yaml", _COMPOSE.replace("[--model", "[\n      --model").encode()) or []
    assert [given.line for config in configs if config.form == "command" for given in config.written] == [5, 5]


@pytest.mark.parametrize(("script", "version"), [
    pytest.param("docker run --gpus all vllm/vllm-openai:v0.6.4 --model org/small", "0.6.4", id="the tag of an image"),
    pytest.param("pip install 'vllm==0.8.5.post1'\nvllm serve org/small --port 1", "0.8.5.post1", id="a pinned package"),
    pytest.param("uv pip install vllm[flashinfer]==0.11.0\nvllm serve org/small --port 1", "0.11.0", id="with an extra"),
    pytest.param("pip install 'vllm>=0.8'\nvllm serve org/small --port 1", None, id="a lower end is no version"),
    pytest.param("pip install transformers==4.51.0\nvllm serve org/small --port 1", None, id="another package"),
    pytest.param("docker run -p 127.0.0.1:8000 vllm/vllm-openai:nightly --model org/small", None, id="an address is no image"),
])  # fmt: skip
def test_the_version_that_a_script_names(script: str, version: str | None) -> None:
    assert [one[1] for one in found("run.sh", script) if one[0]] == [version]
