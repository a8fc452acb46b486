"""On what kind of machine a run died, as far as paths and names in its log tell it: what settles a question differs there."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SIGNS = (
    ("managed-job", r"\bsagemaker\b|/opt/ml/(?:code|model|input)\b|\bvertex[ _-]?ai\b|/gcs/|\bazureml\b"),
    ("kubernetes", r"\bkubelet\b|\bOOMKilled\b|\bkubectl\b|\bpod/|\bCrashLoopBackOff\b|/var/run/secrets/kubernetes"),
    ("macos", r"/Users/\w|/opt/homebrew/|\bmacOS\b|\bDarwin\b|\bggml_metal_|\bMPS backend\b|\bMTLBuffer\b|\.dylib\b"),
    ("windows", r"(?:^|[\s\"'(=])[A-Za-z]:\\|\bWinError\b|\.dll\b|\bPowerShell\b|PS [A-Z]:"),
    ("container", r"\bdocker(?:d|-compose)?\b|\bcontainerd\b|\bpodman\b|/overlay2/|\bcontainer exited\b|\bexited with code 137\b"),
)
"""The first that is seen counts: a managed job runs in a container, and so does a pod."""


_PYTHON = re.compile(
    r"\.py\b|\b(?:python[\d.]*|py?torch|transformers|CUDA out of memory\. Tried)\b|\bTraceback \(most recent",
    re.IGNORECASE,
)


def is_in_python(texts: Iterable[str]) -> bool:
    """Return whether lines of a log show that the program is one of Python: code that people write, and can change."""
    return any(_PYTHON.search(line) for line in texts)


def platform(texts: Iterable[str]) -> str | None:
    """Return the platform that lines of a log show; None where they show none."""
    lines = list(texts)
    return next((name for name, sign in _SIGNS if any(re.search(sign, line) for line in lines)), None)
