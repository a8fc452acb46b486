"""Secrets planted in logs, names of files, command lines, configs and environments leave in no report of any format."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from redaction.leaks import FIGURES, log, shown
from report.secrets_planted import ALL, FORMS, MACHINES, MORE, PASSWORDS, PEOPLE, TOKENS, Planted, wrapped

from oomdoctor.api import pipeline
from oomdoctor.api.check import check
from oomdoctor.api.fix import fix
from oomdoctor.case.comparison import Side
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.environment import Driver, Environment, Folder, Gpu, GpuProcess, Host, Package, Python, TorchBuild, TorchRun
from oomdoctor.case.gap import Gap
from oomdoctor.cli.check import _render as checked
from oomdoctor.cli.compare import render as compared
from oomdoctor.cli.diagnose import answer
from oomdoctor.cli.diagnose import render as diagnosed
from oomdoctor.cli.env import render as described
from oomdoctor.cli.report import PROJECTS, _issue
from oomdoctor.comparing.compare import compare
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.collect.variables import collect_variables
from oomdoctor.machine.findings import environment_findings
from oomdoctor.machine.match_log import MachineSource
from oomdoctor.report.document import Document, Paragraph, Quote, Span
from oomdoctor.report.edits.fix import render as fixed
from oomdoctor.report.issue.form_text import form_text
from oomdoctor.report.safety.redact import redact, redact_text, redact_values
from oomdoctor.report.safety.sanitize import clean
from oomdoctor.report.wording.wording import Wording

FORMATS = ("terminal", "markdown", "html", "json")


def world(text: str) -> Environment:
    """A machine with the text in whatever of it a tool or a person could have put one into."""
    line = text.replace("\n", " ")
    names = {"LD_LIBRARY_PATH": line, "NCCL_SOCKET_IFNAME": line, "VLLM_HOST_NOTE": line, "HF_TOKEN": text, "DB_PASSWORD": text}
    allowed = collect_variables({**names, "SLURM_NTASKS": line}, table("variables")).value
    return Environment(
        host=Host(os="Ubuntu 22.04.4 LTS", ram_bytes=64 << 30, disk=Folder(path=line, total_bytes=1 << 40, free_bytes=1 << 39)),
        python=Python(executable=line, version="3.11.9", prefix=line, kind="venv", site_packages=(line,)),
        packages={"transformers": Package(version="4.51.3", location=line), "deepspeed": Package(version="0.16.4")},
        torch=TorchBuild(version="2.6.0+cu124", cuda="12.4", backend="cuda", arch_list=("sm_80", "sm_90")),
        torch_run=TorchRun(imports=False, error=f"ImportError: {line}"),
        variables=allowed.variables,
        launcher=allowed.launcher,
        driver=Driver(version="550.54.15", cuda="12.4", library=line, state="error", message=line),
        gpus=(Gpu(index=0, name="NVIDIA L40S", vendor="nvidia", total_bytes=48 << 30, compute_capability="8.9",
                  processes=(GpuProcess(pid=4711, used_bytes=9 << 30, name=line, user="mwagner", own=False),), processes_known=True),),
        gaps=(Gap("disk", line, line),),
    )  # fmt: skip


def run(planted: Planted, folder: Path) -> Diagnosis:
    """The diagnosis of a run that has the text everywhere: its log, the log's name, its config, its machine."""
    line = planted.text.replace("\n", " ")
    config = folder / "sft.yaml"
    named = {"model_name_or_path": line, "output_dir": line, "run_name": line, "deepspeed": line, "per_device_train_batch_size": 4}
    config.write_text(yaml.safe_dump({**named, "bf16": True, "note": planted.text}, allow_unicode=True), encoding="utf-8")
    machine = MachineSource(lambda: world(planted.text), name=line, always=True)
    return pipeline.diagnose_logs([line], load_pack(), text=log(planted.text).encode(), config=[str(config)], machine=machine)


def reports(
    planted: Planted, folder: Path, *, redact: bool, lang: str = "en", formats: Sequence[str] = FORMATS, projects: Sequence[str] = PROJECTS
) -> Iterator[tuple[str, str]]:
    """Every report of such a run and such a machine: which, and its text."""
    diagnosis, machine, pack = run(planted, folder), world(planted.text), load_pack()
    line = planted.text.replace("\n", " ")
    before = Side(name=line, diagnosis=diagnosis, environment=machine, training=diagnosis.case.training)
    after = Side(name=line, environment=world(planted.text.swapcase()))
    wording = Wording(lang)
    wrong, changed = environment_findings(machine, pack), compare(before, after, pack)
    for form in formats:
        yield f"diagnose {form}", diagnosed(diagnosis, form, wording, redact=redact, to_terminal=False)
        yield f"env {form}", described(machine, wrong, form, wording, redact=redact, to_terminal=False, name=line)
        yield f"compare {form}", compared(changed, form, wording, redact=redact, to_terminal=False)
    yield "reply", answer(diagnosis, lang, b"", redact=redact)
    yield "report", _issue(diagnosis, "markdown", wording, redact=redact)
    yield "report plain", _issue(diagnosis, "terminal", wording, redact=redact)
    for project in projects:
        yield f"report --for {project}", form_text(diagnosis, project, pack, wording, "0", is_asked=True, redact=redact)


