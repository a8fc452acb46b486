"""The hooks of the plugin: which tests are measured, what each is held against, and what its report is given.

Tests without a mark cost two calls of a hook. What a report, the baseline or the messages take is loaded when there is one.
"""

from __future__ import annotations

from collections.abc import Generator
from importlib import import_module
from typing import Any

import pytest

from oomdoctor.errors import OomdoctorError
from oomdoctor.pytest_plugin.devices import used_devices
from oomdoctor.pytest_plugin.marks import LeakMark, MarkError, PeakMark, Tolerance, leak_mark, peak_mark, read_size, read_tolerance

PEAK, DEVICE = "gpu_memory_peak_bytes", "gpu_memory_device"
"""Properties of a measured test: they are in JUnit's XML, and reach the main process from the workers of xdist."""
_PEAK_MARK, _LEAK_MARK = pytest.StashKey[PeakMark](), pytest.StashKey[LeakMark]()
_ERROR = pytest.StashKey[BaseException]()
_CLAIMS = (AssertionError, pytest.fail.Exception)
"""What a test claims of its results may speak of memory, and is no failure of it."""


class MemoryOfTests:
    """Measures the tests of a session."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        self._path: str | None = option.gpu_memory_baseline
        self._writes = bool(option.gpu_memory_write)
        self._debugs = bool(option.usepdb or option.trace)
        self._is_worker = hasattr(config, "workerinput")
        self._measured: dict[str, int] = {}
        self._device: str | None = None
        self._not_compared = 0
        self._lines: list[str] = []
        try:
            self._tolerance = Tolerance()
            if option.gpu_memory_tolerance is not None:
                self._tolerance = read_tolerance(option.gpu_memory_tolerance, "--gpu-memory-tolerance")
            self._most = None if option.max_vram is None else read_size(option.max_vram, "--max-vram")
            self._baseline = self._read_baseline()
        except (MarkError, OomdoctorError) as why:
            raise pytest.UsageError(str(why)) from None

    def _read_baseline(self) -> Any:
        if self._path is None:
            if self._writes:
                raise MarkError("--gpu-memory-write needs a file: --gpu-memory-baseline FILE")
            return None
        return import_module("oomdoctor.pytest_plugin.baseline").read_baseline(self._path, must_exist=not self._writes)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Read the marks, and skip what needs more than there is."""
        for item in items:
            peak, leak = peak_mark(item), leak_mark(item)
            if peak is not None:
                item.stash[_PEAK_MARK] = peak
            if leak is not None:
                item.stash[_LEAK_MARK] = leak
        if self._most is not None:
            self._skip_too_large(items, self._most)

    def _skip_too_large(self, items: list[pytest.Item], most: int) -> None:
        kept = {} if self._baseline is None else self._baseline.peaks
        needs = import_module("oomdoctor.pytest_plugin.needs").MemoryNeeds(kept)
        for item in items:
            need = needs.of(key_of_test(item.nodeid), item.stash.get(_PEAK_MARK, None))
            if need is not None and need.bytes > most:
                reason = _messages().needs_too_much(need.bytes, need.source, most)
                item.add_marker(pytest.mark.skip(reason=reason), append=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure a test while it runs; one that passes and took too much, or leaks, fails."""
        mark, leak = item.stash.get(_PEAK_MARK, None), item.stash.get(_LEAK_MARK, None)
        if mark is None and leak is None and self._baseline is None:
            return (yield)
        peaks = import_module("oomdoctor.pytest_plugin.peaks")
        before = peaks.begin_peaks()
        outcome = yield
        peak = peaks.largest_peak(before)
        if peak is not None:
            item.user_properties += [(PEAK, peak.of_test), (DEVICE, peak.title)]
            self._hold_against_limit(peak, mark)
            self._hold_against_kept(peak, mark, key_of_test(item.nodeid))
            if leak is not None:
                _fail_of_leak(item, leak)
        return outcome

    def _hold_against_limit(self, peak: Any, mark: PeakMark | None) -> None:
        if mark is None or mark.limit is None:
            return
        of_process = mark.of == "process"
        if (peak.of_process if of_process else peak.of_test) > mark.limit:
            pytest.fail(_messages().above_limit(peak, mark.limit, of_process=of_process), pytrace=False)

    def _hold_against_kept(self, peak: Any, mark: PeakMark | None, key: str) -> None:
        kept = None if self._baseline is None or self._writes else self._baseline.peaks.get(key)
        if kept is None:
            return
        is_marked = mark is not None and mark.tolerance is not None
        most = (read_tolerance(mark.tolerance, "tolerance") if is_marked and mark is not None else self._tolerance).most(kept)
        if peak.of_test > most:
            pytest.fail(_messages().above_kept(peak, kept, most, self._path, self._baseline.device), pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give the report of a failure its diagnosis, and that of the end what the traceback held."""
        report = yield
        error = call.excinfo.value if call.excinfo is not None else None
        if error is not None and report.failed:
            if not isinstance(error, _CLAIMS):
                self._diagnose(report, error)
            if next(used_devices(), None) is not None:
                item.stash[_ERROR] = error
        if call.when == "teardown" and _ERROR in item.stash:
            self._release(report, item.stash[_ERROR])
            del item.stash[_ERROR]
        return report

    def _diagnose(self, report: pytest.TestReport, error: BaseException) -> None:
        """Add the diagnosis of what looks like a failure of memory; where that itself fails, the report is as it was."""
        if not import_module("oomdoctor.record.injected.failures").is_memory_failure(error):
            return
        try:
            text = import_module("oomdoctor.pytest_plugin.diagnosis").short_diagnosis(error)
        except Exception as why:  # noqa: BLE001 - a failure of ours must not hide that of the test
            text = f"oomdoctor: {type(why).__name__}: {why}"
        if text:
            report.sections.append(("oomdoctor", text))

    def _release(self, report: pytest.TestReport, error: BaseException) -> None:
        """Free what the traceback holds, unless somebody debugs, and name it."""
        if self._debugs:
            return
        by = import_module("oomdoctor.pytest_plugin.tracebacks").release_traceback(error)
        if by is not None:
            report.sections.append(("oomdoctor after teardown", _messages().held(by)))
            report.user_properties.append(("gpu_memory_held_by_traceback_bytes", by.bytes))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the peaks of tests that passed, in the process that writes them."""
        if self._is_worker or self._path is None or report.when != "call" or not report.passed:
            return
        measured = dict(report.user_properties)
        peak, key = measured.get(PEAK), key_of_test(report.nodeid)
        if isinstance(peak, int):
            self._measured[key] = peak
            self._device = str(measured.get(DEVICE))
            self._not_compared += key not in self._baseline.peaks

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Keep the peaks, where that was asked for."""
        if self._is_worker or self._path is None:
            return
        if not self._writes:
            if self._not_compared:
                self._lines.append(_messages().not_compared(self._path, self._not_compared))
            return
        try:
            if self._measured:
                baseline = import_module("oomdoctor.pytest_plugin.baseline")
                baseline.write_baseline(self._path, self._baseline, self._measured, self._device)
            self._lines.append(_messages().peaks_kept(self._path, len(self._measured)))
        except OSError as why:
            self._lines.append(_messages().not_written(self._path, why.strerror or str(why)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was kept, and what could not be compared."""
        for line in self._lines:
            terminalreporter.write_line(line)


def key_of_test(nodeid: str) -> str:
    """Return the name of a test without the group that `--dist loadgroup` of xdist adds to it."""
    return nodeid.rpartition("@")[0] if nodeid.rfind("@") > max(nodeid.rfind("]"), nodeid.rfind("::")) else nodeid


def _fail_of_leak(item: pytest.Item, mark: LeakMark) -> None:
    leak = import_module("oomdoctor.pytest_plugin.leaks").find_leak(item.runtest, mark)
    if leak is not None:
        pytest.fail(_messages().leaks(leak), pytrace=False)


def _messages() -> Any:
    """Return the texts, which load the structures of the report."""
    return import_module("oomdoctor.pytest_plugin.messages")
