"""Charts read back: their shapes, and what stands where by the scales that the drawing itself names."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

from oomdoctor.units import parse_size

SVG = re.compile(r'<svg class="chart".*?</svg>(?!</svg>)', re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def chart(page: str, number: int = 0) -> ElementTree.Element:
    """Return a chart of a page; raise where it is no well-formed XML."""
    return ElementTree.fromstring(SVG.findall(page)[number])


def shapes(root: ElementTree.Element, kind: str, looks: str = "") -> list[ElementTree.Element]:
    """Return the shapes of a kind whose class begins so."""
    return [shape for shape in root.iter(kind) if shape.get("class", "").startswith(looks)]


def corners(path: str) -> list[list[tuple[float, float]]]:
    """Return the points of each line of a path of M and L."""
    return [[(float(x), float(y)) for x, y in zip(*[iter(_NUMBER.findall(line))] * 2)] for line in path.split("M")[1:]]


def scale_of_sizes(root: ElementTree.Element) -> Callable[[float], float]:
    """Return where a size stands, by the two outermost names of sizes on the left."""
    lines = [float(_NUMBER.findall(shape.get("d", ""))[1]) for shape in shapes(root, "path", "grid-line")]
    names = [shape.text or "" for shape in root.iter("text") if shape.get("text-anchor") == "end" and "class" not in shape.attrib]
    sizes = [size for name in names if (size := parse_size(name)) is not None and not name.replace(",", "").isdigit()]
    assert len(lines) == len(sizes) > 1
    return _line(sizes[0], lines[0], sizes[-1], lines[-1])


def scale_of_places(root: ElementTree.Element) -> Callable[[float], float]:
    """Return where a place stands, by the two outermost names of places below."""
    named = [shape for shape in root.iter("text") if shape.get("text-anchor") == "middle" and "class" not in shape.attrib]
    places = [(float((shape.text or "").replace(",", "")), float(shape.get("x", ""))) for shape in named]
    assert len(places) > 1
    return _line(*places[0], *places[-1])


def _line(one: float, there: float, other: float, beyond: float) -> Callable[[float], float]:
    return lambda value: there + (beyond - there) * (value - one) / (other - one)
