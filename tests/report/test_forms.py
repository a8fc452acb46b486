"""Each project's bug form comes out with its own fields, in its own order, filled with what is known and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oomdoctor.api import pipeline
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.cli.report import PROJECTS
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.project_forms import project_form
from oomdoctor.knowledge.records.form import SHEETS
from oomdoctor.machine.match_log import MachineSource
from oomdoctor.machine.reports.read import read_report
from oomdoctor.report.issue.form_markdown import render
from oomdoctor.report.issue.forms import compose_form
from oomdoctor.report.issue.forms_table import forms_page
from oomdoctor.report.issue.known_values import known_values
from oomdoctor.report.safety.redact import redact
from oomdoctor.report.wording.wording import Wording

ROOT = Path(__file__).parents[2]
PACK = load_pack()
LOG = (
    b'  File "/home/fiona/run/train.py", line 40, in main\n    loss.backward()\n'
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 GiB is free. "
    b"Including non-PyTorch memory, this process has 22.60 GiB memory in use. Of the allocated memory 20.00 GiB is allocated by PyTorch, "
    b"and 2.00 GiB is reserved by PyTorch but unallocated.\n"
)
# Everything that the readers can know, in one text: each fact that a form asks for must come out of it.
EVERYTHING = b"""
PyTorch version: 2.4.1+cu121
CUDA used to build PyTorch: 12.1
OS: Ubuntu 22.04.4 LTS (x86_64)
Libc version: glibc-2.35
Python version: 3.10.14 (main, Mar 1 2024, 00:00:00) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-5.15.0-105-generic-x86_64-with-glibc2.35
Is CUDA available: True
GPU models and configuration:
GPU 0: NVIDIA GeForce RTX 4090
GPU 1: NVIDIA GeForce RTX 4090
Nvidia driver version: 550.90.07
Caching allocator config: expandable_segments:True
- System RAM: 125.51 GB
- GPU number: 2
- GPU memory: 23.64GB
- Git commit: 0123456789abcdef
shared memory (/dev/shm) size .... 62.76 GB
CUDA_VISIBLE_DEVICES=0,1
"""
LISTED = [
    "accelerate", "axolotl", "bitsandbytes", "datasets", "deepspeed", "flash-attn", "flashinfer-python", "huggingface-hub", "llamafactory",
    "liger-kernel", "ms-swift", "numpy", "peft", "ray", "safetensors", "sgl-kernel", "sglang", "torchao", "torchvision", "transformers", "triton", "trl", "unsloth", "unsloth-zoo", "verl", "vllm",
]  # fmt: skip
NEVER = {"torch_hip", "launcher", "container", "commit.axolotl", "package.ollama", "wsl"}
"""Not of this machine: it has no ROCM, no WSL and no container; the others come from logs, or from an install out of git."""

HEADINGS = {
    "pytorch": ["🐛 Describe the bug*", "Versions*"],
    "transformers": ["System Info*", "Who can help?", "Information", "Tasks", "Reproduction*", "Expected behavior*"],
    "accelerate": ["System Info*", "Information", "Tasks", "Reproduction*", "Expected behavior*"],
    "deepspeed": [
        "Describe the bug", "To Reproduce", "Expected behavior", "ds_report output", "Screenshots",
        "System info (please complete the following information):", "Launcher context", "Docker context", "Additional context",
    ],
    "llamafactory": ["Reminder*", "System Info*", "Reproduction*", "Others"],
    "glm-4": [
        "System Info / 系統信息*", "Who can help? / 谁可以帮助到您？", "Information / 问题信息", "Reproduction / 复现过程*",
        "Expected behavior / 期待表现*",
    ],
    "vllm": ["Your current environment*", "🐛 Describe the bug*", "Before submitting a new issue...*"],
    "axolotl": [
        "Please check that this issue hasn't been reported before.*", "Expected Behavior*", "Current behaviour*", "Steps to reproduce*",
        "Possible solution", "Which Operating Systems are you using?", "Python Version*", "axolotl branch-commit*", "Acknowledgements*",
    ],
    "unsloth": [
        "Did you update? `pip install --upgrade unsloth unsloth_zoo`", "`Colab` or `Kaggle` or local / cloud",
        "Number GPUs used, use `nvidia-smi`", "Which notebook? Please link!",
        "Which Unsloth version, TRL version, transformers version, PyTorch version?", "Which trainer? `SFTTrainer`, `GRPOTrainer` etc",
    ],
    "ms-swift": ["Checklist / 检查清单*", "Bug Description / Bug 描述*", "How to Reproduce / 如何复现*", "Additional Information / 补充信息"],
    "torchtitan": ["Bug description*", "Versions*"],
    "sglang": ["Checklist", "Describe the bug*", "Reproduction*", "Environment*"],
    "trl": ["System Info*", "Information", "Tasks", "Reproduction*", "Expected behavior*"],
    "verl": ["System Info*", "Information", "Tasks", "Reproduction*", "Expected behavior*"],
    "llama-cpp": [
        "Name and Version*", "Operating systems*", "GGML backends*", "Hardware*", "Models", "Problem description & steps to reproduce*",
        "First Bad Commit", "Relevant log output*",
    ],
    "comfyui": ["Expected Behavior*", "Actual Behavior*", "Steps to Reproduce*", "Debug Logs*", "Other"],
    "ollama": ["What is the issue?*", "Relevant log output", "OS", "GPU", "CPU", "Ollama version"],
}  # fmt: skip
"""The fields of each form as its repository has them; a star where the form requires it."""


def diagnosed(described: bytes | None, log: bytes = LOG) -> Diagnosis:
    machine = None if described is None else MachineSource(lambda: read_report(described, "env.txt"), name="env.txt", always=True)
    return pipeline.diagnose_logs(["train.log"], PACK, text=log, machine=machine)


FULL = diagnosed(EVERYTHING + "".join(f"{name}==1.2.3\n" for name in LISTED).encode())
BARE = diagnosed(None)


def filled(project: str, diagnosis: Diagnosis = FULL, lang: str = "en") -> str:
    form = project_form(PACK, project)
    return render(redact(compose_form(diagnosis, form, Wording(lang), "0.0")), form.form)


def headings(project: str, text: str) -> list[str]:
    """The headings in a form as its style writes them, outside of fences."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    pattern = {"bold": r"^\*\*([^*]+)\*\*$", "questions": r"^\d\. (.+)$"}.get(project_form(PACK, project).form.style, r"^### (.+)$")
    return re.findall(pattern, text, re.MULTILINE)


