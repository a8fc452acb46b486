"""Config files as text -> what is proposed for them and what becomes of it, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from training.reading import pack

from oomdoctor.case.diagnosis import Fix, Setting, Text
from oomdoctor.case.training import Complaint
from oomdoctor.changes.homes import Homes
from oomdoctor.changes.settle import Judge
from oomdoctor.training.configs import training
from oomdoctor.training.readers import read_config
from oomdoctor.training.sheet import Sheet


def sheets(files: Mapping[str, bytes]) -> list[Sheet]:
    return [sheet for name, data in files.items() for sheet in read_config(name, data) or []]


def homes(files: Mapping[str, bytes]) -> Homes:
    return Homes(sheets(files), pack())


def judge(known: Mapping[str, str | int | float | bool | None]) -> Judge:
    """What the rules say of configs in a run of which `known` is known."""

    def ask(files: Mapping[str, bytes]) -> Sequence[Complaint]:
        found = training(sheets(files), [], dict(known), pack())
        return () if found is None else found.complaints

    return ask


def nothing_there(path: str) -> bytes | None:  # noqa: ARG001 - the shape of a reader
    return None


def holding(**files: bytes) -> Callable[[str], bytes | None]:
    return lambda path: files.get(path.replace(".", "_"))


def fix(*settings: Setting, id: str = "a-fix", safety: str = "safe") -> Fix:
    return Fix(id=id, title=Text("A fix", "一项改动"), how=Text("So.", "这样。"), settings=settings, safety=safety)


def setting(framework: str, key: str, to: str, **more: object) -> Setting:
    return Setting(framework=framework, key=key, to=to, **more)  # type: ignore[arg-type]
