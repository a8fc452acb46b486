"""The command lines that stand in a log: what was typed above the output, what a script echoes, options that somebody names.

They are read like those of scripts, as far as they are of the program that runs; a config file goes before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from oomdoctor.case.case import LogStart
from oomdoctor.case.settings import WrittenSetting
from oomdoctor.configs.frameworks import Frameworks
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.configs.readers.command_line import read_command_line
from oomdoctor.ingest.clean import clean_lines

_MOST_LINES, _LONGEST, _MOST_COMMANDS = 400, 4000, 24
_OPTION = re.compile(rb"(?:^|[\s\"'])--?[A-Za-z]")
_PROMPT = re.compile(
    r"(?:\([\w. -]{1,40}\)\s{0,3})?(?:[\w.-]{1,40}@[\w.-]{1,60}[^$#%>\n]{0,80})?(?:[$#%>+❯!]{1,4})\s{0,3}(?=\S)"
    r"|PS [^>\n]{0,120}>\s{0,3}|[A-Z]:\\[^>\n]{0,120}>\s{0,3}"
    r"|(?:[Cc]ommand(?: line)?|CMD|cmd|COMMAND|[Rr]unning|[Ee]xecuting|exec|[Aa]rg(?:ument)?s|ENTRYPOINT|命令|启动命令)\s{0,2}[:：=]\s{0,3}"
)
"""What stands before a command: the prompt of a shell, the echo of a script."""
_BESIDE = ("launcher", "environment")
_MODULE = re.compile(r"[a-z_]\w{1,40}(?:\.[a-z_]\w{1,60}){1,6}\s{1,4}--[A-Za-z]")
"""A module of Python and its options: the line began with the interpreter or with a launcher, and was cut."""
_WINDOWS = re.compile(r"\"?(?:\.{1,2}\\|[A-Za-z]:\\|\S{1,200}\.exe\b)")
_LAST_OPTIONS = re.compile(r"(?:^|\s)((?:--?[A-Za-z][\w.-]{0,60}(?:=\S{1,200}|\s{1,3}(?!-[A-Za-z-])\S{1,200})?(?:\s{1,3}|$)){2,80})$")
"""Several options at the end of a line: those of what a launcher starts, whatever that is."""
_OPTIONS = re.compile(r"(?:--?[A-Za-z][\w.-]{0,60}(?:=\S{1,200}|\s{1,3}(?!-[A-Za-z-])\S{1,200})?(?:\s{1,3}|$)){1,40}")
"""A line of options alone."""


def logged_commands(starts: Sequence[LogStart], running: Sequence[str], frameworks: Frameworks, *, is_known: bool) -> list[ParsedConfig]:
    """Return the commands of the programs that run, the last of each log first: it is the one that failed.

    Where the framework is not known otherwise (`is_known`) the commands show it.
    """
    own = {name for program in running for name in frameworks.family(program)} | set(running)
    commands = [configs for start in starts for configs in _commands(start, running, frameworks)]
    meant: list[ParsedConfig] = []
    for configs in reversed(commands):
        running_it = [config for config in reversed(configs) if config.framework in own or _is_open(config, is_known=is_known)]
        meant += running_it
        # What starts a program and the variables before it are in force where the program is.
        meant += [config for config in configs if running_it and config.framework in _BESIDE and config not in running_it]
    return [config for config in meant if any(frameworks.common_settings(config))]


def _is_open(config: ParsedConfig, *, is_known: bool) -> bool:
    """Return whether a command may show the framework, as nothing else does."""
    return not is_known and config.framework is not None


def has_options(starts: Sequence[LogStart]) -> bool:
    """Return whether anything in the beginnings of logs looks like an option of a command."""
    return any(_OPTION.search(start.data) for start in starts)


def _commands(start: LogStart, running: Sequence[str], frameworks: Frameworks) -> Iterator[list[ParsedConfig]]:
    """Yield the configs of each command: of its program, of what starts that and of the variables before it."""
    for line, text in _candidates(start.data):
        command = _PROMPT.sub("", text, count=1) if _PROMPT.match(text) else text
        if _MODULE.match(command):
            command = f"python -m {command}"
        programs = [programs[0] for name in running if name in frameworks.records and (programs := frameworks.records[name].programs)]
        if command.startswith("-"):
            command = " ".join([*programs[:1], command]) if _OPTIONS.fullmatch(command) else ""
        elif _WINDOWS.match(command):
            command = command.replace("\\", "/")
        configs = [frameworks.recognise(config) for config in read_command_line(start.name, command)] if command else []
        if programs and not any(config.framework in running for config in configs) and (ends := _LAST_OPTIONS.search(command)):
            named = [frameworks.recognise(config) for config in read_command_line(start.name, f"{programs[0]} {ends[1]}")]
            configs = [config for config in named if any(at.key.startswith("--") for _, _, at in frameworks.common_settings(config))]
        yield [replace(config, form="log", written=tuple(_at(setting, line) for setting in config.written)) for config in configs]


def _candidates(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield the lines that may be commands, each with its number; one that goes on after a backslash with what follows it."""
    lines, count, at = clean_lines(data, 0), 0, 0
    while at < len(lines) and count < _MOST_LINES:
        first, parts = lines[at].offset, [lines[at].text.rstrip()]
        while parts[-1].endswith(("\\", "^")) and at + 1 < len(lines) and len(parts) < _MOST_COMMANDS:
            at += 1
            parts[-1] = parts[-1][:-1]
            parts.append(lines[at].text.rstrip())
        at += 1
        whole = " ".join(part.strip() for part in parts)
        if len(whole) <= _LONGEST and _OPTION.search(whole.encode()):
            count += 1
            yield data.count(b"\n", 0, first) + 1, whole.strip()


def _at(setting: WrittenSetting, line: int) -> WrittenSetting:
    return replace(setting, line=line)
