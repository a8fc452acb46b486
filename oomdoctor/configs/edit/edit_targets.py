"""Where a setting is written: the file, the command and the block that its framework reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from oomdoctor.configs.edit.calls import is_script
from oomdoctor.configs.edit.change import plain_key
from oomdoctor.configs.frameworks import Frameworks
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.knowledge.pack import Pack

_NESTED = "deepspeed"
"""A key of trainers that can hold the whole config of the program of this name."""


class EditTarget(Struct, frozen=True, kw_only=True):
    """A place for a setting."""

    file: str
    key: str
    """As the file nests it."""
    line: int | None = None
    program: str | None = None
    is_option: bool = False
    """Whether it is an option of a command: one that is set without a value is `true` elsewhere."""


class EditTargets:
    """The config files of one run, by the frameworks whose settings they hold."""

    def __init__(self, configs: Iterable[ParsedConfig], pack: Pack) -> None:
        self._frameworks = Frameworks(pack)
        self.configs = [self._frameworks.recognise(config) for config in configs]

    def find(self, framework: str, key: str, file: str | None = None, line: int | None = None) -> EditTarget | None:
        """Return where `key` of `framework` stands or would stand; None where no file takes it."""
        return self.existing(key, file, line) or self._missing(framework, key) or self._of_call(framework, key)

    def existing(self, key: str, file: str | None, line: int | None) -> EditTarget | None:
        """Return where `key` stands in this line, with the blocks around it; None where it does not."""
        return next((home for config in self.configs if (home := _standing(config, key, file, line))), None)

    def script_for(self, name: str) -> EditTarget | None:
        """Return the script that sets a variable of the environment, or could."""
        scripts = [config for config in self.configs if config.form == "command" and config.framework is not None]
        setting = [
            config for config in self.configs if config.form == "environment" and any(variable.key == name for variable in config.written)
        ]
        script = next(iter([*setting, *scripts]), None)
        return None if script is None else EditTarget(file=script.file, key=name, program=scripts[0].program if scripts else None)

    def block_of(self, framework: str, name: str) -> str | None:
        """Return the block in which alone a key counts, where the framework has one."""
        record = self._frameworks.records.get(framework)
        return None if record is None else next((block for block, keys in record.blocks.items() if name in keys), None)

    def files(self) -> list[str]:
        """Return the files, each once, in order."""
        return list(dict.fromkeys(config.file for config in self.configs))

    def _missing(self, framework: str, key: str) -> EditTarget | None:
        takes = [config for config in self.configs if config.form in ("yaml", "json", "toml", "command")]
        matching = [config for config in takes if config.framework == framework]
        for config in [*matching, *(parsed for parsed in takes if framework in self._frameworks.family(parsed.framework or ""))]:
            if config.form == "command":
                return EditTarget(file=config.file, key=key, program=config.program, is_option=True)
            # A program whose settings are known as options can have them in a file too.
            return _anywhere(config, key) or EditTarget(file=config.file, key=self._rooted(config, framework, key))
        around = key.partition(".")[0]
        for config in takes:
            # `fsdp_config.x` is a key of FSDP and stands in the file of whoever starts it.
            if around != key and any(setting.block and setting.key == around for setting in config.written):
                return EditTarget(file=config.file, key=key, program=config.program)
        if framework == _NESTED:
            for config in takes:
                block = next((setting.key for setting in config.written if setting.block and _last(setting.key) == _NESTED), None)
                if block is not None:
                    return EditTarget(file=config.file, key=f"{block}.{key}", program=config.program)
        return None

    def _of_call(self, framework: str, key: str) -> EditTarget | None:
        """Return where a script in Python says `key` in a call, or could; None for one of another framework."""
        for config in self.configs:
            if config.form == "dump" and is_script(config.file) and framework in self._frameworks.family(config.framework or ""):
                line = next((setting.line for setting in config.written if plain_key(setting.key) == plain_key(key)), None)
                return EditTarget(file=config.file, key=key, line=line, program=config.program)
        return None

    def _rooted(self, config: ParsedConfig, framework: str, key: str) -> str:
        """Return a shared key below the block that this framework keeps for them."""
        if config.framework == framework:
            return key
        roots: Sequence[str] = self._frameworks.records[config.framework or ""].roots
        root = next((setting.key for setting in config.written if setting.block and setting.key in roots), None)
        return key if root is None or key.startswith(f"{root}.") else f"{root}.{key}"


def _standing(config: ParsedConfig, key: str, file: str | None, line: int | None) -> EditTarget | None:
    if file is None or config.file != file:
        return None
    for setting in config.written:
        if setting.line == line and ends_with(setting.key, key):
            return EditTarget(file=file, key=setting.key, line=line, program=config.program, is_option=config.form == "command")
    return None


def _anywhere(config: ParsedConfig, option: str) -> EditTarget | None:
    """Return where what is known as an option stands in a file, in whatever block."""
    if not option.startswith("--"):
        return None
    there = next((setting for setting in config.written if ends_with(setting.key, option)), None)
    return EditTarget(file=config.file, key=plain_key(option) if there is None else there.key, line=None if there is None else there.line)


def ends_with(full: str, key: str) -> bool:
    """Return whether `full` is `key`, in whatever block."""
    return f".{plain_key(full)}".endswith(f".{plain_key(key)}")


def _last(key: str) -> str:
    return key.rpartition(".")[2]
