"""The last answers of a server, whole: an agent is given one screen of each, and reads on where it wants more."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

from oomdoctor.errors import UsageError

AnswerForm = Literal["markdown", "json"]
Writer = Callable[[AnswerForm], str]
"""Writes the whole of an answer."""
_KEPT = 16


class KeptAnswers:
    """Answers by their ids, the oldest forgotten first. Tools run in threads, several at once."""

    def __init__(self) -> None:
        self._writers: OrderedDict[str, Writer] = OrderedDict()
        self._made = 0
        self._lock = threading.Lock()

    def keep(self, writer: Writer) -> str:
        """Keep an answer, and return its id."""
        with self._lock:
            self._made += 1
            self._writers[key := f"answer-{self._made}"] = writer
            if len(self._writers) > _KEPT:
                self._writers.popitem(last=False)
        return key

    def whole(self, key: str, form: AnswerForm) -> str:
        """Return the whole of an answer. Raise UsageError where none of that id is kept."""
        with self._lock:
            writer = self._writers.get(key)
        if writer is None:
            raise UsageError(f"{key}: no such answer is stored (only the last {_KEPT} are); ask again")
        return writer(form)
