"""Models by the names that people give them: what is found is right, what is not is answered with names that it may be."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from oomdoctor.knowledge.tables.model_names import has_format, is_ollama_tag, read_model_name
from oomdoctor.knowledge.tables.models import model_choices, model_row, model_rows

WRITTEN = Path(__file__).with_name("written_models.csv")


def _name(written: str) -> str:
    row = model_row(written)
    return "" if row is None else row.name


def test_names_as_people_write_them_are_found() -> None:
    """A row without a model is a name with words of its own; what the table does not have is found by no other's name."""
    with WRITTEN.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    known = {row.name for row in model_rows()}
    meant = {row["written"]: row["model"] if row["model"] in known else "" for row in rows}
    assert len(rows) >= 530
    assert sum(map(bool, meant.values())) >= 500
    assert {written: _name(written) for written, model in meant.items() if _name(written) != model} == {}


def test_every_model_of_the_table_is_found_by_its_own_name() -> None:
    assert [row.name for row in model_rows() if model_row(row.name) is None] == []


@pytest.mark.parametrize(("written", "meant"), [
    pytest.param("llama 70b", "meta-llama/Llama-3.1-70B", id="several versions of one size"),
    pytest.param("gemma 27b", "google/gemma-2-27b", id="two versions of different shapes"),
    pytest.param("Qwen2.5-Omni-3B", "Qwen/Qwen2.5-Omni-7B", id="another kind of a known family"),
    pytest.param("falcon 90b", "tiiuae/falcon-40b", id="a size that the table does not have"),
    pytest.param("Qwen 32B", "Qwen/Qwen3-32B", id="several versions, of which Ollama calls one so"),
    pytest.param("deepseek 671b", "deepseek-ai/DeepSeek-V3", id="a maker and the published size of several"),
    pytest.param("qwen2.5", "Qwen/Qwen2.5-7B", id="no size"),
    pytest.param("Wan-1.3B", "Wan-AI/Wan2.1-T2V-1.3B-Diffusers", id="the beginning of a name"),
])  # fmt: skip
def test_what_is_open_is_not_guessed(written: str, meant: str) -> None:
    assert model_row(written) is None
    assert meant in model_choices(written)


@pytest.mark.parametrize("written", [
    pytest.param("7B", id="a size alone"),
    pytest.param("V2", id="a version alone"),
    pytest.param("reranker", id="what it is for, without a size"),
    pytest.param("my-model", id="any name"),
    pytest.param("output/checkpoint-1000", id="a folder"),
    pytest.param("", id="nothing"),
    pytest.param("Qwen3-8B-Reward", id="a word that changes the model"),
    pytest.param("Qwen3-8B-Kestrel", id="a word behind the size, and none that says it is a fine-tune"),
    pytest.param("Qwen3-8B-Reward-sft", id="a fine-tune to another model"),
    pytest.param("Qwen3-8B-abliterated-DFlash", id="a draft model"),
    pytest.param("Qwen3-8B-merged-mmproj-F16.gguf", id="a projector"),
    pytest.param("eagle3_Qwen3-8B-Q4_K_M.gguf", id="a draft model before the name, where copies have the owner"),
    pytest.param("MiniCPM-V-4", id="the V of a model that reads pictures is no version"),
    pytest.param("Qwen-sft-v2-8B", id="a version before the size is not the fine-tune's own"),
    pytest.param("Qwen3-32B-distilled-to-3B", id="a fine-tune with another size"),
    pytest.param("Kestrel-8B-sft", id="a fine-tune of nobody knows what"),
    pytest.param("runs/output/checkpoint-1000", id="folders of a trainer alone"),
])  # fmt: skip
def test_what_names_no_model_finds_none(written: str) -> None:
    assert model_row(written) is None


@pytest.mark.parametrize("written", [
    pytest.param("Qwen2.5-VL-8B", id="a size that is near another one's"),
    pytest.param("Magistral-Small-2412", id="another date"),
    pytest.param("mixtral 8x3b", id="experts of another size"),
    pytest.param("llama3-19b", id="another model has that name at the end of its own"),
])  # fmt: skip
def test_what_is_nearly_a_name_is_offered_and_not_taken(written: str) -> None:
    assert model_row(written) is None
    assert model_choices(written)


@pytest.mark.parametrize(("written", "meant"), [
    pytest.param("Qwne3-14B", "Qwen/Qwen3-14B", id="two letters changed places"),
    pytest.param("gemna-2-9b", "google/gemma-2-9b", id="a wrong letter"),
    pytest.param("deepsek v3", "deepseek-ai/DeepSeek-V3", id="a letter is missing"),
    pytest.param("qwen3 9b", "Qwen/Qwen3-8B", id="no such size"),
])  # fmt: skip
def test_what_is_mistyped_is_offered(written: str, meant: str) -> None:
    assert model_row(written) is None
    assert meant in model_choices(written)


