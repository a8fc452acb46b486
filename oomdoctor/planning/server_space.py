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
    """What can be changed in a server so that it starts."""

    limits: ClassVar = SearchLimits(fewest=1, most=3, further=3, alternatives=True, avoided=frozenset())

    now: Deployment
    budget: MemoryBudget
    can: Callable[[str], bool]
    """Whether the server has a fix."""

    def subjects(self) -> tuple[tuple[ServerOption, ...], ...]:
        """Return the options that the server has."""
        return subjects(self.now, self.budget.capability, self.can)

    def cuts(self) -> tuple[ServerOption, ...]:
        """Return nothing: a shorter request is an ordinary subject, since no data is lost."""
        return ()

    def batches(self, candidate: Deployment, above: int) -> tuple[ServerOption, ...]:  # noqa: ARG002 - only training has micro batches
        """Return nothing: the number of requests is an ordinary subject."""
        return ()

    def is_compatible(self, candidate: Deployment) -> bool:  # noqa: ARG002 - options that exclude one another are of one subject
        """Return true: the server accepts every combination."""
        return True

    def evaluate(self, candidate: Deployment) -> Served:
        """Return how the GPU is used; for one that does not start, older releases do not matter."""
        newest = candidate.newest()
        return candidate.served() if newest.starts == "yes" else newest

    def fits(self, outcome: Served) -> Fits:
        """Return whether it starts in the relevant release; the outcome says which older one differs."""
        return outcome.newest_starts

    def fits_card(self, outcome: Served, budget: MemoryBudget) -> bool:
        """Return whether it certainly starts on another GPU."""
        return serve(outcome.setup, outcome.server, budget.total).starts == "yes"

    def lack(self, outcome: Served) -> int:
        """Return the possible shortfall at the worst startup check."""
        return -min(check.spare.low for check in outcome.checks)

    def time(self, candidate: Deployment) -> None:
        """Return nothing: there is no model of a server's speed."""

    def settled(self, candidate: Deployment) -> dict[str, Scalar]:
        """Return the longest request, which uses what the other measures leave."""
        return {"max_model_len": candidate.server.length}

    def decided(self, subjects: Sequence[Sequence[ServerOption]], rounds: int, tried: int) -> int:  # noqa: ARG002 - runs count their cuts
        """Return how many were tried."""
        return tried

    def order(self, plan: Plan[Served]) -> tuple[float, ...]:
        """Put the fewest changes first, then what starts in every release, then the least effort, then the least harm."""
        unsure, risk, changes, effort = self.costs(plan)
        return changes, unsure, effort, risk

    def costs(self, plan: Plan[Served]) -> tuple[int, ...]:
        """Return whether a possible release does not start, risk, changes, effort."""
        return not self.is_sure(plan.outcome), RISKS.index(plan.risk), len(plan.measures), plan.effort

    def is_sure(self, outcome: Served) -> bool:
        """Return whether it starts in every possible release."""
        return outcome.starts == "yes"

    def is_good(self, plan: Plan[Served]) -> bool:
        """Return true: every plan that certainly starts is good."""
        return self.is_sure(plan.outcome)

    def on_cards(self, cards: int) -> ServerSpace:
        """Return the same server on another number of GPUs."""
        setup = self.now.setup
        return replace(self, now=replace(self.now, setup=replace(setup, layout=replace(setup.layout, cards=cards))))
