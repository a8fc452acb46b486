"""The first sentence of a report, and the check that would settle an open verdict; all formats share them."""

from __future__ import annotations

import re

from oomdoctor.case.case import Case
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Certainty, Event, Kind
from oomdoctor.case.incident import Incident
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.certainty import is_kill, is_told_by_message, verdict_certainty
from oomdoctor.report.diagnosis.places import event_text
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.phrases import bare, lower_first
from oomdoctor.report.wording.texts import HOST_CAUSES, PHASES, REASONS, SETTLE, gap_text
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_DEVICES = {"npu": "NPU", "mps": "MPS", "tpu": "TPU", "xpu": "XPU", "mlu": "MLU", "musa": "MUSA", "gcu": "GCU", "hpu": "HPU"}
_MANAGERS = ("slurm", "k8s", "docker")
"""Programs that say how a job ended, by the beginnings of the ids of their messages."""
_GPU_KINDS = frozenset({Kind.DEVICE_OOM, Kind.MASKED_DEVICE_OOM})

_SEAM = r"(?<=[\u4e00-\u9fff])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u4e00-\u9fff])"
"""Where Chinese and Latin words meet, which a blank keeps apart."""


def summary(diagnosis: Diagnosis, wording: Wording) -> str:
    """Return the verdict in one sentence."""
    case = diagnosis.case
    incident = case.incidents[0] if case.incidents else None
    is_titled = diagnosis.findings and not is_told_by_message(diagnosis)
    title = wording.say(diagnosis.findings[0].title) if is_titled else None
    reason = _reason(diagnosis, incident)
    if reason == Kind.HOST_OOM.value:
        reason = _whose_limit(diagnosis)
    return clean_line(_sentence(reason, case, incident, verdict_certainty(diagnosis), title, wording), 400)


def has_figures(incident: Incident) -> bool:
    """Return whether the sentence on an incident tells its figures."""
    return bool(_figures(incident, Wording("en")))


def _whose_limit(diagnosis: Diagnosis) -> str:
    """Return whether it was the host that had no memory left, or a limit below it, as the first finding and the samples tell."""
    first = diagnosis.findings[0] if diagnosis.findings else None
    limit = HOST_CAUSES.get(first.cause) if first is not None and first.cause is not None else None
    if limit is not None and first is not None and first.confidence is diagnosis.case.verdict.certainty:
        return limit
    if diagnosis.case.incidents and diagnosis.case.incidents[0].root.fields.get("scope") == "memcg":
        return HOST_CAUSES["container-memory-limit"]
    had_room = any(event.fields.get("host_had_room") == "true" for event in diagnosis.case.events)
    return "host-oom-with-room" if had_room else Kind.HOST_OOM.value


def incident_sentence(incident: Incident, wording: Wording) -> str:
    """One incident in one sentence."""
    if incident.survived:
        reason = "survived"
    elif incident.kind is Kind.CONSEQUENCE and is_kill(incident.root):
        reason = "killed"
    elif incident.root.fields.get("scope") == "memcg":
        reason = "host-oom-at-a-limit"
    else:
        reason = incident.kind.value
    return clean_line(_fill(reason, incident, incident.certainty, None, wording), 400)


def settle_text(case: Case, wording: Wording) -> str | None:
    """Return what to check to turn a "possible" into a yes or a no; None where nothing is open."""
    key = case.verdict.settle
    if key is None:
        return None
    rank = _first_rank(case) if key == "first-rank-log" else None
    if rank is not None:
        return wording.say(SETTLE["first-rank-log-known"], rank=rank)
    return wording.say(SETTLE.get(f"{key}-{_manager(case)}", SETTLE.get(key, SETTLE["generic"])))


def _manager(case: Case) -> str | None:
    """Return what ran the job or container, as the programs tell whose messages the log holds."""
    return next((name for name in _MANAGERS for event in case.events if event.signature.startswith(name)), None)


def _reason(diagnosis: Diagnosis, incident: Incident | None) -> str:
    verdict = diagnosis.case.verdict
    is_open = verdict_certainty(diagnosis) is Certainty.POSSIBLE
    if verdict.settle == "sigkill" and is_open and incident and (incident.kind is not Kind.HOST_OOM or is_kill(incident.root)):
        return "killed"
    return verdict.reason or ("survived" if verdict.survived else verdict.kind.value)


def _sentence(reason: str, case: Case, incident: Incident | None, certainty: Certainty, title: str | None, wording: Wording) -> str:
    if reason not in REASONS:
        return _fill(f"generic-{case.verdict.memory_failure}", incident, certainty, None, wording, case)
    return _fill(reason, incident, certainty, title, wording, case)