def test_the_forms_of_help_are_those_of_the_rules() -> None:
    assert sorted(PROJECTS) == sorted(PACK.names("forms")) == sorted(HEADINGS)


@pytest.mark.parametrize("project", PROJECTS)
def test_the_fields_are_those_of_the_project(project: str) -> None:
    fields = [field for field in project_form(PACK, project).form.fields if field.heading]
    assert [field.heading + "*" * field.required for field in fields] == HEADINGS[project]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("project", PROJECTS)
@pytest.mark.parametrize("diagnosis", [pytest.param(FULL, id="all is known"), pytest.param(BARE, id="only the log")])
def test_every_field_stands_in_its_place(project: str, diagnosis: Diagnosis, lang: str) -> None:
    filled_headings = [
        heading
        for heading in headings(project, filled(project, diagnosis, lang))
        if heading + "*" in HEADINGS[project] or heading in HEADINGS[project]
    ]
    assert filled_headings == [heading.rstrip("*") for heading in HEADINGS[project]]


@pytest.mark.parametrize("project", PROJECTS)
@pytest.mark.parametrize("diagnosis", [pytest.param(FULL, id="all is known"), pytest.param(BARE, id="only the log")])
def test_no_box_that_vouches_for_something_is_ticked(project: str, diagnosis: Diagnosis) -> None:
    ticked = re.findall(r"^- \[x\] (.*)$", filled(project, diagnosis), re.MULTILINE)
    assert ticked == (["Linux"] if project == "axolotl" and diagnosis is FULL else [])


