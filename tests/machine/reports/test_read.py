"""What tools print about a machine is read field by field, alone and in pasted issues; no text at all makes the reader stumble."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.case.environment import Environment
from oomdoctor.machine.facts import environment_facts
from oomdoctor.machine.reports.read import read_report

TEXTS = Path(__file__).parents[3] / "fixtures" / "environments"
FILES = sorted(path for path in TEXTS.iterdir() if path.suffix != ".yaml" and path.name != "README.md")
GIB = 1 << 30


def bare(known: Environment) -> object:
    """The environment without where each field was read."""
    return msgspec.to_builtins(msgspec.structs.replace(known, origins={}))


def of(text: str) -> Environment:
    return read_report(text.encode(), "pasted")


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
def test_every_field_of_what_a_tool_printed(path: Path) -> None:
    expected = yaml.safe_load(path.with_suffix(".yaml").read_text(encoding="utf-8"))
    assert bare(read_report(path.read_bytes(), path.name)) == bare(msgspec.convert(expected, Environment))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
@pytest.mark.parametrize(
    "pasted",
    [
        pytest.param(lambda text: "".join(f"> {line}\n" for line in text.splitlines()), id="quoted in an answer"),
        pytest.param(lambda text: f"<details>\n<summary>env</summary>\n\n```text\n{text}\n```\n\n</details>\n", id="folded in an issue"),
        pytest.param(lambda text: f"显存不够，帮忙看看：\n\n~~~\n{text}\n~~~\n\n谢谢。\n", id="between Chinese sentences"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="with the ends of lines of Windows"),
        pytest.param(lambda text: "".join(f"\x1b[0m{line}\x1b[K\n" for line in text.splitlines()), id="with colours of a terminal"),
    ],
)
def test_what_stands_around_it_changes_nothing(path: Path, pasted: object) -> None:
    text = path.read_text(encoding="utf-8")
    assert callable(pasted)
    assert bare(of(pasted(text))) == bare(of(text))


def test_a_text_that_a_windows_shell_wrote_in_utf_16() -> None:
    text = (TEXTS / "torch-2.3-wsl.txt").read_text(encoding="utf-8")
    assert bare(read_report(b"\xff\xfe" + text.encode("utf-16-le"), "pasted")) == bare(of(text))


def test_environment_json_comes_back_whole_alone_and_inside_a_report() -> None:
    known = of((TEXTS / "nvidia-smi-q-535.txt").read_text(encoding="utf-8"))
    data = msgspec.json.encode(known)
    assert read_report(data, "env.json") == known
    assert read_report(b'{"schema": "any", "environment": ' + data + b"}", "report.json") == known


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        pytest.param("显卡：RTX 4090", "gpus.0.name", "RTX 4090", id="a card as people write it in Chinese"),
        pytest.param("- GPU: 2 x RTX A6000", "gpus.1.name", "RTX A6000", id="how many cards there are"),
        pytest.param("- transformers: 4.41.2", "packages.transformers.version", "4.41.2", id="a package without the word version"),
        pytest.param("transformers 版本：4.41.2", "packages.transformers.version", "4.41.2", id="the word version in Chinese"),
        pytest.param("torch:2.2.0;", "packages.torch.version", "2.2.0", id="a version that ends in a semicolon"),
        pytest.param("- GPU: NVIDIA L40 (46068 MiB), x86_64", "gpus.0.name", "NVIDIA L40", id="what stands behind the name of a card"),
        pytest.param("显卡：A800（80G）", "gpus.0.name", "A800", id="its memory in full-width brackets"),
        pytest.param("- OS: Linux-5.15.154+-x86_64-with-glibc2.31", "host.kernel", "5.15.154+", id="a platform under the key of the system"),
        pytest.param("NVIDIA Driver: Driver Version: 535.54.03", "driver.version", "535.54.03", id="a version after words"),
        pytest.param("PyTorch version: 2.6.0a0+df5bbc0.nv24.12 (GPU)", "torch.version", "2.6.0a0+df5bbc0.nv24.12", id="a build of NVIDIA's"),
        pytest.param("torch==2.1.0+cu118", "torch.cuda", "11.8", id="the CUDA in a local version"),
        pytest.param("- Platform: Linux-4.4.0-19041-Microsoft-x86_64-with-glibc2.29", "host.wsl", 1, id="WSL 1 by its kernel"),
        pytest.param("- Platform: Windows-10-10.0.19045-SP0", "host.os", "Windows 10 (10.0.19045)", id="Windows by its build"),
        pytest.param("GPU: Tesla M4", "gpus.0.vendor", "nvidia", id="a card with a number like an Apple chip"),
        pytest.param("GPU: Intel Arc A770", "gpus.0.vendor", "intel", id="a card with a number like an NVIDIA card"),
        pytest.param("export PYTORCH_CUDA_ALLOC_CONF=backend:native", "variables.PYTORCH_CUDA_ALLOC_CONF", "backend:native", id="an exported variable"),
    ],
)  # fmt: skip
def test_single_lines(text: str, field: str, value: object) -> None:
    at: object = msgspec.to_builtins(of(text))
    for name in field.split("."):
        at = at[int(name)] if isinstance(at, (list, tuple)) else at[name]  # type: ignore[index]
    assert at == value


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("GPU: 87% used", id="a gauge is no card"),
        pytest.param("torch: see https://example.org", id="a link is no version"),
        pytest.param("- Accelerate version: not installed (NA)", id="what is not installed"),
        pytest.param("Nvidia driver version: Could not collect", id="what could not be collected"),
        pytest.param("- Using GPU in script?: <fill in>", id="what nobody filled in"),
        pytest.param("| 0  NVIDIA A30  On | 00000000:0C:00.0 Off | 0 |", id="a row without its table"),
        pytest.param("OS: linux", id="a system without a name"),
        pytest.param("HF_TOKEN=hf_0123456789abcdefghijklmnopqrstuvwx", id="a variable that is a secret"),
        pytest.param('{"environment": {"host": {"ram_bytes": "many"}}}', id="JSON of another shape"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_says_nothing_of_a_machine_is_a_gap(text: str) -> None:
    known = of(text)
    assert [gap.what for gap in known.gaps] == ["pasted"]
    assert msgspec.structs.replace(known, gaps=()) == Environment()


def test_a_contradiction_is_a_gap_and_no_value() -> None:
    known = of("- PyTorch version: 2.1.2+cu121 (GPU)\n\n```\ntorch==2.10.0\n```\n- Python version: 3.1\n- Python version: 3.10.4\n")
    assert known.torch is None
    assert known.packages == {}
    assert known.python.version is None
    assert [(gap.what, gap.why) for gap in known.gaps] == [
        ("packages.torch.version", "the text: 2.1.2+cu121; pip freeze: 2.10.0"),
        ("python.version", "the text: 3.1; the text: 3.10.4"),
    ]


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        pytest.param("NVIDIA GeForce RTX 3090", "GeForce RTX 3090", "NVIDIA GeForce RTX 3090", id="an old driver leaves the maker out"),
        pytest.param("RTX 3090", "RTX 3090 Ti", None, id="another card"),
    ],
)
def test_names_of_cards_agree_where_only_the_maker_is_missing(first: str, second: str, name: str | None) -> None:
    known = of(f"- GPU type: {first}\nGPU 0: {second}\n")
    assert known.gpus[0].name == name


def test_of_two_tables_the_later_one_says_how_full_the_card_is() -> None:
    text = (TEXTS / "nvidia-smi-470.txt").read_text(encoding="utf-8")
    known = of(text + text.replace("23018MiB", "  512MiB"))
    assert known.gpus[0].used_bytes == 512 << 20
    assert known.gaps == ()


def test_what_a_tool_printed_goes_before_what_a_person_wrote() -> None:
    known = of("GPU: RTX 3080\nGPU 0: NVIDIA GeForce RTX 3080 Ti\n")
    assert known.gpus[0].name == "NVIDIA GeForce RTX 3080 Ti"
    assert known.gaps == ()


def test_each_field_says_which_tool_it_is_from() -> None:
    known = read_report((TEXTS / "issue-zh.md").read_bytes(), "issue")
    assert known.origins["packages.deepspeed.version"] == "llamafactory-cli env"
    assert known.origins["gpus.1.total_bytes"] == "nvidia-smi"
    assert known.origins["driver.version"] == "nvidia-smi"


def test_rules_can_ask_about_what_was_read() -> None:
    named = environment_facts(read_report((TEXTS / "issue-zh.md").read_bytes(), "issue"))
    assert named["environment.driver_version"] == "550.107.02"
    assert named["environment.gpu.total_bytes"] == 24 * GIB


WORDS = st.sampled_from(
    [path.read_text(encoding="utf-8") for path in FILES]
    + [
        "> ",
        "|",
        "+---",
        ": ",
        "GPU 0: ",
        "\x1b[",
        "NVIDIA-SMI 535",
        "==",
        "{",
        "]",
        "99999999999999999999",
        "\n",
        " " * 60,
        "：",
        "<details>",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(WORDS.map(lambda text: text[:400]), st.text(max_size=80)), max_size=12).map("".join))
def test_any_text_gives_an_environment(text: str) -> None:
    known = of(text)
    assert msgspec.convert(msgspec.to_builtins(known), Environment) == known


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_a_damaged_report_gives_an_environment(path: Path, data: st.DataObject) -> None:
    text = path.read_bytes()
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 200))
    known = read_report(text[:at] + data.draw(st.binary(max_size=20)) + text[at + cut :], "damaged")
    assert environment_facts(known) is not None


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_give_an_environment(data: bytes) -> None:
    assert isinstance(read_report(data, "bytes"), Environment)


@settings(max_examples=100, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.dictionaries(
    st.sampled_from(["environment", "host", "gpus", "packages", "torch", "index", "name", "driver"]), inner, max_size=3) | st.lists(inner, max_size=3)))  # fmt: skip
def test_any_json_gives_an_environment(value: object) -> None:
    assert isinstance(read_report(msgspec.json.encode(value) if isinstance(value, dict) else b"{", "json"), Environment)