def _fill(
    reason: str, incident: Incident | None, certainty: Certainty, title: str | None, wording: Wording, case: Case | None = None
) -> str:
    template = REASONS.get(reason, REASONS["generic-possible"])
    root = incident.root if incident else None
    text = wording.say(
        template,
        sure=wording.say(labels.SURE[certainty.value]),
        memory=_memory(incident, wording),
        place=_place(incident, wording),
        first=_first(incident, wording),
        phase=_phase(incident, wording),
        figures=_figures(incident, wording) if incident else "",
        times=wording.say(labels.TIMES, n=incident.count) if incident and incident.count > 1 else wording.say(labels.ONCE),
        what=_what(root, title, wording),
        code=_exit_code(root, wording),
        end=_end(root, wording),
        read=_read(case, wording) if case else "",
        unread=_unread(case, wording) if case and reason == "not-read-whole" else "",
        **(_runs(case, wording) if case and case.runs else {}),
        error=clean_line(str(case.facts.get("log.last_error", "")), 200) if case else "",
    )
    return re.sub(_SEAM, " ", text) if wording.is_chinese else text[:1].upper() + text[1:]


def _runs(case: Case, wording: Wording) -> dict[str, object]:
    """Return how many of several runs came to what."""
    outcomes = [line.verdict.memory_failure for line in case.runs if line.failed]
    parts = [(labels.RUNS_YES, "yes"), (labels.RUNS_POSSIBLE, "possible"), (labels.RUNS_OTHER, "no")]
    counts = [wording.count(label, outcomes.count(outcome)) for label, outcome in parts if outcome in outcomes]
    return {"runs": wording.count(labels.RUNS, len(case.runs)), "counts": wording.comma.join(counts)}


def _memory(incident: Incident | None, wording: Wording) -> str:
    if incident is None or not incident.kind.is_memory:
        return wording.say(labels.ANY_MEMORY)
    if incident.kind in _GPU_KINDS:
        device = _device(incident)
        return wording.say(labels.MEMORY_DEVICE, device=device) if device else wording.say(labels.MEMORY_GPU)
    return wording.say(labels.MEMORY_SHM if incident.kind is Kind.SHM_OOM else labels.MEMORY_HOST)


def _device(incident: Incident) -> str | None:
    """Return what an accelerator is called that is no GPU; None for GPUs."""
    return next((_DEVICES[part] for part in incident.root.signature.split("-") if part in _DEVICES), None)


def _place(incident: Incident | None, wording: Wording) -> str:
    """` on rank 3 (GPU 3)`; empty where neither is known, or where one process on GPU 0 leaves nothing to tell apart."""
    if incident is None:
        return ""
    root = incident.root
    gpu = root.fields.get("gpu_index")
    if not isinstance(gpu, int):
        gpu = incident.gpus[0] if len(incident.gpus) == 1 and len(incident.ranks) <= 1 else None
    rank = [wording.say(labels.RANK, n=root.rank)] if root.rank is not None else []
    card = [wording.say(labels.GPU, n=gpu).replace("GPU", _device(incident) or "GPU")] if gpu is not None else []
    parts = [*rank, *card]
    if not parts:
        return ""
    if wording.is_chinese:
        return parts[0] + (f"（{parts[1]}）" if parts[1:] else " ")
    return f" on {parts[0]}" + (f" ({parts[1]})" if parts[1:] else "")


def _first(incident: Incident | None, wording: Wording) -> str:
    """Return which of several ranks failed first, as a sentence before what it failed with."""
    rank = incident.root.rank if incident is not None else None
    return "" if rank is None else wording.say(labels.FAILED_FIRST, n=rank)


def _phase(incident: Incident | None, wording: Wording) -> str:
    phase = (incident.phase or incident.root.phase) if incident else None
    if not phase or phase == "unknown":
        return ""
    known = PHASES.get(phase)
    name = wording.say(known) if known else wording.say(PHASES["generic"], phase=clean_line(phase, 40))
    if wording.is_chinese:
        return name
    return f", {name}" if _place(incident, wording) else f" {name}"


def _figures(incident: Incident, wording: Wording) -> str:
    if incident.kind is Kind.HOST_OOM:
        return _victim(incident.root, wording) or _requested(incident.root, wording) or _limit(incident.root, wording)
    if incident.kind is Kind.KERNEL_RESOURCE:
        return _of_limit(incident.root, wording)
    return _requested(incident.root, wording) or _cache(incident.root, wording)


