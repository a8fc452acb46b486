"""The parts of a screen: where, why, the steps in a line each, how the run was read; and the screen of another error."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from report import samples

from oomdoctor.api.diagnose import diagnose
from oomdoctor.api.fix import fix
from oomdoctor.case.diagnosis import Diagnosis, Fix, OpenCause
from oomdoctor.case.event import Certainty, Kind
from oomdoctor.case.incident import Incident
from oomdoctor.case.settings import ProposedSetting, RunConfig, RunSettings, WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.certainty import finding_certainty, verdict_certainty
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.diagnosis.do_this import fix_command
from oomdoctor.report.document import BriefSteps
from oomdoctor.report.render.terminal import render
from oomdoctor.report.wording.phrases import lower_first
from oomdoctor.report.wording.wording import Wording

TITLE, HOW = Text("Smaller batch", "减小批大小"), Text("Halve it.", "减半。")


def screen(diagnosis: Diagnosis, lang: str = "en") -> str:
    return render(compose(diagnosis, Wording(lang), "0"), width=80, color=False)


def with_fixes(*fixes: Fix) -> Diagnosis:
    base = samples.device_oom()
    return replace(base, findings=(replace(base.findings[0], fixes=fixes),))


def setting(key: str, to: str, **fields: object) -> ProposedSetting:
    return ProposedSetting(**{"framework": "transformers", "key": key, "to": to, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fix", "line"),
    [
        pytest.param(
            Fix(id="a", title=TITLE, how=HOW, settings=(setting("batch", "2", before="4", file="dir/sft.yaml", line=12),)),
            "  1. sft.yaml:12  batch: 4 → 2  (smaller batch)",
            id="a value that stands in a file",
        ),
        pytest.param(
            Fix(id="a", title=TITLE, how=HOW, settings=(setting("batch", "2"),), frees_bytes=3 << 30),
            "  1. Transformers  batch: 2  (frees up to 3.00 GiB; smaller batch)",
            id="what it may free",
        ),
        pytest.param(
            Fix(id="a", title=TITLE, how=HOW, settings=(setting("batch", "2"),), frees_bytes=3 << 30, fits="yes"),
            "  1. Transformers  batch: 2  (frees ≈3.00 GiB; then it fits; smaller batch)",
            id="what it frees by the memory model",
        ),
        pytest.param(
            Fix(id="a", title=TITLE, how=HOW, settings=(
                setting("dtype_old", "bf16", dated=True, note=Text("up to 4.55", "至 4.55")),
                setting("dtype", "bf16", dated=True, note=Text("from 4.56", "4.56 起")),
            )),
            "  1. Transformers  `dtype_old: bf16` (up to 4.55) or `dtype: bf16` (from 4.56)",
            id="keys of two versions are alternatives",
        ),
        pytest.param(
            Fix(id="a", title=TITLE, how=HOW, settings=(setting("batch", "2"), setting("--batch", "2", framework="vllm"))),
            "  1. Transformers  batch: 2  (smaller batch)",
            id="the key of another program is left to the fold",
        ),
        pytest.param(Fix(id="a", title=TITLE, how=HOW, command="nvidia-smi"), "  1. Smaller batch: `nvidia-smi`", id="a command"),
        pytest.param(Fix(id="a", title=TITLE, how=HOW), "  1. Smaller batch  (Halve it)", id="nothing to type, so how"),
    ],
)  # fmt: skip
def test_a_step_is_a_line(fix: Fix, line: str) -> None:
    assert line.replace("`", "") in screen(with_fixes(fix)).replace("`", "").splitlines()


@pytest.mark.parametrize(
    ("settle", "cause", "last"),
    [
        pytest.param("sigkill", None, "check the kernel log", id="an open verdict is settled before an open cause"),
        pytest.param(
            None, OpenCause(findings=(), settled_by=Text("its config", "配置"), command="oomdoctor diagnose LOG --config CONFIG"),
            "To settle it: its config: `oomdoctor diagnose train.log --config CONFIG`", id="the command has the name of the log",
        ),
    ],
)  # fmt: skip
def test_the_evidence_that_settles_is_the_last_of_three(settle: str | None, cause: OpenCause | None, last: str) -> None:
    base = samples.device_oom()
    verdict = replace(base.case.verdict, settle=settle)
    found = replace(base, case=replace(base.case, verdict=verdict), open_cause=cause)
    steps = next(block for block in compose(found, Wording("en"), "0").blocks if isinstance(block, BriefSteps)).steps
    assert len(steps) == 3
    assert last in " ".join(screen(found).split())
    assert [step.do[0].text for step in steps].index("To settle it: ") == 2


@pytest.mark.parametrize(
    ("confidence", "says"),
    [
        pytest.param(Certainty.LIKELY, "Why (likely): the batch does not fit beside the model.", id="likely"),
        pytest.param(Certainty.POSSIBLE, "The log cannot tell: possibly the batch does not fit beside the model.", id="only possible"),
    ],
)
def test_why_is_told_as_surely_as_it_is_known(confidence: Certainty, says: str) -> None:
    base = samples.device_oom()
    assert says in " ".join(screen(replace(base, findings=(replace(base.findings[0], confidence=confidence),))).split())


def test_a_kill_is_no_surer_in_the_headline_than_below_it() -> None:
    base = samples.killed_by_kernel()
    root = samples.event("shell-killed", Kind.HOST_OOM, "Killed", certainty=Certainty.LIKELY, ended_by="SIGKILL")
    incident = Incident(root=root, kind=Kind.HOST_OOM, certainty=Certainty.LIKELY)
    verdict = replace(base.case.verdict, certainty=Certainty.LIKELY, settle="sigkill")
    finding = replace(samples.TOO_LARGE, confidence=Certainty.POSSIBLE)
    found = replace(base, case=replace(base.case, incidents=(incident,), verdict=verdict), findings=(finding,))
    assert verdict_certainty(found) is finding_certainty(found, finding) is Certainty.POSSIBLE
    assert screen(found).startswith("The host possibly killed it for memory")


def test_a_finding_is_no_surer_than_the_verdict() -> None:
    base = samples.masked()
    sure = replace(samples.NEIGHBOUR, confidence=Certainty.CERTAIN)
    assert finding_certainty(replace(base, findings=(sure,)), sure) is Certainty.POSSIBLE


def test_the_message_is_shown_where_the_headline_says_less() -> None:
    assert "│ RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED" in screen(samples.masked())
    assert "│" not in screen(samples.device_oom())


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        pytest.param(
            RunSettings(model="org/base-7b", finetuning="lora", lora_rank=8, micro_batch=2, accumulation=4, sequence_length=4096),
            "Read as: LLaMA-Factory · base-7b · LoRA r8 · batch 2 × 4 · 4,096 tokens · 23.69 GiB",
            id="training",
        ),
        pytest.param(
            RunSettings(model="org/base-7b", method="serve", max_num_seqs=64, max_model_len=8192, tensor_parallel=2),
            "Read as: LLaMA-Factory · base-7b · serving · 64 concurrent requests · 8,192 tokens · TP 2 · 23.69 GiB",
            id="serving",
        ),
        pytest.param(RunSettings(micro_batch=-1), "Read as: LLaMA-Factory · 23.69 GiB", id="what is no size is left out"),
    ],
)
def test_the_run_is_told_as_it_was_read(settings: RunSettings, line: str) -> None:
    base = samples.device_oom()
    config = RunConfig(framework="llamafactory", settings=settings)
    assert line in " ".join(screen(replace(base, case=replace(base.case, training=config))).split())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_another_error_is_a_line_with_rank_and_place(tmp_path: Path, lang: str) -> None:
    (tmp_path / "k.log").write_text(
        "[rank5]: Traceback (most recent call last):\n"
        '[rank5]:   File "/srv/run/collate.py", line 31, in __call__\n'
        "[rank5]:     raise ValueError(text)\n"
        "[rank5]: ValueError: sample 8812 has no images\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        "[1]:\n  rank      : 5 (local_rank: 5)\n  exitcode  : 1 (pid: 916)\n",
        encoding="utf-8",
    )
    text = screen(diagnose([tmp_path / "k.log"]), lang)
    says = {
        "en": "Not a memory failure. Rank 5 failed first: ValueError: sample 8812 has no images",
        "zh": "最先出错的是 rank 5：ValueError: sample 8812 has no images",
    }
    assert says[lang] in text
    assert "collate.py:31 __call__" in text
    assert "messages followed)" in text or "随后还有" in text
    assert "Do this" not in text and "这样处理" not in text


@pytest.mark.parametrize(
    ("error", "step"),
    [
        pytest.param("OSError: [Errno 98] Address already in use", "ss -ltnp", id="a port"),
        pytest.param("PermissionError: [Errno 13] Permission denied: '/data/a'", "ls -ld FOLDER", id="a permission"),
        pytest.param("ImportError: /opt/k.so: undefined symbol: _ZN3c10E", "pip install", id="a build"),
        pytest.param("OSError: You are trying to access a gated repo.", "hf auth login", id="the hub"),
        pytest.param("OSError: [Errno 28] No space left on device: 'out/a'", "Free disk space", id="the disk"),
    ],
)
def test_a_known_class_of_error_has_its_one_step(error: str, step: str) -> None:
    text = f'Traceback (most recent call last):\n  File "/srv/run/train.py", line 3, in main\n    load()\n{error}\n'
    found = diagnose(text)
    steps = next(block for block in compose(found, Wording("en"), "0").blocks if isinstance(block, BriefSteps)).steps
    assert found.case.verdict.memory_failure == "no"
    assert len(steps) == 1
    assert step.lower() in " ".join(screen(found).split()).lower()


def test_the_command_of_a_screen_writes_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sft.yaml").write_text(
        "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\nper_device_train_batch_size: 8\ncutoff_len: 4096\n",
        encoding="utf-8",
    )
    Path("train.log").write_text(samples.OOM + "\n", encoding="utf-8")
    found = diagnose([Path("train.log")], config=["sft.yaml"])
    first = found.findings[0].fixes[0]
    assert first.id in found.written
    command = fix_command(first, found.case)
    assert command is not None and command.startswith(f"oomdoctor fix train.log -c sft.yaml --only {first.id}")
    assert command in " ".join(screen(found).split())
    made = fix(["sft.yaml"], log=["train.log"], only=[first.id], review=True).applied.steps
    assert [step.proposal.id for step in made] == [first.id]
    assert made[0].made and not made[0].left


def test_a_log_that_is_no_file_has_no_command_to_write() -> None:
    base = samples.device_oom()
    written = WrittenSetting(key="cutoff_len", value=1, file="sft.yaml", line=1)
    case = replace(base.case, training=RunConfig(written=(written,)), sources=(replace(base.case.sources[0], name="-"),))
    assert fix_command(samples.BATCH, case) is None


@pytest.mark.parametrize(
    ("title", "inside"),
    [
        pytest.param("All activations are kept", "all activations are kept", id="a word"),
        pytest.param("A model", "a model", id="an article"),
        pytest.param("JAX holds the card", "JAX holds the card", id="capitals"),
        pytest.param("PyTorch's own limit", "PyTorch's own limit", id="a capital inside"),
        pytest.param("Windows could not", "Windows could not", id="a name"),
        pytest.param("每张卡都装着完整的模型", "每张卡都装着完整的模型", id="Chinese"),
    ],
)
def test_a_title_goes_on_inside_a_sentence(title: str, inside: str) -> None:
    assert lower_first(title) == inside