@pytest.mark.parametrize(("written", "found"), [
    pytest.param("deepseek-r1:14b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", id="a tag of Ollama's library"),
    pytest.param("deepseek-r1 14b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", id="a size that only such tags have"),
    pytest.param("deepseek-r1 9b", "", id="a size that nothing has"),
    pytest.param("deepseek-r1:latest", "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", id="the tag that is taken where none is said"),
    pytest.param("Qwen2.5-7B大模型", "Qwen/Qwen2.5-7B", id="Chinese words behind it"),
    pytest.param("Qwen3-14B-5.0bpw-h6-exl2", "Qwen/Qwen3-14B", id="the bits of a weight"),
    pytest.param("智谱 GLM-4-9B", "zai-org/glm-4-9b-chat", id="a Chinese name before the English one"),
    pytest.param("千问3-14b", "Qwen/Qwen3-14B", id="a Chinese name alone"),
    pytest.param("deepseek R1 的 14B 蒸馏版", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", id="distilled, in Chinese"),
    pytest.param("千问2.5 140亿", "Qwen/Qwen2.5-14B", id="parameters by the hundred millions"),
    pytest.param("qwen2.5 14 billion", "Qwen/Qwen2.5-14B", id="billions in a word"),
    pytest.param("Qwen2.5-14B (14B)", "Qwen/Qwen2.5-14B", id="the size said twice"),
    pytest.param("qwen3-30ba3b", "Qwen/Qwen3-30B-A3B", id="what is active at once, glued"),
    pytest.param("qwen3vl4b", "Qwen/Qwen3-VL-4B-Instruct", id="the size glued to the kind"),
    pytest.param("Qwen2.5Coder-14B", "Qwen/Qwen2.5-14B", id="the kind glued to the version"),
    pytest.param("somebody__Qwen3-14B-AWQ", "Qwen/Qwen3-14B", id="an owner before two underscores"),
    pytest.param("Qwen3-14B-Kestrel-sft-v2b", "Qwen/Qwen3-14B", id="a fine-tune with a name of its own"),
    pytest.param("out/Qwen3-14B-sft/v0-20260102-030405/checkpoint-90", "Qwen/Qwen3-14B", id="folders of a trainer"),
    pytest.param(r"D:\models\Qwen3-14B\ggml-model-Q4_K_M.gguf", "Qwen/Qwen3-14B", id="a file without a name of its own"),
    pytest.param("gpt-oss-20b-MXFP4_MOE.gguf", "openai/gpt-oss-20b", id="a mixture of types for experts"),
    pytest.param("Qwen3-14B (modelopt)", "Qwen/Qwen3-14B", id="the tool in brackets"),
    pytest.param("R1-Distill-Llama-8B", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B", id="without its maker"),
])  # fmt: skip
def test_other_names_are_found(written: str, found: str) -> None:
    assert _name(written) == found


def test_what_is_only_offered_is_never_taken() -> None:
    """Two letters that changed places name no model: what it may mean is a question."""
    names = [row.name.rpartition("/")[2] for row in model_rows()][::7]
    mistyped = [name[:2] + name[3] + name[2] + name[4:] for name in names if name[2:4].isalpha() and name[2] != name[3]]
    assert len(mistyped) >= 50
    assert [name for name in mistyped if model_row(name) is not None] == []


@pytest.mark.parametrize(("written", "format_"), [
    pytest.param("qwen2.5-7b-instruct-q4_k_m.gguf", "q4_k_m", id="a GGUF file"),
    pytest.param("Qwen3.6-27B-UD-IQ3_XXS.gguf", "ud-iq3_xxs", id="a mixture of Unsloth's"),
    pytest.param("Qwen3.6-27B-IQ4_KS_R4.gguf", "iq4_ks_r4", id="a type of ik_llama.cpp"),
    pytest.param("Qwen2.5-72B-Instruct-AWQ", "awq", id="of a hub"),
    pytest.param("Qwen3 8B", "", id="none"),
])  # fmt: skip
def test_the_format_of_a_name(written: str, format_: str) -> None:
    assert next(read_model_name(written)).format == format_
    assert has_format(written) == bool(format_)


@pytest.mark.parametrize(("written", "is_tag"), [
    pytest.param("qwen3:8b", True, id="a tag of Ollama's library"),
    pytest.param("Qwen/Qwen3-8B", False, id="a name on a hub"),
    pytest.param("C:/models/qwen", False, id="a path"),
])  # fmt: skip
def test_tags_of_ollama(written: str, is_tag: bool) -> None:
    assert is_ollama_tag(written) == is_tag
