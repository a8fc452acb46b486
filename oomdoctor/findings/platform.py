"""The kind of machine on which a run died, as far as paths and names in its log show it: what settles a question differs between them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SIGNS = (
    ("managed-job", r"\bsagemaker\b|/opt/ml/(?:code|model|input)\b|\bvertex[ _-]?ai\b|/gcs/|\bazureml\b"),
    ("kubernetes", r"\bkubelet\b|\bOOMKilled\b|\bkubectl\b|\bpod/|\bCrashLoopBackOff\b|/var/run/secrets/kubernetes"),
    ("macos", r"/Users/\w|/opt/homebrew/|\bmacOS\b|\bDarwin\b|\bggml_metal_|\bMPS backend\b|\bMTLBuffer\b|\.dylib\b|\[METAL\]|\bkIOGPU"),
    ("windows", r"(?:^|[\s\"'(=])[A-Za-z]:\\|\bWinError\b|\.dll\b|\bPowerShell\b|PS [A-Z]:"),
    ("container", r"\bdocker(?:d|-compose)?\b|\bcontainerd\b|\bpodman\b|/overlay2/|\bcontainer exited\b|\bexited with code 137\b"),
)
"""The first match counts: a managed job runs in a container, and so does a pod."""


_PYTHON = re.compile(
    r"\.py\b|\b(?:python[\d.]*|(?:py)?torch|transformers|diffusers|deepspeed|site-packages|conda|checkpoint shards)\b"
    r"|\bCUDA out of memory\. Tried\b|\bTORCH_|\bTraceback \(most recent"
    r"|\b(?:Assertion|Attribute|FileNotFound|Import|Memory|ModuleNotFound|NotImplemented|OS|Runtime|Type|Value)Error: ",
    re.IGNORECASE,
)
_NATIVE = re.compile(
    r"\bggml|\bllama[-_.](?:cpp|server|cli|box|bench)|\bwhisper\.cpp|\.(?:cu|cpp|cc|c|rs|go|swift)(?::\d|[,(]? line \d)|\bgoroutine \d"
)
_CARDS = (
    ("amd-apu", r"\bgfx115[0-3]\b|\bRadeon 8\d{2}0S\b|\bStrix Halo\b|\bRyzen AI Max|\bGTT memory\b"),
    ("spark", r"\bGB10\b|\bDGX Spark\b"),
    ("blackwell", r"\bsm_1(?:0[013]|10|2[01])|(?<!\d)50[5-9]0(?:\s?(?:Ti|D))?(?!\d)|\bRTX PRO [2-6]000 Black|\bB[23]00\b"),
    ("turing", r"\bsm_75\b|\bT4\b|\bRTX 20[6-8]0"),
    ("volta", r"\bsm_70\b|\bV100|\bTITAN V\b"),
    ("pascal", r"\bsm_6[0-2]\b|\bGTX 10[5-8]0|\bTesla P(?:4|40|100)\b|\bP(?:40|100)-"),
)
"""GPUs for which steps differ, as people and programs name them; the first match counts."""


def is_in_python(texts: Iterable[str]) -> bool:
    """Return whether lines of a log show that the program is written in Python: code that people write, and can change."""
    return any(_PYTHON.search(line) for line in texts)


def is_native(texts: Iterable[str]) -> bool:
    """Return whether lines of a log show a C++, Rust or Go program, which a person downloads or builds but whose code they do not edit."""
    return any(_NATIVE.search(line) for line in texts)


def card(texts: Iterable[str]) -> str | None:
    """Return the kind of GPU that lines of a log name, if it is one for which steps differ."""
    lines = list(texts)
    return next((name for name, sign in _CARDS if any(re.search(sign, line, re.IGNORECASE) for line in lines)), None)


def platform(texts: Iterable[str]) -> str | None:
    """Return the platform that lines of a log show; None if they show none."""
    lines = list(texts)
    return next((name for name, sign in _SIGNS if any(re.search(sign, line) for line in lines)), None)
