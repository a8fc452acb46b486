"""GGUF files: bytes of a type from its block, and the mixture that a name means."""

from __future__ import annotations

import pytest
from memory.runs import known

from oomdoctor.memory.model.gguf import gguf_format, mixture_in, type_bytes


@pytest.mark.parametrize(("name", "bits"), [
    ("q8_0", 8.5), ("q4_k", 4.5), ("q6_k", 6.5625), ("iq4_xs", 4.25), ("q2_k", 2.625), ("f16", 16),
    ("iq2_ks", 2.1875), ("iq2_kt", 2.125), ("iq3_kt", 3.125), ("iq4_ks", 4.25), ("iq4_kss", 4), ("iq4_k", 4.5), ("iq5_ks", 5.25), ("iq6_k", 6.625),
    ("iq1_bn", 1.625)])  # fmt: skip
def test_a_value_has_the_bits_of_its_block(name: str, bits: float) -> None:
    assert type_bytes(name) == bits / 8


def test_a_type_that_nobody_has_is_unknown() -> None:
    assert (type_bytes("q9_k"), gguf_format(known("Qwen/Qwen3-8B"), "q9_k")) == (None, None)


def test_the_values_of_q4_k_m_lie_between_4_and_6_bits() -> None:
    # Llama 3.1 8B: v and down have 6.5625 bits in half the layers, the output projection too: 4.58 GiB (llama.cpp tools/quantize/README.md).
    shape = known("meta-llama/Llama-3.1-8B")
    found = gguf_format(shape, "q4_k_m")
    assert found is not None
    assert found.head_bytes is not None
    size = shape.vocab * shape.hidden * (found.embedding_bytes + found.head_bytes) + 6_979_321_856 * found.bytes_per_param
    assert size / 2**30 == pytest.approx(4.58, rel=0.005)


@pytest.mark.parametrize(
    ("name", "size"), [("q8_0", 7.95), ("q6_k", 6.14), ("q5_k_m", 5.33), ("q3_k_m", 3.74), ("q2_k", 2.95), ("iq4_xs", 4.13)]
)
def test_a_file_of_llama_3_1_8b_has_the_size_that_llama_cpp_publishes(name: str, size: float) -> None:
    # llama.cpp tools/quantize/README.md, table of Llama-3.1-8B, GiB.
    shape = known("meta-llama/Llama-3.1-8B")
    found = gguf_format(shape, name)
    assert found is not None
    assert found.head_bytes is not None
    whole = shape.vocab * shape.hidden * (found.embedding_bytes + found.head_bytes) + 6_979_321_856 * found.bytes_per_param
    assert whole / 2**30 == pytest.approx(size, rel=0.02)


@pytest.mark.parametrize(("name", "mixture"), [
    ("Qwen3-8B-Q4_K_M.gguf", "q4_k_m"), ("model-UD-IQ2_XXS-00001-of-00003.gguf", "iq2_xxs"), ("gemma-3-4b-it-q4_0.gguf", "q4_0"),
    ("Qwen3-8B-IQ4_KS.gguf", "iq4_ks"), ("model-iq4_kss-00001-of-00002.gguf", "iq4_kss"), ("model-IQ2_KT.gguf", "iq2_kt"), ("a-IQ3_K.gguf", "iq3_k"),
    ("Qwen3-8B", None), ("IQ-test-8B", None),
])  # fmt: skip
def test_the_name_of_a_file_says_its_mixture(name: str, mixture: str | None) -> None:
    assert mixture_in(name) == mixture


@pytest.mark.parametrize(
    ("name", "near"), [("iq4_k", "q4_k_s"), ("iq4_ks", "iq4_xs"), ("iq3_k", "iq3_s"), ("iq2_ks", "iq2_xs"), ("iq5_k", "q5_k_s")]
)
def test_a_type_of_ik_llama_cpp_is_about_as_large_as_llama_cpps_own_of_as_many_bits(name: str, near: str) -> None:
    shape = known("Qwen/Qwen3-8B")
    found, other = gguf_format(shape, name), gguf_format(shape, near)
    assert found is not None
    assert other is not None
    assert found.bytes_per_param == pytest.approx(other.bytes_per_param, rel=0.07)
