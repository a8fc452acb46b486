"""Compare the budget a failed server should have had with what it printed, and report what each fix would change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.diagnosis import Finding, Fix
from oomdoctor.case.event import Value
from oomdoctor.case.incident import Incident
from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.case.serving import ByteRange, Served, ServedRun, StartupCheck
from oomdoctor.case.settings import RunConfig, Scalar
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.server import ServerRecord
from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.memory.inference import keeps_nothing
from oomdoctor.memory.servers.engines import ENGINES
from oomdoctor.planning.memory_budget import budget_from_log
from oomdoctor.planning.observed.expected_vs_observed import weigh_fixes
from oomdoctor.setups.from_log import LoggedRun, run_from_log
from oomdoctor.setups.server import CardLookup, deploy_run, server_record

_UNSURE = 0.3
"""The relative uncertainty of what a change moves, if the cache before it was observed; what the memory fraction gives is certain."""
_CACHE_FIELDS = ("kv_available_bytes", "kv_cache_bytes")
"""What a failure message says about the room for the cache; it may be negative."""
_ANY_CARD = 1 << 36
_BEFORE = "log.initial_free_bytes"
"""What was free before the first of several loads, if a log names several."""


class ServerExpectedVsObserved(Struct, frozen=True):
    """A failed server with a known model on a known GPU."""

    run: LoggedRun
    log: Mapping[str, Value]
    shape: Shape
    record: ServerRecord
    card: CardLookup
    served_run: ServedRun

    def weigh(self, findings: Iterable[Finding], pack: Pack) -> tuple[Finding, ...]:
        """Return the findings with what each fix would give and whether the server would then start; insufficient ones last."""
        weighed = weigh_fixes(findings, pack, self._weigh)
        return tuple(replace(finding, fixes=tuple(sorted(finding.fixes, key=lambda fix: fix.fits == "no"))) for finding in weighed)

    def _weigh(self, fix: Fix, changes: Mapping[str, Scalar]) -> Fix:
        now, before = self.served_run.served, self.served_run.expected
        run = replace(self.run, settings=self.run.settings.with_values(changes))
        changed = _served(run, self.log, self.shape, self.record, self.card)
        if (changed.cache, changed.checks) == (before.cache, before.checks):
            return fix
        then = _with_observed_cache(changed, before, self.served_run.seen)
        if now.failed_check is None:
            # If the memory model does not explain the failure, it promises nothing.
            return fix
        return replace(fix, frees_bytes=_gained(now, then), fits=then.starts)


def server_expected_vs_observed(
    training: RunConfig | None, log: Mapping[str, Value], incident: Incident | None, printed: ServerLedger | None, pack: Pack
) -> ServerExpectedVsObserved | None:
    """Compare a server with its log; None if it is not a server or has no cache, or if model or GPU are unknown.

    `incident` is its failure, if it has one; `printed` is what it printed about the GPU.
    """
    run = run_from_log(training, log)
    record = server_record(run.settings, run.framework, pack)
    if run.shape is None or record is None or keeps_nothing(run.shape):
        return None
    seen = dict(_printed(printed, incident))
    total, is_known = _total(run, run.shape, record, log, incident, printed, seen)
    if total is None:
        return None
    card = CardLookup(str(log.get("log.gpu_name", "")), total)
    expected = _served(run, log, run.shape, record, card)
    served = ServedRun(
        served=_with_observed_cache(expected, expected, seen),
        expected=expected,
        seen=seen,
        seen_tokens=None if printed is None else printed.full_tokens,
        total_is_known=is_known,
        has_served="log.serving" in log,
    )
    return ServerExpectedVsObserved(run, log, run.shape, record, card, served)


def _served(run: LoggedRun, log: Mapping[str, Value], shape: Shape, record: ServerRecord, card: CardLookup) -> Served:
    """Return how the log's release, or otherwise the newest, uses the GPU: what the log shows comes from one release."""
    return deploy_run(run, log, shape, record, card).newest()


def _printed(ledger: ServerLedger | None, incident: Incident | None) -> Iterable[tuple[str, int]]:
    """Yield what the log shows, by the names of terms; for the cache, the failure takes precedence over the plan."""
    fields = _CACHE_FIELDS if incident is not None else ()
    failed = next((size for name in fields if incident is not None and (size := incident.root.size(name)) is not None), None)
    if ledger is not None:
        parts = {
            "weights": ledger.weights,
            "outside torch": ledger.outside,
            "working set": ledger.activations,
            "cuda graphs": ledger.graphs,
            "kv cache": ledger.cache,
        }
        yield from ((name, size) for name, size in parts.items() if size is not None and (name != "kv cache" or failed is None))
    if failed is not None:
        yield "kv cache", failed


def _total(
    run: LoggedRun,
    shape: Shape,
    record: ServerRecord,
    log: Mapping[str, Value],
    incident: Incident | None,
    printed: ServerLedger | None,
    seen: Mapping[str, int],
) -> tuple[int | None, bool]:
    """Return the bytes of the GPU, and whether the log or the GPU name gives them; otherwise what explains the rest."""
    budget = None if incident is None else budget_from_log(incident.root, log)
    card = card_named(str(log.get("log.gpu_name", "")))
    told = None if printed is None else printed.total
    for size in (budget.total if budget else None, told, log.get("log.total_bytes"), card.bytes if card else None):
        if isinstance(size, int) and size > 0:
            return size, True
    guess = _served(run, log, shape, record, CardLookup("", _ANY_CARD))
    started = None if printed is None else printed.initial_free
    return ENGINES[record.engine].card_bytes(guess, seen, log if started is None else {**log, _BEFORE: started}), False


def _with_observed_cache(changed: Served, before: Served, seen: Mapping[str, int]) -> Served:
    """Return the changed server with the observed cache plus what the change moves, if a cache was observed."""
    if "kv cache" not in seen:
        return changed
    moved = changed.cache.expected - before.cache.expected
    unsure = round(abs(moved - (changed.taken - before.taken)) * _UNSURE)
    cache = ByteRange(*(seen["kv cache"] + moved + more for more in (0, -unsure, unsure)))
    return replace(changed, cache=cache, checks=tuple(_with_cache(check, changed, cache) for check in changed.checks))


def _with_cache(check: StartupCheck, served: Served, cache: ByteRange) -> StartupCheck:
    if check.name in ("blocks", "request"):
        return StartupCheck(check.name, cache.less(served.cache.expected - check.spare.expected))
    return check


def _gained(now: Served, then: Served) -> int:
    """Return how much more is left at the check that failed."""
    failed = now.failed_check
    spare = {check.name: check.spare.expected for check in then.checks}
    return 0 if failed is None else max(0, spare.get(failed.name, failed.spare.expected) - failed.spare.expected)
