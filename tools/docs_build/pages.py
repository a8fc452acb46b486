"""The pages of the site in one language: path below the site -> Markdown."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
from man import commands, paragraphs

from docs_build.lists import LISTS, list_pages
from docs_build.messages import MESSAGES, message_pages
from oomdoctor.report.wire.schemas import REPORTS, schema_text
from oomdoctor.report.wording.wording import Wording

ROOT = Path(__file__).parents[2]
TUTORIALS = ("first-diagnosis", "make-it-fit", "preflight-in-ci", "fleet-in-an-afternoon")
GUIDES = (
    "commands", "snapshots", "series", "redaction", "evidence-folder", "triage", "triage-at-scale", "integrations", "agents", "library",
    "pytest", "callbacks", "forms",
)  # fmt: skip
HOW_WE_KNOW = ("accuracy", "benchmark", "performance", "evidence-causes", "defaults", "architecture")
Pages = dict[str, str]
Section = tuple[str, list[tuple[str, str]]]
"""A title, and the pages under it, each with its title."""
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+(?:\([^()\s]*\))?)\)")
IS_ENTRY = re.compile(r"(?:catalogue/\w+|messages|bugs|models)/(?!index\.md)")
"""A page that the list of its kind leads to; the navigation would be too long with all of them."""
_HEADING = {"problems": "### ", "fixes": "## ", "signatures": "## ", "sources": "## "}
"""What begins a page of its own in the catalogue."""


class Words(NamedTuple):
    """The site's own words."""

    name: str
    tutorials: str
    guides: str
    commands: str
    data: str
    catalogue: str
    how: str
    other: str
    of_messages: str


WORDS = {
    "en": Words("oomdoctor", "Tutorials", "How-to", "Commands", "JSON", "Catalogue", "How we know", "中文", "recognized messages"),
    "zh": Words("oomdoctor", "教程", "指南（英文）", "命令（英文）", "JSON（英文）", "目录", "依据（英文）", "English", "能识别的报错"),
}


def pages(lang: str) -> tuple[Pages, list[Section]]:
    """Return the pages and how they are arranged. Pages that are written in English alone stand in both."""
    words, made = WORDS[lang], {"index.md": _written(f"docs/index.{lang}.md")}
    sections: list[Section] = []
    wording = Wording(lang)
    for title, names, folder in (
        (wording.say(MESSAGES), [], "messages"),
        (words.tutorials, [(f"tutorials/{name}.md", f"docs/tutorials/{name}.{lang}.md") for name in TUTORIALS], ""),
        (words.guides, [(f"guides/{name}.md", f"docs/{name}.md") for name in GUIDES], ""),
        (words.commands, [], "commands"),
        (words.catalogue, [], "catalogue"),
        (wording.say(LISTS), [], "lists"),
        (words.data, [], "json"),
        (words.how, [(f"how-we-know/{name}.md", f"docs/{name}.md") for name in HOW_WE_KNOW], ""),
    ):
        files = dict(_made(folder, lang)) if folder else {to: _written(path) for to, path in names}
        made |= files
        listed = [path for path in files if not IS_ENTRY.match(path)]
        sections.append((title, [(path, title_of(files[path])) for path in listed]))
    return {path: _linked(path, text, made, lang) for path, text in made.items()}, sections


def title_of(text: str) -> str:
    """Return the first heading of a page, without its marks."""
    heading = re.search(r"^#+ (.+)$", text, re.MULTILINE)
    return re.sub(r"[`*]|\\(?=\W)", "", heading[1]) if heading else ""


