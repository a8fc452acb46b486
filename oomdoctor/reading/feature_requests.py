"""What someone requests without reporting a memory failure: a feature, a document, or why a loss is NaN."""

from __future__ import annotations

import re

_MOST = 32 << 10
"""A longer text is a log."""
_WISH = (
    r"(?im)^\W{0,8}\[(?:feature(?: request)?|enhancement|rfc|proposal|docs?|documentation)\]|^\W{0,8}(?:\[?(?:feature(?: request)?|enhancement|rfc|proposal|docs?|documentation|typo)\]?)\b\s{0,2}(?:[:：]|$)|\bit would be (?:great|nice|good|helpful|useful)\b"
    r"|\bFAQ\b|^\W{0,4}Q[.:]|常见问题|^\W{0,4}问[:：]|\bfeature request\b|\bdead (?:link|page)\b|^\W{0,8}(?:功能(?:请求|建议)|文档(?:问题|建议)?)\s{0,2}(?:[:：]|$)"
)
_NAN_LOSS = r"(?i)\b(?:\w{1,20}_)?loss\b['\"]?\s{0,2}(?:is|are|becomes|became|turns|goes|got|gets|[=:]|变成了?|变为|成了|为|是|出现)\s{0,2}(?:to\s)?(?:tensor\()?nan\b"


def is_wish(text: str) -> bool:
    """Return whether a text requests a feature or a document and reports no failure."""
    return re.search(_WISH, text[:_MOST]) is not None


def has_nan_loss(text: str) -> bool:
    """Return whether a log prints, or someone says, that a loss is NaN."""
    return re.search(_NAN_LOSS, text[:_MOST]) is not None
