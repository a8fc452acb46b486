"""The first sentence of a report, and the check that would settle an open verdict; all formats share them."""

from __future__ import annotations

from oomdoctor.case.case import Case
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Certainty, Event, Kind
from oomdoctor.case.incident import Incident
from oomdoctor.case.text import Text
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording.texts import PHASES, REASONS, SETTLE, fill, say
from oomdoctor.units import format_size

_DEVICES = {"npu": "NPU", "mps": "MPS", "tpu": "TPU", "xpu": "XPU", "mlu": "MLU", "musa": "MUSA", "gcu": "GCU", "hpu": "HPU"}
_GPU_KINDS = frozenset({Kind.DEVICE_OOM, Kind.MASKED_DEVICE_OOM})


def summary(diagnosis: Diagnosis, lang: str) -> str:
    """The verdict in one sentence."""
    case = diagnosis.case
    incident = case.incidents[0] if case.incidents else None
    title = diagnosis.findings[0].title.get(lang) if diagnosis.findings else None
    return clean_line(_sentence(_reason(case, incident), case, incident, title, lang), 400)


def incident_sentence(incident: Incident, lang: str) -> str:
    """One incident in one sentence."""
    if incident.survived:
        reason = "survived"
    elif incident.kind is Kind.CONSEQUENCE and _is_sigkill(incident.root):
        reason = "killed"
    else:
        reason = incident.kind.value
    return clean_line(_fill(reason, incident, incident.certainty, None, lang), 400)


def settle_text(case: Case, lang: str) -> str | None:
    """What to check to turn a "possible" into a yes or a no; None where nothing is open."""
    key = case.verdict.settle
    if key is None:
        return None
    rank = _first_rank(case) if key == "first-rank-log" else None
    if rank is not None:
        return fill(SETTLE["first-rank-log-known"], lang, rank=rank)
    return fill(SETTLE.get(key, SETTLE["generic"]), lang)


def _reason(case: Case, incident: Incident | None) -> str:
    verdict = case.verdict
    if verdict.settle == "sigkill" and verdict.memory_failure == "possible" and incident and incident.kind is not Kind.HOST_OOM:
        return "killed"
    return verdict.reason or ("survived" if verdict.survived else verdict.kind.value)


def _sentence(reason: str, case: Case, incident: Incident | None, title: str | None, lang: str) -> str:
    if reason not in REASONS:
        return _fill(f"generic-{case.verdict.memory_failure}", incident, case.verdict.certainty, None, lang, case)
    certainty = Certainty.POSSIBLE if case.verdict.memory_failure == "possible" else case.verdict.certainty
    return _fill(reason, incident, certainty, title, lang, case)


def _fill(reason: str, incident: Incident | None, certainty: Certainty, title: str | None, lang: str, case: Case | None = None) -> str:
    template = REASONS.get(reason, REASONS["generic-possible"])
    root = incident.root if incident else None
    text = fill(
        template,
        lang,
        sure=say(f"sure-{certainty.value}", lang),
        memory=_memory(incident, lang),
        place=_place(incident, lang),
        phase=_phase(incident, lang),
        figures=_figures(incident, lang) if incident else "",
        times=say("times", lang, n=incident.count) if incident and incident.count > 1 else say("once", lang),
        what=_what(root, title, lang),
        code=_exit_code(root, lang),
        read=_read(case, lang) if case else "",
        error=clean_line(str(case.facts.get("log.last_error", "")), 200) if case else "",
    )
    return text[:1].upper() + text[1:] if lang != "zh" else text


def _memory(incident: Incident | None, lang: str) -> str:
    if incident is None or not incident.kind.is_memory:
        return say("any-memory", lang)
    if incident.kind in _GPU_KINDS:
        device = next((_DEVICES[part] for part in incident.root.signature.split("-") if part in _DEVICES), None)
        return say("memory-device", lang, device=device) if device else say("memory-gpu", lang)
    return say("memory-shm" if incident.kind is Kind.SHM_OOM else "memory-host", lang)


def _place(incident: Incident | None, lang: str) -> str:
    """` on rank 3 (GPU 3)`; empty where neither is known, or where one process on GPU 0 leaves nothing to tell apart."""
    if incident is None:
        return ""
    root = incident.root
    gpu = root.fields.get("gpu_index")
    if not isinstance(gpu, int):
        gpu = incident.gpus[0] if len(incident.gpus) == 1 and len(incident.ranks) <= 1 else None
    parts = [say(key, lang, n=n) for key, n in (("rank", root.rank), ("gpu", gpu)) if n is not None]
    if not parts:
        return ""
    if lang == "zh":
        return parts[0] + (f"（{parts[1]}）" if parts[1:] else " ")
    return f" on {parts[0]}" + (f" ({parts[1]})" if parts[1:] else "")


