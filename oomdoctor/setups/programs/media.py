"""The largest images and videos that requests to a server may contain (`rules/tables/served_items.csv`)."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.serving import MediaItem, StartupProfile
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.shape import Shape, Vision
from oomdoctor.knowledge.tables.csv_table import Row, table
from oomdoctor.versions import in_span

_ONE, _MANY = 1, 999
"""Default items of a kind per request: get_limit_per_prompt of vllm/config/multimodal.py, and before 0.9 one."""
_VALUES = 588
"""Three colors of a square of 14 pixels on a side."""


def media_items(
    settings: RunSettings, shape: Shape, *, length: int | None, batched: int, profile: StartupProfile, version: str | None
) -> tuple[MediaItem, ...]:
    """Return what server startup tries of each kind; empty for a text-only model, or if disabled."""
    vision = shape.vision
    if vision is None or settings.text_only or settings.skips_pictures:
        return ()
    longest = length or batched
    limits = {"image": settings.images_per_prompt, "video": settings.videos_per_prompt}
    usual = _ONE if profile.whole_prompts else _MANY
    rows = ((row, limits[row["item"]]) for row in _rows(vision, version))
    items = ((_scaled(row, positive(settings.picture_pixels)), usual if limit is None else limit) for row, limit in rows)
    return tuple(_item(row, limit, longest, batched, profile) for row, limit in items if limit > 0)


def _rows(vision: Vision, version: str | None) -> Iterator[Row]:
    """Yield the rows of a model's kind that apply to a release; otherwise what its tower implies for one image."""
    known = [row for row in table("served_items") if row["family"] == vision.family]
    for row in known:
        if in_span(version, row["since"] or None, row["until"] or None) if version else not row["until"]:
            yield row
    if not known and vision.patches and vision.tokens:
        sizes = {"patches": str(vision.patches), "tokens": str(vision.tokens), "values": str(_VALUES)}
        yield {"item": "image", "pixels": "", "widths": "1", "rotary": "no", "pairs": "0", **sizes}


def _scaled(row: Row, most: int | None) -> Row:
    """Return the row for images with at most this many pixels: max_pixels of vllm/model_executor/models/qwen2_vl.py."""
    if most is None or not row["pixels"]:
        return row
    tokens = max(1, most // int(row["pixels"]))
    return {**row, "tokens": str(tokens), "patches": str(int(row["patches"]) * tokens // int(row["tokens"]))}


def _item(row: Row, limit: int, longest: int, batched: int, profile: StartupProfile) -> MediaItem:
    """Return one kind. A video counts as many pairs of frames as its longest request holds, up to a maximum."""
    patches, tokens, pairs = int(row["patches"]), int(row["tokens"]), int(row["pairs"])
    counted = max(1, min(pairs, longest // tokens)) if pairs else 1
    tried = max(1, min(pairs, batched // tokens)) if pairs and profile.items_of_step else counted
    return MediaItem(
        patches=patches * tried,
        tokens=tokens * counted,
        limit=limit,
        values=int(row["values"]),
        widths=int(row["widths"]),
        rotary=row["rotary"] == "yes",
    )
