"""Which version of a program a script runs: the tag of an image, or a package that is pinned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_VERSION = r"(?P<version>\d{1,4}(?:\.\d{1,4}){1,3}(?:\.?(?:post|rc|dev)\d{1,6})?)"
_PINNED = re.compile(rf"(?P<name>[A-Za-z][\w-]{{1,40}})(?:\[[\w,-]{{0,60}}\])?==={{0,1}}{_VERSION}\Z")
"""`vllm==0.8.5`, `sglang[all]==0.4.6`: what pip and uv take."""
_IMAGE = re.compile(rf"(?:[\w.-]{{1,80}}(?::\d{{1,5}})?/){{0,4}}(?P<name>[A-Za-z][\w-]{{1,40}}):v?{_VERSION}(?![\d.])[\w.+-]{{0,80}}\Z")
"""`vllm/vllm-openai:v0.8.5`, `registry:5000/team/sglang:v0.4.6-cu124`."""

_IMAGES_OF = {"text-generation-launcher": ("text-generation-inference",), "trtllm-serve": ("tensorrt-llm", "tensorrt_llm", "release")}
"""Images and packages that are named otherwise than what runs in them: nvcr.io/nvidia/tensorrt-llm/release."""


def named_versions(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the packages and images that words name, each with its version."""
    for word in words:
        match = _PINNED.match(word) or _IMAGE.match(word)
        if match is not None:
            yield match["name"].lower(), match["version"]


def version_of(program: str | None, named: Mapping[str, str]) -> str | None:
    """Return the version of a program (`vllm serve`) among those that a script names; None where it names none."""
    parts = {*re.split(r"[ ./\\]", program or ""), *_IMAGES_OF.get((program or "").partition(" ")[0], ())}
    return next((version for name, version in named.items() if name in parts or name.split("-")[0] in parts), None)
