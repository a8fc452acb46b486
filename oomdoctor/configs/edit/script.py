"""Edits of shell scripts: the value of an option or a variable, an option that a command lacks, a variable before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from oomdoctor.configs.edit.change import ConfigChange, Edit, UnsafeEdit, plain_key
from oomdoctor.configs.edit.values import shell_value
from oomdoctor.configs.readers.command_line import OVERRIDE
from oomdoctor.configs.readers.shell import ASSIGNED, OPTION, REDIRECTION, Word, commands
from oomdoctor.configs.readers.windows import as_shell

_VARIABLE = re.compile(r"\$(?:(\w{1,100})|\{(\w{1,100})\})\Z")
_NEGATIVE = re.compile(r"-\d")
_QUOTING = re.compile(r"[\"'`$\\](?!\r?\n)")
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,200}\Z")
_OTHER_SHELLS = (".bat", ".cmd", ".ps1")


def edit_script(text: str, file: str, change: ConfigChange, takes: Callable[[Sequence[Word]], bool]) -> Edit:
    """Return the edit that makes `change`; `wanted` says of a command whether it takes new options.

    Raise UnsafeEdit where there is none.
    """
    if change.action == "move":
        raise UnsafeEdit("a command's options are not in a block", "命令行选项不分块")
    text = as_shell(file, text)
    script = list(commands(text))
    if file.lower().endswith(_OTHER_SHELLS):
        return _plain_value(text, script, change)
    edit = _edit(text, script, change, takes)
    if _QUOTING.search(edit.new) and _in_quotes(text, script, edit):
        raise UnsafeEdit("the value needs quotes inside quotes", "这个值要在引号里再加引号")
    return edit


def _edit(text: str, script: Sequence[Sequence[Word]], change: ConfigChange, takes: Callable[[Sequence[Word]], bool]) -> Edit:
    if change.action == "rename":
        return _renamed(_option(script, change), change)
    if change.variable:
        return _variable(text, script, change, takes)
    word = _option(script, change)
    if word is not None:
        return _value(text, script, word, change.to)
    return _appended(text, script, change, takes)


def _in_quotes(text: str, script: Sequence[Sequence[Word]], edit: Edit) -> bool:
    """Return whether a place lies in the text that a variable is given."""
    given = (word for command in script for word in command if ASSIGNED.match(word.text) and text[word.end - 1] in "\"'")
    return any(text.find("=", word.start) + 1 < edit.start and edit.end < word.end for word in given)


def _plain_value(text: str, script: Sequence[Sequence[Word]], change: ConfigChange) -> Edit:
    """Return the value of an option in a script of another shell, where neither the old nor the new one means anything to any shell."""
    word = None if change.variable or change.action != "set" else _option(script, change)
    edit = None if word is None else _value(text, script, word, change.to)
    if edit is None or not _PLAIN.match(edit.new) or not _PLAIN.match(text[edit.start : edit.end]):
        raise UnsafeEdit("this is a script for another shell", "这是其他 shell 的脚本")
    return edit


def _option(script: Sequence[Sequence[Word]], change: ConfigChange) -> Word | None:
    """Return the word that names the option: the one in its line, else the only one."""
    named = [word for command in script for word in command if _name(word) == plain_key(change.key)]
    there = [word for word in named if word.line == change.line] or named
    if len({word.start for word in there}) > 1:
        raise UnsafeEdit("the option appears in several commands", "多条命令里都有这个选项")
    if there and len(script) > 1 and any(there[0] in command and command[0].text.startswith("-") for command in script):
        raise UnsafeEdit("the line above ends the command, so this option belongs to none", "上一行已经结束了命令，这个选项不属于任何命令")
    return there[0] if there else None


def _name(word: Word) -> str | None:
    option = OPTION.match(word.text)
    if option is not None:
        return plain_key(option[1])
    override = OVERRIDE.match(word.text)
    return None if override is None else plain_key(override[1].lstrip("+~"))


def _value(text: str, script: Sequence[Sequence[Word]], word: Word, to: str) -> Edit:
    """Return the value behind an option, after `=` or as the next word."""
    argument = text[word.start : word.end]
    name, mark, old = argument.partition("=")
    if mark:
        return _word(text, script, word.start + len(name) + 1, old, to)
    values = list(_values(script, word))
    if len(values) > 1:
        raise UnsafeEdit("the option has several values", "这个选项有多个值")
    if not values:
        if to == "true":
            raise UnsafeEdit("the option is already set", "这个选项已经打开")
        return Edit(word.end, word.end, f" {shell_value(to, '')}")
    return _word(text, script, values[0].start, text[values[0].start : values[0].end], to)


def _values(script: Sequence[Sequence[Word]], word: Word) -> Iterator[Word]:
    """Yield the words behind an option: up to the next one, to a `key=value`, or to where the output goes."""
    command = next(command for command in script if word in command)
    for number, next_word in enumerate(command[command.index(word) + 1 :]):
        if next_word.text == ")" or (number and OVERRIDE.match(next_word.text)):
            return
        if (OPTION.match(next_word.text) and not _NEGATIVE.match(next_word.text)) or REDIRECTION.match(next_word.text):
            return
        yield next_word


def _word(text: str, script: Sequence[Sequence[Word]], start: int, old: str, to: str) -> Edit:
    """One value; where it is a variable that the script sets once, the variable."""
    bare = old[1:-1] if len(old) > 1 and old[0] == old[-1] == '"' else old
    name = _VARIABLE.match(bare)
    if name is not None:
        return _assigned(text, script, name[1] or name[2], to)
    if "$" in old or "`" in old:
        raise UnsafeEdit("the value is computed by the shell", "这个值由 shell 计算得出")
    return Edit(start, start + len(old), shell_value(to, old))


def _assigned(text: str, script: Sequence[Sequence[Word]], name: str, to: str) -> Edit:
    """Return the value of a variable that is assigned exactly once."""
    places = [word for command in script for word in command if (match := ASSIGNED.match(word.text)) and match[1] == name]
    if len(places) != 1:
        raise UnsafeEdit(f"the variable {name} is not set exactly once in this script", f"变量 {name} 在脚本里不是只赋值一次")
    start = places[0].start + len(name) + 1
    old = text[start : places[0].end]
    if "$" in old or "`" in old:
        raise UnsafeEdit("the value is computed by the shell", "这个值由 shell 计算得出")
    return Edit(start, places[0].end, shell_value(to, old))


def _renamed(word: Word | None, change: ConfigChange) -> Edit:
    if word is None:
        raise UnsafeEdit("the option is no longer at its location", "这个选项已经不在原来的位置")
    name = OPTION.match(word.text) or OVERRIDE.match(word.text)
    if name is None or not re.fullmatch(r"-{0,2}\w[\w.-]{0,150}", change.to):
        raise UnsafeEdit("this is not an option name", "这不是选项的名称")
    return Edit(word.start, word.start + len(name[1]), change.to)


def _variable(text: str, script: Sequence[Sequence[Word]], change: ConfigChange, takes: Callable[[Sequence[Word]], bool]) -> Edit:
    """Return a variable of the environment: its value, or a line before the command that runs."""
    if any((match := ASSIGNED.match(word.text)) and match[1] == change.key for command in script for word in command):
        return _assigned(text, script, change.key, change.to)
    command = _command(script, takes)
    start = text.rfind("\n", 0, command[0].start) + 1
    indent = text[start : command[0].start]
    if indent.strip():
        raise UnsafeEdit("the command is not at the start of its line", "命令不在行首")
    newline = "\r\n" if "\r\n" in text else "\n"
    return Edit(start, start, f"{indent}export {change.key}={shell_value(change.to, '')}{newline}")


def _appended(text: str, script: Sequence[Sequence[Word]], change: ConfigChange, takes: Callable[[Sequence[Word]], bool]) -> Edit:
    """Return an option at the end of the command, in a line of its own where the others have theirs."""
    command = _command(script, takes, change.program)
    size = next((at for at, word in enumerate(command) if REDIRECTION.match(word.text) or word.text == ")"), len(command))
    last = command[size - 1]
    if any("$@" in word.text or "$*" in word.text for word in command):
        raise UnsafeEdit("the command takes options from outside the script", "命令的参数来自脚本之外")
    key = change.key if change.key.startswith("-") else f"--{change.key}"
    value = shell_value(change.to, "") if change.to else ""
    if _takes_overrides(command[:size]):
        option = f"{change.key.lstrip('-')}={value}"
    else:
        option = f"{key} {value}".rstrip()
    return Edit(last.end, last.end, _lead(text, command[:size]) + option)


def _takes_overrides(command: Sequence[Word]) -> bool:
    """Return whether settings stand in it as `key=value`, as OmegaConf reads them."""
    program = next((at for at, word in enumerate(command) if not ASSIGNED.match(word.text)), 0)
    options = any(word.text.startswith("--") and not word.text.startswith(("--config", "--nproc", "--nnodes")) for word in command)
    return not options and any(OVERRIDE.match(word.text) for word in command[program:])


def _lead(text: str, command: Sequence[Word]) -> str:
    """Return what stands between two options: a blank, or a continuation with its indentation."""
    starts = [word.start for word in command[1:] if word.text.startswith("-") or OVERRIDE.match(word.text)]
    if not starts:
        return " "
    before = re.search(r"\\\r?\n[ \t]*\Z", text[: starts[-1]])
    return f" {before[0]}" if before is not None else " "


def _command(script: Sequence[Sequence[Word]], takes: Callable[[Sequence[Word]], bool], program: str | None = None) -> Sequence[Word]:
    """Return the command that runs, else what a variable is given that names its program."""
    matching = [command for command in script if takes(command)]
    if not matching and program is not None:
        matching = [command for command in script if _names(command, program.split())]
    if len(matching) != 1:
        raise UnsafeEdit("it is unclear which command this option belongs to", "无法确定该写进哪条命令")
    return matching[0]


def _names(command: Sequence[Word], program: Sequence[str]) -> bool:
    texts = [word.text for word in command]
    assigned = bool(texts) and ASSIGNED.match(texts[0]) is not None
    return assigned and any(texts[at : at + len(program)] == list(program) for at in range(1, len(texts)))
