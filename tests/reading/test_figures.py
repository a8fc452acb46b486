"""What the sizes of a sentence are, by the words beside them."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.parse.families.any_program import reader
from oomdoctor.reading.figures import figures_of
from oomdoctor.units import GIB, MIB


@pytest.mark.parametrize(("line", "expected"), [
    pytest.param("need 3.00 GiB but only 1.00 GiB is available", {"requested": 3 * GIB, "free": GIB}, id="before one size and behind the other"),
    pytest.param("3.00 GiB requested, 8.00 GiB total", {"requested": 3 * GIB, "total": 8 * GIB}, id="behind both"),
    pytest.param("usage 9.00 GiB / 8.00 GiB", {"used": 9 * GIB, "limit": 8 * GIB}, id="a pair, what is used before what may be"),
    pytest.param("max memory allocated 7.00 GiB", {"limit": 7 * GIB}, id="words that belong to the word before them"),
    pytest.param("largest free block is 64 MiB, asked for 96 MiB", {"largest_free_block": 64 * MIB, "requested": 96 * MIB}, id="the longer phrase counts"),
    pytest.param("request of 4294967296 exceeds the limit of 2147483648", {"requested": 4 * GIB, "limit": 2 * GIB}, id="long numbers without a unit"),
    pytest.param("epoch 3 took 4096 tokens", {}, id="no size"),
    pytest.param("3.00 GiB", {}, id="a size of which nothing is said"),
])  # fmt: skip
def test_the_words_beside_a_size_say_what_it_is(line: str, expected: dict[str, int]) -> None:
    assert figures_of(line, load_pack().lexicon) == {f"{role}_bytes": size for role, size in expected.items()}


def read(text: str) -> list[dict[str, Any]]:
    return [dict(match.fields) for match in reader(load_pack().lexicon)(text) if match.signature == "device-memory-refused-in-words"]


@pytest.mark.parametrize("text", [
    pytest.param("CUDA内存不足。尝试分配 {asked} 的内存。GPU 1 的总容量为 {total}，其中 {free} 可用。", id="as browsers word it"),
    pytest.param("CUDA 显存不足：试图分配了{asked}，GPU 1总显存容量{total}，剩余显存{free}", id="in a person's words"),
    pytest.param("CUDA 内存不足。尝试分配{asked}（GPU 1；{total} 总容量；{free} 空闲）", id="the old form, sizes first"),
    pytest.param("GPU 1 上出现显存不足错误。无法在 GPU 1 上分配 {asked} 显存，总容量 {total}，可用显存仅为 {free}。", id="Paddle's"),
])  # fmt: skip
def test_a_chinese_wording_keeps_its_figures(text: str) -> None:
    (fields,) = read(text.format(asked="768.00 MiB", total="24.00 GiB", free="512.00 MiB"))
    assert fields == {"requested_bytes": 768 * MIB, "total_bytes": 24 * GIB, "free_bytes": 512 * MIB, "gpu_index": 1}


def test_a_chinese_wording_names_other_processes() -> None:
    (fields,) = read("CUDA 内存不足。尝试分配 2.00 GiB。进程 7120 正在使用 3.00 GiB 的内存。此进程占用了 20.00 GiB。")
    assert fields["other_processes"] == ({"pid": 7120, "used_bytes": 3 * GIB},) and fields["process_bytes"] == 20 * GIB


@pytest.mark.parametrize(("line", "processes"), [
    pytest.param("Process 7120 has 3.00 GiB memory in use", ({"pid": 7120, "used_bytes": 3 * GIB},), id="a number between two words"),
    pytest.param("Process 7,120 has 3.00 GiB memory in use", (), id="a number that names no process"),
])  # fmt: skip
def test_another_process_has_its_number_and_its_size(line: str, processes: tuple[dict[str, int], ...]) -> None:
    assert figures_of(line, load_pack().lexicon).get("other_processes", ()) == processes


@pytest.mark.parametrize("text", [
    pytest.param("遇到 CUDA 内存不足，请把批大小减半。", id="advice"),
    pytest.param("已在 GPU 0 上分配 2.00 GiB 内存。", id="nothing failed"),
    pytest.param("CUDA 内存不足。\n\n换了一台机器，尝试分配 2.00 GiB 成功。", id="another paragraph"),
])  # fmt: skip
def test_talk_about_memory_in_chinese_is_no_message(text: str) -> None:
    assert read(text) == []