def _cache(root: Event, wording: Wording) -> str:
    """Return what a server's cache needs and what is left for it."""
    needed, left = root.size("kv_needed_bytes"), root.size("kv_available_bytes")
    if needed is None or left is None:
        return ""
    return wording.say(labels.CACHE_NEEDS, needed=format_size(needed), left=format_size(left))


def _requested(root: Event, wording: Wording) -> str:
    requested, free, total, limit = (root.size(f"{name}_bytes") for name in ("requested", "free", "total", "limit"))
    if requested is None:
        return ""
    if total is not None and requested > total:
        return wording.say(labels.ASKED_ABOVE, asked=format_size(requested), total=format_size(total))
    if free is None:
        return wording.say(labels.ASKED, asked=format_size(requested))
    if free < requested and total is not None:
        return wording.say(labels.ASKED_FREE_OF, asked=format_size(requested), free=format_size(free), total=format_size(total))
    if free < requested:
        return wording.say(labels.ASKED_FREE, asked=format_size(requested), free=format_size(free))
    if limit is not None:
        return wording.say(labels.ASKED_LIMIT, asked=format_size(requested), free=format_size(free), limit=format_size(limit))
    return wording.say(labels.ASKED_REFUSED, asked=format_size(requested), free=format_size(free))


def _victim(root: Event, wording: Wording) -> str:
    name = next((root.fields[key] for key in ("victim_name", "comm", "task") if isinstance(root.fields.get(key), str)), None)
    pid = next((root.fields[key] for key in ("victim_pid", "pid") if isinstance(root.fields.get(key), int)), None)
    if name is None or not root.signature.startswith(("kernel-oom", "memcg")):
        return ""
    victim = clean_line(str(name), 60)
    victim = wording.say(labels.PID, name=victim, pid=pid) if pid is not None else victim
    by = wording.say(labels.BY_KERNEL)
    held = root.size("anon_rss_bytes")
    if held is None:
        return wording.say(labels.VICTIM, by=by, victim=victim)
    return wording.say(labels.VICTIM_HELD, by=by, victim=victim, held=format_size(held))


def _limit(root: Event, wording: Wording) -> str:
    limit = root.size("limit_bytes")
    return wording.say(labels.LIMIT, limit=format_size(limit)) if limit is not None else ""


def _of_limit(root: Event, wording: Wording) -> str:
    required, limit = root.size("shared_mem_required_bytes"), root.size("shared_mem_limit_bytes")
    if required is None or limit is None:
        return ""
    return wording.say(labels.OF_LIMIT, asked=format_size(required), limit=format_size(limit))


def _what(root: Event | None, title: str | None, wording: Wording) -> str:
    if title:
        return lower_first(bare(title))
    if root is None:
        return wording.say(labels.SOMETHING_ELSE)
    feature = root.fields.get("feature")
    if isinstance(feature, str):
        return wording.say(labels.FEATURE, feature=clean_line(feature, 40))
    last = event_text(root, wording).strip().rsplit("\n", 1)[-1]
    return bare(clean_line(last, 200)) if last else wording.say(labels.SOMETHING_ELSE)


def _exit_code(root: Event | None, wording: Wording) -> str:
    code = root.fields.get("exit_code") if root else None
    if isinstance(code, int):
        return wording.say(labels.EXIT_CODE, n=code)
    return wording.say(Text("", " "))


def _end(root: Event | None, wording: Wording) -> str:
    """Return how a command ended, in words."""
    code, name = (root.fields.get("exit_code"), root.fields.get("signal")) if root else (None, None)
    return str(name) if name is not None else wording.say(labels.PLAIN_EXIT_CODE, n=code if code is not None else "?")


def _first_rank(case: Case) -> int | None:
    for incident in case.incidents[:1]:
        for event in (incident.root, *incident.consequences[:50]):
            for name in ("first_rank", "failed_rank", "rank"):
                rank = event.fields.get(name)
                if isinstance(rank, int):
                    return rank
    return None


def _read(case: Case, wording: Wording) -> str:
    size = format_size(sum(source.size for source in case.sources))
    if len(case.sources) == 1:
        return case.sources[0].name + wording.comma + size
    return wording.count(labels.FILES, len(case.sources), size=size)


def _unread(case: Case, wording: Wording) -> str:
    """Return what could not be read, and why; of several the first."""
    gap = next((gap for gap in case.gaps if gap.what in case.not_read), None)
    return "" if gap is None else f"{gap.what}{wording.colon}{gap_text(gap.why, wording)}"


def plain(text: Text | None, wording: Wording) -> str | None:
    """Return a text of a rule as one line; None stays None."""
    return None if text is None else clean_line(wording.say(text), 2000)
