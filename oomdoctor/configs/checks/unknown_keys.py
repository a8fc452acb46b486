"""Keys that their framework does not have, no longer has, does not have yet, or does not look for where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from oomdoctor.case.settings import ConfigIssue, Severity, WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.configs.frameworks import Frameworks, setting_value
from oomdoctor.configs.key_versions import FrameworkKeys, KeyStatus, closest_key
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.knowledge.records.framework import FrameworkRecord

_MOST = 12
"""Issues of this kind about one config."""
_SHORT = re.compile(r"-[A-Za-z]")


def find_unknown_keys(config: ParsedConfig, frameworks: Frameworks, versions: Mapping[str, str]) -> Iterator[ConfigIssue]:
    """Yield issues about the keys of one config, as far as its framework's keys are listed."""
    record = frameworks.records.get(config.framework or "")
    if record is None or config.framework is None:
        return
    yield from find_misplaced_keys(config, frameworks)
    family = [frameworks.records[name] for name in frameworks.family(config.framework) if name in frameworks.records]
    listed = {setting.framework: FrameworkKeys(setting.keys) for setting in family if setting.keys is not None}
    if record.open or not listed or config.form == "dump":
        return
    inner = {*record.inner, *record.roots}
    extra = set(record.extra)
    count = 0
    for setting in config.written:
        block, _, name = setting.name.rpartition(".")
        if (block and block not in inner) or name in extra or _SHORT.fullmatch(setting.key) or not re.fullmatch(r"[A-Za-z]\w*", name):
            continue
        issue = _issue(setting, name, record, listed, versions, frameworks)
        if issue is not None and count < _MOST:
            count += 1
            yield issue


def _issue(
    setting: WrittenSetting,
    name: str,
    framework: FrameworkRecord,
    listed: Mapping[str, FrameworkKeys],
    versions: Mapping[str, str],
    frameworks: Frameworks,
) -> ConfigIssue | None:
    standings = {owner: keys.status(name, versions.get(owner)) for owner, keys in listed.items()}
    states = {standing.state for standing in standings.values()}
    if "there" in states:
        return None
    renamed = next((new for owner in frameworks.family(framework.framework) if (new := frameworks.records[owner].renamed.get(name))), None)
    for owner, standing in standings.items():
        if standing.state in ("gone", "not-yet"):
            return _of_another_version(setting, name, frameworks.title(owner), versions[owner], standing, renamed)
    if "elsewhere" in states:
        if renamed is None:
            return None  # gone from newer versions, and which one runs is not known: not worth a word without a new name
        owner, standing = next((owner, standing) for owner, standing in standings.items() if standing.state == "elsewhere")
        return _perhaps_gone(setting, name, frameworks.title(owner), standing, renamed)
    if renamed is None and name.startswith("no_") and any(keys.status(name[3:], None).state != "unknown" for keys in listed.values()):
        return None
    guess = renamed or closest_key(name, [key for keys in listed.values() for key in keys.current()])
    if guess is None or any(not keys.covers(versions.get(owner)) for owner, keys in listed.items()):
        return None
    return _unknown(setting, name, framework, guess)


def _of_another_version(
    setting: WrittenSetting, name: str, title: str, version: str, standing: KeyStatus, renamed: str | None
) -> ConfigIssue:
    if standing.state == "gone":
        what = Text(f"{title} {version} no longer has `{name}`", f"{title} {version} 已经没有 `{name}` 这个键")
        why = Text(
            f"The last version known to have it is {standing.until}; later ones reject it.",
            f"有这个键的最后一个版本是 {standing.until}，之后的版本会直接报错。",
        )
        return _made("key-gone", "error", setting, what, why, renamed)
    what = Text(f"{title} {version} does not have `{name}` yet", f"{title} {version} 还没有 `{name}` 这个键")
    why = Text(f"The first version known to have it is {standing.since}.", f"最早有这个键的版本是 {standing.since}。")
    return _made("key-not-yet", "error", setting, what, why, None)


def _perhaps_gone(setting: WrittenSetting, name: str, title: str, standing: KeyStatus, renamed: str | None) -> ConfigIssue:
    what = Text(f"`{name}` was removed from {title} after {standing.until}", f"`{name}` 在 {title} {standing.until} 之后就没有了")
    why = Text(
        "The version used here is not known; newer ones stop at this key.",
        "这里用的是哪个版本还不知道；较新的版本遇到这个键会直接报错。",
    )
    return _made("key-perhaps-gone", "note", setting, what, why, renamed)


def _unknown(setting: WrittenSetting, name: str, framework: FrameworkRecord, guess: str) -> ConfigIssue:
    title = framework.title
    what = Text(f"{title} has no key `{name}`; a similar key is `{guess}`", f"{title} 没有 `{name}` 这个键，应该是 `{guess}`")
    if framework.unknown_keys == "refused":
        why = Text(
            "Depending on the version, it is rejected or ignored; the setting has no effect.",
            "不同版本会报错或忽略它，这项设置都不会生效。",
        )
    else:
        why = Text("It is silently ignored, and the default stays in effect.", "它会被悄悄忽略，实际用的还是默认值。")
    return _made("key-unknown", "note" if framework.unknown_keys == "noted" else "warning", setting, what, why, guess)


def _made(identity: str, severity: Severity, setting: WrittenSetting, what: Text, why: Text, guess: str | None) -> ConfigIssue:
    dashes = setting.key[: len(setting.key) - len(setting.key.lstrip("-"))]
    replacement = (
        None
        if guess is None
        else dashes + (guess.replace("_", "-") if dashes and "_" not in setting.key and "-" in setting.key.lstrip("-") else guess)
    )
    return ConfigIssue(
        id=identity, severity=severity, key=setting.key, file=setting.file, line=setting.line, what=what, why=why, replacement=replacement
    )


def find_misplaced_keys(config: ParsedConfig, frameworks: Frameworks) -> Iterator[ConfigIssue]:
    """Yield issues about keys that count only inside one block, and stand elsewhere."""
    record = frameworks.records.get(config.framework or "")
    if record is None:
        return
    blocks = record.blocks
    present = {setting.name for setting in config.written}
    for block, keys in blocks.items():
        for setting in config.written:
            around, _, name = setting.name.rpartition(".")
            if name in keys and not _belongs(around, name, blocks) and f"{block}.{name}" not in present and config.form != "command":
                yield _under_wrong_block(setting, around, block, record.title)


def _belongs(around: str, name: str, blocks: Mapping[str, list[str]]) -> bool:
    """Return whether a key stands in a block that takes it."""
    return any(name in keys and (around == block or around.endswith(f".{block}")) for block, keys in blocks.items())


def _under_wrong_block(setting: WrittenSetting, around: str, block: str, title: str) -> ConfigIssue:
    name = setting.name.rpartition(".")[2]
    here = Text(f"under `{around}`", f"`{around}` 下") if around else Text("at the top level of the file", "文件最外层")
    what = Text(f"`{name}` is {here.en}; it only has an effect under `{block}`", f"`{name}` 写在{here.zh}，只有放在 `{block}` 下才生效")
    why = Text(f"{title} does not look for it there, so the setting has no effect.", f"{title} 不会到那里找这个键，所以这项设置不起作用。")
    return ConfigIssue(
        id="key-under-wrong-block",
        severity="error",
        key=setting.key,
        file=setting.file,
        line=setting.line,
        what=what,
        why=why,
        replacement=f"{block}.{name}" if setting.block or setting.value is None else f"{block}.{name}: {setting_value(setting)}",
    )
