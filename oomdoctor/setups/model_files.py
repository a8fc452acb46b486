"""A model's shape from a file on this machine: its config.json, by a path or as left in a cache by a download, or a GGUF file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from glob import escape, glob
from json import loads
from math import log
from typing import Any

from oomdoctor import cache
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.gguf_files.header import Header, UnreadGguf, read_header
from oomdoctor.knowledge.gguf_files.shape import gguf_shape
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config, unusable_sizes
from oomdoctor.knowledge.hub_configs.diffusion import picture_parameters
from oomdoctor.knowledge.hub_configs.sizes import HubConfig
from oomdoctor.knowledge.tables.models import model_choices, model_row, model_rows
from oomdoctor.memory.model import parameters as count
from oomdoctor.opening import open_file
from oomdoctor.setups.nearest_model import size_in
from oomdoctor.units import GIB

MOST_BYTES = 4 << 20
_LONGEST = 40
_HALF = 2
_GGUF = ".gguf"
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_MOST_PARTS = 1000
_PIPELINE = ("transformer", "transformer_2", "unet", "text_encoder", "text_encoder_2", "text_encoder_3", "image_encoder", "vae")
"""Folders of a diffusers pipeline that contain weights."""
_COUNTED = "counted_parameters"
"""What a table row says about a diffusers class whose blocks are not implemented here; no other file may."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
"""A model on a hub: an owner and a name, never a path out of a folder."""


def read_shape(path: str) -> Shape | None:
    """Return the shape in the config.json or GGUF file at `path`; None if it cannot be read, or its family is unknown."""
    if is_gguf(path):
        return _gguf_shape(path)
    config = read_config(path)
    named = path if is_hub_name(path) and not os.path.exists(path) else os.path.basename(os.path.abspath(path))
    return None if config is None else shape_from_config(config, named)


def is_gguf(path: str) -> bool:
    """Return whether a path is a GGUF file on this machine."""
    return path.lower().endswith(_GGUF) and os.path.isfile(path)


def _gguf_shape(path: str) -> Shape | None:
    try:
        return _read_gguf(path)
    except UnreadGguf:
        return None


def _read_gguf(path: str) -> Shape:
    """Return the shape in a GGUF file, with all its parts. Raise UnreadGguf with the reason if there is none."""
    return gguf_shape([_gguf_header(part) for part in _gguf_parts(path)], os.path.basename(path))


def _gguf_parts(path: str) -> list[str]:
    """Return the files of a split model (`-00001-of-00003.gguf`), starting with the first; otherwise the file alone."""
    split = _SPLIT.search(path)
    if split is None:
        return [path]
    many = int(split[2])
    if not 0 < many <= _MOST_PARTS:
        raise UnreadGguf(f"it says it has {many} parts")
    return [f"{path[: split.start(1)]}{number:05d}{path[split.end(1) :]}" for number in range(1, many + 1)]


def _gguf_header(path: str) -> Header:
    try:
        with open_file(path) as opened:
            return read_header(opened, os.fstat(opened.fileno()).st_size)
    except OSError as why:
        raise UnreadGguf(f"its part {os.path.basename(path)} cannot be read: {why.strerror}") from why


def read_config(path: str) -> dict[str, Any] | None:
    """Return the config.json at `path`: the file itself, its folder, or the name of a cached model.

    None if none can be read.
    """
    file = os.path.join(path, "config.json") if os.path.isdir(path) else path
    is_here = os.path.isfile(file)
    place = file if is_here else next(_cached(path), None)
    if place is None:
        return None
    try:
        with open_file(place) if is_here else open(place, "rb") as opened:  # a cache is ours, wherever it is
            config = loads(opened.read(MOST_BYTES))  # it reads Infinity, which Mamba's files contain
    except (OSError, ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) else None


def unread_config(path: str) -> str | None:
    """Return why the config.json at `path`, or what is known by that name, gives no shape, in one line; None if it gives one."""
    if is_gguf(path):
        return _unread_gguf(path)
    if sizes := tuple(_picture_parts(path)):
        whole = ", ".join(f"{name} {_HALF * params / GIB:.2f} GiB" for name, params in sizes)
        return f"{path} generates images; its weights in 16-bit: {whole}; memory for the image itself is not counted here"
    place = os.path.join(path, "config.json") if os.path.isdir(path) else path
    if os.path.isfile(place) and os.path.getsize(place) > MOST_BYTES:
        return f"{place} is not a config.json: larger than {MOST_BYTES >> 20} MiB"
    config = read_config(path)
    if config is None:
        return f"{place} is not a config.json: {_why_not_opened(place) or 'not a JSON object'}" if os.path.isfile(place) else None
    if read_shape(path) is not None:
        return None
    family = str(config.get("model_type") or config.get("_class_name") or "unknown")[:_LONGEST]
    missing = [f"{name} {_value(config, name)}" for name in unusable_sizes(config)]
    lacking = ", ".join(missing) or "its layers are not known"
    return f"the config.json of {path} (model_type {family}) lacks sizes for the calculation: {lacking}"


