"""The names of models as people write them, in parts: family and version, sizes, the format of the weights, and what changes no shape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from msgspec import Struct

from oomdoctor.knowledge.tables.name_words import name_words

_LONGEST = 300
# Hub caches: models--ORG--NAME/snapshots/HASH
_CACHED = re.compile(r"models--[\w.-]{1,100}--([\w.-]{1,100})")
_FILE = re.compile(r"(?:-\d{5}-of-\d{5})?\.(?:gguf|safetensors|bin|pth?)$")
_FORMAT = re.compile(
    r"(?<![a-z0-9])(?:q\df(?:16|32)(?:_\d)?|(?:ud-)?i?q\d(?:_(?:k|[01]|xxs|xs|s|m|l|xl|nl|p|kss|k[stlv]|r[48]))*|tq\d_0|awq|gptq|gguf|ggml|bnb|nf4|fp[48](?:[-_](?:e\dm\d(?:fn)?|scaled))*|nvfp4|mxfp[48](?:_moe)?|fp16|bf16|f16|fp32"
    r"|int-?[48]|[2-9]-?bits?|w\da\d+|exl[23]|\d(?:\.\d{1,2})?bpw|h[68]|dwq|ct2|mlx|marlin|qat|autoround|quantized|dynamic|static|pertensor)(?![a-z0-9])"
)
_WHOLE_VERSION = re.compile(r"(?<=\d)\.0(?!\.?\d|\s*[bm](?![a-z]))")
"""`V2.0` is V2."""
_SIZE_APART = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,2})?)\s+(b|bpw)(?![a-z0-9])")
# Forms that few names need; re compiles them where one does.
_BILLIONS = r"(?<=\d)[\s-]*billions?(?![a-z])"
_HUNDRED_MILLIONS = r"(\d{1,5}(?:\.\d{1,2})?)\s*亿"
_DOUBLE_OWNER = r"^[a-z\d][a-z\d.-]*__(?=[a-z])"
"""Copies in a cache have the owner and two underscores before their own name."""
_COPIED_OWNER = r"^([a-z\d][a-z\d.-]*)_(?=[a-z][a-z\d.]*-[^_]*-(?:gguf|q\d|iq\d|exl\d))"
"""Those who copy to GGUF write the owner and one underscore before the name, whose own words have hyphens between."""
_NAMELESS = (
    r"(?:checkpoint|global_step|epoch|step|snapshot|run|v)?[-_]?\d*|[0-9a-f]{12,64}|v?\d+-\d{8}-\d+|final|best|last|main|exported|output|huggingface|actor"
    r"|snapshots|models|ckpts?|(?:ggml-|pytorch_|diffusion_pytorch_)model|consolidated(?:\.\d+)?"
)
"""The last part of a path that is the same for every model: what stands before it names the model."""
_GLUED_KIND = r"(?<=\d)(?:coder|instruct|chat|thinking|math)(?![a-z])"
_ACTIVE_BEHIND = re.compile(r"(?<=\db)\.?(?=a\d)")
_CHINESE = "[\u3400-\u9fff]+"
"""A range as wide takes a millisecond to compile, which only a name with such letters pays."""
_SPLIT = re.compile(r"[\s_:/()+,-]+")
_SIZE = re.compile(r"(\d{1,4}(?:\.\d{1,3})?|\d{1,2}x\d{1,3}(?:\.\d)?)([bm])(\d?)")
_ACTIVE = re.compile(r"a\d{1,3}(?:\.\d)?b")
_GLUED = re.compile(r"([a-z]{3,}|[a-z][a-z\d.]*\d[a-z]+)((?:\d{1,2}x)?\d{1,3}(?:\.\d)?b)")
_VERSION_BEHIND = re.compile(r"v\d{1,2}(?:\.\d{1,2})?[a-z]?")
_BESIDE = re.compile(r"\d{4}|\d{1,4}k|1m|\d{1,3}e")
"""Dates, lengths of the context and numbers of experts."""
_DISTILLED = re.compile(r"(?<![a-z])distilled(?![a-z])")


class ModelName(Struct, frozen=True):
    """A name of a model, in parts."""

    family: str
    """Family, version and kind in one word without separators: `qwen25vl`."""
    size: str = ""
    """Parameters in billions, `8`, `0.6`, `8x7`; empty where the name says none."""
    active: str = ""
    format: str = ""
    """The first word for the format of the weights: `q4_k_m`, `awq`; empty where there is none."""
    beside: tuple[str, ...] = ()
    """What else it says: dates, versions behind the size, words that change no shape."""

    @property
    def billions(self) -> float | None:
        """The size as a number; None where there is none, or it counts experts."""
        return float(self.size) if self.size and "x" not in self.size else None

    @property
    def counts_experts(self) -> bool:
        """Whether the size is that of one of several experts (`17B-16E`)."""
        return any(word.endswith("e") and word[:-1].isdigit() for word in self.beside)

    @property
    def dates(self) -> frozenset[str]:
        """Dates of a release (`2507`)."""
        return frozenset(word for word in self.beside if re.fullmatch(r"\d{4}", word))

    @property
    def is_without_version(self) -> bool:
        """Whether only the family is said."""
        return not any(letter.isdigit() for letter in self.family)


def read_model_name(written: str) -> Iterator[ModelName]:
    """Yield what a name may say: all of it the model's own, then without its owner, then what a fine-tune says of its base.

    Where a word says that it is a fine-tune, words behind the size are the fine-tune's own.
    """
    plain = _naming_part(written)
    yield from _spelled(plain)
    bare = _owner().sub("", plain)
    bare = re.sub(_DOUBLE_OWNER, "", bare, flags=re.IGNORECASE) if "__" in bare else bare
    bare = _without_copied_owner(bare)
    if bare != plain:
        yield from _spelled(bare)
    base = _fine_tune().sub(" ", bare)
    if base != bare:
        yield from _spelled(base)
    if (unglued := re.sub(_GLUED_KIND, "", base, flags=re.IGNORECASE)) != base:
        yield from _spelled(unglued)
    if base != bare or not name_words("model", "tuned").keys().isdisjoint(_words(bare.lower())):
        yield from _spelled(base, is_tuned=True)


def _naming_part(written: str) -> str:
    """Return the last part of a path that names a model: what a trainer or a loader calls its folders and files does not."""
    parts = [written]
    while "/" in (path := parts[-1].replace("\\", "/").rstrip("/")) and _is_nameless(last_part(path)):
        parts.append(path.rpartition("/")[0])
    return last_part(parts[-1])


def _is_nameless(plain: str) -> bool:
    read = _read(plain)
    return not read.size and (not read.family or re.fullmatch(_NAMELESS, _FILE.sub("", plain.lower())) is not None)


def _without_copied_owner(plain: str) -> str:
    """Return the name of a copy without its owner; what stands there of a part of a model (`mmproj_`) stays."""
    owner = re.match(_COPIED_OWNER, plain, re.IGNORECASE) if "_" in plain else None
    if owner is None or not name_words("model", "kind").keys().isdisjoint(_words(owner[1].lower())):
        return plain
    return plain[owner.end() :]


def read_known_name(name: str) -> Iterator[ModelName]:
    """Yield what the name of a model of the table says; a fine-tune there has its name for itself."""
    yield from _spelled(last_part(name))


def _spelled(plain: str, *, is_tuned: bool = False) -> Iterator[ModelName]:
    """Yield a name in parts; `_` between digits separates, else it is a dot (`Qwen-1_8B`)."""
    yield _read(plain, is_tuned=is_tuned)
    if re.search(r"\d_\d", plain):
        yield _read(re.sub(r"(?<=\d)_(?=\d)", ".", plain), is_tuned=is_tuned)


@cache
def _owner() -> re.Pattern[str]:
    """Find the owner that stands before a name in the name of a copy (`Qwen_Qwen3-8B-GGUF`)."""
    return re.compile(rf"^(?:{'|'.join(map(re.escape, name_words('model', 'owner')))})_(?=[a-z])", re.IGNORECASE)


@cache
def _fine_tune() -> re.Pattern[str]:
    """Find the name of a fine-tune with its version, which is no size (`Hermes-3-`, `dolphin-2.9.1-`)."""
    words = "|".join(map(re.escape, name_words("model", "finetune")))
    return re.compile(rf"(?<![a-z0-9])(?:{words})(?![a-z])(?:[-_ ]?v?\d{{1,2}}(?:\.\d{{1,2}}){{0,2}}(?![\w.]))?", re.IGNORECASE)


def last_part(written: str) -> str:
    """Return the model's own name of a path, a hub's name, or a folder of a cache; ModelScope writes a dot as `___`."""
    written = written[-_LONGEST:].rstrip("/\\")
    cached = _CACHED.search(written) if "models--" in written else None
    last = cached[1] if cached else written.replace("\\", "/").rpartition("/")[2]
    return last.replace("___", ".").strip()


def is_ollama_tag(written: str) -> bool:
    """Return whether a name is one of Ollama's library (`qwen3:8b`)."""
    return ":" in written and re.fullmatch(r"[\w.-]{1,60}:[\w.-]{1,60}", written) is not None


