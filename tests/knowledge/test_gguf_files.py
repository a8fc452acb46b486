"""GGUF files: exact sizes from their headers, and one line of reason for what cannot be read."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knowledge import gguf_bytes as gguf
from memory.runs import run
from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.gguf_files.header import Header, UnreadGguf, read_header
from oomdoctor.knowledge.gguf_files.shape import gguf_shape
from oomdoctor.memory.ggml import phases
from oomdoctor.setups.model_files import read_shape, unread_config
from oomdoctor.setups.programs.ggml import on_ggml

LAYER = 36864 * 2 + 9216 * 2 + 147456 * 3


def read(data: bytes) -> Header:
    return read_header(BytesIO(data), len(data))


def shape(values: dict[str, Any] | None = None, tensors: dict[str, Any] | None = None) -> Shape:
    """The small model, with what a test changes of its values and tensors; a value of None is left out."""
    said = {name: value for name, value in {**gguf.VALUES, **(values or {})}.items() if value is not None}
    return gguf_shape([read(gguf.file(said, {**gguf.ENDS, **gguf.tensors(), **(tensors or {})}))], "small.gguf")


def test_the_sizes_of_a_model() -> None:
    found = shape()
    assert (found.layers, found.hidden, found.heads, found.kv_heads, found.head, found.vocab) == (4, 256, 8, 2, 32, 512)
    assert (found.intermediate, found.longest, found.tied) == (1024, 8192, False)
    assert found.each[0].cache == 2 * 2 * 32
    assert sum(part.size for part in found.each[0].parts) == 2 * 256 * 256 + 2 * 256 * 64 + 3 * 256 * 1024


def test_the_weights_on_a_card_are_the_bytes_of_its_tensors() -> None:
    """The embedding of the input stays in the host."""
    plain = replace(run(task="infer"), shape=shape())
    setup = on_ggml(plain, RunSettings(model="some/where/small-Q2_K.gguf"), "llama.cpp")
    assert setup.ggml is not None
    weights = phases(setup, setup.ggml)[0].terms[0]
    assert weights.bytes == pytest.approx(4 * LAYER + 139264, rel=0.001)


def test_a_tied_output_projection_is_a_copy_of_the_embedding() -> None:
    ends = {"token_embd.weight": gguf.ENDS["token_embd.weight"]}
    found = gguf_shape([read(gguf.file(gguf.VALUES, {**ends, **gguf.tensors()}))], "tied.gguf")
    assert found.tied
    assert found.checkpoint is not None
    assert found.checkpoint.embedding_bytes == 73728 / (256 * 512)


@pytest.mark.parametrize(("values", "caches", "windows"), [
    pytest.param({}, [128] * 4, [None] * 4, id="all layers alike"),
    pytest.param({"llama.attention.head_count_kv": [2, 0, 4, 2]}, [128, 0, 256, 128], [None] * 4, id="heads of each layer"),
    pytest.param({"llama.attention.key_length": 64, "llama.attention.value_length": 48}, [224] * 4, [None] * 4, id="keys and values of other widths"),
    pytest.param({"llama.attention.kv_lora_rank": 512, "llama.attention.head_count_kv": 1, "llama.attention.key_length": 576,
                  "llama.attention.value_length": 512}, [576] * 4, [None] * 4, id="latent attention: values are a part of the keys"),
    pytest.param({"llama.attention.sliding_window": 1024, "llama.attention.sliding_window_pattern": [True, False, True, False]},
                 [128] * 4, [1024, None, 1024, None], id="a window of each layer"),
    pytest.param({"llama.attention.sliding_window": 1024, "llama.attention.sliding_window_pattern": 4}, [128] * 4, [1024] * 3 + [None], id="a period"),
    pytest.param({"llama.attention.sliding_window": 1024}, [128] * 4, [None] * 4, id="a window that the program leaves out"),
])  # fmt: skip
def test_what_each_layer_keeps(values: dict[str, Any], caches: list[int], windows: list[int | None]) -> None:
    each = shape(values).each
    assert [layer.cache for layer in each] == caches
    assert [layer.window for layer in each] == windows


def test_the_windows_that_a_program_has_for_an_architecture() -> None:
    said = {name.replace("llama.", "gemma2.", 1): value for name, value in gguf.VALUES.items()} | {"general.architecture": "gemma2"}
    found = gguf_shape([read(gguf.file(said, {**gguf.ENDS, **gguf.tensors()}))], "gemma.gguf")
    assert [layer.window for layer in found.each] == [4096, None, 4096, None]


def test_layers_with_a_state_keep_no_tokens() -> None:
    sizes = {"llama.ssm.conv_kernel": 4, "llama.ssm.inner_size": 512, "llama.ssm.state_size": 16, "llama.ssm.group_count": 2}
    tensors = {f"blk.{number}.ssm_out.weight": ((512, 256), 73728) for number in (0, 2)}
    dropped = {name: gguf.tensors()[name] for name in gguf.tensors() if not (name.startswith(("blk.0.attn_k", "blk.2.attn_k")))}
    found = gguf_shape([read(gguf.file({**gguf.VALUES, **sizes}, {**gguf.ENDS, **dropped, **tensors}))], "hybrid.gguf")
    assert [layer.cache for layer in found.each] == [0, 128, 0, 128]
    assert [layer.state for layer in found.each] == [4 * (3 * (512 + 2 * 2 * 16) + 16 * 512), 0, 4 * (3 * (512 + 2 * 2 * 16) + 16 * 512), 0]


def test_experts_are_counted_apart() -> None:
    experts = {f"blk.{number}.ffn_down_exps.weight": ((256, 256, 8), 294912) for number in range(4)}
    found = shape({"llama.expert_count": 8, "llama.expert_used_count": 2, "llama.expert_feed_forward_length": 256}, experts)
    assert found.experts is not None
    assert (found.experts.routed, found.experts.active, found.experts.intermediate) == (8, 2, 256)
    assert [part.size for part in found.each[0].parts if part.routed] == [256 * 256 * 8]


def test_a_model_in_several_files_is_read_as_one(tmp_path: Path) -> None:
    first, second = (tmp_path / f"big-0000{number}-of-00002.gguf" for number in (1, 2))
    first.write_bytes(gguf.file(gguf.VALUES, {**gguf.ENDS, **gguf.tensors(2)}))
    second.write_bytes(gguf.file({"split.no": 1}, gguf.tensors(2, first=2)))
    assert read_shape(str(first)) == gguf_shape([read(gguf.file(gguf.VALUES, {**gguf.ENDS, **gguf.tensors()}))], first.name)
    second.unlink()
    assert read_shape(str(first)) is None
    assert "its part big-00002-of-00002.gguf cannot be read" in str(unread_config(str(first)))


GOOD = gguf.file(gguf.VALUES, {**gguf.ENDS, **gguf.tensors()})
HEAD = len(gguf.header(gguf.VALUES, {**gguf.ENDS, **gguf.tensors()}))


@pytest.mark.parametrize(("data", "why"), [
    pytest.param(b"", "header is truncated", id="an empty file"),
    pytest.param(b"PK\x03\x04" + bytes(100), "is not a GGUF file", id="another kind of file"),
    pytest.param(b"GGUF" + pack("<I", 1) + bytes(100), "version 1", id="the first version"),
    pytest.param(b"GGUF" + pack(">I", 3) + bytes(100), "big-endian", id="the other order of bytes"),
    pytest.param(b"GGUF" + pack("<IQQ", 3, 1 << 60, 1), f"{1 << 60} tensors", id="more tensors than a model has"),
    pytest.param(b"GGUF" + pack("<IQQ", 3, 1, 1 << 60), f"{1 << 60} values", id="more values"),
    pytest.param(b"GGUF" + pack("<IQQ", 3, 0, 1) + pack("<Q", 1 << 62), "header is truncated", id="a name longer than the file"),
    pytest.param(b"GGUF" + pack("<IQQ", 3, 0, 1) + gguf.text("a") + pack("<I", 99), "values of an unknown type (99)", id="a value of no type"),
    pytest.param(b"GGUF" + pack("<IQQ", 3, 0, 1) + gguf.text("a") + pack("<I", 9) + pack("<IQ", 9, 1) * 40, "values of an unknown type (9)", id="lists in lists in lists"),
    pytest.param(b"GGUF" + pack("<IQQ", 3, 0, 1) + gguf.text("a") + pack("<IIQ", 9, 8, 1 << 40), f"list of {1 << 40}", id="a list of too many texts"),
    pytest.param(b"GGUF" + pack("<IQQ", 3, 0, 1) + gguf.text("a") + pack("<IIQ", 9, 4, 1 << 61), "header is truncated", id="a list longer than the file"),
    pytest.param(b"GGUF" + pack("<IQQ", 3, 1, 0) + gguf.text("a") + pack("<I", 9), "9 dimensions", id="a tensor of nine dimensions"),
    pytest.param(b"GGUF" + pack("<IQQ", 3, 1, 0) + gguf.text("a") + pack("<IQ", 1, 1 << 50), "a tensor of an impossible size", id="a tensor larger than any"),
    pytest.param(GOOD[: HEAD // 2], "header is truncated", id="half of a header"),
    pytest.param(GOOD[: HEAD + 1000], "the file is truncated", id="a download that broke off"),
])  # fmt: skip
def test_what_cannot_be_read_is_said_in_a_line(data: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    assert read_shape(str(path)) is None
    said = unread_config(str(path))
    assert said is not None
    assert why in said
    assert "\n" not in said


@pytest.mark.parametrize(("values", "why"), [
    pytest.param({"general.architecture": None}, "ARCHITECTURE.block_count", id="no architecture"),
    pytest.param({"general.architecture": "\x1b[31mred"}, "ARCHITECTURE.block_count", id="an architecture that would colour a terminal"),
    pytest.param({"llama.block_count": 0}, "llama.block_count", id="no layers"),
    pytest.param({"llama.block_count": 1 << 31}, "llama.block_count", id="more layers than any model has"),
    pytest.param({"llama.embedding_length": "wide"}, "llama.embedding_length", id="a width that is a word"),
    pytest.param({"general.architecture": "clip"}, "vision tower", id="a tower alone"),
])  # fmt: skip
def test_a_header_without_sizes_gives_no_model(values: dict[str, Any], why: str) -> None:
    with pytest.raises(UnreadGguf, match=why) as raised:
        shape(values)
    assert str(raised.value).isprintable()


@given(st.sampled_from([b"", b"GGUF" + pack("<IQQ", 3, 1, 1)]), st.binary(max_size=400))
def test_bytes_that_are_no_file_give_a_reason(start: bytes, data: bytes) -> None:
    with pytest.raises(UnreadGguf) as raised:
        read(start + data)
    assert str(raised.value).isprintable()


@given(st.integers(0, HEAD - 1), st.integers(0, 255))
def test_one_wrong_byte_gives_a_shape_or_a_reason(at: int, byte: int) -> None:
    broken = GOOD[:at] + bytes([byte]) + GOOD[at + 1 :]
    try:
        found = gguf_shape([read(broken)], "broken.gguf")
    except UnreadGguf:
        return
    assert found.layers > 0
