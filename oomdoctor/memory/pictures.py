"""Image generators: encoding the text, denoising, decoding to pixels; and training the denoiser.

Blocks are those of diffusers 0.35 (transformer_flux.py, transformer_sd3.py, transformer_qwenimage.py, transformer_wan.py,
unet_2d_condition.py, autoencoder_kl.py). The factors were fitted to figures of diffusers/benchmarks and of
derekl35/diffusers-quantization-benchmarks; tests/setups/test_pictures.py checks them against these and musubi-tuner's.
"""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.estimate import Phase, Term
from oomdoctor.case.pictures import PictureModel, PictureRun
from oomdoctor.case.setup import Setup
from oomdoctor.memory import allocator, optimizer
from oomdoctor.memory.model.trained import TrainedGroup
from oomdoctor.memory.term import term

_HALF = 2
_FIXED = 10
"""Values per element of a hidden state at the peak of a block without gradients, in addition to both sides of its MLP."""
_KEPT = 17
"""The same for what a block keeps for its backward pass: inputs of norms, matrices, rotation, attention and gates."""
_RESNET, _TRANSFORMER = 12, 24
"""Values per channel and position that a block of a UNet keeps."""
_DECODED = 9
"""Tensors of the widest size at the peak of the VAE: the activation, its fp32 copy during upscaling, convolution workspaces."""
_ENCODED = 0.6
_TEXT = 0.3
"""The maximum for encoding one text in addition to the weights, as a share of a text encoder's weights."""
_WIDE_FP8 = 0.04
"""Share of the parameters that fp8 leaves in 16 bit: norms, modulation, the first and last matrices."""


def phases(setup: Setup, run: PictureRun) -> tuple[Phase, ...]:
    """Return the moments of a run, with what the counter adds."""
    every = _training(setup, run) if setup.task == "train" else _making(setup, run)
    return tuple(Phase(name=name, terms=tuple(_seen(setup, terms))) for name, terms in every)


def on_host(setup: Setup, run: PictureRun) -> float:
    """Return the bytes of weights that wait on the host."""
    model = run.model
    swapped = _stored(setup, model.denoiser) * min(1.0, run.swapped / model.swapped_units)
    parts = model.spare + sum(model.readers) + model.vae + (0 if run.swapped else model.denoiser)
    return swapped + (_HALF * parts if run.by_parts else 0)


def _seen(setup: Setup, terms: tuple[Term | None, ...]) -> Iterator[Term]:
    known = [each for each in terms if each is not None and each.high > 0]
    yield from known
    coming = sum(each.bytes for each in known if each.name in _COMING)
    if setup.counter != "max_allocated" and coming:
        yield term("allocator", 0.12 * coming, "ends of segments, and blocks of other phases", low=0.0, high=5.0)
    if (outside := allocator.outside(setup)) is not None:
        yield outside


_COMING = ("activations", "recomputed layer", "denoiser", "vae pass")


def _making(setup: Setup, run: PictureRun) -> Iterator[tuple[str, tuple[Term | None, ...]]]:
    """Yield the three moments of an inference; each part leaves the GPU afterwards if parts take turns."""
    model = run.model
    share = run.resident
    readers, vae = _part("text encoders", share * sum(model.readers)), _part("vae", share * model.vae)
    weights = _weights(setup, run, share * (model.denoiser + model.spare))
    everything = (weights, readers, vae)
    largest = max(model.readers, default=0)
    reading = (_part("text encoders", share * largest),) if run.by_parts else everything
    yield "text", (*reading, _part("reading", round(_TEXT * largest / 4), low=0.0, high=2.0))
    alone = _weights(setup, run, share * model.denoiser)
    yield "denoising", (*((alone,) if run.by_parts else everything), _step(setup, run))
    yield "decoding", (*((vae,) if run.by_parts else everything), _decoded(setup, run))


def _training(setup: Setup, run: PictureRun) -> Iterator[tuple[str, tuple[Term | None, ...]]]:
    model, layout = run.model, setup.layout
    group = trained_group(setup, run)
    beside = term("adapters", group.params * group.width, "rank x (in + out) for each matrix", low=0.5, high=1.3) if group.beside else None
    states = term(
        "optimizer",
        group.params * optimizer.state_width(setup, group) / layout.sharded(1),
        "states of the trained parameters: rules/tables/optimizers.csv",
        low=0.9,
        high=1.1,
    )
    gradients = term("gradients", group.params * group.width / layout.sharded(2), "of the trained parameters", low=0.9, high=1.1)
    readers = None if run.caches_text else _part("text encoders", sum(model.readers))
    vae = None if run.caches_latents else _part("vae", model.vae)
    standing = (_weights(setup, run, model.denoiser), readers, vae, beside, states)
    if not run.caches_latents:
        yield "encoding", (*standing, _decoded(setup, run, share=_ENCODED))
    kept, again = _kept(setup, run), _recomputed(setup, run)
    yield "forward", (*standing, gradients if setup.accumulation > 1 else None, kept)
    yield "backward", (*standing, gradients, kept if again is not None else None, again)
    temporary = group.params * group.width / layout.sharded(1) if setup.optimizer.foreach_temporary else 0.0
    yield "step", (*standing, gradients, term("step", temporary, "foreach: torch/optim/adamw.py"))