def has_format(written: str) -> bool:
    """Return whether a name says the format of the weights."""
    return bool(_read(last_part(written)).format)


def _read(plain: str, *, is_tuned: bool = False) -> ModelName:
    text = _DISTILLED.sub("distill", _translated(_FILE.sub("", plain.lower())))
    form = _FORMAT.search(text)
    family: list[str] = []
    size, active, beside = "", "", []
    same_shape, tuned = _same_shape(), name_words("model", "tuned")
    words = ("", *_words(_FORMAT.sub(" ", text)))
    for before, word in pairwise(words):
        sized = _SIZE.fullmatch(word)
        is_version = (size or (before in tuned and word is words[-1])) and _VERSION_BEHIND.fullmatch(word)
        if sized and size in {"", _billions(sized)}:
            size = _billions(sized)
        elif _ACTIVE.fullmatch(word):
            active = word
        elif word in same_shape or _BESIDE.fullmatch(word) or is_version or (size and is_tuned and _is_own(word)):
            beside.append(word)
        else:
            family.append(word)
    joined = re.sub(r"v(?=\d)", "", "".join(family).replace(".", ""))
    return ModelName(joined, size, active, form[0] if form else "", tuple(beside))


@cache
def _same_shape() -> frozenset[str]:
    return frozenset((*name_words("model", "training"), *name_words("model", "tuned")))


