"""Settings in logs: a row of rules/signatures -> the signature that recognises the setting in every form in which programs print it."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.knowledge.records.base import Plain
from oomdoctor.knowledge.records.log_setting import FormName, LogSettingRecord
from oomdoctor.knowledge.records.signature import Example, NearMiss, SignatureRecord

_FORMS: dict[FormName, tuple[str, str]] = {
    "yaml": (r"^[ \t-]{0,12}", r":[ \t]{1,4}"),
    "option": (r"(?<!`)--", r"[= ][ \t]{0,3}"),
    "json": (r"[\"']", r"[\"']:[ ]{0,3}"),
    "call": (r"(?:^|[(,\s])", "="),
    "dots": (r"(?:^|\s)", r"[ ]\.{2,60}[ ]"),
}
"""Before and after the name. An option in backticks is advice."""
_VALUES = {"int": r"\d{1,8}", "flag": "[Tt]rue|[Ff]alse|auto", "bool": "[Tt]rue|[Ff]alse", "path": r"[\w./:+-]{1,150}"}
_EXAMPLES: dict[FormName, str] = {
    "yaml": "{name}: {value}",
    "option": "python run.py --{name} {value} --seed 5",
    "json": '{{"{name}": {quoted}}}',
    "call": "Arguments({name}={python}, seed=5)",
    "dots": "[INFO] [config.py:1003:print]   {name} ....... {value}",
}


def signature_of(row: LogSettingRecord) -> SignatureRecord:
    """Return the signature that a row stands for, with examples of each form that its literals let through."""
    first = row.setting[0]
    names = [name.replace("_", "[_-]") for name in row.setting]
    name = names[0] if len(names) == 1 else f"(?:{'|'.join(names)})"
    forms = "|".join(before + name + after for before, after in map(_FORMS.__getitem__, _forms(row)))
    value = "|".join(row.value) if isinstance(row.value, list) else _VALUES.get(row.value, row.value)
    return SignatureRecord(
        id=row.id or f"setting-{first.replace('_', '-')}",
        kind="context",
        literals=_literals(row),
        pattern=rf"(?:{forms})[\"']?(?P<{first}>{value})(?![\w({'' if row.point else '.'}])",
        purpose=row.purpose,
        source=row.source,
        note=row.note,
        examples=[*_examples(row), *row.examples],
        near_misses=[NearMiss(text=f"try another {first} if it does not fit", why="advice without a value"), *row.near_misses],
    )


def _forms(row: LogSettingRecord) -> list[FormName]:
    return [*row.forms, "dots"] if row.dots else row.forms


def _literals(row: LogSettingRecord) -> list[str]:
    """Return what must stand in a line for the row to be tried."""
    if row.literals is not None:
        return row.literals
    return sorted({spelling for name in row.setting for spelling in (name, name.replace("_", "-"))})


def _sample(row: LogSettingRecord) -> Plain | None:
    """Return the value of the examples; None where the row gives none."""
    return row.value[0] if row.like is None and isinstance(row.value, list) else row.like


def _examples(row: LogSettingRecord) -> Iterator[Example]:
    sample, literals = _sample(row), _literals(row)
    if sample is None:
        return
    plain = str(sample).lower() if isinstance(sample, bool) else str(sample)
    python = str(sample) if not isinstance(sample, str) else f'"{sample}"'
    for form in _forms(row):
        spellings = [spelling for name in row.setting for spelling in ((name.replace("_", "-"), name) if form == "option" else (name,))]
        texts = (
            _EXAMPLES[form].format(name=name, value=plain, quoted=f'"{sample}"' if isinstance(sample, str) else plain, python=python)
            for name in dict.fromkeys(spellings)
        )
        for text in texts:
            if any(literal in f"\n{text}" for literal in literals):
                yield Example(text=text, fields={row.setting[0]: str(sample) if form == "call" else plain})
