"""Runs of loops as people write them: what is kept, what is freed, and which frames show it. Sizes in MiB."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from snapshots.made_snapshots import MIB, Program

_LIB = "/opt/env/lib/python3.12/site-packages"
_CALL = f"{_LIB}/torch/nn/modules/module.py:1775:_call_impl"
_LINEAR = f"{_LIB}/torch/nn/modules/linear.py:125:forward"
_LOSS = f"{_LIB}/torch/nn/functional.py:3494:cross_entropy"
_STATES = (f"{_LIB}/torch/optim/adamw.py:152:_init_group", f"{_LIB}/torch/optim/adamw.py:156:_init_group")
_STEP = (f"{_LIB}/torch/optim/adamw.py:600:_multi_tensor_adamw", f"{_LIB}/torch/optim/optimizer.py:493:wrapper")
_TRAINER = (f"{_LIB}/transformers/trainer.py:2238:train", "/srv/app/run.py:99:main")
_SAMPLE = (f"{_LIB}/transformers/generation/utils.py:2200:generate", "/srv/app/run.py:20:main")
_NET = "/srv/app/net.py:31:forward"
Extra = Callable[["Card", int], None]


class Card(Program):
    """A card whose allocator gives freed blocks out again, and unused segments back before a request fails."""

    def __init__(self) -> None:
        super().__init__()
        self._free: dict[int, list[int]] = {}

    def take(self, size: int, *places: str) -> tuple[int, int]:
        """Ask for bytes, where it can be in a segment of this size that is free."""
        free = self._free.get(size)
        return self.ask(size * MIB, *places, at=free.pop() if free else None), size

    def drop(self, block: tuple[int, int]) -> None:
        """Free a block."""
        self.free(block[0])
        self._free.setdefault(block[1], []).append(block[0])

    def refuse(self, size: int, *places: str) -> None:
        """Give back what is free, and fail."""
        for address in (address for free in self._free.values() for address in free):
            self.give_back(address)
        self._free.clear()
        self.fail(size * MIB, *places)


class Lines:
    """The frames below which a loop does its parts, innermost first."""

    def __init__(self, forward: Sequence[str], loss: Sequence[str], step: Sequence[str], hook: Sequence[str]) -> None:
        self.forward, self.loss, self.step, self.hook = forward, loss, step, hook


def _main(line: int) -> tuple[str, ...]:
    return (f"/srv/app/run.py:{line}:main",)


def _trainer(line: int, *inside: str) -> tuple[str, ...]:
    return (*inside, f"{_LIB}/transformers/trainer.py:{line}:_inner_training_loop", *_TRAINER)


def _one_function(line: int) -> tuple[str, ...]:
    return (f"/srv/app/run.py:{line}:train_one", "/srv/app/run.py:41:main")


OWN_LOOP = Lines(_main(41), _main(42), _main(45), _main(48))
LIBRARY_LOOP = Lines(_trainer(2553), _trainer(2553, f"{_LIB}/transformers/trainer.py:3760:compute_loss"), _trainer(2611), _trainer(2620))
ONE_FUNCTION = Lines(_one_function(5), _one_function(6), _one_function(9), _one_function(11))
COMPILED = Lines(
    ("/tmp/torchinductor_ann/ab/cab.py:401:call", *_main(41)),
    ("/tmp/torchinductor_ann/ab/cab.py:455:call", *_main(41)),
    _main(45),
    _main(48),
)


def keeps(size: int, every: int = 1) -> Extra:
    """Return what adds bytes in each step, or in each second one, for good."""

    def extra(card: Card, step: int) -> None:
        if step % every == 0:
            card.take(size, "/srv/app/hist.py:7:keep", *_main(48))

    return extra


def fills_up(card: Card, step: int) -> None:
    """Fill buffers that are there for the rest of the run."""
    if step < 6:
        card.take(20, "/srv/app/buffers.py:3:get", *_main(44))


def keeps_the_last_five(card: Card, step: int) -> None:  # noqa: ARG001 - the shape of Extra
    """Keep what five steps brought, and free what is older."""
    ring = card.__dict__.setdefault("ring", [])
    if len(ring) == 5:
        card.drop(ring.pop(0))
    ring.append(card.take(20, "/srv/app/buffers.py:9:push", *_main(44)))


def evaluates(card: Card, step: int) -> None:
    """Evaluate after each third step."""
    for _ in range(5 if step % 3 == 2 else 0):
        for block in [
            card.take(50, _LINEAR, _NET, _CALL, "/srv/app/run.py:61:evaluate", *_main(47)),
            card.take(10, "/srv/app/run.py:62:evaluate", *_main(47)),
        ]:
            card.drop(block)


def trained(
    steps: int = 10, *, lines: Lines = OWN_LOOP, batches: int = 1, is_annotated: bool = False, extra: Extra | None = None, longer: int = 0
) -> Card:
    """Return a run of training that fails in the end; `longer` is what each step needs more than the one before."""
    card = Card()
    for _ in range(6):
        card.take(60, f"{_LIB}/torch/nn/modules/module.py:1355:convert", *_main(12))
    for step in range(steps):
        for _ in range(batches):
            held = [card.take(20 + step * longer, _LINEAR, _NET, _CALL, *lines.forward) for _ in range(4)]
            for block in [*held, card.take(30, _LOSS, *lines.loss), card.take(21)]:
                card.drop(block)
        if is_annotated:
            with card.optimizer_step():
                _optimize(card, lines, step)
        else:
            _optimize(card, lines, step)
        if extra is not None:
            extra(card, step)
    card.refuse(400, _LINEAR, _NET, _CALL, *lines.forward)
    return card


def _optimize(card: Card, lines: Lines, step: int) -> None:
    for place in _STATES * 4 if step == 0 else ():
        card.take(5, place, _STEP[1], *lines.step)
    card.drop(card.take(5, *_STEP, *lines.step))


def generated(requests: int, tokens: int) -> Card:
    """Return a run of inference whose cache grows with each token and is freed with each request but the last."""
    card = Card()
    card.take(600, f"{_LIB}/torch/nn/modules/module.py:1355:convert", *_main(12))
    for request in range(requests):
        kept = []
        for _ in range(tokens):
            forward = (_CALL, f"{_LIB}/transformers/generation/utils.py:2800:_sample", *_SAMPLE)
            for block in [
                card.take(6, _LINEAR, _NET, *forward),
                card.take(1, f"{_LIB}/transformers/generation/utils.py:2860:_sample", *_SAMPLE),
            ]:
                card.drop(block)
            kept.append(card.take(8, f"{_LIB}/transformers/cache_utils.py:120:update", _NET, *forward))
        for block in kept if request < requests - 1 else ():
            card.drop(block)
    card.refuse(200, f"{_LIB}/transformers/cache_utils.py:120:update", _NET, *_main(20))
    return card


def loaded() -> Card:
    """Return a run that loads weight after weight, each by way of a copy."""
    card, loads = Card(), f"{_LIB}/transformers/modeling_utils.py"
    for _ in range(30):
        copy = card.take(
            70,
            f"{_LIB}/safetensors/torch.py:300:load",
            f"{loads}:700:_load_parameter_into_model",
            f"{loads}:4400:from_pretrained",
            *_main(8),
        )
        card.take(60, f"{loads}:720:_load_parameter_into_model", f"{loads}:4410:from_pretrained", *_main(8))
        card.drop(copy)
    card.refuse(60, f"{loads}:720:_load_parameter_into_model", f"{loads}:4410:from_pretrained", *_main(8))
    return card


def first_forward() -> Card:
    """Return a run whose layers keep their activations until one does not fit."""
    card = Card()
    card.take(300, f"{_LIB}/torch/nn/modules/module.py:1355:convert", *_main(12))
    for _ in range(24):
        for line in (31, 33, 35):
            card.drop(card.take(40, _LINEAR, f"/srv/app/net.py:{line}:forward", _CALL, "/srv/app/net.py:80:forward", _CALL, *_main(41)))
            card.take(30, _LINEAR, f"/srv/app/net.py:{line}:forward", _CALL, "/srv/app/net.py:80:forward", _CALL, *_main(41))
    card.refuse(50, _LINEAR, _NET, _CALL, "/srv/app/net.py:80:forward", _CALL, *_main(41))
    return card


def first_step() -> Card:
    """Return a run whose optimizer makes state after state until one does not fit."""
    card = Card()
    card.take(600, f"{_LIB}/torch/nn/modules/module.py:1355:convert", *_main(12))
    for _ in range(20):
        for place in _STATES:
            card.drop(card.take(70, *_STEP, *_main(45)))
            card.take(60, place, _STEP[1], *_main(45))
    card.refuse(60, _STATES[0], _STEP[1], *_main(45))
    return card
