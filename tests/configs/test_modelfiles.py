"""Modelfiles of Ollama name a model and its parameters."""

from __future__ import annotations

import pytest
from config_files import read

MODELFILE = """\
# comment
FROM llama3.1:8b
PARAMETER num_ctx 32768
parameter num_gpu 20
SYSTEM \"\"\"
PARAMETER num_ctx 1
\"\"\"
PARAMETER stop "<|end|>"
"""


@pytest.mark.parametrize(("name", "text", "expected"), [
    pytest.param("Modelfile", MODELFILE, ("llama3.1:8b", 32768, 20), id="a model of the library; a long text holds no parameter"),
    pytest.param("qwen.modelfile", "FROM ./qwen.gguf\n", ("./qwen.gguf", None, None), id="a file beside it"),
    pytest.param("/models/Modelfile", "FROM ./qwen.gguf\n", ("/models/./qwen.gguf", None, None), id="a file beside one in another folder"),
    pytest.param("notes", MODELFILE, ("llama3.1:8b", 32768, 20), id="any name, by its commands"),
])  # fmt: skip
def test_what_a_modelfile_says(name: str, text: str, expected: tuple[object, ...]) -> None:
    run = read({name: text})
    assert run.framework == "ollama"
    assert (run.settings.model, run.settings.max_model_len, run.settings.gpu_layers) == expected


@pytest.mark.parametrize(("name", "text"), [
    pytest.param("Dockerfile", "FROM python:3.12\nRUN pip install vllm\n", id="a Dockerfile has no parameters"),
    pytest.param("notes.txt", MODELFILE, id="a text of another kind"),
])  # fmt: skip
def test_what_is_no_modelfile(name: str, text: str) -> None:
    assert read({name: text}).framework != "ollama"