def trained_group(setup: Setup, run: PictureRun) -> TrainedGroup:
    """Return what the optimizer gets: the denoiser, or adapters in it."""
    if setup.adapters is None:
        return TrainedGroup(run.model.denoiser, setup.weights.bytes_per_param, False)
    count = setup.adapters.count or round(setup.adapters.rank * _adapted(run.model, every="gate" in setup.adapters.targets))
    return TrainedGroup(count, setup.stack.adapter_bytes, True)


def _adapted(model: PictureModel, *, every: bool) -> float:
    """Return the sum of in and out of all matrices with adapters: attention alone, or the MLP too."""
    if model.levels:
        each = (16 + 14 * every) * sum(level.transformers * level.channels for level in model.levels)
        return each + sum(level.transformers for level in model.levels) * 2 * 2048
    return model.blocks * model.streams * model.hidden * (8 + (2 + 2 * model.widening) * every)


def _stored(setup: Setup, params: float) -> float:
    form = setup.weights
    wide = _WIDE_FP8 if form.bytes_per_param < _HALF else 0.0
    return params * (form.bytes_per_param * (1 - wide) + _HALF * wide)


def _weights(setup: Setup, run: PictureRun, params: float) -> Term:
    """Return the denoiser, without the blocks that wait on the host; two of these are in transit at any moment."""
    units = run.model.swapped_units
    share = 1.0 if not run.swapped else min(1.0, max(0, units - run.swapped + 2) / units)
    size = _stored(setup, params) * share / setup.layout.sharded(3)
    high = 1.03 if setup.weights.bytes_per_param >= _HALF else 1.25
    return term("weights", size, "parameters x bytes of the format: rules/tables/models.json, weight_formats.csv", low=0.97, high=high)


def _part(name: str, params: float, low: float = 0.97, high: float = 1.03) -> Term:
    return term(name, _HALF * params, "parameters in 16-bit: rules/tables/models.json", low=low, high=high)


def _elements(setup: Setup, run: PictureRun, tokens: int) -> int:
    return setup.batch * tokens * run.model.hidden


def _step(setup: Setup, run: PictureRun) -> Term:
    """Return one step without gradients: the middle of the widest block."""
    model = run.model
    both = 2 if model.guided and model.levels else 1
    if model.levels:
        widest = max(level.channels * _positions(run, level.scale) for level in model.levels)
        size = 27.0 * _HALF * both * setup.batch * widest
    else:
        size = _HALF * (_FIXED + 2 * model.widening) * _elements(setup, run, run.tokens + model.text_tokens)
    return term("denoiser", size, "the middle of one block: diffusers/benchmarks", low=0.6, high=1.6)


def _positions(run: PictureRun, scale: int) -> int:
    return (run.width // (run.model.edge * scale)) * (run.height // (run.model.edge * scale))


def _kept(setup: Setup, run: PictureRun) -> Term:
    """Return what the forward pass keeps: the input of each block, or everything its backward pass needs."""
    model, through = run.model, setup.checkpointing == "full"
    if model.levels:
        size = setup.batch * sum(
            float(_HALF) * level.channels * _positions(run, level.scale)
            * (level.resnets * (2 if through else _RESNET) + level.transformers * (1 if through else _TRANSFORMER))
            for level in model.levels
        )  # fmt: skip
    else:
        each = 1 if through else _KEPT + 4 * model.widening
        size = _HALF * each * model.blocks * _elements(setup, run, run.tokens + model.text_tokens)
    return term("activations", size, "inputs of blocks, or everything they keep", low=0.6, high=1.5)


def _recomputed(setup: Setup, run: PictureRun) -> Term | None:
    """Return one recomputed block, with its gradients; None if nothing is recomputed."""
    if setup.checkpointing != "full":
        return None
    model = run.model
    if model.levels:
        size = 2.0 * _HALF * setup.batch * max(
            level.channels * _positions(run, level.scale) * (_TRANSFORMER if level.transformers else _RESNET) for level in model.levels
        )  # fmt: skip
    else:
        size = 1.5 * _HALF * (_KEPT + 4 * model.widening) * _elements(setup, run, run.tokens + model.text_tokens)
    return term("recomputed layer", size, "one block with its gradients", low=0.6, high=1.6)


def _decoded(setup: Setup, run: PictureRun, share: float = 1.0) -> Term:
    """Return what the VAE uses in addition to its weights; video is decoded a few frames at a time."""
    model = run.model
    pixels = run.width * run.height if run.tile is None else min(run.width * run.height, run.tile**2)
    tensor = model.vae_channels * pixels * model.vae_bytes * min(run.frames, model.vae_frames)
    many = setup.batch if run.tile is None else 1
    film = 3 * 4 * run.frames * run.width * run.height if model.vae_frames > 1 else 0
    factor = _DECODED if model.vae_frames == 1 else _DECODED / 2
    return term("vae pass", share * factor * tensor * many + film, "tensors at full size: autoencoder_kl.py", low=0.4, high=1.4)
