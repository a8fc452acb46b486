"""Whether a line that speaks of exhausted memory states a failure, or only mentions one: a word is not a death.

Programs also print that nothing ran out, what to do if it did, that they try again with less, how often it happened (0 times),
the name of a test, the title of a change. Each of these is a form of its own below; none of them is a failure.

Patterns are kept as texts, which `re` compiles when they are first used: few logs need them.
"""

from __future__ import annotations

import re

_HANDLED = (
    r"(?i)\b(?=(?:auto[- ]?)?retrying\b|will retry\b|retry (?:with|in|\d)|trying (?:again|with)\b|falling back\b|fell back\b|will fall back\b"
    r"|(?:reduc|lower|halv|shrink|decreas|splitt|scal)ing\b|(?:reduced|lowered|halved|decreased) (?:to|from|by)\b|split (?:into|in two)\b"
    r"|skipp(?:ing|ed)\b|switch(?:ing|ed) to\b|recover(?:ing|ed)\b|(?<!un)handled\b|ignor(?:ing|ed)\b|prun(?:ing|ed)\b|discard(?:ing|ed)\b|so (?:part|some|only|fewer|less)\b|evict(?:ing|ed)\b|preempt(?:ing|ed)\b"
    r"|(?:freeing|clearing|emptying) (?:the |some )?(?:\w{1,10} )?(?:cache|memory)\b|offloading to\b|continuing\b|resuming\b)"
    r"(?<!try )(?<!consider )(?<!by )(?<!recommend )(?<!suggest )(?<!after )(?<!such as )(?<!like )(?<!include )(?<!or )"
    r"(?![^\n.;]{1,60}\b(?:may|might|can|could|should|would|helps?|recommended)\b)"
    r"|重试|自动(?:减半|降低|减小|调整|切换)|跳过|已恢复|回退到|改用|继续(?:训练|运行)"
)
_ADVICE = r"(?i)\b(?:we|please|you|i'd) (?:\w{1,12} )?(?:recommend|suggest|advise|should|may|might|can|could|try)\b|^\W{0,4}(?:please|consider|try)\b"
"""What tells the reader what to do, and not what the program does."""
_DENIED = (
    r"(?i:(?:\b(?:no|not|never|without|avoid\w{0,3}|prevent\w{0,3}|isn't|didn't|doesn't|don't|hasn't|wasn't)|没有|未|无|不会|不再|避免|防止)"
    r"(?:[ \"'`*]{1,3}[\w%-]{1,20}){0,3}[ \"'`*]{0,3}|(?:没有|未|无|不会|不再|避免|防止)[\u4e00-\u9fff]{0,6}\s?|\b(?<!non-)(?:zero|0) )$"
)
"""Before the words: no OOM, did not run out of memory."""
_SUPPOSED = (
    r"(?i)\b(?:if|unless|in case|in the event|when(?:ever)? (?:you|it|a (?:run|job)|the (?:run|job|trainer|program|process) (?:hits|runs)|running|hitting)"
    r"|(?:should|may|might|could|can|would|will)\b(?!['’]t|\s{1,3}(?:not|no longer|any\w*|some\w*|you|we|i)\b)|to (?:avoid|prevent|reduce|mitigate|handle|catch|detect|simulate|reproduce)"
    r"|otherwise|risk of|likely to|prone to|expect(?:ed)? (?:an? )?)\b|^\W{0,8}(?:tip|hint|note|nb|usage|example|faq|todo)\b\s{0,2}[:：]"
    r"|如果|若|假如|万一|可能|以免|一旦|^\W{0,8}(?:提示|注意|说明|建议)\s{0,2}[:：]"
)
"""Before the words: if you run out of memory, may be out of memory."""
_COUNTED = r"(?i)[\w ()/\"'-]{0,40}[\"']?\s{0,3}[:=|]\s{0,3}[\"']?(?:0(?![.\d]|\s?(?:b(?:ytes)?|[kmgt]i?b)\b)|none|no|false|off|disabled|enabled|never|n/a|passed|ok|true|on)\b"
"""After them: OOM count: 0, oom_retry=true."""
_NAMED = (
    r"(?i)[-_ )]{0,2}(?:killer\b(?! (?:killed|invoked|terminated|reaped))|scores?\b|adj\b|handl\w*|guards?\b|protect\w*|prevention|checks?\b|tests?\b|retr\w+|thresholds?\b|watch\w*"
    r"|monitor\w*|detect(?:or|ion)\w*|fix(?:es|ed)?\b|count(?:s|er|ers)?\b|events?\b|rates?\b|polic\w+|safe\w*|free\b|bugs?\b|issues?\b|faq\b|hooks?\b|observer|callback|recovery|margin|budget"
    r"|section|chapter|page|handling|conditions?|situations?|scenarios?|warnings?\b|mitigation|resilien\w+)"
)
"""After them: OOM killer, OOM protection."""
_WRITTEN = (
    r"(?i)^\s{0,12}(?:[-*+•]\s{1,3}|\d{1,3}[.)]\s|[0-9a-f]{7,40}\s|#\d{1,6}:?\s|\[[ x\w.#-]{1,12}\]:?\s|#{1,6}\s|>\s){0,3}\**(?:(?:bug)?fix(?:e[sd]|ing)?|feat(?:ure)?s?|docs?|chore|perf|refactor|tests?|merge|revert"
    r"|add(?:s|ed)?|improve[sd]?|clarif(?:y|ies|ied)|document(?:s|ed)?|updated?|remove[sd]?|resolve[sd]?|close[sd]?|handle[sd]?|catch(?:es)?|support(?:s|ed)?)\b"
    r"(?![^\n]{0,80}\b(?:failed|failure|error:))"
    r"|\b(?:faq|readme|changelog|tutorial|documentation|release notes?|feature request|dead (?:link|page)|cookbook|blog|paper|talk|lecture)\b"
    r"|\bit would be (?:great|nice|good|helpful|useful)\b|\b(?:a lot of|many|some|new) (?:users|people)\b|\b(?:CLOSED|MERGED|WONTFIX)\b|^\s{0,8}\|[^|\n]{1,80}\|[^|\n]{1,80}\|"
)
"""Titles of changes, lists, tables and documents."""
_LISTED = r"^\s{0,12}[-*+•]\s{1,3}\S|^\s{0,4}(?=[0-9a-f]{0,39}[a-f])(?=[a-f]{0,39}[0-9])[0-9a-f]{7,40}\s|^\s{0,8}(?:\d{1,3}\s{1,8})?ENOMEM\s{1,8}[A-Z]|^[\w.%-]{0,30}(?:[,;\t][\w.%-]{0,30}){2,30}$"
"""Lines of a list, of a log of changes, of a table of error numbers or of bare cells."""
_ARGUMENT = r"(?<![\w.])[a-z_][\w.]{0,40}\((?:\w{1,30},\s?)?[rbfu]?[\"'][^\"'\n]{0,80}$|\S\s{1,4}#\s[^#\"'\n]{0,80}$"
"""Before the words: the text that a call in source code prints, or the sign of a comment behind a setting."""
_UNDONE = r"(?i)\s(?:does not|doesn't|do not|don't|will not|won't|cannot|can't|never|is not|isn't)\b"
"""After them: OOM does not happen."""
_CODE = (
    r"^\s{0,40}(?:[+-]\s{0,40})?(?:except|raise|return|if|elif|assert|throw|catch|print|printf|echo|def|self\.|logg?(?:er|ing)?\.\w+|warnings?\.warn)\b[^\n]{0,200}[(\[\"'`:{]"
    r"|^\s{0,40}(?:#(?!#)|//|/\*|\*\s|<!--)|^\s{0,40}[\w.]{1,60} = (?:[rbf]{0,2}[\"']|[(\[{])"
    r"|::test_|\b(?:PASSED|SKIPPED|XFAIL)\b|\.{3}\s?ok$|^\s{0,4}[✓✔√]|^\s{0,4}ok \d"
)
"""Source code, and what runners of tests print."""
_SENTENCE = r"[.;!?]\s|[。；！？]"


def is_handled(line: str) -> bool:
    """Return whether a line says that the program goes on in another way: again, with less, without this sample. Advice is no such word."""
    return re.search(_HANDLED, line) is not None and any(
        re.search(_HANDLED, sentence) and not re.search(_ADVICE, sentence) for sentence in re.split(_SENTENCE, line)
    )


def is_mention(line: str, start: int, end: int) -> bool:
    """Return whether the words `line[start:end]` name a failure without stating it: none happened, one might, somebody wrote of one."""
    before = re.split(_SENTENCE, line[:start])[-1]
    after = line[end:]
    return (
        re.search(_DENIED, before) is not None
        or re.search(_SUPPOSED, before) is not None
        or is_counted(after)
        or re.match(_NAMED, after) is not None
        or re.search(_WRITTEN, line) is not None
        or re.search(_LISTED, line) is not None
        or re.search(_ARGUMENT, before) is not None
        or re.match(_UNDONE, after) is not None
        or re.search(_CODE, line) is not None
    )


def is_counted(after: str) -> bool:
    """Return whether what follows the words makes them a counter or a switch."""
    return re.match(_COUNTED, after) is not None
