"""What somebody asked, as it was understood, in one line: the model, what is trained, the batch, the length, the cards."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.pictures import PictureRun
from oomdoctor.case.setup import Adapters, Setup
from oomdoctor.case.text import Text
from oomdoctor.report.wording.wording import Wording

_WHOLE = Text("full-parameter training ({})", "训练全部权重（{}）")
_BLOCKS = Text("{} layers trained", "训练 {} 层")
_FIGURES = Text("batch {}, {:,} tokens, {}", "批大小 {}，{:,} 个 token，{}")
_ANSWERS = Text("{:,} tokens, {}", "{:,} 个 token，{}")
_ENGINES = {"deepspeed": "ZeRO-{}", "fsdp1": "FSDP", "fsdp2": "FSDP 2", "ddp": "DDP", "dp": "DataParallel", "device_map": "device_map"}
_DIVIDED = (("tensor", "TP"), ("pipeline", "PP"), ("context", "CP"), ("expert", "EP"))


def understood(setup: Setup, wording: Wording) -> str:
    """Return the line."""
    return wording.comma.join((setup.shape.name, *_parts(setup, wording)))


def _parts(setup: Setup, wording: Wording) -> Iterator[str]:
    cards = _cards(setup, wording)
    if setup.pictures is not None:
        yield from _pictures(setup, setup.pictures, wording)
        return
    if setup.task != "train":
        yield setup.weights.name
        yield wording.say(_ANSWERS).format(setup.length, cards)
        return
    yield _trained(setup, setup.adapters, wording)
    yield wording.say(_FIGURES).format(setup.batch, setup.length, cards)
    if setup.stack.title:
        yield f"{setup.stack.title} {setup.stack.version}".strip()


def _pictures(setup: Setup, run: PictureRun, wording: Wording) -> Iterator[str]:
    """Yield what is done with pictures: how they are made, or what is trained, and their size."""
    yield _trained(setup, setup.adapters, wording) if setup.task == "train" else setup.weights.name
    frames = wording.say(Text(", {} frames", "，{} 帧")).format(run.frames) if run.frames > 1 else ""
    size = f"{run.width} x {run.height}{frames}"
    yield wording.say(Text("batch {}, {}, {}", "批大小 {}，{}，{}")).format(setup.batch, size, _cards(setup, wording))


def _trained(setup: Setup, adapters: Adapters | None, wording: Wording) -> str:
    if adapters is None:
        return wording.say(_WHOLE).format(setup.weights.name)
    if adapters.blocks:
        return wording.say(_BLOCKS).format(adapters.blocks)
    packed = setup.weights.packed
    name = f"QLoRA ({setup.weights.name})" if packed else "LoRA"
    return wording.say(Text("{} of rank {}", "{}（秩 {}）")).format(name, adapters.rank)


def _cards(setup: Setup, wording: Wording) -> str:
    layout = setup.layout
    if layout.cards == 1:
        return wording.say(Text("1 card", "1 张卡"))
    engine = _ENGINES.get(layout.engine, "").format(layout.stage) if setup.task == "train" else ""
    ways = [engine, *(f"{word} {size}" for name, word in _DIVIDED if (size := getattr(layout, name)) > 1)]
    spread = " + ".join(filter(None, ways))
    return wording.say(Text("{} cards ({})", "{} 张卡（{}）")).format(layout.cards, spread)
