"""From a run and its GPU to plans: in the keys of its framework, and as its files would contain them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption, Estimate
from oomdoctor.case.plan import MemoryBudget, Plans
from oomdoctor.case.serving import AnyPlans, Served
from oomdoctor.case.settings import RunSettings
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.framework import FRAMEWORKS
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.memory.servers.deployment import Deployment
from oomdoctor.planning.framework_keys import MeasureKeys, measure_keys
from oomdoctor.planning.memory_budget import memory_budget
from oomdoctor.planning.plan_request import PlanRequest
from oomdoctor.planning.plan_writer import PlanWriter
from oomdoctor.planning.plans import plans
from oomdoctor.planning.run_space import run_space
from oomdoctor.planning.search import Outcome, ranked
from oomdoctor.planning.server_space import ServerSpace
from oomdoctor.planning.sizing.layers import as_it_fits, on_card
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.from_log import LoggedRun, run_from_log
from oomdoctor.setups.server import CardLookup, deploy_run, server_record

_OF_SERVERS_TOO = ("gpu", "framework_version")
"""Assumptions about a run that apply to a server as well."""
_TRIES = 40
"""Maximum number of plans that are written to find those that work as promised."""
_BY_HAND = 2
"""Plans with manual steps that are named alongside those that can be written."""
_BROKEN = 3
"""Plans that are named with what breaks them in the files, if there is no other."""


def plan_run(
    request: PlanRequest,
    pack: Pack,
    *,
    card: Card | None,
    gpus: int | None,
    model: str | None,
    top: int,
    writer: PlanWriter | None = None,
) -> AnyPlans:
    """Plan for the run of a request, the gentlest change first and at most `top` plans.

    With a `writer`, plans that the run's files can express completely come first, with what the files then give. Raise UsageError if no GPU
    is known.
    """
    keys = measure_keys(pack, request.training, request.log, request.framework)
    budget = _budget(card, request)
    request = _as_placed(request, budget)
    now = _deployed(run_from_log(request.training, request.log), request, budget, model, gpus, pack)
    if now is None:
        run = _run_plans(request, budget, keys, writer, top)
        told = (*_correction_notice(writer), *request.assumptions, *_newest_version(request, pack))
        return replace(run, now=replace(run.now, assumptions=told))

    def deployment(settings: RunSettings) -> Deployment:
        return (writer and _deployed(writer.run(settings), request, budget, model, gpus, pack)) or now

    server = _server_plans(now, budget, keys, writer, top, deployment)
    of_both = (taken for taken in request.assumptions if taken.id in _OF_SERVERS_TOO)
    return replace(server, now=replace(server.now, assumptions=(*_correction_notice(writer), *of_both, *server.now.assumptions)))


def _as_placed(request: PlanRequest, budget: MemoryBudget) -> PlanRequest:
    """Return the request as run by a program that itself determines how many layers fit on the GPU."""
    placed = as_it_fits(request.setup, budget)
    named = on_card(placed) if placed is not request.setup else None
    taken = tuple(named if named and each.id == named.id else each for each in request.assumptions)
    return replace(request, setup=placed, assumptions=taken)


def _run_plans(request: PlanRequest, budget: MemoryBudget, keys: MeasureKeys, writer: PlanWriter | None, top: int) -> Plans[Estimate]:
    anyhow = run_space(request.setup, budget, keys.has)
    if writer is None:
        return keys.with_keys(plans(anyhow, top=top))
    space = run_space(request.setup, budget, keys.has, writer.can_write)
    whole = writer.writable_plans(space, keys.with_keys(plans(space, top=_TRIES, also_dominated=True)), top, writer.setup)
    if whole.fits == "yes" or len(whole.plans) >= top:
        return whole
    return _complete_first(whole, keys.with_keys(plans(anyhow, top=_TRIES)), writer, top)


def _server_plans(
    now: Deployment,
    budget: MemoryBudget,
    keys: MeasureKeys,
    writer: PlanWriter | None,
    top: int,
    deployment: Callable[[RunSettings], Deployment],
) -> Plans[Served]:
    """Plan for a server; `deployment` returns it as its files would start it; each plan's outcome says which older release differs."""
    space = ServerSpace(now=now, budget=budget, can=keys.has)
    every = replace(keys.with_keys(plans(space, top=top if writer is None else _TRIES)), now=now.served())
    if writer is None or every.fits == "yes":
        return every
    whole = writer.writable_plans(space, every, top, deployment)
    # As written in the files, a plan may start in fewer releases.
    whole = replace(whole, plans=ranked(space, whole.plans))
    return whole if len(whole.plans) >= top else _complete_first(whole, every, writer, top)


def _complete_first(whole: Plans[Outcome], every: Plans[Outcome], writer: PlanWriter, top: int) -> Plans[Outcome]:
    """Return the plans that files can express, along with those that have manual steps."""
    by_hand = tuple(plan for plan in every.plans if not writer.can_write(plan.measures))
    if whole.plans:
        return replace(whole, by_hand=by_hand[:_BY_HAND])
    # If the files can express none, a plan with manual steps is better than nothing; one that they break is not promised.
    return replace(every, plans=by_hand[:top], broken=() if by_hand else whole.broken[:_BROKEN])


def _correction_notice(writer: PlanWriter | None) -> Iterator[Assumption]:
    """Yield that plans are based on corrected files, if they contain errors: a misspelled key counts once it is spelled correctly."""
    if writer is not None and writer.mended:
        names = [os.path.basename(path) for path in writer.mended]
        en = f"plans assume that the problems in {', '.join(names)} are fixed, as listed by oomdoctor check and written by oomdoctor fix"
        zh = f"各方案按改正后的 {'、'.join(names)} 计算：有误之处见 oomdoctor check，oomdoctor fix 会一并改正"
        yield assumed("mended", en, zh)


def _newest_version(request: PlanRequest, pack: Pack) -> Iterator[Assumption]:
    """Yield that the keys are those of the newest framework version that the rules know, if nothing shows which one is running."""
    name = request.framework
    record = pack.record(FRAMEWORKS, name) if name is not None and name in pack.names("frameworks") else None
    if record is None or record.keys is None or (request.training is not None and request.training.version):
        return
    if f"log.{record.framework.replace('-', '_')}_version" not in request.log:
        title, newest = record.title, record.keys.versions[-1]
        yield assumed("framework_version", f"{title} {newest}, the newest known here", f"{title} {newest}，这里所知的最新版本")


def _budget(card: Card | None, request: PlanRequest) -> MemoryBudget:
    """Return the memory of the named GPU, or otherwise the log's, minus what the log shows and no setting explains."""
    if card is not None:
        return memory_budget(card).minus_unexplained(request.unexplained)
    if request.budget is not None:
        return request.budget.minus_unexplained(request.unexplained)
    printed = request.log.get("log.total_bytes")
    if isinstance(printed, int) and printed > 0:
        return memory_budget(Card(str(request.log.get("log.gpu_name", "")), printed))
    raise UsageError("which card? specify it with --gpu (RTX 4090, A100-80GB, 24GB)")


def _deployed(
    run: LoggedRun, request: PlanRequest, budget: MemoryBudget, model: str | None, gpus: int | None, pack: Pack
) -> Deployment | None:
    """Return a run on its GPU if it is a server."""
    settings = replace(run.settings, model=model) if model else run.settings
    run = replace(run, settings=settings, cards=gpus or run.cards, framework=request.framework)
    record = server_record(run.settings, run.framework, pack)
    card = CardLookup(budget.card, budget.total)
    return None if record is None else deploy_run(run, request.log, request.setup.shape, record, card)
