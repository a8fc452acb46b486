"""The GPU in someone's words, and how many of them; what only looks like a GPU name is not one."""

from __future__ import annotations

import re

from oomdoctor.knowledge.tables.cards import Card, card_named, choices

_TRIED = 60
_MAKER = r"(?:(?:NVIDIA|GeForce|RTX|GTX|Tesla|Quadro|AMD|Radeon|Instinct|RX|PRO|Intel|Arc|Apple|Jetson|AGX|Huawei|Ascend|昇腾)[ -]?){0,3}"
_CARD = re.compile(
    rf"(?:(?<![A-Za-z0-9.])|(?<=\d[xX]))(?P<maker>{_MAKER})"
    r"(?:[A-Z]{1,3}\d{1,4}[A-Z]{0,2}|[2-5]0[5-9]0|[12]0[1-8]0|(?<=RX )\d{4}|[679][6-9]\d0(?= ?XT)|(?<=PRO )\d{4}|6000(?= ?Ada)|910[A-C]\d?"
    r"|Gaudi ?\d|Orin|Thor|DGX Spark|Strix Halo)"
    r"(?:[ -]?(?:Ti|SUPER|Ada|D|XTX?|NVL|SXM\d?|PCIe|GRE|Max|Ultra|Pro|Nano|NX|Laptop)(?![A-Za-z])){0,2}"
    r"(?P<size>[ -]?[(（]?\d{1,3} ?G(?:i?B)?)?s?(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_SHORT_NAME = 3
"""A GPU name with this few letters is as often something else (a table A10, an L2 loss); words around it must mention a GPU."""
_BEFORE_CARD = re.compile(
    r"(?i)(?:\b(?:on|using|with|have|has|got|one|two|four|eight|single"
    r"|gpus?|cards?|colab|kaggle|runs?)\b|[用在张块卡]|\d ?[x×*])[ :：=(（]{0,3}"
    r"(?:(?:an?|one|the|my|free|single|\d{1,2}|two|four|eight) ){0,2}$"
)
_AFTER_CARD = re.compile(
    r"(?i)s?[ -]{0,2}(?:gpus?\b|cards?\b|显卡|卡|上|instances?\b|[x×*] ?\d|[一两双四八\d]{1,2} ?[张块]"
    r"|runs?\b|ran\b|is out|oom|爆|跑|不够|显存)"
)
_NO_CARD_BEFORE = re.compile(
    r"(?i)(?:\b(?:port|localhost|step|steps|line|table|appendix|section|figure|fig\.?|epoch|page|version))[ :#]{0,2}$"
)
_NO_CARD_AFTER = re.compile(
    r"(?i)[ -]?(?:steps?|iter\w*|samples?|tokens?|rows|loss|norm|regul|penalty|distance|cache|weight|\d*/\d|it/s|Mi?B)"
)
_MEMORY = re.compile(
    r"(?i)(?<![\d.])(\d{1,3}) ?G(?:i?B)?[ -]?(?:的)?(?:of )?(?:显存|显卡|卡|card|gpu|vram|video memory)"
    r"|(?:显存|显卡|卡|\bvram|\bgpu|\bcard)[ :：是为(（]{0,3}(?:of |with |has )?(\d{1,3}) ?G(?:i?B)?\b"
)
_SIZE_BEFORE = re.compile(r"(?<![\w.])(\d{2,3}) ?GB? $", re.IGNORECASE)
"""The size of a GPU before its name: `40G A100`."""
_NUMBERS = {
    name: number
    for number, names in enumerate(("", "one single 单 一", "two 双 两", "three 三", "four 四", "", "six", "", "eight 八"))
    for name in names.split()
}
_NAMED = r"\d{1,3}|one|single|two|three|four|six|eight"
_KIND = rf"{_MAKER}(?:[A-Z]{{1,3}}\d|\d{{4}}|910[A-C])"
_COUNT = re.compile(
    rf"(?i)(?<![\w.])(?P<times>\d{{1,3}}) ?[x×*] ?(?:\d{{2,3}} ?GB? )?{_KIND}"
    rf"|(?<![\w.:/#-])(?<!step )(?<!epoch )(?P<digits>[1-9]\d?) {_MAKER}(?:[AHVLB]\d{{2,3}}|[2-5]0[5-9]0)(?!\d)"
    r"|(?:[A-Z]\d{1,4}\w{0,3}|[1-9]0[1-9]0(?: ?Ti)?)(?: ?\(?\d{2,3} ?GB?\)?)? ?[x×*] ?(?P<after>\d{1,3})(?!\d| ?G)"
    r"|(?P<chinese>\d{1,3}|[单一双两三四八]) ?(?:张|块|卡(?!住|死|在|顿))"
    rf"|\b(?P<word>{_NAMED}) (?!(?:GI?B?|T[Bb]|MI?B) )(?:(?!on |in |with |for |of |per )[\w-]{{1,12}} ){{0,3}}?(?:gpus?|cards?)\b"
    rf"|\b(?P<named>one|single|two|three|four|six|eight) {_KIND}"
)
_IN_USE = re.compile(r"(?i)\b(?:on|using|uses?|used|with|across|over)\b[^,.;]{0,25}$|[用在][^，。]{0,8}$")


def told_card(text: str) -> tuple[str | None, Card | None]:
    """Return the name of the GPU that a text mentions, and the GPU; None for the GPU if the name means several sizes."""
    named = None
    for number, match in enumerate(_CARD.finditer(text)):
        if number >= _TRIED:
            break
        written = " ".join(re.sub(r"[(（]", " ", match[0]).split())
        if not match["size"] and (before := _SIZE_BEFORE.search(text, 0, match.start())) is not None:
            written = f"{written.rstrip('s')} {before[1]}GB"
        card = card_named(written) or card_named(written[: match.end() - match.start() - len(match["size"] or "")])
        if not _means_card(match, text):
            continue
        if card is not None:
            return written, card
        if named is None and (match["size"] or match["maker"] or re.match(r"(?i)(?:[av][18]00|g?h[128]00)", written)) and choices(written):
            named = written
    sizes = {f"{size}GB" for pair in _MEMORY.findall(text) if (size := pair[0] or pair[1])}
    if len(sizes) == 1:
        size = sizes.pop()
        return (f"{named} {size}" if named else size), (card_named(f"{named} {size}") if named else None) or card_named(size)
    return named, None


def _means_card(match: re.Match[str], text: str) -> bool:
    """Return whether what has the form of a GPU name is in a place where one is mentioned."""
    if match["maker"] or match["size"]:
        return True
    before, after = text[max(0, match.start() - 30) : match.start()], text[match.end() : match.end() + 20]
    if _NO_CARD_BEFORE.search(before) or _NO_CARD_AFTER.match(after):
        return False
    is_short = len(match[0]) <= _SHORT_NAME
    return not is_short or _BEFORE_CARD.search(before) is not None or _AFTER_CARD.match(after) is not None


def told_count(text: str) -> int:
    """Return how many GPUs a text mentions; one if it does not say."""
    return said_count(text) or 1


def uses_count(text: str) -> bool:
    """Return whether a run is said to use that many GPUs, rather than someone merely having them."""
    match = _COUNT.search(text)
    return match is not None and (match[0].startswith(("单", "single")) or _IN_USE.search(text[: match.start()]) is not None)


def said_count(text: str) -> int | None:
    """Return how many GPUs a text mentions; None if it does not say."""
    match = _COUNT.search(text)
    if match is None:
        return None
    written = next(part for part in match.groups() if part).lower()
    return max(1, _NUMBERS.get(written) or int(written))
