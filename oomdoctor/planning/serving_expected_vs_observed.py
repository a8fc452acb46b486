"""A failed server and the arithmetic of its budget: what it should have had, what it printed, what each fix would change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.diagnosis import Finding, Fix
from oomdoctor.case.event import Value
from oomdoctor.case.incident import Incident
from oomdoctor.case.serving import ByteRange, Served, ServedRun, StartupCheck
from oomdoctor.case.settings import RunConfig
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.memory.servers.engines import ENGINES
from oomdoctor.planning.expected_vs_observed import changed
from oomdoctor.planning.memory_budget import budget_of_card
from oomdoctor.setups.from_log import LoggedRun, run_from_log
from oomdoctor.setups.server import CardLookup, serve_run

_UNSURE = 0.3
"""Of what a change moves so much is unknown, where the cache before it was seen; what the share itself gives is certain."""
_SEEN = {
    "weights": ("weights_bytes",),
    "outside torch": ("non_torch_bytes",),
    "working set": ("activation_peak_bytes",),
    "kv cache": ("kv_available_bytes", "kv_cache_bytes"),
}
"""The parts by the fields of messages that print them."""
_ANY_CARD = 1 << 36


class ServerExpectedVsObserved(Struct, frozen=True):
    """A server of which the model and the card are known."""

    run: LoggedRun
    log: Mapping[str, Value]
    shape: Shape
    card: CardLookup
    found: ServedRun

    def weighed(self, findings: Iterable[Finding], pack: Pack) -> tuple[Finding, ...]:
        """The findings, with what each of their fixes would give and whether the server would start then; what is not enough goes last."""
        known: dict[str, Fix] = {}

        def of_fix(fix: Fix) -> Fix:
            if fix.id not in known:
                known[fix.id] = self._weighed(fix, pack)
            return known[fix.id]

        def of_finding(one: Finding) -> Finding:
            return replace(one, fixes=tuple(sorted(map(of_fix, one.fixes), key=lambda fix: fix.fits == "no")))

        return tuple(map(of_finding, findings))

    def _weighed(self, fix: Fix, pack: Pack) -> Fix:
        sets = changed(fix, pack)
        if not sets:
            return fix
        then = serve_run(replace(self.run, settings=self.run.settings.with_values(sets)), self.log, self.shape, self.card)
        now, before = self.found.served, self.found.expected
        if then is None or (then.cache, then.checks) == (before.cache, before.checks):
            return fix
        moved = _beside(then, before, self.found.seen)
        return replace(fix, frees_bytes=_gained(now, moved), fits=moved.starts if self._explains() else None)

    def _explains(self) -> bool:
        """Whether the arithmetic sees the failure; where it does not, it promises nothing."""
        return self.found.served.starts != "yes"


def server_expected_vs_observed(
    training: RunConfig | None, log: Mapping[str, Value], incident: Incident
) -> ServerExpectedVsObserved | None:
    """The server of a failure; None where it is none, or where model or card are not known."""
    known = run_from_log(training, log)
    if known.shape is None:
        return None
    seen = dict(_seen(log, incident))
    total = _total(known, log, incident, seen)
    if total is None:
        return None
    own = CardLookup(str(log.get("log.gpu_name", "")), total[0])
    expected = serve_run(known, log, known.shape, own)
    if expected is None:
        return None
    found = ServedRun(served=_beside(expected, expected, seen), expected=expected, seen=seen, total_is_known=total[1])
    return ServerExpectedVsObserved(known, log, known.shape, own, found)


def _seen(log: Mapping[str, Value], incident: Incident) -> Iterable[tuple[str, int]]:
    for name, fields in _SEEN.items():
        sizes = [
            value for field in fields for value in (incident.root.fields.get(field), log.get(f"log.{field}")) if isinstance(value, int)
        ]
        if sizes:
            yield name, sizes[0]


def _total(known: LoggedRun, log: Mapping[str, Value], incident: Incident, seen: Mapping[str, int]) -> tuple[int, bool] | None:
    """The bytes of the card, and whether the log tells them: its own words, or the card's name; else what explains the rest."""
    budget, printed = budget_of_card([incident.root], log), log.get("log.total_bytes")
    named = card_named(str(log.get("log.gpu_name", "")))
    for size in (budget.total if budget else None, printed, named.bytes if named else None):
        if isinstance(size, int) and size > 0:
            return size, True
    worked_out = _worked_out(known, log, seen)
    return None if worked_out is None else (worked_out, False)


def _worked_out(known: LoggedRun, log: Mapping[str, Value], seen: Mapping[str, int]) -> int | None:
    """The card that explains what was seen: vLLM's cache is what the share leaves; SGLang says what is free beside what it loaded."""
    guess = None if known.shape is None else serve_run(known, log, known.shape, CardLookup("", _ANY_CARD))
    if guess is None:
        return None
    return ENGINES[guess.server.program].card_bytes(guess, seen, log)


def _beside(then: Served, before: Served, seen: Mapping[str, int]) -> Served:
    """A server as it would be beside the cache that was seen before: only what a change moves is left to the arithmetic."""
    if "kv cache" not in seen:
        return then
    moves = then.cache.expected - before.cache.expected
    unsure = round(abs(moves - (then.taken - before.taken)) * _UNSURE)
    cache = ByteRange(*(seen["kv cache"] + moves + more for more in (0, -unsure, unsure)))
    return replace(then, cache=cache, checks=tuple(_with(one, then, cache) for one in then.checks))


def _with(check: StartupCheck, then: Served, cache: ByteRange) -> StartupCheck:
    if check.name in ("blocks", "request"):
        return StartupCheck(check.name, cache.less(then.cache.expected - check.spare.expected))
    return check


def _gained(now: Served, then: Served) -> int:
    """How much more is left at the check at which the server fell."""
    fell = now.failed_check
    after = {one.name: one.spare.expected for one in then.checks}
    return 0 if fell is None else max(0, after.get(fell.name, fell.spare.expected) - fell.spare.expected)