@pytest.mark.parametrize("project", PROJECTS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_required_field_has_its_content_or_a_mark(project: str, lang: str) -> None:
    form = project_form(PACK, project)
    blocks = compose_form(BARE, form, Wording(lang), "0.0").blocks
    assert [
        field.id for block, field in zip(blocks, form.form.fields, strict=True) if field.required and not getattr(block, "blocks", ())
    ] == []


@pytest.mark.parametrize("project", PROJECTS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_message_and_the_figures_stand_in_it_and_no_name_of_a_person(project: str, lang: str) -> None:
    text = filled(project, BARE, lang)
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB" in text
    assert "20.00 GiB" in text
    assert "fiona" not in text
    assert text.count("\n```") % 2 == 0


@pytest.mark.parametrize("project", PROJECTS)
def test_what_only_a_person_can_say_is_marked_in_the_language_of_the_form(project: str) -> None:
    assert "(please fill in: " in filled(project, lang="en")
    assert "（请补充：" in filled(project, lang="zh")
    assert "(please fill in: " not in filled(project, lang="zh")


@pytest.mark.parametrize("name", PACK.names("sheets"))
def test_every_line_of_a_sheet_can_be_known(name: str) -> None:
    values = known_values(FULL.case)
    record = PACK.record(SHEETS, name)
    assert record is not None
    assert [fact for _, fact in record.lines if fact not in values and fact not in NEVER] == []


@pytest.mark.parametrize("project", PROJECTS)
def test_every_fact_of_a_field_or_box_can_be_known(project: str) -> None:
    fields = project_form(PACK, project).form.fields
    facts = {field.fact for field in fields} | {box.fact for field in fields for box in field.options}
    assert facts - set(known_values(FULL.case)) - NEVER <= {None}


@pytest.mark.parametrize(
    ("project", "line"),
    [
        pytest.param("pytorch", "PyTorch version: 2.4.1+cu121", id="collect_env in a form of torch"),
        pytest.param("pytorch", "GPU 1: NVIDIA GeForce RTX 4090", id="each card on its line"),
        pytest.param("transformers", "- Platform: Linux-5.15.0-105-generic-x86_64-with-glibc2.35", id="the platform as Python writes it"),
        pytest.param("llamafactory", "- GPU memory: 23.64GB", id="the card's memory as LLaMA-Factory writes it"),
        pytest.param("llamafactory", "- Git commit: 0123456789abcdef", id="the commit"),
        pytest.param("accelerate", "```Shell\n- `Accelerate` version: 1.2.3", id="a field that renders as a shell's output"),
        pytest.param("vllm", "<details>\n<summary>The output of <code>python collect_env.py</code></summary>", id="a folded environment"),
        pytest.param("deepspeed", "- GPU count and types: 2 x NVIDIA GeForce RTX 4090 (23.64 GiB)", id="cards in one line"),
        pytest.param("ollama", "### OS\n\nLinux", id="a choice that is known"),
        pytest.param("ollama", "### GPU\n\nNvidia", id="the maker of the card"),
        pytest.param("ollama", "(please fill in: Intel, AMD, Apple, Other)", id="a choice that is not known"),
        pytest.param("axolotl", "### Python Version\n\n`3.10.14`", id="one value"),
        pytest.param("glm-4", "Transformers: 1.2.3", id="what a form lists itself"),
        pytest.param("unsloth", "- unsloth_zoo: 1.2.3", id="an answer below its question"),
    ],
)
def test_what_is_known_is_written_as_the_form_wants_it(project: str, line: str) -> None:
    # A comment that shows nothing keeps a code host from making a link of a hash.
    assert line in filled(project).replace("<!-- -->", "")


@pytest.mark.parametrize("project", PROJECTS)
def test_a_log_with_nothing_in_it_still_gives_the_form(project: str) -> None:
    text = filled(project, diagnosed(None, b"step 1\nstep 2\n"))
    assert [heading for heading in headings(project, text) if heading + "*" in HEADINGS[project] or heading in HEADINGS[project]]


@pytest.mark.parametrize("project", PROJECTS)
def test_a_hostile_log_does_not_leave_its_fence(project: str) -> None:
    text = filled(project, diagnosed(None, LOG.replace(b"CUDA out of memory", b"CUDA out of memory ``` <script> @someone")))
    assert "<script>" not in re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)


def test_the_page_of_the_documents_is_made_of_the_rules(bless: bool) -> None:
    page = ROOT / "docs" / "forms.md"
    made = forms_page([project_form(PACK, project) for project in PROJECTS])
    if bless:
        page.write_text(made, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == made


TRACED = (
    b"model_name_or_path: Qwen/Qwen2.5-7B-Instruct\n  6%|6         | 311/4876 [10:44<2:37:01,  2.06s/it]"
    b'Traceback (most recent call last):\n  File "/opt/bin/llamafactory-cli", line 8, in <module>\n    sys.exit(main())\n' + LOG
)
WITH_TRACEBACK = ["llamafactory", "sglang", "trl", "verl", "llama-cpp", "comfyui"]


@pytest.mark.parametrize("project", WITH_TRACEBACK)
def test_the_traceback_stands_in_it_from_its_head_on(project: str) -> None:
    text = filled(project, diagnosed(None, TRACED))
    assert 'Traceback (most recent call last):\n  File "/opt/bin/llamafactory-cli", line 8, in <module>' in text
    assert "311/4876" not in text


@pytest.mark.parametrize("project", ["llamafactory", "llama-cpp"])
def test_the_model_stands_in_it_or_is_asked_for(project: str) -> None:
    assert "Model: `Qwen/Qwen2.5-7B-Instruct`" in filled(project, diagnosed(None, TRACED))
    assert "(please fill in: the model's full name)" in filled(project, BARE)


def test_a_form_does_not_ask_for_versions_that_the_machine_tells() -> None:
    assert "versions of torch" in filled("llamafactory", BARE)
    assert "versions of" not in filled("llamafactory", FULL)
