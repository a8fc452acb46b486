"""Models that only read, and Whisper: published counts, no logits, no cache; and configs that describe no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from memory.runs import run
from msgspec.structs import replace

from oomdoctor.cli.main import cli
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.memory.estimate import estimate
from oomdoctor.memory.inference import sequence_cache
from oomdoctor.memory.model.parameters import output, total
from oomdoctor.setups.model_files import unread_config

BERT = {"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30522,
        "max_position_embeddings": 512, "type_vocab_size": 2}  # fmt: skip
WHISPER = {"model_type": "whisper", "d_model": 1280, "encoder_layers": 32, "decoder_layers": 32, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120,
           "num_mel_bins": 128, "vocab_size": 51866}  # fmt: skip
VIT = {
    "model_type": "vit",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "image_size": 224,
}
CLIP: dict[str, Any] = {
    "model_type": "clip",
    "projection_dim": 512,
    "text_config": {"hidden_size": 512, "num_hidden_layers": 12, "num_attention_heads": 8, "intermediate_size": 2048, "vocab_size": 49408,
                    "max_position_embeddings": 77},
    "vision_config": {**VIT, "image_size": 224, "patch_size": 32},
}  # fmt: skip
SIGLIP: dict[str, Any] = {
    "model_type": "siglip",
    "text_config": {**VIT, "vocab_size": 32000, "max_position_embeddings": 64},
    "vision_config": {**VIT, "patch_size": 16},
}
T5 = {"model_type": "t5", "architectures": ["T5EncoderModel"], "d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_layers": 24, "num_heads": 64,
      "vocab_size": 32128, "feed_forward_proj": "gated-gelu"}  # fmt: skip


@pytest.mark.parametrize(("config", "params"), [
    pytest.param(BERT, 109_482_240, id="BERT base: BertModel of transformers"),
    pytest.param({**BERT, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}, 335_141_888, id="BERT large"),
    pytest.param(VIT, 86_389_248, id="ViT base with its pooler"),
    pytest.param(CLIP, 151_277_313, id="CLIP base: CLIPModel of transformers"),
    pytest.param(SIGLIP, 203_155_970, id="SigLIP base: SiglipModel of transformers"),
    pytest.param(WHISPER, 1_543_490_560, id="Whisper large v3: its model card says 1550 M"),
    pytest.param(T5, 4_762_310_656, id="T5 v1.1 XXL, the encoder that pipelines for pictures have"),
])  # fmt: skip
def test_the_count_is_that_of_the_class(config: dict[str, Any], params: int) -> None:
    shape = shape_from_config(config)
    assert shape is not None
    assert total(shape) == params


@pytest.mark.parametrize("config", [BERT, VIT, T5, CLIP])
def test_what_only_reads_has_no_logits_and_no_cache(config: dict[str, Any]) -> None:
    shape = shape_from_config(config)
    assert shape is not None
    setup = replace(run(task="infer"), shape=shape, prompt_logits=None)
    assert (output(shape), sequence_cache(setup, 512)) == (0, 0)
    assert {term.name: term.high for phase in estimate(setup, ()).phases for term in phase.terms}.get("logits", 0) == 0


def test_whisper_keeps_what_it_heard_for_each_sequence() -> None:
    shape = shape_from_config(WHISPER)
    assert shape is not None
    assert sequence_cache(replace(run(task="infer"), shape=shape), 100) == 32 * 2 * 1280 * 2 * (100 + 1500)


DECODER: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "intermediate_size": 4096,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    ("classes", "scores"), [(["Qwen3ForCausalLM"], True), (["Qwen3Model"], False), (["Qwen3ForSequenceClassification"], False), ([], True)]
)
def test_a_decoder_without_scores_has_no_output_projection(classes: list[str], scores: bool) -> None:
    shape = shape_from_config({**DECODER, "architectures": classes})
    assert shape is not None
    assert (shape.scores, output(shape)) == (scores, 1000 * 1024 if scores else 0)


@pytest.mark.parametrize(("config", "named"), [
    ({"hidden_size": None}, "hidden_size is None"), ({"num_hidden_layers": -2}, "num_hidden_layers is -2"), ({"vocab_size": 10**15}, "vocab_size is 1000000000000000"),
    ({"num_attention_heads": "many"}, "num_attention_heads is many"),
])  # fmt: skip
def test_a_config_with_an_absurd_size_is_named_and_gives_no_figure(tmp_path: Path, config: dict[str, Any], named: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**DECODER, **config}))
    assert named in (unread_config(str(tmp_path)) or "")


def test_a_config_without_sizes_says_which_are_missing(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "new"}))
    why = unread_config(str(tmp_path)) or ""
    assert "model_type new" in why
    assert "hidden_size is missing" in why


def test_what_is_no_json_is_said_and_what_can_be_read_is_not(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    assert "not a JSON object" in (unread_config(str(tmp_path)) or "")
    (tmp_path / "config.json").write_text(json.dumps(DECODER))
    assert (unread_config(str(tmp_path)), unread_config("org/unknown")) == (None, None)


def test_a_server_is_not_asked_for_what_only_reads(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BERT))
    answer = CliRunner().invoke(cli, ["estimate", "--model", str(tmp_path), "--serve", "--gpu", "24GB"])
    assert isinstance(answer.exception, UsageError)
    assert "keeps no KV cache" in str(answer.exception)


@pytest.mark.parametrize(("wrong", "named"), [
    pytest.param({"num_hidden_layers": 0}, "num_hidden_layers is 0", id="no layers"),
    pytest.param({"num_hidden_layers": 5000}, "num_hidden_layers is 5000", id="far too many layers"),
    pytest.param({"num_attention_heads": 10**9}, "num_attention_heads is 1000000000", id="far too many heads"),
    pytest.param({"hidden_size": -4096}, "hidden_size is -4096", id="negative"),
    pytest.param({"hidden_size": "4096"}, "hidden_size is 4096", id="a text"),
    pytest.param({"vocab_size": float("nan")}, "vocab_size is nan", id="not a number"),
    pytest.param({"num_key_value_heads": 5}, "num_key_value_heads is 5", id="heads that share no keys evenly"),
    pytest.param({"num_key_value_heads": -8}, "num_key_value_heads is -8", id="negative where it may be missing"),
    pytest.param({"num_local_experts": 10**7}, "num_local_experts is 10000000", id="far too many experts"),
    pytest.param({"num_local_experts": 8, "num_experts_per_tok": 9}, "num_experts_per_tok is 9", id="more experts for a token than there are"),
    pytest.param({"hidden_size": 8}, "hidden_size is 8", id="narrower than it has heads"),
    pytest.param({"head_dim": 0}, "head_dim is 0", id="a head of nothing"),
])  # fmt: skip
def test_an_absurd_size_is_named_and_nothing_is_counted(tmp_path: Path, wrong: dict[str, Any], named: str) -> None:
    sizes = {"hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192}
    config = {"model_type": "llama", "vocab_size": 128256, **sizes}
    assert shape_from_config(config) is not None
    (tmp_path / "config.json").write_text(json.dumps({**config, **wrong}))
    assert shape_from_config({**config, **wrong}) is None
    assert named in (unread_config(str(tmp_path)) or "")


@pytest.mark.parametrize(("text", "said"), [
    pytest.param('{"a":' * 20_000 + "1" + "}" * 20_000, "not a JSON object", id="nested without end"),
    pytest.param('{"a": "' + "b" * (4 << 20) + '"}', "larger than 4 MiB", id="far too large"),
    pytest.param('{"hidden_size": 20', "not a JSON object", id="cut off"),
    pytest.param("[1, 2]", "not a JSON object", id="a list"),
])  # fmt: skip
def test_what_is_no_config_is_said_to_be_none(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert said in (unread_config(str(tmp_path)) or "")
