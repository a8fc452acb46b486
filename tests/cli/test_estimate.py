"""`oomdoctor estimate` as people call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oomdoctor.cli.main import cli
from oomdoctor.errors import UsageError

CONFIG = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 16
lora_target: all
dataset: ours
cutoff_len: 3072
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
bf16: true
"""


def run(*args: str, text: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["estimate", *args], input=text)


def test_a_config_is_estimated(tmp_path: Path) -> None:
    config = tmp_path / "sft.yaml"
    config.write_text(CONFIG)
    done = run(str(config), "--format", "json")
    report = json.loads(done.output)
    assert (done.exit_code, report["model"], report["card"]) == (0, "Qwen/Qwen2.5-7B", None)
    assert {term["name"] for term in report["phases"][1]["terms"]} >= {"weights", "adapters", "activations", "logits"}


def test_an_option_goes_before_the_config(tmp_path: Path) -> None:
    config = tmp_path / "sft.yaml"
    config.write_text(CONFIG)
    both = [json.loads(run(str(config), "--format", "json", *more).output)["per_gpu_bytes"]["expected"] for more in ([], ["--batch", "4"])]
    assert both[1] > both[0]


def test_a_model_stands_where_a_config_would() -> None:
    named = run("Qwen3 8B", "--method", "lora", "--gpu", "24GB", "--format", "json")
    assert named.stdout == run("--model", "Qwen3 8B", "--method", "lora", "--gpu", "24GB", "--format", "json").stdout != ""


@pytest.mark.parametrize(("written", "says"), [
    pytest.param("Qwne3-8B", "did you mean Qwen/Qwen3-8B", id="two letters changed places"),
    pytest.param("Qwen/Qwne3-8B", "did you mean Qwen/Qwen3-8B", id="with its owner"),
    pytest.param("/data/models/Qwne3-8B", "no such file or folder, and the model", id="a folder that is not there"),
    pytest.param("qwne.yaml", "no such file", id="the name of a config"),
])  # fmt: skip
def test_what_is_not_there_is_a_mistyped_model_or_a_missing_file(written: str, says: str) -> None:
    done = run(written, "--gpu", "24GB")
    assert done.exit_code != 0
    assert says in str(done.exception)
    assert ("is not in the table" in str(done.exception)) == (not written.endswith(".yaml"))


@pytest.mark.parametrize(("gpu", "fits", "status"), [
    pytest.param("80GB", "yes", 0, id="a large card"),
    pytest.param("RTX 4090", "close", 1, id="a card within the range"),
    pytest.param("Tesla T4", "no", 1, id="a card that the weights alone fill"),
])  # fmt: skip
def test_the_verdict_decides_the_status(gpu: str, fits: str, status: int) -> None:
    done = run(
        "--model",
        "Qwen2.5-7B",
        "--method",
        "lora",
        "--batch",
        "1",
        "--length",
        "2048",
        "--packing",
        "--checkpointing",
        "--gpu",
        gpu,
        "--format",
        "json",
    )
    assert (json.loads(done.output)["card"]["fits"], done.exit_code) == (fits, status)


@pytest.mark.parametrize("args", [
    pytest.param(["--method", "lora"], id="no model"),
    pytest.param(["--model", "nobody/knows-this"], id="an unknown model"),
    pytest.param(["--model", "Qwen2.5-7B", "--gpu", "RTX 9999"], id="an unknown card"),
    pytest.param(["--model", "Qwen2.5-7B", "--gpu", "24"], id="the size of a card without its unit"),
    pytest.param(["does-not-exist.yaml"], id="no such file"),
    pytest.param(["qwen.yaml"], id="no such file, whose name sounds like a model"),
    pytest.param(["--spec", "does-not-exist.jsonl"], id="no such lines"),
])  # fmt: skip
def test_wrong_use_is_said_in_one_line(args: list[str]) -> None:
    done = run(*args)
    assert isinstance(done.exception, UsageError)
    assert "\n" not in str(done.exception)


@pytest.mark.parametrize(("length", "tokens"), [
    pytest.param("4096", 4096, id="a number"),
    pytest.param("4k", 4096, id="thousands, as of a sweep"),
    pytest.param("32K", 32768, id="thousands in a capital"),
    pytest.param("k", None, id="thousands of nothing"),
    pytest.param("4kk", None, id="thousands of thousands"),
    pytest.param("0k", None, id="no tokens at all"),
])  # fmt: skip
def test_a_length_is_a_number_or_thousands(length: str, tokens: int | None) -> None:
    told = [run("--model", "Qwen2.5-7B", "--method", "lora", "--length", each, "--format", "json") for each in (length, str(tokens))]
    assert told[0].exit_code == (0 if tokens else 2)
    assert not tokens or told[0].output == told[1].output


def test_lines_in_lines_out() -> None:
    lines = '{"id": 1, "model": "Qwen/Qwen3-8B", "task": "infer", "seq_len": 512}\n{"id": 2, "model": "no-such"}\n'
    done = run("--spec", "-", "--format", "jsonl", text=lines)
    first, second = (json.loads(line) for line in done.output.splitlines())
    assert (first["id"], first["refused"], second["id"]) == (1, None, 2)
    assert second["refused"]


