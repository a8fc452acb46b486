"""The memory of a run for every combination of batch and length, and the largest that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.api.estimate import estimate_run, read_run, serve_run
from oomdoctor.api.inputs import Path, Paths, path_text
from oomdoctor.api.models import asked_card, card_assumption, fetch_unknown, find_card, known_framework, number_of_cards, only_text
from oomdoctor.api.refusals import run_refusals
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import Fits
from oomdoctor.case.serving import ByteRange, Served
from oomdoctor.case.settings import RunSettings, Scalar
from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.memory.estimate import needed
from oomdoctor.planning.memory_budget import fits, memory_budget
from oomdoctor.planning.sizing.axes import checked_axes, parse_axes
from oomdoctor.planning.sizing.otherwise import otherwise
from oomdoctor.planning.sizing.sweep import Sweep, cells, limits, served_need

_ASSUMED = {"batch": "micro_batch", "length": "sequence_length"}
"""The assumptions that an axis replaces."""


def sweep(
    config: Paths = (),
    *,
    axes: str | Mapping[str, Sequence[int]] = "batch,length",
    model: Path | None = None,
    gpu: str | None = None,
    gpus: int | None = None,
    framework: str | None = None,
    settings: RunSettings | Mapping[str, Scalar] | None = None,
    serve: bool = False,
    hub: bool = False,
    rules: Path | None = None,
) -> Sweep:
    """Estimate a run for every combination of batch and length, and find the largest that fit on the GPU.

    `axes` are the sizes: `batch`, `length` or both, each alone, with a range (`length=2048..32768`, doubled each time) or with values
    (`batch=1,2,6`); a mapping names the values. Anything that is not an axis stays as in the run. For a server, batch is concurrent
    requests and length is tokens per request. The other arguments are those of `estimate`.

    Raise UsageError as `estimate` does, and if an axis is unknown or has more than 16 values.

    >>> import oomdoctor
    >>> table = oomdoctor.sweep(
    ...     axes={"batch": [1, 4], "length": [2048, 8192]},
    ...     model="Qwen2.5-7B",
    ...     gpu="24GB",
    ...     settings={"finetuning": "qlora", "gradient_checkpointing": True},
    ... )
    >>> [(cell.batch, cell.length, cell.fits) for cell in table.cells]
    [(1, 2048, 'yes'), (1, 8192, 'close'), (4, 2048, 'close'), (4, 8192, 'no')]
    """
    card, pack = None if gpu is None else find_card(gpu), load_pack(over=path_text(rules))
    gpus, framework = number_of_cards(card, gpus), known_framework(framework, pack)
    known, named = read_run(config, pack, gpus=gpus, settings=settings, serve=serve)
    card = card or asked_card(None, known)
    name = path_text(model)
    if hub:
        fetch_unknown(name or known.model)
    only_text(name or known.model, "--sweep")
    sizes = parse_axes(axes, is_served=known.method == "serve") if isinstance(axes, str) else checked_axes(axes)
    return swept_run(known, name, framework or named, gpus, card, pack, sizes)


def swept_run(
    known: RunSettings,
    model: str | None,
    framework: str | None,
    gpus: int | None,
    card: Card | None,
    pack: Pack,
    sizes: Mapping[str, tuple[int, ...]],
) -> Sweep:
    """Return the table of a run; an axis not named in `sizes` has the run's own value."""
    served = None if card is None else serve_run(_with_sizes(known, sizes), model, framework, gpus, card, pack)
    now = estimate_run(_with_sizes(known, sizes), model, framework, gpus, None, pack)
    budget = None if card is None else memory_budget(card)
    setup = now.estimate.setup

    def weigh(batch: int, length: int) -> tuple[ByteRange, Fits | None]:
        if served is not None and card is not None:
            changed = replace(known, max_num_seqs=batch, max_model_len=length)
            need_of_server, starts = served_need(serve_run(changed, model, framework, gpus, card, pack) or served, batch)
            program = framework or served.server.program.name
            refused = run_refusals(changed, served.setup.shape, program, model, gpus, card, pack)
            return need_of_server, "no" if refused else starts
        need = needed(replace(setup, batch=batch, length=length))
        return ByteRange(need.expected, need.low, need.high), None if budget is None else fits(need, budget)

    requests = served.server.requests if served is not None else setup.batch
    batches, lengths = sizes.get("batch", (requests,)), sizes.get("length", (setup.length,))
    longest, most = ((), ()) if budget is None else limits(weigh, batches, lengths)
    swept = {_ASSUMED[name] for name in sizes if name in _ASSUMED} | ({"max_model_len", "max_num_seqs"} if served else set())
    return Sweep(
        setup=setup,
        budget=budget,
        server=None if served is None else served.server.program.title,
        batches=batches,
        lengths=lengths,
        cells=cells(weigh, batches, lengths),
        longest=longest,
        largest=most,
        assumptions=(*card_assumption(card), *(taken for taken in (served or now.estimate).assumptions if taken.id not in swept)),
        deciding=_deciding(now.estimate, setup, max(batches), max(lengths)) - swept | {"gpu"},
    )


def _deciding(estimate: Estimate | Served, setup: Setup, batch: int, length: int) -> frozenset[str]:
    """Return the ids of the assumptions that move the smallest run in a table or the largest."""
    if isinstance(estimate, Served):
        return frozenset()
    every = (replace(estimate, setup=run) for run in (setup, replace(setup, batch=batch, length=length)))
    return frozenset(other.assumption for run in every for other in otherwise(run, needed(run.setup), None))


def _with_sizes(known: RunSettings, sizes: Mapping[str, tuple[int, ...]]) -> RunSettings:
    """Return the settings with the first value of each axis."""
    first = {name: values[0] for name, values in sizes.items()}
    batch, length = first.get("batch"), first.get("length")
    if known.method == "serve":
        return replace(known, max_num_seqs=batch or known.max_num_seqs, max_model_len=length or known.max_model_len)
    return replace(known, micro_batch=batch or known.micro_batch, sequence_length=length or known.sequence_length)
