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
        """All of them."""
        return [*self.corrections, *self.plans, *self.fixes]


class Choice(Struct, frozen=True):
    """What is made, and what is not."""

    taken: list[Proposal]
    undecided: list[Proposal]
    """What would be made if a person said yes to it."""
    others: list[Proposal]
    """What is made only by name."""


def choose_by_name(offers: ProposalSelection, ids: Sequence[str], *, yes: bool) -> Choice:
    """These and no others."""
    return _decided([one for one in offers.all() if one.id in ids], [], yes=yes)


def choose(offers: ProposalSelection, *, yes: bool, plan: str | None = None) -> Choice:
    """What the configs need to be right, and one plan: `plan`, or the first that the files can hold. Where there is none, the
    fixes that are safe, and with `yes` also the first one of each finding.

    One plan is enough, so nothing is piled upon it, and of plans, which exclude one another, one is made.
    """
    whole = [one for one in offers.plans if not one.by_hand]
    best = next((one for one in offers.plans if one.id == plan) if plan else iter([*whole, *offers.plans]), None)
    if best is None:
        core = [] if plan else [one for one in offers.fixes if one.safe or one.id in offers.first]
    elif best.safe or yes or plan is not None:
        core = [best]
    else:
        gentle = [one for one in whole if one.safe][:1]
        core = [*(gentle or [one for one in offers.fixes if one.safe]), best]
    wanted = [*(one for one in offers.corrections if one.safe or (one.issue and one.issue.severity != "note")), *core]
    others = [one for one in (*offers.plans, *offers.fixes) if one not in wanted and (one.changes or one.files)]
    return _decided(wanted, others, yes=yes)


def _decided(wanted: Sequence[Proposal], others: Sequence[Proposal], *, yes: bool) -> Choice:
    """Only what is safe goes in without a yes."""
    taken = [one for one in wanted if one.safe or yes]
    return Choice(taken, [one for one in wanted if one not in taken], list(others))
