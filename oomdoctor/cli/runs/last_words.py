"""What is said when a watched command has ended."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from oomdoctor.case.text import Text
from oomdoctor.record.attend import WatchedRun, write_environment
from oomdoctor.record.command.launch import Launched, given_environment
from oomdoctor.record.evidence import REPORT, RunRecord
from oomdoctor.record.evidence_place import RANKS
from oomdoctor.record.first_failure import FirstFailure, claim, read_first, wait_for_first
from oomdoctor.record.watch import AnyLaunched

if TYPE_CHECKING:
    from oomdoctor.case.diagnosis import Diagnosis

_BUDGET, _BUDGET_WHEN_STOPPED = 300.0, 20.0
"""Seconds; whoever stops a run waits 30 s (Kubernetes, Slurm) before it kills."""

_NO_MEMORY = Text("{how}; no sign of a memory failure; evidence in {folder}", "{how}；没有内存故障的迹象；证据在 {folder}")
_UNSEEN = Text(
    "{how}; its output was not captured, so the cause is unknown (oomdoctor run --log FILE reads it); evidence in {folder}",
    "{how}；没有看到命令的输出，原因还不能判断（可用 oomdoctor run --log 文件）；证据在 {folder}",
)
_EVIDENCE = Text("evidence in {folder}", "证据在 {folder}")
_NO_EVIDENCE = Text("{how}; nothing was recorded: {why}", "{how}；没有留下记录：{why}")
_ELSEWHERE = Text("nothing could be written to {path} ({why}); the evidence is in {folder}", "无法写入 {path}（{why}）；证据在 {folder}")
_NO_ROOM = Text("there was no space left", "没有空间了")
_AFTER_ANOTHER = Text(
    "rank {rank}: {how}, after rank {first} failed; see the report for rank {first}, evidence in {folder}",
    "rank {rank}：{how}，在此之前 rank {first} 已失败；报告见 rank {first}，证据在 {folder}",
)
_ENDED_BY_LAUNCHER = Text("rank {rank}: {how}; evidence in {folder}", "rank {rank}：{how}；证据在 {folder}")
_OTHERS = 5.0
"""Seconds in which the task that failed first says so; those that fail of it are often gone before it."""
_ASKED_TO_END = (signal.SIGTERM, signal.SIGINT)
_NEAR = Text("{what} was nearly full (above 97 %); evidence in {folder}", "{what} 几乎用满（超过 97 %）；证据在 {folder}")
_RETRY = Text("attempt {attempt} of {all}, with {fixes}: {command}", "第 {attempt} 次尝试（共 {all} 次），改动：{fixes}；命令：{command}")
_NO_RETRY = Text("no further attempt: {why}", "不再重试：{why}")
_EXIT, _SIGNAL = Text("exit code {code}", "退出码 {code}"), Text("killed by {name}", "被 {name} 终止")


def describe(python: str | None) -> bytes:
    """Return this machine and an interpreter as `oomdoctor env --format json` does."""
    machine = import_module("oomdoctor.api.environment").environment(None, python=python)
    env = import_module("oomdoctor.cli.env")
    wording = import_module("oomdoctor.report.wording.wording").Wording("en")
    text: str = env.render(machine.environment, machine.findings, "json", wording, redact=True, to_terminal=False)
    return text.encode("utf-8", "replace")


def last_words(
    launched: AnyLaunched,
    run: WatchedRun,
    *,
    keep: bool,
    quiet: bool,
    say: Callable[[str], None],
    retries: int = 0,
    allowed: Sequence[str] = (),
) -> None:
    """Say what a run died of, or nothing where it went well; keep of its evidence what is worth it."""
    if run.folder.path is None:
        if not quiet and (run.status != 0 or keep):
            why = "; ".join(f"{gap.what}: {gap.why}" for gap in run.folder.gaps)
            say(_NO_EVIDENCE.get(_language()).format(how=_how(run.record), why=why))
        return
    folder = _short(run.folder.path) if run.record.cwd else run.folder.path
    elsewhere = [*run.folder.failed, *([(run.folder.moved_from, "")] if run.folder.moved_from else [])]
    if elsewhere and not quiet and (run.status != 0 or keep):
        say(_ELSEWHERE.get(_language()).format(path=elsewhere[0][0], why=elsewhere[0][1] or _NO_ROOM.get(_language()), folder=folder))
    if run.status != 0 and run.record.rank is not None and run.folder.path is not None:
        _of_a_task(launched, run, run.folder.path, say, quiet=quiet)
    elif run.status != 0:
        tries = retries if not run.stopped else 0
        if tries or not quiet:
            budget = _BUDGET_WHEN_STOPPED if run.stopped else _BUDGET
            launched.aside(lambda: _diagnose(run, folder, say, quiet=quiet, tries=tries, allowed=allowed), budget)
    elif run.near is not None and not quiet:
        say(_NEAR.get(_language()).format(what=run.near, folder=folder))
    elif not keep and not _is_worth_keeping(run):
        run.folder.remove()


def _of_a_task(launched: AnyLaunched, run: WatchedRun, path: str, say: Callable[[str], None], *, quiet: bool) -> None:
    """Say the report where this task failed first, and a line where another one did, or where its launcher ended it."""
    job = os.path.dirname(path)
    me = FirstFailure(rank=run.record.rank or 0, folder=os.path.basename(path))
    if run.stopped or run.record.signal in _ASKED_TO_END:
        first = wait_for_first(job, _OTHERS)
    elif (first := read_first(job)) is None:
        budget = _BUDGET
        launched.aside(lambda: _claim(run, job, me, say, quiet=quiet), budget)
        return
    if not quiet:
        say(_line_of(run, job, first))


def _claim(run: WatchedRun, job: str, me: FirstFailure, say: Callable[[str], None], *, quiet: bool) -> None:
    """Diagnose a task, and say it where none failed before: at once where its memory ran out, else once the others had time to say so."""
    path = os.path.join(job, me.folder)
    diagnosis = import_module("oomdoctor.api.diagnose").diagnose([path], environment=None)
    waiting = diagnosis.case.verdict.memory_failure != "yes"
    first = (wait_for_first(job, _OTHERS) if waiting else None) or claim(job, me)
    if first == me:
        _diagnose(run, _short(path), say, quiet=quiet, tries=0, allowed=())
    elif not quiet:
        say(_line_of(run, job, first))


def _line_of(run: WatchedRun, job: str, first: FirstFailure | None) -> str:
    """Return the line of a task that did not fail first."""
    text = _AFTER_ANOTHER if first is not None else _ENDED_BY_LAUNCHER
    rank = first.rank if first is not None else None
    return text.get(_language()).format(rank=run.record.rank, how=_how(run.record), first=rank, folder=_short(job))


def _short(path: str) -> str:
    """Return a path as it is from here where it lies below, else as it is."""
    inside = os.path.relpath(path)
    return path if inside.startswith(os.pardir) else inside


def try_again(launched: AnyLaunched, run: WatchedRun, options: Sequence[str], retries: int) -> None:
    """Become the next attempt, where one was planned; come back where there is none."""
    plan = _retries().read_retry(run.folder.path or "") if run.status != 0 and retries and not run.stopped else None
    if plan is None or not plan.command or not isinstance(launched, Launched) or run.folder.path is None:
        return
    attempt = run.record.attempt
    run.folder.set_aside(attempt)
    script = [sys.argv[0]] if os.path.isfile(sys.argv[0]) and not sys.argv[0].endswith("__main__.py") else ["-m", "oomdoctor"]
    tries = ("--attempt", str(attempt + 1), "--retry", str(retries - 1), "--out", run.folder.path)
    launched.replace([sys.executable, *script, "run", *options, *tries, "--", *plan.command], given_environment())


def _retries() -> Any:
    """Return what plans another attempt, which loads what changes configs."""
    return import_module("oomdoctor.api.runs.retry")


def _plan(run: WatchedRun, diagnosis: Diagnosis, tries: int, allowed: Sequence[str]) -> str:
    """Write what the next attempt is; return it in words."""
    plan = _retries().plan_retry(diagnosis, run.record.command, run.folder.path or "", run.record.attempt, allowed)
    run.folder.write(_retries().RETRY, _retries().encode_retry(plan))
    if plan.why_not is not None:
        return _NO_RETRY.get(_language()).format(why=plan.why_not)
    attempt = run.record.attempt + 1
    last, fixes = attempt + tries - 1, ", ".join(plan.changed)
    return _RETRY.get(_language()).format(attempt=attempt, all=last, fixes=fixes, command=import_module("shlex").join(plan.command))


def _diagnose(run: WatchedRun, folder: str, say: Callable[[str], None], *, quiet: bool, tries: int, allowed: Sequence[str]) -> None:
    """Write report.json and say the diagnosis on standard error; with `tries` left plan the next attempt."""
    os.dup2(2, 1)
    path = run.folder.path or folder
    write_environment(run.folder, run.record.command, describe)
    words = import_module("oomdoctor.cli.diagnose")
    diagnosis = import_module("oomdoctor.api.diagnose").diagnose([path], environment=None)
    wording = import_module("oomdoctor.report.wording.wording").Wording(_language())
    run.folder.write(REPORT, words.render(diagnosis, "json", wording, redact=True, to_terminal=False).encode("utf-8", "replace"))
    next_ = _plan(run, diagnosis, tries, allowed) if tries else None
    if quiet:
        return
    verdict = diagnosis.case.verdict
    if verdict.memory_failure == "no" or verdict.reason == "output-unseen":
        text = _NO_MEMORY if verdict.memory_failure == "no" else _UNSEEN
        say(text.get(_language()).format(how=_how(run.record), folder=folder))
        return
    text = words.render(diagnosis, "terminal", wording, redact=True, to_terminal=True)
    import_module("oomdoctor.cli.output").write(text, None)
    say(_EVIDENCE.get(_language()).format(folder=folder))
    if next_ is not None:
        say(next_)


def _how(record: RunRecord) -> str:
    """Return how a command ended, in words."""
    if record.signal is None:
        return _EXIT.get(_language()).format(code=record.exit_code)
    try:
        name = signal.Signals(record.signal).name
    except ValueError:
        name = f"signal {record.signal}"
    return _SIGNAL.get(_language()).format(name=name)


def _is_worth_keeping(run: WatchedRun) -> bool:
    """Return whether a run that went well had a failure that it survived, or left somebody behind."""
    counters = run.record.counters
    if run.near is not None or run.record.survivors or (counters is not None and counters.oom_kill):
        return True
    try:
        return any(".oom-" in name for name in os.listdir(os.path.join(run.folder.path or "", RANKS)))
    except OSError:
        return False


def _language() -> str:
    named = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
    return "zh" if named.lower().startswith("zh") else "en"
