"""What `oomdoctor fix` would change, or changed: the difference, then each step in a line, then what is left for a person.

Keys and passwords that stand beside a changed line are shown as placeholders; names and paths stay, as they are the person's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import MemoryBudget
from oomdoctor.case.serving import AnyPlan, AnyPlans, Served
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.change import RefusedChange
from oomdoctor.configs.edit.difference import diff_lines
from oomdoctor.configs.edit.patch import manual_line
from oomdoctor.configs.proposals.apply import AppliedProposals
from oomdoctor.configs.proposals.choice import Choice
from oomdoctor.configs.proposals.proposal import Proposal
from oomdoctor.redaction.placeholders import Placeholders
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.memory.assumed import taken
from oomdoctor.report.render.styled_line import StyledLine
from oomdoctor.report.safety.sanitize import clean_line, without_unseen
from oomdoctor.report.wording import edits as texts
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

_LINE = 400
_LOOKS = {"---": "bold", "+++": "bold", "@@": "cyan", "-": "red", "+": "green"}


def render(
    settled: AppliedProposals,
    before: Mapping[str, bytes],
    choice: Choice,
    plans: AnyPlans | None,
    wording: Wording,
    *,
    color: bool,
) -> str:
    """Return the whole answer as text; `plans` are those that were looked for."""
    difference = "\n".join(_differences(settled, before))
    lines = [*_steps(settled, plans, wording), *_waiting(choice, plans, wording), *_nothing_planned(plans, wording)]
    lines = [*lines, *_which_card(plans, wording)] if lines or difference else [StyledLine(wording.say(texts.NOTHING))]
    placeholders = Placeholders(only_keys=True)
    placeholders.learn([difference, *(line.plain for line in lines)])
    # As one text: what a line holds may be a secret by the line before it.
    shown = [_looked(line) for line in placeholders.redact(difference).split("\n")] if difference else []
    return "".join(line.render(color=color) + "\n" for line in [*shown, *(line.mapped(placeholders.redact) for line in lines)])


def written_text(copies: Mapping[str, str], new: Sequence[str], wording: Wording) -> str:
    """Say what was written, and where the old files are."""
    lines = [wording.say(texts.WRITTEN, path=path, copy=copy) for path, copy in copies.items()]
    lines += [wording.say(texts.CREATED, path=path) for path in new]
    return "".join(f"{clean_line(line, _LINE)}\n" for line in lines)


def question_text(wording: Wording) -> str:
    """Return the question that is asked before anything is written."""
    return wording.say(texts.ASK)


def declined_text(wording: Wording) -> str:
    """Say that nothing was written."""
    return wording.say(texts.DECLINED)


def _differences(settled: AppliedProposals, before: Mapping[str, bytes]) -> Iterator[str]:
    for path, data in settled.files.items():
        # A diff is copied and applied: blanks stay, escapes go.
        yield from map(_harmless, diff_lines(path, before.get(path), data))
    if settled.files:
        yield ""


def _looked(line: str) -> StyledLine:
    return StyledLine(line, next((look for mark, look in _LOOKS.items() if line.startswith(mark)), ""))


def _harmless(line: str) -> str:
    return "".join(char if char == "\t" or char.isprintable() else "\ufffd" for char in without_unseen(line))


def _steps(settled: AppliedProposals, plans: AnyPlans | None, wording: Wording) -> Iterator[StyledLine]:
    for step in settled.steps:
        proposal = step.proposal
        if step.made or step.created:
            yield from _titled(proposal, texts.DID, "green", plans, wording, fits=bool(step.made))
            yield from (StyledLine("    " + wording.say(texts.LAUNCH, command=command), "") for command in proposal.launch)
            yield from _typed(proposal.by_hand, texts.STILL, wording)
        elif step.already:
            yield from _titled(proposal, texts.ALREADY, "dim", None, wording)
        elif step.left:
            yield from _titled(proposal, texts.REFUSED if step.refusals else texts.BY_HAND, "yellow", None, wording)
            yield from _typed((*step.refusals, *proposal.by_hand), texts.LINE, wording)


def _titled(
    proposal: Proposal, word: Text, look: str, plans: AnyPlans | None, wording: Wording, *, fits: bool = False
) -> Iterator[StyledLine]:
    """Yield a proposal in a line; with `fits` also whether it is enough, if the files can hold all of it."""
    title = wording.sentence(wording.say(proposal.title))
    if fits and proposal.fits is not None and not proposal.by_hand:
        title += wording.blank + wording.say(labels.FITS[proposal.fits])
    line = StyledLine(wording.say(word), look).append("  ").append(clean_line(proposal.id, 100), "bold")
    yield line.append("  ").append(clean_line(title, _LINE))
    if plans is not None and proposal.plan is not None:
        yield StyledLine("    " + _then(proposal.plan, plans.budget, wording), "")


def _typed(refusals: Sequence[RefusedChange], word: Text, wording: Wording) -> Iterator[StyledLine]:
    for refusal in refusals:
        why = clean_line(wording.say(refusal.why), _LINE)
        line = StyledLine("    ").append(wording.say(word, line=clean_line(refusal.by_hand, _LINE)), "cyan")
        yield line.append(f"（{why}）" if wording.is_chinese else f"  ({why})", "dim")


def _waiting(choice: Choice, plans: AnyPlans | None, wording: Wording) -> Iterator[StyledLine]:
    """Yield what is for a person to decide, with its lines; what else there is, by name."""
    for proposal in choice.undecided:
        yield from _titled(proposal, texts.UNDECIDED, "yellow", plans, wording, fits=True)
        yield from (StyledLine("    " + clean_line(manual_line(change), _LINE), "cyan") for change in proposal.changes)
        yield from (StyledLine("    " + wording.say(texts.NEW_FILE, path=clean_line(file.path, _LINE)), "") for file in proposal.files)
        yield from _typed(proposal.by_hand, texts.STILL, wording)
    if choice.undecided:
        yield StyledLine(wording.say(texts.YES), "dim")
    names = list(dict.fromkeys(proposal.id for proposal in choice.others))
    if names:
        yield StyledLine(wording.say(texts.OTHERS, names=wording.item_comma.join(names)), "dim")


def _nothing_planned(plans: AnyPlans | None, wording: Wording) -> Iterator[StyledLine]:
    """Why there is no plan, where one was looked for."""
    if plans is None or plans.plans:
        return
    if plans.broken:
        first = plans.broken[0]
        place = clean_line(wording.comma.join(filter(None, (os.path.basename(first.file), first.key))), _LINE)
        yield StyledLine(wording.say(texts.BROKEN, place=place, why=clean_line(wording.say(first.why), _LINE)), "yellow")
        return
    closest = None if plans.obstacle is None else plans.obstacle.closest.outcome
    if isinstance(plans.now, Served):
        yield StyledLine(wording.say(texts.STARTS if closest is None else texts.STARTS_NOT), "" if closest is None else "yellow")
    elif isinstance(closest, Estimate):
        yield StyledLine(_needs(texts.WALL, closest, plans.budget, wording), "yellow")
    else:
        yield StyledLine(_needs(texts.FITS, plans.now, plans.budget, wording))


def _which_card(plans: AnyPlans | None, wording: Wording) -> Iterator[StyledLine]:
    """Say which size of a card was taken, where its name has several."""
    named = [] if plans is None else [assumption for assumption in plans.now.assumptions if assumption.id == "gpu"]
    if named:
        yield StyledLine(taken(named, wording), "dim")


def _then(plan: AnyPlan, budget: MemoryBudget, wording: Wording) -> str:
    """Say what a plan comes to."""
    if isinstance(plan.outcome, Estimate):
        return _needs(texts.THEN, plan.outcome, budget, wording)
    tokens = plan.outcome.tokens
    return wording.say(texts.HOLDS, tokens=f"{tokens.expected:,}", low=f"{tokens.low:,}", high=f"{tokens.high:,}")


def _needs(text: Text, estimate: Estimate, budget: MemoryBudget, wording: Wording) -> str:
    card = clean_line(budget.card, 100) or wording.say(texts.CARD)
    return wording.say(
        text, range=range_of(estimate.expected, estimate.low, estimate.high, wording), card=card, usable=f"{budget.usable / GIB:.1f} GiB"
    )