def _is_own(word: str) -> bool:
    """Return whether a word behind the size of a fine-tune is its own: no other size, and none that makes another model of it."""
    return word not in name_words("model", "kind") and _SIZE.fullmatch(word) is None


def _translated(text: str) -> str:
    """Return a name with the Chinese name of its family in English, and no other Chinese.

    The English name may stand behind it as well (`智谱 GLM-4`).
    """
    for chinese, english in name_words("model", "family").items():
        if chinese in text:
            bare = text.replace(chinese, " ")
            text = bare if english in bare else text.replace(chinese, f" {english} ")
    if "billion" in text:
        text = re.sub(_BILLIONS, "b", text)
    text = _SIZE_APART.sub(r"\1\2", _ACTIVE_BEHIND.sub("-", _WHOLE_VERSION.sub("", text)))
    return text if text.isascii() else re.sub(_CHINESE, " ", re.sub(_HUNDRED_MILLIONS, lambda sized: f" {float(sized[1]) / 10:g}b ", text))


def without_maker(family: str) -> str:
    """Return the name of a family without the maker's in front of it."""
    maker = next((word for word in name_words("model", "maker") if family.startswith(word) and family != word), "")
    return family.removeprefix(maker)


def _words(text: str) -> Iterator[str]:
    for word in filter(None, (part.strip(".") for part in _SPLIT.split(text))):
        glued = _GLUED.fullmatch(word)
        yield from glued.groups() if glued else (word,)


def _billions(sized: re.Match[str]) -> str:
    number, unit, tenth = sized.groups()
    if "x" in number:
        return number
    value = float(f"{number}.{tenth}" if tenth else number)
    return f"{value / (1000 if unit == 'm' else 1):g}"
