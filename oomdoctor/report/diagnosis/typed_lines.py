"""How a step is typed where no program is known: `per_device_train_batch_size=1` (Trainer) or `--batch_size 1`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.diagnosis import FailurePhase, Fix, OpenPhase, TypedLine
from oomdoctor.report.diagnosis.steps import setting_as_typed
from oomdoctor.report.document import Span, Style
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, lower_first
from oomdoctor.report.wording.wording import Wording


def typed_spans(lines: Sequence[TypedLine], wording: Wording) -> tuple[Span, ...]:
    """Return the lines of which one is to be typed."""
    spans: list[Span] = []
    for line in lines:
        spans += [Span(wording.say(labels.EITHER))] if spans else []
        spans += [Span(line.line, Style.CODE), *_about(line, wording)]
    return tuple(spans)


def phase_spans(phase: FailurePhase, wording: Wording) -> tuple[Span, ...]:
    """Return what to do if it was then: the first fix in all its forms, and each that follows where that is not enough in one."""
    spans = [Span(wording.say(phase.says) + wording.colon), *_forms(phase.fixes[0], wording)]
    for fix in phase.fixes[1:]:
        spans += [Span(wording.say(labels.THEN)), *_first_form(fix, wording)]
    return tuple(spans)


def settling_phase(open_phase: OpenPhase, wording: Wording) -> str:
    """Return the evidence that tells when it was."""
    return wording.say(labels.TRACEBACK_TELLS, shown=wording.say(open_phase.settled_by))


def _about(line: TypedLine, wording: Wording) -> Iterator[Span]:
    if line.value is not None:
        yield Span(" " + wording.say(line.value))
    if line.by:
        yield Span(wording.aside(line.by))


def _forms(fix: Fix, wording: Wording) -> tuple[Span, ...]:
    return typed_spans(fix.typed, wording) if fix.typed else _first_form(fix, wording)


def _first_form(fix: Fix, wording: Wording) -> tuple[Span, ...]:
    if fix.settings:
        # A key without a value does not say whether to raise or to lower it.
        about = "" if fix.settings[0].to else wording.aside(lower_first(bare(wording.say(fix.title))))
        return (Span(setting_as_typed(fix.settings[0]), Style.CODE), *([Span(about)] if about else []))
    return typed_spans(fix.typed[:1], wording) if fix.typed else (Span(fix.command or "", Style.CODE),)
