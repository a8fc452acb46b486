"""Where a setting is written: the file, the command and the block that its framework reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

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


class EditTargets:
    """The config files of one run, by the frameworks whose settings they hold."""

    def __init__(self, sheets: Iterable[ParsedConfig], pack: Pack) -> None:
        self._frameworks = Frameworks(pack)
        self.configs = [self._frameworks.recognise(sheet) for sheet in sheets]

    def find(self, framework: str, key: str, file: str | None = None, line: int | None = None) -> EditTarget | None:
        """Where `key` of `framework` stands or would stand; None where no file takes it."""
        return self.existing(key, file, line) or self._missing(framework, key)

    def existing(self, key: str, file: str | None, line: int | None) -> EditTarget | None:
        """Where `key` stands in this line, with the blocks around it; None where it does not."""
        return next((home for sheet in self.configs if (home := _standing(sheet, key, file, line))), None)

    def script_for(self, name: str) -> EditTarget | None:
        """The script that sets a variable of the environment, or could."""
        scripts = [sheet for sheet in self.configs if sheet.form == "command" and sheet.framework is not None]
        setting = [sheet for sheet in self.configs if sheet.form == "environment" and any(one.key == name for one in sheet.written)]
        found = next(iter([*setting, *scripts]), None)
        return None if found is None else EditTarget(file=found.file, key=name, program=scripts[0].program if scripts else None)

    def block_of(self, framework: str, name: str) -> str | None:
        """The block in which alone a key counts, where the framework has one."""
        record = self._frameworks.records.get(framework)
        return None if record is None else next((block for block, keys in record.blocks.items() if name in keys), None)

    def files(self) -> list[str]:
        """The files, each once, in order."""
        return list(dict.fromkeys(sheet.file for sheet in self.configs))

    def _missing(self, framework: str, key: str) -> EditTarget | None:
        takes = [sheet for sheet in self.configs if sheet.form in ("yaml", "json", "command")]
        own = [sheet for sheet in takes if sheet.framework == framework]
        for sheet in [*own, *(one for one in takes if framework in self._frameworks.family(one.framework or ""))]:
            return EditTarget(file=sheet.file, key=self._rooted(sheet, framework, key), program=sheet.program)
        around = key.partition(".")[0]
        for sheet in takes:
            # `fsdp_config.x` is a key of FSDP and stands in the file of whoever starts it.
            if around != key and any(one.block and one.key == around for one in sheet.written):
                return EditTarget(file=sheet.file, key=key, program=sheet.program)
        if framework == _NESTED:
            for sheet in takes:
                block = next((one.key for one in sheet.written if one.block and _last(one.key) == _NESTED), None)
                if block is not None:
                    return EditTarget(file=sheet.file, key=f"{block}.{key}", program=sheet.program)
        return None

    def _rooted(self, sheet: ParsedConfig, framework: str, key: str) -> str:
        """A shared key below the block that this framework keeps for them."""
        if sheet.framework == framework or sheet.form == "command":
            return key
        roots: Sequence[str] = self._frameworks.records[sheet.framework or ""].roots
        root = next((one.key for one in sheet.written if one.block and one.key in roots), None)
        return key if root is None or key.startswith(f"{root}.") else f"{root}.{key}"


def _standing(sheet: ParsedConfig, key: str, file: str | None, line: int | None) -> EditTarget | None:
    if file is None or sheet.file != file:
        return None
    for one in sheet.written:
        if one.line == line and ends_with(one.key, key):
            return EditTarget(file=file, key=one.key, line=line, program=sheet.program)
    return None


def ends_with(full: str, key: str) -> bool:
    """Whether `full` is `key`, in whatever block."""
    return f".{plain_key(full)}".endswith(f".{plain_key(key)}")


def _last(key: str) -> str:
    return key.rpartition(".")[2]