def test_there_are_enough_kinds() -> None:
    assert len({planted.kind for planted in ALL}) == len(ALL) >= 190


def undone(text: str) -> str:
    """A text as somebody reads it who undoes its encoding and sees nothing that has no width."""
    text = unquote(html.unescape(text))
    for _ in range(2):
        text = re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), text)
    return re.sub("[\u200d\u00ad]", "", text)


@pytest.mark.parametrize("form", [*FORMS, "wrapped"])
def test_no_secret_is_left_in_any_form(form: str) -> None:
    """As it stands in a quote, on one line, and in the values of JSON."""
    left = {}
    for planted in ALL:
        text = wrapped(planted) if form == "wrapped" else FORMS[form](planted)
        if text is None:
            continue
        quote, line = redact(Document("x", (Quote("log", text), Paragraph((Span(text),))))).blocks
        value = redact_values({"text": clean(text, 4000)})["text"]
        assert isinstance(quote, Quote) and isinstance(line, Paragraph)
        for safe in (quote.text, line.spans[0].text, str(value), redact_text(text)):
            if shown(planted.secret, safe) or shown(undone(planted.secret), undone(safe)):
                left[planted.kind] = safe
    assert left == {}


NEAR = [
    "hf_transfer hf_hub_download hf_model_config sk-learn sk-image-0.22 npm_config_registry glpat- tk-nodes fw_bw_pass gsk_attention",
    "model.layers.0.self_attn.q_proj.lora_A.default.weight Qwen2.5-7B-Instruct-GPTQ-Int4 DeepSeek-R1-Distill-Qwen-32B",
    "vllm/model_executor/models/qwen2.py:382 torch/_inductor/runtime/triton_helpers.py ~/.cache/huggingface/hub",
    "2026-11-22T10:41:07.123Z 2026-11-22 10:41:07,123 step 128/4096 [00:41<02:11, 3.1it/s]",
    '100%|##########| 20/20 50%ad 3%20 steps, a & b, x &gt; y, &lt;s&gt;, C:\\\\data\\\\run, "a\\"b"',
    "at::native::add_kernel c10::cuda::CUDACachingAllocator::Native::malloc std::__throw_bad_alloc threading.local torch._C.local",
    "--host 0.0.0.0 --port 8000 --node_rank 0 --nnodes 2 --master_addr 127.0.0.1 --master_port 29500",
    "12-34-56 01-02-03-04-05-06 1234.5678.9012 aa-bb-cc",
    "sha256:9f3a7c1e5b2d commit 3b13453bbf0a4a1d2c9e of accelerate, cudaGraph 0x7f3a9c1e5b2d",
    "per_device_train_batch_size=4 gradient_accumulation_steps=8 learning_rate=1e-4 bf16=True token_num=4096 key=value",
    "RuntimeError: CUDA error: out of memory; Author: unknown; QQ group; user: root",
    "GPU-0 of 8, GPU 0: NVIDIA A100-SXM4-80GB, sm_90a, cu124, cp311-cp311-linux_x86_64, nccl 2.21.5+cuda12.4",
]


@pytest.mark.parametrize("text", NEAR)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact_text(text) == text


IN_REPORTS = [*TOKENS, *PASSWORDS, *PEOPLE, *MACHINES, *MORE[::5]]


@pytest.mark.parametrize("number", [pytest.param(number, id=planted.kind) for number, planted in enumerate(IN_REPORTS)])
def test_no_report_holds_a_planted_secret(number: int, tmp_path: Path) -> None:
    """Each in JSON, one format for people and one form of a project: what takes it out does so before there is a format."""
    planted, formats, projects = IN_REPORTS[number], (FORMATS[number % 3], "json"), (PROJECTS[number % len(PROJECTS)],)
    found = reports(planted, tmp_path, redact=True, formats=formats, projects=projects)
    assert {name: pieces[0] for name, text in found if (pieces := shown(planted.secret, text))} == {}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("planted", [pytest.param(group[0], id=group[0].kind) for group in (TOKENS, PASSWORDS, PEOPLE, MACHINES)])
