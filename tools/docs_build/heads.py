"""What a search engine and a browser read at the head of a page: its description, its address, and where its other language is."""

from __future__ import annotations

import html
import json
import posixpath
import re
from pathlib import PurePosixPath

from docs_build.messages import described, searched_messages

_LONGEST = 155
"""Letters of a description that search engines show."""
_MARKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[`*]|\\(?=\W)|<[^>]*>")
_ALTERNATE = re.compile(r'[ \t]*<link rel="alternate"[^>]*hreflang=[^>]*>\n?')
_TO_PAGE = re.compile(r'href="site:')


def front_matter(path: str, text: str, lang: str) -> str:
    """Return what the generator is told of a page: its description, and of the first one its title, which it leaves out by itself."""
    told: dict[str, object] = {"description": html.escape(description(path, text, lang))}  # the generator escapes nothing of it
    if path == "index.md":
        told["title"] = text.partition("\n")[0].lstrip("# ")
    if path != "index.md" and PurePosixPath(path).name == "index.md":
        told["search"] = {"exclude": True}  # a list leads to pages, and is no answer itself
    return "---\n" + "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in told.items()) + "---\n\n"


def description(path: str, text: str, lang: str) -> str:
    """Return a page in a sentence or two: that of its message, or its first lines of prose."""
    page = PurePosixPath(path)
    if page.parent.name == "messages":
        for message in searched_messages():
            if message.id == page.stem:
                return _cut(described(message, lang))
    return _cut(_prose(text, lang))


def _prose(text: str, lang: str) -> str:
    """Return the paragraphs of a page as one line, without headings, tables, code and marks; its title where there is no more."""
    plain = re.sub(r"^(```|~~~).*?^\1[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    parts = [part.strip() for part in re.split(r"\n\s*\n", plain)]
    title = parts[0].lstrip("# ")
    stop = "" if title[-1:] in "?!？！。." else "。" if lang == "zh" else "."
    prose = [part for part in parts if part and part[0] not in "#|<-!" and not re.fullmatch(r"`[^`]*`.*", part)]
    return " ".join(_MARKS.sub(r"\1", " ".join([title + stop, *prose] if prose else [title])).split())


def _cut(text: str) -> str:
    """Cut a text at the end of a word, or in Chinese anywhere."""
    if len(text) <= _LONGEST:
        return text
    short = text[:_LONGEST]
    return (short.rsplit(" ", 1)[0] if " " in short[_LONGEST // 2 :] else short).rstrip(",.;:，。；：") + "…"


def finished(page: str, path: str, lang: str, url: str | None, to_page: str) -> str:
    """Return a page of the generator with its other language in its head, and with links to the page of the browser.

    `path` is that of the page in its language, `url` the address of the documents, `to_page` where the page of the browser is, seen from
    the folder of the documents in English.
    """
    up = posixpath.relpath(".", posixpath.dirname(path) or ".")
    root = posixpath.join(up, "..") if lang == "zh" else up
    links = "".join(
        f'<link rel="alternate" hreflang="{name}" href="{html.escape(_address(path, name, root, url))}">\n'
        for name in ("en", "zh", "x-default")
    )
    page = _ALTERNATE.sub("", page).replace("</head>", links + "</head>", 1)
    return _TO_PAGE.sub(f'href="{html.escape(posixpath.normpath(posixpath.join(root, to_page)))}/', page)


def _address(path: str, name: str, root: str, url: str | None) -> str:
    folder = "zh/" if name == "zh" else ""
    return f"{url}{folder}{path}" if url else posixpath.normpath(posixpath.join(root, folder, path))
