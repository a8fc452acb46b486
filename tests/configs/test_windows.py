"""Batch files and scripts of PowerShell hand over what a shell would."""

from __future__ import annotations

import pytest
from config_files import read
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.patch import patch
from oomdoctor.configs.readers.windows import as_shell

SERVES = "vllm serve %Model% --max-model-len 4096\r\n"
SCRIPTS = [
    ("a variable", "run.bat", "@echo off\r\nset MODEL=org/small\r\n" + SERVES, {"model": "org/small", "max_model_len": 4096}),
    ("a variable in quotes", "run.cmd", 'SET "MODEL=org/small"\r\n' + SERVES, {"model": "org/small"}),
    ("a comment sets nothing", "run.bat", "set MODEL=org/a\r\nrem set MODEL=org/b\r\n:: set MODEL=org/c\r\n" + SERVES, {"model": "org/a"}),
    ("options in a variable", "run.bat", "set A=--max-model-len 512 --max-num-seqs 8\r\nvllm serve org/x %A%\r\n",
     {"max_model_len": 512, "max_num_seqs": 8}),
    ("a line that goes on", "run.bat", "vllm serve org/x ^\r\n  --max-model-len 512 ^\r\n  --max-num-seqs 8\r\n", {"max_num_seqs": 8}),
    ("a path, a program with its ending", "run.bat", "start \"\" /wait .\\bin\\llama-server.exe -m C:\\m\\x-Q4_K_M.gguf -c 512\r\n",
     {"model": "C:/m/x-Q4_K_M.gguf", "max_model_len": 512}),
    ("a variable of the environment", "run.bat", "set CUDA_VISIBLE_DEVICES=0,1\r\nvllm serve org/x --max-model-len 1\r\n",
     {"visible_devices": "0,1"}),
    ("variables of PowerShell", "run.ps1", '$Len = 512\n$env:CUDA_VISIBLE_DEVICES="0"\nvllm serve org/x `\n  --max-model-len $len\n',
     {"max_model_len": 512, "visible_devices": "0"}),
    ("an array of PowerShell", "run.ps1", '$opts = @(\n  "--max-model-len", "512",\n  "--max-num-seqs", 8\n)\n& vllm serve org/x @opts\n',
     {"max_model_len": 512, "max_num_seqs": 8}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), [pytest.param(*case[1:], id=case[0]) for case in SCRIPTS])
def test_what_a_script_hands_over(name: str, text: str, expected: dict[str, object]) -> None:
    settings = read({name: text}).settings
    assert {key: getattr(settings, key) for key in expected} == expected


def test_a_percent_sign_of_a_shell_is_kept() -> None:
    assert read({"run.sh": "MODEL=a\nvllm serve org/%MODEL --max-model-len 4\n"}).settings.model == "org/%MODEL"


@given(st.text(alphabet=st.sampled_from(list("set$%@=\"' \\\nabN()`,^:#")), max_size=200), st.sampled_from(["a.bat", "a.ps1", "a.cmd"]))
def test_places_stay(text: str, name: str) -> None:
    shell = as_shell(name, text)
    assert len(shell) == len(text)
    assert [at for at, char in enumerate(shell) if char == "\n"] == [at for at, char in enumerate(text) if char == "\n"]


def test_a_value_behind_a_path_is_changed_in_its_place() -> None:
    before = "llama-server.exe -m C:\\m\\x.gguf -c 512 -ngl 99\r\n"
    patched = patch("run.bat", before.encode(), [ConfigChange(file="run.bat", key="-c", to="256", line=1)])
    assert patched.data.decode() == before.replace("512", "256")
