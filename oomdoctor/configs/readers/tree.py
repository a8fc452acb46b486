"""The values of a YAML or JSON text as a tree, each with its place. Offsets count characters, lines are 1-based."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from oomdoctor.configs.parsed_config import DEEPEST, MOST_KEYS

Kind = Literal["scalar", "mapping", "sequence", "alias"]


class Node(Struct):
    """A value and where it stands."""

    kind: Kind
    start: int
    end: int
    line: int
    style: str = ""
    """Of a scalar: `'`, `"`, `|`, `>`, or nothing for a bare word. Of a collection: `{` where it has brackets."""
    value: str = ""
    """Of a scalar: its text without quotes. Of an alias: the anchor that it stands for."""
    entries: list[Entry] = field(default_factory=list)
    anchor: str | None = None
    shared: bool = False
    """Whether it has an anchor, a tag or an alias, so that an edit could mean more than it shows."""
    closed: bool = True
    """Whether the end of a collection was read."""

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
    line: int
    value: Node


def find_path(root: Node, path: str) -> list[Entry]:
    """Return the entries from the outermost block to the one at the dotted `path`; empty where it is not there.

    A key that stands twice is the last one: that is what all readers keep.
    """
    for entry in reversed(root.entries):
        if entry.key == path:
            return [entry]
        if path.startswith(f"{entry.key}."):
            below = find_path(entry.value, path[len(entry.key) + 1 :])
            if below:
                return [entry, *below]
    return []


def find_deepest(root: Node, path: str) -> tuple[Node, str]:
    """Return the innermost block on the way to `path` that is there, and the rest of the path."""
    for entry in reversed(root.entries):
        if path.startswith(f"{entry.key}."):
            return find_deepest(entry.value, path[len(entry.key) + 1 :])
    return root, path


def all_entries(root: Node) -> Iterator[Entry]:
    """Yield all entries, the outer ones first."""
    for entry in root.entries:
        yield entry
        yield from all_entries(entry.value)


class BeyondLimits(Exception):
    """Raised where a text is larger or more deeply nested than a config can be."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class OpenNode(Struct):
    """A collection that is being read."""

    node: Node
    key: Node | None = None
    """The key whose value comes next."""
    seen: set[str] = field(default_factory=set)
    """The keys so far."""
    comma: int | None = None
    """The line of a comma after which nothing came yet."""


class TreeBuilder:
    """Puts the values of a text together, in the order in which they are read."""

    def __init__(self) -> None:
        self.roots: list[Node] = []
        self.stack: list[OpenNode] = []
        self.twice: list[Node] = []
        """The keys that stand twice in one block."""
        self.count = 0
        """The values and keys so far."""

    @property
    def top(self) -> OpenNode | None:
        """The innermost collection that is open."""
        return self.stack[-1] if self.stack else None

    @property
    def wants_key(self) -> bool:
        """Whether a key comes next."""
        return self.top is not None and self.top.node.kind == "mapping" and self.top.key is None

    def add(self, node: Node) -> None:
        """Put a value where it belongs: under its key, as a key, as an item, as a root."""
        self.count += 1
        top = self.top
        if top is None:
            self.roots.append(node)
        elif self.wants_key:
            self._add_key(top, node)
        else:
            self._add_value(top, node)
        if node.kind in ("mapping", "sequence"):
            if len(self.stack) >= DEEPEST:
                raise BeyondLimits(node.line)
            node.closed = False
            self.stack.append(OpenNode(node))

    def close(self, end: int) -> Node:
        """End the innermost collection."""
        node = self.stack.pop().node
        node.end, node.closed = end, True
        return node

    def _add_key(self, top: OpenNode, node: Node) -> None:
        if node.kind == "scalar":
            if node.value in top.seen:
                self.twice.append(node)
            top.seen.add(node.value)
        top.key, top.comma = node, None

    def _add_value(self, top: OpenNode, node: Node) -> None:
        entries, key = top.node.entries, top.key
        if key is None:
            entries.append(Entry(str(len(entries)), node.start, node.start, node.line, node))
        else:
            entries.append(Entry(key.value if key.kind == "scalar" else "?", key.start, key.end, key.line, node))
        if len(entries) > MOST_KEYS:
            raise BeyondLimits(node.line)
        top.key, top.comma = None, None