def _written(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _made(folder: str, lang: str) -> Iterator[tuple[str, str]]:
    if folder == "commands":
        yield from command_pages()
    elif folder == "messages":
        yield from message_pages(lang)
    elif folder == "lists":
        yield from list_pages(lang)
    elif folder == "json":
        yield from schema_pages()
    else:
        yield from catalogue_pages(lang)


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each command, made of its own help."""
    for name, context in commands():
        usage = f"{name} {' '.join(context.command.collect_usage_pieces(context))}"
        parts = [f"# {name}", f"```text\n{usage}\n```", *_help(context.command.help or "")]
        records = [option.get_help_record(context) for option in context.command.params if isinstance(option, click.Option)]
        rows = [f"| `{_cell(record[0])}` | {_cell(record[1])} |" for record in records if record]
        if rows:
            parts.append("\n".join(["| option | description |", "| --- | --- |", *rows]))
        yield f"commands/{name.replace(' ', '-')}.md", "\n\n".join(parts) + "\n"


def _help(text: str) -> Iterator[str]:
    for part in paragraphs(text):
        lines = [line.strip() for line in part]
        if lines[0] != "\b":
            yield re.sub(r"([<>*_])", r"\\\1", " ".join(lines))
        elif lines[1].endswith(":"):
            yield lines[1]
            yield "```sh\n" + "\n".join(lines[2:]) + "\n```"
        else:
            yield "```text\n" + "\n".join(lines[1:]) + "\n```"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def schema_pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each published schema: its structures, their fields and what these mean."""
    for name in REPORTS:
        schema = json.loads(schema_text(name))
        structures = {"": schema, **{part: shape for part, shape in schema.get("$defs", {}).items() if "properties" in shape}}
        parts = [f"# {schema['$id']}", f"The schema is `oomdoctor/report/schema/{name}.json` in the package."]
        for part, shape in structures.items():
            parts += [f"## {part}"] if part else []
            parts += [shape["description"]] if "description" in shape else []
            rows = [
                f"| `{field}` | {_type(value, schema)} | {_cell(value.get('description', ''))} |"
                for field, value in shape["properties"].items()
            ]
            parts.append("\n".join(["| field | type | meaning |", "| --- | --- | --- |", *rows]))
        yield f"json/{name}.md", "\n\n".join(part.replace("\n\n\n", "\n\n") for part in parts) + "\n"


def _type(value: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in value:
        part = value["$ref"].rsplit("/", 1)[1]
        shape = schema["$defs"][part]
        return f"[{part}](#{part.lower()})" if "properties" in shape else _type(shape, schema)
    if "enum" in value:
        return " or ".join(f"`{word}`" for word in value["enum"])
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(_type(each, schema) for each in value["anyOf"]))
    if value.get("type") == "array":
        return f"list of {_type(value['items'], schema)}" if isinstance(value.get("items"), dict) else "list"
    kind = value.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def catalogue_pages(lang: str) -> Iterator[tuple[str, str]]:
    """Yield the handbook, a page for each problem, fix and source and for the messages of each program, and a list of each kind."""
    for part, mark in _HEADING.items():
        text = _written(f"docs/catalogue/{part}.{lang}.md")
        head, *entries = re.split(rf"^(?={mark})", text, flags=re.MULTILINE)
        lists = [re.sub(r"^Made from .*$|^由 .*$", "", head, flags=re.MULTILINE).rstrip()]
        for entry in entries:
            body, *above = re.split(r"^(?=## )", entry, flags=re.MULTILINE) if mark != "## " else (entry,)
            name = body.split("\n", 1)[0].removeprefix(mark).strip()
            title, text = _titled(part, name, body.removeprefix(mark), lang)
            yield f"catalogue/{part}/{_file(name)}.md", text
            lists.append(f"- [{title}]({_file(name)}.md)")
            lists += [f"\n{area.strip()}\n" for area in above]
        yield f"catalogue/{part}/index.md", "\n".join(lists) + "\n"


def _titled(part: str, name: str, body: str, lang: str) -> tuple[str, str]:
    """Return the title of an entry and its page: what it says in a line heads it, and its id stands below."""
    rest = body.partition("\n")[2].strip()
    if part == "signatures":
        title = f"{name}{'：' if lang == 'zh' else ': '}{WORDS[lang].of_messages}"
        return title, f"# {title}\n\n{rest}\n"
    first, _, rest = rest.partition("\n")
    bold = re.fullmatch(r"\*\*(.+?)\*\*\s*", first)
    title = bold[1] if bold else re.sub(r" <\S+>$", "", first)
    link = "" if bold or title == first else f" · {first.removeprefix(title).strip()}"
    return title, f"# {title}\n\n`{name}`{link}\n\n{rest.strip()}\n"


def _file(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name.lower()).strip("-")


def _linked(path: str, text: str, made: Pages, lang: str) -> str:
    """Return a page with its links as they are in the site; what lies outside of the site is named and no link."""
    pieces = re.split(r"(^```.*?^```|`[^`\n]+`)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(piece if at % 2 else _LINK.sub(lambda match: _link(match, path, made, lang), piece) for at, piece in enumerate(pieces))


def _link(match: re.Match[str], path: str, made: Pages, lang: str) -> str:
    picture, text, target = match.groups()
    place, _, anchor = target.partition("#")
    if picture or not place or re.match(r"[a-z]+:", target):  # an address, or `site:`, the page of the browser
        return match[0]
    if place == f"../{'zh' if lang == 'en' else 'en'}/":
        return match[0]
    to = _target(place, anchor, path, made, lang)
    if to is None:
        return f"{text} (`{target.lstrip('./')}`)" if text.strip("`") != target else f"`{target}`"
    kept = f"#{anchor}" if anchor and not to.startswith("catalogue/") else ""
    return f"[{text}]({posixpath.relpath(to, posixpath.dirname(path) or '.')}{kept})"


def _target(place: str, anchor: str, path: str, made: Pages, lang: str) -> str | None:
    """Return the page that a link means: by its path in the site, by the name of its document, or a piece of the catalogue."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), place))
    if beside in made:
        return beside
    name = posixpath.basename(place)
    if part := re.fullmatch(rf"(problems|fixes|signatures|sources)\.({'|'.join(WORDS)})\.md", name):
        page = f"catalogue/{part[1]}/{_file(anchor)}.md"
        return page if page in made else f"catalogue/{part[1]}/index.md"
    if place.rstrip("/").endswith("catalogue"):
        return "catalogue/problems/index.md"
    bare = name.replace(f".{lang}.md", ".md")
    return next((page for page in made if posixpath.basename(page) == bare and not page.startswith("catalogue/")), None)