def test_a_folder_with_a_config_json_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({
        "model_type": "chatglm", "hidden_size": 1024, "num_layers": 6, "num_attention_heads": 8, "ffn_hidden_size": 2752, "padded_vocab_size": 65024,
        "multi_query_attention": True, "multi_query_group_num": 2, "kv_channels": 128, "add_qkv_bias": True,
    }))  # fmt: skip
    done = run("--model", str(tmp_path), "--serve", "--length", "128", "--format", "json")
    assert done.exit_code == 0
    # 65024 x 1024 twice, and six layers of 1024 x (1024 + 2 x 256) + 1024 x 1024 + 3 x 1024 x 2752.
    load = json.loads(done.output)["phases"][0]["terms"][0]["bytes"]
    assert load == pytest.approx(2 * (2 * 65024 * 1024 + 6 * (1024 * 1536 + 1024 * 1024 + 3 * 1024 * 2752)), rel=0.001)


@pytest.mark.parametrize("format_", ["terminal", "markdown", "html"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_form_names_the_largest_part(format_: str, lang: str) -> None:
    done = run("--model", "glm-4-9b", "--method", "lora", "--gpu", "RTX 4090", "--format", format_, "--lang", lang)
    assert ("模型权重" if lang == "zh" else "weights") in done.output


def test_a_server_spreads_its_weights_over_the_cards_that_are_named() -> None:
    sizes = []
    for cards in ("1", "2"):
        done = run("--model", "Qwen2.5-7B", "--serve", "--length", "8192", "--gpu", "24GB", "--gpus", cards, "--format", "json")
        sizes += [term["bytes"] for phase in json.loads(done.output)["phases"][:1] for term in phase["terms"] if term["name"] == "weights"]
    assert sizes[0] == pytest.approx(2 * sizes[1], rel=0.001)


def test_a_server_says_how_many_tokens_its_cache_holds() -> None:
    done = run("--model", "Qwen2.5-7B", "--serve", "--length", "8192", "--gpu", "24GB", "--share", "0.85", "--format", "json")
    server = json.loads(done.output)["server"]
    assert 0 < server["cache_bytes"] < server["taken_bytes"]
    assert server["cache_tokens"] == server["cache_bytes"] // (28 * 2 * 4 * 128 * 2)


@pytest.mark.parametrize(("command", "gpu", "starts", "obstacle", "status"), [
    pytest.param("vllm serve Qwen/Qwen2.5-7B --max-model-len 16k", "RTX 4090", "yes", None, 0, id="vLLM with room to spare"),
    pytest.param("vllm serve Qwen/Qwen2.5-7B --max-model-len 1M", "RTX 4090", "no", "request", 1, id="vLLM, one request does not fit the cache"),
    pytest.param("vllm serve Qwen/Qwen2.5-7B --gpu-memory-utilization=0.6", "RTX 4090", "no", "blocks", 1, id="vLLM, the share holds no cache"),
    pytest.param("vllm serve Qwen/Qwen2.5-14B", "RTX 4090", "no", "load", 1, id="vLLM, the weights are larger than the card"),
    pytest.param("vllm serve Qwen/Qwen2.5-14B-Instruct-AWQ", "RTX 4090", "yes", None, 0, id="the name of the checkpoint tells its format"),
    pytest.param("vllm serve Qwen/Qwen2.5-14B -tp 2 --max-model-len 8192 --enforce-eager", "RTX 4090", "yes", None, 0, id="two cards share the weights"),
    pytest.param("vllm serve Qwen/Qwen2.5-7B --gpu-memory-utilization 1.0", "RTX 4090", "no", "start", 1, id="all of the card is never free"),
    pytest.param("python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-7B", "RTX 4090", "yes", None, 0, id="SGLang's own share"),
    pytest.param("python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-7B --mem-fraction-static 0.5", "RTX 4090", "no", "blocks", 1, id="SGLang, too small a share"),
])  # fmt: skip
def test_the_command_of_a_server_is_judged(tmp_path: Path, command: str, gpu: str, starts: str, obstacle: str | None, status: int) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(command + "\n")
    done = run(str(script), "--gpu", gpu, "--format", "json")
    report = json.loads(done.output)
    assert (report["server"]["starts"], report["server"]["obstacle"], done.exit_code) == (starts, obstacle, status)


@pytest.mark.parametrize(("lang", "expected"), [
    pytest.param("en", ["It does not start.", "No available memory for the cache blocks", "left for the KV cache"], id="English"),
    pytest.param("zh", ["无法启动。", "No available memory for the cache blocks", "留给 KV 缓存"], id="Chinese"),
])  # fmt: skip
def test_a_server_that_does_not_start_says_how_its_log_ends(lang: str, expected: list[str]) -> None:
    done = run("--model", "Qwen2.5-7B", "--serve", "--share", "0.6", "--gpu", "RTX 4090", "--format", "markdown", "--lang", lang)
    assert [part for part in expected if part not in done.output] == []