def _phase(incident: Incident | None, lang: str) -> str:
    phase = (incident.phase or incident.root.phase) if incident else None
    if not phase or phase == "unknown":
        return ""
    known = PHASES.get(phase)
    words = fill(known, lang) if known else fill(PHASES["generic"], lang, phase=clean_line(phase, 40))
    if lang == "zh":
        return words
    return f", {words}" if _place(incident, lang) else f" {words}"


def _figures(incident: Incident, lang: str) -> str:
    if incident.kind is Kind.HOST_OOM:
        return _victim(incident.root, lang) or _asked(incident.root, lang) or _limit(incident.root, lang)
    if incident.kind is Kind.KERNEL_RESOURCE:
        return _of_limit(incident.root, lang)
    return _asked(incident.root, lang)


def _asked(root: Event, lang: str) -> str:
    asked, free, total, limit = (root.size(f"{name}_bytes") for name in ("requested", "free", "total", "limit"))
    if asked is None:
        return ""
    if total is not None and asked > total:
        return say("asked-above", lang, asked=format_size(asked), total=format_size(total))
    if free is None:
        return say("asked", lang, asked=format_size(asked))
    if free < asked:
        return say("asked-free", lang, asked=format_size(asked), free=format_size(free))
    if limit is not None:
        return say("asked-limit", lang, asked=format_size(asked), free=format_size(free), limit=format_size(limit))
    return say("asked-refused", lang, asked=format_size(asked), free=format_size(free))


def _victim(root: Event, lang: str) -> str:
    name = next((root.fields[key] for key in ("victim_name", "comm", "task") if isinstance(root.fields.get(key), str)), None)
    pid = next((root.fields[key] for key in ("victim_pid", "pid") if isinstance(root.fields.get(key), int)), None)
    if name is None or not root.signature.startswith(("kernel-oom", "memcg")):
        return ""
    victim = clean_line(str(name), 60)
    victim = say("pid", lang, name=victim, pid=pid) if pid is not None else victim
    by = say("by-cgroup" if root.fields.get("scope") == "memcg" else "by-kernel", lang)
    held = root.size("anon_rss_bytes")
    if held is None:
        return say("victim", lang, by=by, victim=victim)
    return say("victim-held", lang, by=by, victim=victim, held=format_size(held))


def _limit(root: Event, lang: str) -> str:
    limit = root.size("limit_bytes")
    return say("limit", lang, limit=format_size(limit)) if limit is not None else ""


def _of_limit(root: Event, lang: str) -> str:
    asked, limit = root.size("shared_mem_required_bytes"), root.size("shared_mem_limit_bytes")
    if asked is None or limit is None:
        return ""
    return say("of-limit", lang, asked=format_size(asked), limit=format_size(limit))


def _what(root: Event | None, title: str | None, lang: str) -> str:
    if title:
        return title.rstrip(" .。")
    if root is None:
        return say("something-else", lang)
    feature = root.fields.get("feature")
    if isinstance(feature, str):
        return say("feature", lang, feature=clean_line(feature, 40))
    last = root.text.strip().rsplit("\n", 1)[-1]
    return say("stopped-with", lang, text=clean_line(last, 120).rstrip(".")) if last else say("something-else", lang)


def _is_sigkill(root: Event) -> bool:
    return root.fields.get("signal") == "SIGKILL" or root.fields.get("exit_code") in (-9, 137)


def _exit_code(root: Event | None, lang: str) -> str:
    code = root.fields.get("exit_code") if root else None
    if isinstance(code, int):
        return say("exit-code", lang, n=code)
    return " " if lang == "zh" else ""


def _first_rank(case: Case) -> int | None:
    for incident in case.incidents[:1]:
        for event in (incident.root, *incident.consequences[:50]):
            for name in ("first_rank", "failed_rank", "rank"):
                rank = event.fields.get(name)
                if isinstance(rank, int):
                    return rank
    return None


def _read(case: Case, lang: str) -> str:
    size = format_size(sum(source.size for source in case.sources))
    if len(case.sources) == 1:
        return f"{case.sources[0].name}, {size}" if lang != "zh" else f"{case.sources[0].name}，{size}"
    return say("files", lang, n=len(case.sources), size=size)


def plain(text: Text | None, lang: str) -> str | None:
    """A text of a rule in `lang`, as one line; None stays None."""
    return None if text is None else clean_line(text.get(lang), 2000)
