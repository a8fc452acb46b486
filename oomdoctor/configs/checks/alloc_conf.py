"""The variable of the CUDA allocator: written wrongly it stops the program, or does nothing and says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from oomdoctor.case.settings import ConfigIssue, WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.configs.key_versions import FrameworkKeys, closest_key
from oomdoctor.knowledge.pack import Pack
from oomdoctor.versions import parse_version, series

NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
_NEW_NAME = (2, 9)
"""The first version that reads PYTORCH_ALLOC_CONF."""
_OPTION = re.compile(r"(?P<name>[^:,=\[\]]{1,80})(?P<mark>[:=]?)(?P<value>(?:\[[^\]]{0,200}\]|[^,\[\]]{0,200}))(?:,|\Z)")


def allocator_options(pack: Pack) -> FrameworkKeys | None:
    """Return the options that the variable can hold, by version of PyTorch; None where the rules have no list of them."""
    record = pack.framework("environment")
    table = None if record is None else record.options.get("alloc_conf")
    return None if table is None else FrameworkKeys(table)


def check_alloc_conf(setting: WrittenSetting, options: FrameworkKeys, torch: str | None, *, windows: bool) -> Iterator[ConfigIssue]:
    """Yield issues about one environment variable. `torch` is the version that runs, where it is known."""
    name = setting.key
    if name not in NAMES:
        if re.search(r"ALLOC.?CONF", name):
            right = closest_key(name, list(NAMES)) or NAMES[0]
            yield _made(
                "alloc-conf-name",
                setting,
                Text(f"no program reads `{name}`", f"没有程序会读取 `{name}`"),
                _NOTHING,
                f"{right}={setting.value}",
            )
        return
    if name == "PYTORCH_ALLOC_CONF" and (version := parse_version(torch)) is not None and series(version, 2) < _NEW_NAME:
        what = Text(f"PyTorch {torch} does not read `PYTORCH_ALLOC_CONF`", f"PyTorch {torch} 不读取 `PYTORCH_ALLOC_CONF`")
        yield _made(
            "alloc-conf-name",
            setting,
            what,
            Text("The shorter name was added in 2.9.", "这个较短的变量名从 2.9 才开始支持。"),
            f"PYTORCH_CUDA_ALLOC_CONF={setting.value}",
        )
    text = "" if setting.value is None or setting.value is True else str(setting.value)
    if "$" in text:
        return
    yield from _form(setting, text)
    values = {part["name"].strip(): part["value"].strip() for part in _OPTION.finditer(text)}
    for option in values:
        yield from _option(setting, option, options, torch)
    yield from _together(setting, values, windows=windows)


def _form(setting: WrittenSetting, text: str) -> Iterator[ConfigIssue]:
    if "=" in text:
        what = Text("allocator options use `:`, not `=`", "分配器选项的名称和值之间用 `:`，不是 `=`")
        yield _made("alloc-conf-form", setting, what, _STOPS, f"{setting.key}={text.replace('=', ':').replace(' ', '')}")
    elif " " in text.strip():
        what = Text("the value contains a space", "变量值里有空格")
        yield _made(
            "alloc-conf-form", setting, what, _BLANK, f"{setting.key}={re.sub(r'[, ]*[, ][, ]*', ',', text.strip()).replace(':,', ':')}"
        )
    elif text and any(not part["mark"] for part in _OPTION.finditer(text)):
        what = Text(f"`{text}` has no value", f"`{text}` 没有写值")
        yield _made("alloc-conf-form", setting, what, _STOPS, f"{setting.key}=expandable_segments:True" if "expandable" in text else None)


def _option(setting: WrittenSetting, option: str, options: FrameworkKeys, torch: str | None) -> Iterator[ConfigIssue]:
    standing = options.status(option, torch)
    if standing.state == "unknown":
        near = closest_key(option, options.current())
        what = Text(f"the allocator has no option `{option}`", f"分配器没有 `{option}` 这个选项")
        yield _made(
            "alloc-conf-option", setting, what, _STOPS, f"{setting.key}={str(setting.value).replace(option, near)}" if near else None
        )
    elif standing.state in ("gone", "not-yet"):
        span = (
            Text(f"only until {standing.until}", f"只到 {standing.until} 为止")
            if standing.state == "gone"
            else Text(f"since {standing.since}", f"从 {standing.since} 开始")
        )
        what = Text(f"PyTorch {torch} has no option `{option}` ({span.en})", f"PyTorch {torch} 没有 `{option}` 选项（{span.zh}支持）")
        yield _made("alloc-conf-version", setting, what, _STOPS, None)


def _together(setting: WrittenSetting, values: Mapping[str, str], *, windows: bool) -> Iterator[ConfigIssue]:
    if values.get("backend") == "cudaMallocAsync":
        for option in ("max_split_size_mb", "garbage_collection_threshold", "roundup_power2_divisions", "expandable_segments"):
            if option in values:
                what = Text(
                    f"`{option}` has no effect with `backend:cudaMallocAsync`", f"用了 `backend:cudaMallocAsync`，`{option}` 就不起作用"
                )
                why = Text("That backend uses CUDA's own memory pool.", "这个后端把显存交给 CUDA 自带的内存池管理。")
                yield _made("alloc-conf-backend", setting, what, why, f"{setting.key}=backend:cudaMallocAsync")
                return
    if windows and values.get("expandable_segments", "").lower() == "true":
        what = Text("`expandable_segments` has no effect on Windows", "`expandable_segments` 在 Windows 上不起作用")
        why = Text(
            "PyTorch prints that this platform does not support it, and continues without it.",
            "PyTorch 会提示该平台不支持，然后按没有设置继续运行。",
        )
        yield _made("alloc-conf-platform", setting, what, why, None)
    share = values.get("garbage_collection_threshold", "0.5")
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", share) and not 0 < float(share) < 1:
        what = Text("`garbage_collection_threshold` must be between 0 and 1", "`garbage_collection_threshold` 应是 0 到 1 之间的比例")
        yield _made("alloc-conf-form", setting, what, _STOPS, f"{setting.key}=garbage_collection_threshold:0.8")


def _made(identity: str, setting: WrittenSetting, what: Text, why: Text, replacement: str | None) -> ConfigIssue:
    return ConfigIssue(
        id=identity,
        severity="error",
        key=setting.key,
        file=setting.file,
        line=setting.line,
        what=what,
        why=why,
        replacement=replacement,
        cites=("pytorch-cuda-notes",),
    )


_NOTHING = Text("The setting has no effect, and nothing is printed.", "这项设置没有任何效果，也不会有提示。")
_STOPS = Text(
    "PyTorch raises an error when it first uses the card, or ignores the option, depending on the version.",
    "视版本不同，PyTorch 会在第一次用到显卡时报错，或者忽略这个选项。",
)
_BLANK = Text(
    "PyTorch does not strip spaces: an option after a space is not recognized. If unquoted, the shell ends the value there.",
    "PyTorch 不会去掉空格，空格后的选项认不出来；不加引号时，shell 会在空格处把值截断。",
)
