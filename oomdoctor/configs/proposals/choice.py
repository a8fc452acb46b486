"""Which proposals are made: without a word the harmless ones, with `--yes` the best ones, by name any."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from oomdoctor.configs.proposals.proposal import Proposal


class ProposalSelection(Struct, frozen=True, kw_only=True):
    """Everything that could be done to the files of a run, the most useful first."""

    corrections: Sequence[Proposal] = ()
    """What is wrong in the configs. Notes among them are advice, made only by name."""
    fixes: Sequence[Proposal] = ()
    """What the diagnosis proposes."""
    first: frozenset[str] = frozenset()
    """The fixes that stand first in their finding."""
    plans: Sequence[Proposal] = ()
    """What makes the run fit by the memory model: any one of them is enough."""

    def all(self) -> list[Proposal]:
        """Return all of them."""
        return [*self.corrections, *self.plans, *self.fixes]


class Choice(Struct, frozen=True):
    """What is made, and what is not."""

    taken: list[Proposal]
    undecided: list[Proposal]
    """What would be made if a person said yes to it."""
    others: list[Proposal]
    """What is made only by name."""


def choose_by_name(offers: ProposalSelection, ids: Sequence[str], *, yes: bool) -> Choice:
    """Choose the proposals of these ids and no others."""
    return _decided([proposal for proposal in offers.all() if proposal.id in ids], [], yes=yes)


def choose(offers: ProposalSelection, *, yes: bool, plan: str | None = None) -> Choice:
    """Choose what the configs need to be right, and one plan: `plan`, or the first that the files can hold.

    Where there is no plan, the fixes that are safe, and with `yes` also the first one of each finding.
    One plan is enough, so nothing is piled upon it, and of plans, which exclude one another, one is made.
    """
    whole = [proposal for proposal in offers.plans if not proposal.by_hand]
    best = next((proposal for proposal in offers.plans if proposal.id == plan) if plan else iter([*whole, *offers.plans]), None)
    if best is None:
        core = [] if plan else [proposal for proposal in offers.fixes if proposal.safe or proposal.id in offers.first]
    elif best.safe or yes or plan is not None:
        core = [best]
    else:
        gentle = [proposal for proposal in whole if proposal.safe][:1]
        core = [*(gentle or [proposal for proposal in offers.fixes if proposal.safe]), best]
    chosen = [
        *(proposal for proposal in offers.corrections if proposal.safe or (proposal.issue and proposal.issue.severity != "note")),
        *core,
    ]
    others = [proposal for proposal in (*offers.plans, *offers.fixes) if proposal not in chosen and (proposal.changes or proposal.files)]
    return _decided(chosen, others, yes=yes)


def _decided(chosen: Sequence[Proposal], others: Sequence[Proposal], *, yes: bool) -> Choice:
    """Return the choice: only what is safe goes in without a yes."""
    taken = [proposal for proposal in chosen if proposal.safe or yes]
    return Choice(taken, [proposal for proposal in chosen if proposal not in taken], list(others))
