"""A filled-in form as the Markdown of an issue: headings, fences and boxes as the project's own form writes them."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.knowledge.records.form import FieldRecord, FormRecord
from oomdoctor.report.document import Block, Document, Facts, Folded, Quote
from oomdoctor.report.render.markdown import blocks as rendered
from oomdoctor.report.render.markdown import escaped, fenced

_EMPTY = "_No response_"
"""What GitHub writes into a field that was left empty."""


def render(document: Document, record: FormRecord) -> str:
    """Return the body of the issue. The title, where the form begins it, stands above it in a comment."""
    parts = [f"<!-- title: {record.title}... -->"] if record.title else []
    number = 0
    for block, field in zip(document.blocks, record.fields, strict=True):
        assert isinstance(block, Folded)  # noqa: S101 - `form` makes one for each field
        number += bool(field.heading)
        parts.append(_field(block, field, record.style, number))
    return "\n\n".join([*parts, f"<sub>{escaped(document.title)}</sub>"]) + "\n"


def _field(block: Folded, field: FieldRecord, style: str, number: int) -> str:
    inside = "\n\n".join(part for part in _inside(block.blocks, field) if part)
    if not field.heading:
        return inside
    if style == "questions":
        indented = "\n".join(f"   {line}" if line else "" for line in inside.split("\n")).lstrip()
        return f"{number}. {field.heading}\n\n   {indented}" if inside else f"{number}. {field.heading}"
    heading = f"**{field.heading}**" if style == "bold" else f"### {field.heading}"
    return f"{heading}\n\n{inside or _EMPTY}"


def _inside(blocks: tuple[Block, ...], field: FieldRecord) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Quote) and not block.where:
            yield fenced(block.text, field.fence) if field.fence else _lines(block.text)
        elif isinstance(block, Folded) and block.title == field.details:
            inside = "\n\n".join(_inside(block.blocks, field))
            # The title is the form's own and may hold markup.
            yield f"<details>\n<summary>{field.details}</summary>\n\n{inside}\n\n</details>"
        elif isinstance(block, Facts) and field.options:
            # Boxes are the form's own words, links included; the document says which are ticked.
            yield "\n".join(f"- [{row.label or ' '}] {option.label}" for row, option in zip(block.rows, field.options, strict=True))
        else:
            yield from rendered((block,))


def _lines(text: str) -> str:
    """Lines that are a list on the form. Their labels are the form's own words and may hold code."""
    pairs = (line.strip().removeprefix("- ").partition(": ") for line in text.split("\n") if line.strip())
    return "\n".join(f"- {label}{colon}{escaped(value)}" for label, colon, value in pairs)