def test_nor_does_any_format_or_form_in_either_language(planted: Planted, lang: str, tmp_path: Path) -> None:
    assert [name for name, text in reports(planted, tmp_path, redact=True, lang=lang) if shown(planted.secret, text)] == []


def test_without_redaction_the_same_reports_hold_it(tmp_path: Path) -> None:
    """Or the tests above would show nothing."""
    planted = TOKENS[0]
    held = {name for name, text in reports(planted, tmp_path, redact=False) if shown(planted.secret, text)}
    assert held >= {f"{command} {form}" for command in ("diagnose", "env", "compare") for form in FORMATS} | {"report", "reply"}


@pytest.mark.parametrize("planted", [pytest.param(planted, id=planted.kind) for planted in ALL])
def test_redacting_twice_is_redacting_once(planted: Planted) -> None:
    once = redact_text(planted.text)
    assert shown(planted.secret, once) == []
    assert redact_text(once) == once


@given(
    st.lists(st.sampled_from([planted.text for planted in ALL]), min_size=2, max_size=5),
    st.sampled_from([" ", "\n", "; ", ",", "\t", " | "]),
)
@settings(max_examples=150, deadline=None)
def test_secrets_beside_each_other_go_too_and_stay_away(texts: list[str], between: str) -> None:
    once = redact_text(between.join(texts))
    assert redact_text(once) == once


READABLE = [
    "transformers 4.51.3 torch 2.6.0+cu124 nccl 2.21.5 driver 550.54.15 CUDA 12.4",
    FIGURES,
    "Process 31877 has 41.27 GiB memory in use.",
    "per_device_train_batch_size: 4, max_new_tokens: 512, --max_new_tokens 512 --eos_token </s> --pad_token_id 0",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128",
    "step 128/4096 [00:41<02:11, 3.1it/s, loss=1.482]",
    "forward_pass: 0.35s first_pass=done num_pass=3",
    "namespace at { struct Tensor; } std::vector<at::Tensor>",
    "https://huggingface.co/Qwen/Qwen2.5-7B-Instruct and https://github.com/pytorch/pytorch/issues/123984",
    "http://localhost:8000/v1 and http://127.0.0.1:8000",
    "flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl",
    "commit 3b13453bbf0a4a1d2c9e of accelerate, sha256 of nothing",
    "File \"/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py\", line 1739, in _wrapped_call_impl",
    "model.embed_tokens.weight model.layers.0.self_attn.q_proj.weight",
    "GPU 0: NVIDIA A100-SXM4-80GB, GPU-0 of 8, MIG 1g.10gb",
    "serial execution of 4 kernels; serial: no",
    "the identity matrix: 4096 x 4096; phone home: no",
    "author: nobody knows",
    "podman/docker and iPod/8",
    "kubectl get nodes",
    "a cookie: none",
    "secret: none, password: no, api_key: required",
]  # fmt: skip


@pytest.mark.parametrize("text", READABLE)
def test_figures_versions_and_names_of_packages_stay(text: str) -> None:
    assert redact_text(text) == text


def config_with(planted: Planted, folder: Path) -> Path:
    """A config that has to be changed, with the text beside every line that is changed."""
    lines = [
        "model_name_or_path: Qwen/Qwen2.5-7B",
        "stage: sft",
        "finetuning_type: lora",
        "per_device_train_batch_size: 64",
        "cutoff_len: 8192",
    ]
    text = json.dumps(planted.text, ensure_ascii=False)
    path = folder / "sft.yaml"
    path.write_text("".join(f"{line}\n# {planted.text.splitlines()[0]}\nhub_token_{number}: {text}\n" for number, line in enumerate(lines)))
    return path


@pytest.mark.parametrize("planted", [pytest.param(planted, id=planted.kind) for planted in [*TOKENS, *PASSWORDS, *MORE[:53]][::4]])
def test_no_key_of_a_config_is_shown_by_the_commands_that_read_it(planted: Planted, tmp_path: Path) -> None:
    """Names and paths are the person's own there, and are needed."""
    path = str(config_with(planted, tmp_path))
    result, changes = check(path, gpu="RTX 4090"), fix(path, gpu="RTX 4090", review=True)
    shown_in = {
        format_: checked(result, format_, Wording("en"), to_terminal=False) for format_ in ("terminal", "markdown", "json", "sarif")
    }
    shown_in["fix"] = fixed(changes.applied, changes.before, changes.choice, changes.plans, Wording("en"), color=False)
    assert "hub_token_" in shown_in["fix"] and "-per_device_train_batch_size: 64" in shown_in["fix"]
    assert {name: text for name, text in shown_in.items() if shown(planted.secret, text)} == {}
