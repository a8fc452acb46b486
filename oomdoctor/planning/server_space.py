"""The search space of a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.plan import RISKS, Fits, MemoryBudget, Plan
from oomdoctor.case.serving import Served
from oomdoctor.case.settings import Scalar
from oomdoctor.memory.servers.deployment import Deployment
from oomdoctor.memory.servers.engines import serve
from oomdoctor.planning.search import SearchLimits
from oomdoctor.planning.server_options import ServerOption, subjects


class ServerSpace(Struct, frozen=True, kw_only=True):
    """What can be changed of a server so that it starts."""

    limits: ClassVar = SearchLimits(fewest=1, most=3, further=3, alternatives=True, avoided=frozenset())

    now: Deployment
    budget: MemoryBudget
    can: Callable[[str], bool]
    """Whether the server has a fix."""

    def subjects(self) -> tuple[tuple[ServerOption, ...], ...]:
        """Return the options that the server has."""
        return subjects(self.now, self.budget.capability, self.can)

    def cuts(self) -> tuple[ServerOption, ...]:
        """Return nothing: a shorter request is a subject like others, as no data are lost."""
        return ()

    def batches(self, candidate: Deployment, above: int) -> tuple[ServerOption, ...]:  # noqa: ARG002 - only training has micro batches
        """Return nothing: the number of requests is a subject like others."""
        return ()

    def is_compatible(self, candidate: Deployment) -> bool:  # noqa: ARG002 - options that exclude one another are of one subject
        """Say that the server takes every combination."""
        return True

    def evaluate(self, candidate: Deployment) -> Served:
        """Return what becomes of the card; of one that does not start nobody asks what older releases make."""
        newest = candidate.newest()
        return candidate.served() if newest.starts == "yes" else newest

    def fits(self, outcome: Served) -> Fits:
        """Say whether it starts in the release that counts; the outcome says which older one differs."""
        return outcome.newest_starts

    def fits_card(self, outcome: Served, budget: MemoryBudget) -> bool:
        """Say whether it surely starts on another card."""
        return serve(outcome.setup, outcome.server, budget.total).starts == "yes"

    def lack(self, outcome: Served) -> int:
        """Return what may be missing at the worst check of the start."""
        return -min(check.spare.low for check in outcome.checks)

    def time(self, candidate: Deployment) -> None:
        """Return nothing: there is no model of a server's speed."""

    def settled(self, candidate: Deployment) -> dict[str, Scalar]:
        """Return the longest request, which takes what the other measures leave."""
        return {"max_model_len": candidate.server.length}

    def decided(self, subjects: Sequence[Sequence[ServerOption]], rounds: int, tried: int) -> int:  # noqa: ARG002 - runs count their cuts
        """Return how many were tried."""
        return tried

    def order(self, plan: Plan[Served]) -> tuple[float, ...]:
        """Put the fewest changes first, then what starts in every release, then the least effort, then the least harm."""
        unsure, risk, changes, effort = self.costs(plan)
        return changes, unsure, effort, risk

    def costs(self, plan: Plan[Served]) -> tuple[int, ...]:
        """Return whether a release that can be meant does not start, risk, changes, effort."""
        return not self.is_sure(plan.outcome), RISKS.index(plan.risk), len(plan.measures), plan.effort

    def is_sure(self, outcome: Served) -> bool:
        """Say whether it starts in every release that can be meant."""
        return outcome.starts == "yes"

    def is_good(self, plan: Plan[Served]) -> bool:
        """Say that every plan that surely starts is good."""
        return self.is_sure(plan.outcome)

    def on_cards(self, cards: int) -> ServerSpace:
        """Return the same server on another number of cards."""
        setup = self.now.setup
        return replace(self, now=replace(self.now, setup=replace(setup, layout=replace(setup.layout, cards=cards))))
