"""Python tracebacks: what the program was doing when it failed.

Works on raw bytes around a message: frames are needed for failures only, and finding them must cost next to nothing.
Patterns are kept as strings, which `re` compiles when first used: many messages are pasted without a traceback.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.ingest.envelopes import open_envelopes

_HEAD = b"Traceback (most recent call last)"
_FRAMES = (
    ((b'File "',), rb'File "(?P<file>[^"\n]{1,300})", line (?P<line>\d{1,7}), in (?P<name>[^\n\r]{1,120})'),
    (
        (b"\xe2\x94\x82 /", b"| /"),
        rb"(?:\xe2\x94\x82|\|) (?P<file>/[^\s:]{1,300}\.py):(?P<line>\d{1,7}) in +(?:\xe2\x94\x82|\|)?(?P<name>[^\n\r]{0,120})",
    ),
    ((b"File ~", b"File /"), rb"File [~/](?P<file>[^\s:\n]{1,300}\.py):(?P<line>\d{1,7}), in (?P<name>[^\n\r]{1,120})"),
)
"""How Python, rich and IPython write a frame, and what each contains; one pattern for all would be thirty times slower."""
_FRAME_SIGN = re.compile(rb'File ["~/]|\.py:\d')
_REACH = 12 << 10
_NEAR = 900
"""A message ends a traceback if the last frame is at most this many bytes before it (a long source line, markers)."""
_APART = 300
"""Frames below a message belong together if no more than a source line or two separates them."""

_PHASES = (
    ("model-load", rb"torch[/\\]serialization\.py[^\n]{1,24}\bin (?:_?(?:legacy_)?load|persistent_load|load_tensor|\w{0,30}restore_location|\w{0,20}deserialize)\b"),
    ("checkpoint-save", (
        rb"save_checkpoint|save_model|save_pretrained|_save_(?!evaluate)|(?<!load_)state_dict\b|torch[/\\]serialization|save_file|_write_file"
    )),
    ("evaluation", rb"\bin evaluat|evaluation_loop|eval_step|validation_step|\bin (?:log_)?validat|prediction_step|prediction_loop|run_eval|\bin test\b"),
    ("generation", rb"generation/utils|\bin generate|generate_sequences|_sample\b|/sampler|denois|vae_decode|decode_latents"),
    ("optimizer-step", rb"torch/optim/|optimizers?/\w{1,40}\.py|initialize_optimizer_states|optimizer_step|\bin _?init_states|_foreach_"),
    ("backward", rb"\bin backward|autograd/__init__|run_backward|\.backward\("),
    ("forward", rb"\bin pre_forward"),  # offloading hooks place tensors with the function that loads a model
    ("model-load", (
        rb"from_pretrained|load_state_dict|load_model|load_checkpoint|load_weights|_load_pretrained|create_model|init_device|device_put|"
        rb"set_module_tensor_to_device|dispatch_model|_load_state_dict_into_meta_model|\bin create_weights"
    )),
    ("forward", rb"\bin forward|_call_impl|_forward_micro_batch|compute_log_prob|compute_loss|training_step|nn/functional"),
)  # fmt: skip
_DATA = rb"utils/data/|dataloader|collate|pin_memory"
"""Data loading: only in files and functions of the last frames, since its names are in the source lines of every training loop."""
_LAST_FRAMES = 4
_LOADING = (
    rb"Loading checkpoint shards|Loading (?:safetensors|pt) checkpoint|Loading [\w./-]{2,80}\.\.\.|load_tensors:|Loading weights|shards:"
    rb"|Initiali[sz]ing (?:[\w-]{1,30} ){0,3}(?:model|encoder|decoder|backbone|tower|LLM) from "
)
_LOADED = rb"100%|\bloss\b|(?<![\w./-])[Tt]raining(?![\w./-])|(?<![\w./-])[Ee]poch|\bstep\b"
_BAR = rb"[^\n\r|]{0,80}?(?P<percent>\d{1,3})%\|"
_VALIDATES = rb"(?i)\b(?:valid(?:ation|ating|ate)?|val|evaluat(?:ion|ing|e)|eval)\b"
"""The name of a progress bar that runs over validation data (tqdm, Lightning)."""


class TracebackContext(Struct, frozen=True):
    """What a traceback shows."""

    phase: str | None
    frame: str | None
    text: bytes = b""
    """Its frames and source lines."""


def find_traceback(before: bytes, after: bytes, rank: int | None) -> TracebackContext:
    """Return the traceback that ends in a message (`before` it) or, if the program prints it later, starts after it."""
    near, behind = _written(before[-_REACH:]), _written(after[:_REACH])
    context = _trace(near, rank, needs_head=False)
    if context.frame is None and _HEAD in behind[:600]:
        context = _trace(behind, rank, needs_head=True)
    if context.frame is None:
        context = _pasted_below(_of_rank(behind, rank))
    if context.phase is None and _is_loading(before[-2000:]):
        context = replace(context, phase="model-load")
    if context.phase in (None, "forward") and _is_validating(before):
        context = replace(context, phase="evaluation")
    return context


def whole_traceback(before: bytes) -> bytes:
    """Return the traceback that ends where a message begins, from its head on; empty if there is none."""
    near = _written(before[-_REACH:])
    at = near.rfind(_HEAD)
    if at < 0 or not _FRAME_SIGN.search(near, at):
        return b""
    start = max(near.rfind(b"\n", 0, at), near.rfind(b"\r", 0, at)) + 1
    # A rank before it belongs to it; a progress bar without a line end does not.
    return near[at if b"%|" in near[start:at] else start :]


def _written(data: bytes) -> bytes:
    """Return part of a log as the program wrote it: extracted from JSON objects, and without HTML entities."""
    if b'\\"' in data:
        lines = data.decode("utf-8", "replace").split("\n")
        opened = open_envelopes(lines)
        text = "\n".join(lines).replace('\\"', '"').replace("\\n", "\n") if opened is None else "\n".join(line.text for line in opened)
        data = text.encode("utf-8", "replace")
    return data.replace(b"&quot;", b'"').replace(b"&lt;", b"<").replace(b"&gt;", b">") if b"&quot;" in data else data


def _is_validating(before: bytes) -> bool:
    """Return whether the last progress bar is a validation bar that is not complete."""
    at = before.rfind(b"%|")
    bar = re.compile(_BAR).search(before, max(before.rfind(b"\n", 0, at), before.rfind(b"\r", 0, at), at - 80, 0)) if at >= 0 else None
    return bar is not None and int(bar["percent"]) < 100 and re.search(_VALIDATES, bar[0]) is not None


def _is_loading(before: bytes) -> bool:
    """Return whether the last thing a program said is that it is loading a model, not that it has finished."""
    if not any(sign in before for sign in (b"oading", b"shards", b"load_", b"nitiali")):
        return False
    loads = [load.start() for load in re.finditer(_LOADING, before)]
    return bool(loads) and not re.search(_LOADED, before[loads[-1] :])


def _trace(data: bytes, rank: int | None, *, needs_head: bool) -> TracebackContext:
    data = _of_rank(data, rank)
    if not needs_head and not _FRAME_SIGN.search(data, max(0, len(data) - _NEAR - 600)):
        return TracebackContext(None, None)
    head = data.rfind(_HEAD) if not needs_head else data.find(_HEAD)
    frames = _frames(data, max(0, head))
    if not frames or (not needs_head and len(data) - frames[-1].end() > _NEAR):
        return TracebackContext(None, None)
    return _context_of(data, frames)


def _of_rank(data: bytes, rank: int | None) -> bytes:
    """Return the lines of one rank, if lines carry a rank mark."""
    tag = b"" if rank is None else b"[rank%d]" % rank
    return b"\n".join(line for line in data.split(b"\n") if tag in line) if tag and tag in data else data


def _pasted_below(after: bytes) -> TracebackContext:
    """Return the frames that someone placed below the message instead of above it: without a head, in close succession."""
    head = after.find(_HEAD)
    data = after if head < 0 else after[:head]
    if not _FRAME_SIGN.search(data, 0, _NEAR):
        return TracebackContext(None, None)
    frames: list[re.Match[bytes]] = []
    end = _NEAR
    for frame in _frames(data, 0):
        if frame.start() > end:
            break
        frames.append(frame)
        end = frame.end() + _APART
    return _context_of(data, frames) if frames else TracebackContext(None, None)


def _context_of(data: bytes, frames: list[re.Match[bytes]]) -> TracebackContext:
    """Return what the frames show, the last one being where it failed."""
    text = data[frames[0].start() : frames[-1].end() + 300]
    loads_data = any(re.search(_DATA, frame[0]) for frame in frames[-_LAST_FRAMES:])
    return TracebackContext("data-loading" if loads_data else phase_of(text), _describe(frames[-1]), text)


def phase_of(frames: bytes) -> str | None:
    """Return what a program was doing, from the files and functions of its frames (`File "...", line N, in NAME`); None if unclear."""
    return next((name for name, form in _PHASES if re.search(form, frames)), None)


def _frames(data: bytes, start: int) -> list[re.Match[bytes]]:
    """Return all frames from `start` on, in order."""
    forms = [re.compile(form) for signs, form in _FRAMES if any(sign in data for sign in signs)]
    return sorted((frame for form in forms for frame in form.finditer(data, start)), key=lambda frame: frame.start())


def _describe(frame: re.Match[bytes]) -> str:
    """Return `file:line in function` for a frame, the file shortened to what follows site-packages."""
    name = frame["name"].decode("utf-8", "replace").strip(" │|")
    path = frame["file"].decode("utf-8", "replace").rsplit("site-packages/", 1)[-1].rsplit("dist-packages/", 1)[-1]
    return f"{path}:{frame['line'].decode()}" + (f" in {name}" if name else "")
