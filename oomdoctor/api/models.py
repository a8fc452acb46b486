"""The GPU and the model of a use case, by the names that people give them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.shape import Shape
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.framework import FRAMEWORKS
from oomdoctor.knowledge.records.server import SERVERS
from oomdoctor.knowledge.tables.cards import Card, choices, commonest_card
from oomdoctor.knowledge.tables.likeness import did_you_mean
from oomdoctor.knowledge.tables.model_names import has_format, is_ollama_tag
from oomdoctor.knowledge.tables.models import model_row
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.from_log import which_model
from oomdoctor.setups.hub import fetch_config
from oomdoctor.setups.model_files import read_config, read_shape, unknown_model
from oomdoctor.setups.nearest_model import nearest_model, size_in
from oomdoctor.setups.picture_models import named_pictures

_SIZE = re.compile(r"\s*([-+]?\d{1,12}(?:\.\d{1,6})?)\s*(?:GB|GiB|G)\s*", re.IGNORECASE)
_PARAMETERS = re.compile(r"\s*\d{1,4}(?:\.\d{1,2})?\s?[bBmM]\s*")
_LARGEST_CARD = 1024
"""GB; the largest GPUs have 288."""
_FILE = re.compile(r"\.(?!gguf$|safetensors$|bin$|pth?$|a\d+b$)[a-z][a-z0-9]{1,7}$")
"""File name extensions of files that contain no model."""


def find_card(name: str) -> Card:
    """Return the GPU with a name (`RTX 4090`, `2x A100`) or a size (`24GB`); of several sizes, the most common.

    Raise UsageError with the names that may be meant if it is unknown.
    """
    size = _SIZE.fullmatch(name)
    if size is not None and not 1 <= float(size[1]) <= _LARGEST_CARD:
        near = ("4GB", "6GB", "8GB") if float(size[1]) < 1 else ("192GB", "256GB", "288GB")
        raise UsageError(f"GPU {name}: a GPU has 1 to {_LARGEST_CARD} GB; the nearest: {', '.join(near)}")
    card = commonest_card(name)
    if card is None:
        if name.isdecimal():
            raise UsageError(f"GPU {name}: no GPU has this name; a size needs a unit ({name}GB)")
        meant = choices(name)
        else_ = f"did you mean {', '.join(meant)}?" if meant else "give its name (RTX 4090, A100-80GB) or its size (24GB)"
        raise UsageError(f"GPU {name}: unknown or ambiguous; {else_}")
    return card


def asked_card(gpu: str | None, settings: RunSettings) -> Card | None:
    """Return the GPU that was named, or otherwise the one requested in the job files; None if neither names a known one.

    Raise UsageError if `gpu` is unknown.
    """
    if gpu is not None:
        return find_card(gpu)
    return None if settings.card is None else commonest_card(settings.card)


def cards_there(gpus: int | None, settings: RunSettings) -> int | None:
    """Return how many GPUs there are: the given number, or otherwise those requested in the job files."""
    return gpus or positive(settings.cards)


def model_among(paths: Sequence[str], model: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the paths and the model, which may be among the paths: `estimate "Qwen3 8B"` is what people write.

    The name need not be known: looking up a mistyped model later suggests what it may mean.
    """
    named = [] if model is not None else [path for path in paths if is_model_name(path)]
    if len(named) != 1:
        return tuple(paths), model
    return tuple(path for path in paths if path != named[0]), named[0]


def is_model_name(path: str) -> bool:
    """Return whether a nonexistent path is meant as a model name: a known one, or one without a file name extension."""
    return path != "-" and not os.path.exists(path) and (_FILE.search(path.lower()) is None or model_row(path) is not None)


def number_of_cards(card: Card | None, gpus: int | None) -> int | None:
    """Return how many GPUs there are: the given number, or otherwise that in the GPU name (`2x4090`)."""
    return gpus or (None if card is None else card.count)


def known_framework(name: str | None, pack: Pack) -> str | None:
    """Return the name of a framework. Raise UsageError if no framework and no server has that name."""
    if name is None:
        return None
    records = pack.records(FRAMEWORKS)
    known = [spelling for record in records for spelling in (record.framework, *record.names)]
    known += [record.server for record in pack.records(SERVERS)]
    if name.lower() not in known:
        raise UsageError(f"framework {name}: unknown{did_you_mean(name, known)}")
    return name


def card_assumption(card: Card | None) -> tuple[Assumption, ...]:
    """Return the assumed size of a GPU whose name has several."""
    if card is None or not card.others:
        return ()
    others = [f"{size} GB" for size in card.others]
    en = f"{card.name} (also sold with {' or '.join(others)})"
    return (assumed("gpu", en, f"{card.name}（同名的卡还有 {'、'.join(others)} 的）"),)


def job_assumption(card: Card | None, settings: RunSettings) -> tuple[Assumption, ...]:
    """Return what is assumed from the job files: the GPU that they request."""
    if card is None or settings.card is None or commonest_card(settings.card) != card:
        return ()
    return (assumed("card", f"the card requested by the job: {settings.card}", f"按作业申请的显卡：{settings.card}"),)


def tag_assumption(model: str | None) -> tuple[Assumption, ...]:
    """Return the assumed format of a model in Ollama's library whose tag does not give it."""
    if model is None or not is_ollama_tag(model) or has_format(model):
        return ()
    en = f"Ollama's default format for {model}: its own if it was released in one, otherwise Q4_K_M"
    return (assumed("weights", en, f"{model} 取 Ollama 的默认格式：模型自带量化格式的用原格式，其余为 Q4_K_M"),)


def cards_of_other_sizes(card: Card) -> Iterator[Card]:
    """Yield the other GPUs with the given name."""
    for size in card.others:
        other = commonest_card(card.name.replace(f"{card.gigabytes}GB", f"{size}GB"))
        if other is not None:
            yield other


def _model_of_size(name: str) -> Shape | None:
    """Return the nearest dense model if the name is nothing but a number of parameters: `70B`."""
    size = size_in(name) if _PARAMETERS.fullmatch(name) else None
    return None if size is None else nearest_model(size, name)


def find_shape(name: object, settings: RunSettings) -> Shape:
    """Return the shape of a model by its name, or by the folder or file of its config.json. Raise UsageError if it is unknown."""
    if not name:
        raise UsageError(which_model(settings))
    shape = read_shape(str(name)) or model_shape(str(name)) or named_pictures(str(name)) or _model_of_size(str(name))
    if shape is None:
        raise UsageError(unknown_model(str(name)))
    return shape


def only_text(name: object, what: str) -> None:
    """Raise UsageError if a table of tokens is requested for an image generator."""
    if name and named_pictures(str(name)) is not None:
        raise UsageError(f"{what} applies to models that read text, and {name} generates images; use --cards, or one --size at a time")


def fetch_unknown(name: object) -> None:
    """Fetch the config.json of a model that neither the table nor this machine knows. Raise UsageError if it is not available."""
    if name and model_shape(str(name)) is None and read_config(str(name)) is None:
        fetch_config(str(name))
