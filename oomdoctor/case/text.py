"""One text in both languages."""

from __future__ import annotations

from msgspec import Struct


class Text(Struct, frozen=True):
    """One text in both languages."""

    en: str
    zh: str

    def get(self, lang: str) -> str:
        """Return the text in `lang`; English if it is missing."""
        return (self.zh if lang == "zh" else self.en) or self.en