def _why_not_opened(path: str) -> str | None:
    try:
        open_file(path).close()
    except OSError as why:
        return why.strerror
    return None


def _unread_gguf(path: str) -> str | None:
    try:
        _read_gguf(path)
    except UnreadGguf as why:
        return f"{path}: {why}"
    return None


def unknown_model(name: str) -> str:
    """Return the one-line message for an unknown model: what is wrong with its config.json, or otherwise the nearest names."""
    why = unread_config(name)
    if why is not None:
        return why
    meant = model_choices(name)
    suggestion = f"; did you mean {', '.join(meant)}?" if meant else _similar_models(name)
    gone = "no such file or folder, and " if re.match(r"[./~\\]|[A-Za-z]:[\\/]", name) else ""
    return f"{gone}the model {name} is not in the table{suggestion} Give a folder with its config.json with --model, or use --hub"


def _similar_models(name: str) -> str:
    """Return the models with about the memory of one of the size given in a name, the nearest first."""
    params = size_in(name)
    if params is None:
        return "."
    near = sorted(model_rows(), key=lambda row: abs(log((row.params_total_published or row.params_total_formula or 1) / params)))
    return f"; similar in size: {', '.join(row.name for row in near[:3])}."


def _picture_parts(path: str) -> Iterator[tuple[str, int]]:
    """Yield the diffusers models in a folder, a file, or of a known name, each with its parameters, including text encoders."""
    row = None if os.path.exists(path) else model_row(path)
    if row is not None and row.parts:
        for name, part in row.parts.items():
            yield from ((name, part[_COUNTED]),) if _COUNTED in part else _counted(((name, part),))
        return
    if not os.path.isfile(os.path.join(path, "model_index.json")):
        config = read_config(path)
        params = None if config is None else picture_parameters(config)
        if config is not None and params is not None:
            yield str(config["_class_name"]), params
        return
    folders = ((name, os.path.join(path, name)) for name in _PIPELINE)
    yield from _counted((name, config) for name, folder in folders if os.path.isdir(folder) and (config := read_config(folder)) is not None)


def _counted(parts: Iterable[tuple[str, HubConfig]]) -> Iterator[tuple[str, int]]:
    for name, config in parts:
        shape = shape_from_config(config)
        params = picture_parameters(config) or (count.total(shape) if shape else None)
        if params is not None:
            yield name, params


def _value(config: HubConfig, name: str) -> str:
    inner = next((part for part in (config, *config.values()) if isinstance(part, dict) and name in part), None)
    return "is missing" if inner is None else f"is {str(inner[name])[:_LONGEST]}"


def is_hub_name(name: str) -> bool:
    """Return whether a text is a name on a hub (`Qwen/Qwen2.5-7B`)."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def kept_name(name: str) -> str:
    """Return the name under which the user's cache keeps the config.json of a hub name."""
    return f"model-{name.replace('/', '--')}.json"


def _cached(name: str) -> Iterator[str]:
    """Yield files that may be the config.json of a hub name: what `--hub` fetched, huggingface_hub's cache, ModelScope's."""
    if not is_hub_name(name):
        return
    home = os.path.expanduser("~")
    above = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    face = os.environ.get("HF_HUB_CACHE") or os.path.join(os.environ.get("HF_HOME") or os.path.join(above, "huggingface"), "hub")
    scope = os.environ.get("MODELSCOPE_CACHE") or os.path.join(home, ".cache", "modelscope")
    snapshots = os.path.join(escape(face), f"models--{name.replace('/', '--')}", "snapshots", "*", "config.json")
    escaped = name.replace(".", "___")
    paths = [os.path.join(cache.folder(), kept_name(name)), *sorted(glob(snapshots), key=os.path.getmtime, reverse=True)]
    paths += [
        os.path.join(scope, *below, setting, "config.json")
        for below in ((), ("hub",), ("models",), ("hub", "models"))
        for setting in (name, escaped)
    ]
    yield from (path for path in paths if os.path.isfile(path))
