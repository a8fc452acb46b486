"""The automaton of the page as the prefilter of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oomdoctor.ingest import prefilter
from oomdoctor.ingest.prefilter import Hit, Prefilter


class _PageEngine:
    """The automaton of the page as a prefilter; of its literals those that the mask names are looked for."""

    def __init__(self, scan: Callable[..., Any], automaton: Any, mask: Any) -> None:
        self._scan, self._automaton, self._mask = scan, automaton, mask

    def find(self, data: Any, start: int, end: int) -> list[Hit]:
        """Return the hits in `data[start:end]`, in the order of their ends."""
        flat = self._scan(self._automaton, memoryview(data)[start:end], start, self._mask).to_py().tolist()
        return list(zip(flat[::2], flat[1::2]))

    def twin(self) -> Prefilter:
        """Itself: there is one thread."""
        return self


def use_page_engine(build: Callable[[Any], Any], scan: Callable[..., Any]) -> None:
    """Search with the automaton of the page, built once of the longest list of literals that is asked for."""
    built: dict[int, bytes] = {}
    automaton: Any = None

    def make(literals: list[bytes], numbers: list[int]) -> Prefilter:
        nonlocal built, automaton
        wanted = dict(zip(numbers, literals))
        if wanted.items() - built.items():
            built, automaton = wanted, build([wanted.get(number, b"") for number in range(max(numbers) + 1)])
        mask = bytes(number in wanted for number in range(max(built) + 1))
        return _PageEngine(scan, automaton, None if all(mask) else mask)

    prefilter.use(make)
