"""The places of keys and values in a YAML or JSON text, as one kind of tree. Offsets count characters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

Kind = Literal["scalar", "mapping", "sequence", "alias"]


class Spot(Struct):
    """A value and where it stands."""

    kind: Kind
    start: int
    end: int
    line: int
    """1-based."""
    style: str = ""
    """Of a scalar: `'`, `"`, `|`, `>`, or nothing for a bare word. Of a collection: `{` where it has brackets."""
    value: str = ""
    entries: list[Entry] = []
    shared: bool = False
    """Whether it has an anchor, a tag or an alias, so that an edit could mean more than it shows."""

    @property
    def last(self) -> int:
        """Where the last thing inside of it ends; the end of a YAML block itself is where the next one begins."""
        if self.kind in ("mapping", "sequence") and self.style != "{" and self.entries:
            return self.entries[-1].value.last
        return self.end


class Entry(Struct):
    """A key and its value; the items of a sequence have their numbers as keys."""

    key: str
    start: int
    """Where the key begins."""
    end: int
    value: Spot


def find(root: Spot, path: str) -> list[Entry]:
    """The entries from the outermost block to the one at the dotted `path`; empty where it is not there.

    A key that stands twice is the last one: that is what all readers keep.
    """
    for entry in reversed(root.entries):
        if entry.key == path:
            return [entry]
        if path.startswith(f"{entry.key}."):
            below = find(entry.value, path[len(entry.key) + 1 :])
            if below:
                return [entry, *below]
    return []


def deepest(root: Spot, path: str) -> tuple[Spot, str]:
    """The innermost block on the way to `path` that is there, and the rest of the path."""
    for entry in reversed(root.entries):
        if path.startswith(f"{entry.key}."):
            return deepest(entry.value, path[len(entry.key) + 1 :])
    return root, path


def entries(root: Spot) -> Iterator[Entry]:
    """All entries, the outer ones first."""
    for entry in root.entries:
        yield entry
        yield from entries(entry.value)


class Open(Struct):
    """A collection that is being read."""

    spot: Spot
    key: Entry | None = None
    """The key whose value comes next."""


def hang(spot: Spot, stack: list[Open], roots: list[Spot]) -> None:
    """Puts a value where it belongs: under its key, as a key, as an item, as a root."""
    if not stack:
        roots.append(spot)
        return
    top = stack[-1]
    if top.spot.kind == "sequence":
        top.spot.entries.append(Entry(str(len(top.spot.entries)), spot.start, spot.start, spot))
    elif top.key is None:
        top.key = Entry(spot.value if spot.kind == "scalar" else "?", spot.start, spot.end, spot)
    else:
        top.key.value = spot
        top.spot.entries.append(top.key)
        top.key = None
