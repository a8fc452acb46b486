"""Values behind names that mean a secret, wherever a program or a person writes one.

Assignments of shells, Python, YAML, JSON, TOML and ini files; options with a blank or `=`; lists of arguments as Python, JSON and YAML
print them; `name:` and `value:` of Kubernetes; elements and attributes of XML.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.redaction.secret_names import names_secret
from oomdoctor.redaction.secret_pattern import Place, has_digit

_OF_NAMES = string.ascii_letters + string.digits + "_.-"
_LONGEST_NAME = 100
_NAME = r"(?=(?P<dashes>-{0,2})(?P<name>[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}))(?P=dashes)(?P=name)"
"""A lookahead takes a name whole or not at all, so that no name is read twice."""
_BLANKS = r"[ \t]{0,8}"
_ASSIGNED = rf"\\?[\"'`]?\]?{_BLANKS}(?:=>|:=|={{1,2}}|:){_BLANKS}(?:[|>][+-]?\s[\s+]{{0,80}})?"
_LISTED = r"\\?[\"'],\s{0,40}(?=[bru]{0,2}\\?[\"'])"
_AS_ITEM = r"[\"']?,?\s[\s+-]{0,80}-[ \t]{1,8}"
_AS_OPTION = r"(?:[\"']?[ \t]{1,8}(?:\\\s{1,80})?|,[ \t]{1,8})"
_AS_PAIR = r"[\"']?[\s,+-]{1,80}[\"']?(?i:value|val)[\"']?\s{0,4}[=:]\s{0,4}"
_AS_COLUMN = r"[ \t]{0,60}(?:[|│┃][ \t]{1,60}|\.{3,100}[ \t]{1,8}|[ \t]{2}[ \t]{0,60}|\t[ \t]{0,8})"
_AS_ELEMENT = r"(?<!-)>"
_SIGN = (
    rf"{_NAME}(?:(?P<assigned>{_ASSIGNED})|(?P<pair>{_AS_PAIR})|(?P<listed>{_LISTED})|(?P<element>{_AS_ELEMENT})"
    rf"|(?P<item>{_AS_ITEM})|(?P<column>{_AS_COLUMN})|(?P<option>{_AS_OPTION}))"
)
_PLACEHOLDER = r"<(?:user|host|ip|mac|email|token|phone|id)-\d"
_SCHEME = r"(?:(?i:Bearer|Basic|Token|ApiKey|Digest|Negotiate|SSWS)[ \t]{1,4}){0,1}"
_QUOTED = (
    r"(?:[A-Za-z]{0,2}|\$)(?P<quote>\"\"\"|'''|[\"'`])"
    + _SCHEME
    + r"(?P<quoted>(?:\\[^\n]|(?!(?P=quote)|"
    + _PLACEHOLDER
    + r")[^\n\\]){1,4000})"
)
_BARE = rf"{_SCHEME}(?P<bare>(?:[^\s\x00-\x1f\"'`<]|<(?!/|(?:user|host|ip|mac|email|token|phone|id)-\d)){{1,4000}})"
_VALUE = rf"(?!{_PLACEHOLDER})(?:{_QUOTED}|{_BARE})"
_BEFORE_NAME = (
    rf"[Vv](?:al|alue|ALUE)[\"']?\s{{0,4}}[=:]\s{{0,4}}(?P<value>\"[^\"\n]{{1,4000}}\"|'[^'\n]{{1,4000}}'|[^\s\"',<>]{{1,4000}})"
    rf"[\s,+-]{{1,80}}[\"']?(?i:name|key)[\"']?\s{{0,4}}[=:]\s{{0,4}}[\"']?{_NAME}"
)
FORMS = (_SIGN, _VALUE, _BEFORE_NAME)
"""All that is searched for in whole texts."""
_CLOSING = ",;)}]"
_LEAST = 3
_LONE = ("token", "secret", "bearer", "cookie", "cookies", "credentials")
_COUNT = re.compile(r"[-+]?\d{1,7}(?:\.\d{1,9})?%?")
_NO_VALUES = frozenset({
    "none", "null", "nil", "true", "false", "yes", "no", "on", "off", "unset", "required", "optional", "missing", "invalid", "empty",
    "default", "undefined", "set", "not", "is", "was", "are", "has", "and", "or", "to", "in", "for", "with", "must", "should", "cannot",
    "can", "if", "from", "option", "argument", "flag", "requires", "needs", "given", "expected", "str", "string", "int", "bool", "bytes",
    "float", "any", "optional[str]", "secretstr", "basic", "bearer", "token", "password",
})  # fmt: skip
"""Words that say that there is none, of what type it is, or that go on with a sentence."""
_REFERENCE = re.compile(r"\$[\w{(%][^\n]{0,400}|%[\w]{1,80}%|\{{1,2}[\w\s.$-]{0,200}\}{1,2}|[*x.•]{3,80}|<[^<>\n]{0,80}>?|\[[A-Z_]{3,40}\]")
"""`$HF_TOKEN`, `${{ secrets.X }}`, `{token}`, `***`, `<your token>`."""
_EXPRESSION = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Za-z_]\w{0,60}[(\[][^\n]{0,4000}|(?:self|args|cfg|config|os|opts?|kwargs|params)\.[\w.]{1,200}"
)
"""`get_token()`, `os.environ["X"]`, `args.hub_token` of a line of code."""
_OPTION = re.compile(r"--?[A-Za-z][\w.-]{0,80}(?:=[^\n]{0,4000})?")
"""What comes behind an option that has no value."""
_ENDS_LINE = re.compile(r"[ \t]{0,80}(?:\r?\n|$)")
_STARTS_LINE = re.compile(r"(?:^|\n)[ \t+>|-]{0,80}$")
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_SETS = re.compile(r"(?:\bset(?:env|x)?|\bENV|\bexport)[ \t]{1,8}(?:-\w{1,4}[ \t]{1,4}){0,2}$")
"""What csh, fish, Dockerfiles and tools that keep settings (`aws configure set`) write before a name."""
_STARTS_ROW = re.compile(r"(?:^|\n|[|│┃])[ \t]{0,80}$")
_IN_A_CALL = re.compile(r"\([bru]{0,2}[\"']$")
_PATH = re.compile(r"(?:~|\.{1,2})?/[\w.-]{1,80}(?:/[\w.-]{1,80}){0,20}/?|[A-Za-z]:\\[^\n]{0,400}")


class NamedValues(Struct, frozen=True):
    """Finds what stands behind a name that means a secret; `needs` are the words that do, `only_quoted` leaves out what has no quotes."""

    needs: tuple[str, ...]
    only_quoted: bool = False

    def find(self, text: str) -> Iterator[Place]:
        """Yield the value behind each such name, and before it where `value:` comes first."""
        value, at = re.compile(_QUOTED if self.only_quoted else _VALUE), 0
        for name in self._names(text):
            if name.start() < at or not _is_written(name):
                continue
            written = value.match(text, name.end())
            span = None if written is None else _span(written)
            if span is not None and _is_meant(name, text, span):
                at = span[1]
                yield "token", *span
        for match in re.finditer(_BEFORE_NAME, text) if not self.only_quoted else ():
            if names_secret(match["name"]) and is_value(match["name"], match["value"].strip("\"'")):
                start, end = match.span("value")
                yield ("token", start + 1, end - 1) if text[start] in "\"'" else ("token", start, end)

    def _names(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the names that mean a secret, each with the sign behind it."""
        sign, at = re.compile(_SIGN), 0
        for word in re.finditer("|".join(self.needs), _lower(text)):
            if word.start() < at:
                continue
            before = text[max(at, word.start() - _LONGEST_NAME) : word.start()]
            name = sign.match(text, word.start() - len(before) + len(before.rstrip(_OF_NAMES)))
            at = word.end() if name is None else name.end()
            if name is not None and names_secret(name["name"]):
                yield name


def _lower(text: str) -> str:
    """Return a text in lower case, sign for sign: the small letter of a few is two."""
    return text.lower() if text.isascii() else text.translate(_SMALL)


def _is_meant(name: re.Match[str], text: str, span: tuple[int, int]) -> bool:
    """Return whether what stands behind a name is its value, and a secret."""
    value, quoted = text[slice(*span)], text[span[0] - 1] in "\"'`"
    if name.groupdict().get("assigned") is None and _OPTION.fullmatch(value):
        return False
    return is_value(name["name"], value, quoted=quoted) and (not _is_lone_word(name) or _stands_alone(text, name, span))


def is_value(name: str, text: str, *, quoted: bool = True) -> bool:
    """Return whether a text behind a secret's name is one: no word that there is none, no count, no reference and no piece of code."""
    plain = text.strip()
    folded = plain.lower().rstrip(".,")
    if plain.startswith("-----"):  # the first line of a key, which is seen by itself
        return False
    if len(plain) < (1 if quoted else _LEAST) or folded in _NO_VALUES or folded.replace("-", "_") == name.lower().replace("-", "_"):
        return False
    if _REFERENCE.fullmatch(plain) or (_COUNT.fullmatch(plain) and "token" in name.lower()):
        return False
    if _PATH.fullmatch(plain) and not _is_of_words(name):
        return False
    return quoted or not _EXPRESSION.fullmatch(plain)


def _is_of_words(name: str) -> bool:
    """Return whether a name means something that a person types; the others also mean a file that holds one."""
    return name.lower().endswith(("password", "passwd", "passphrase", "token"))


def _is_written(match: re.Match[str]) -> bool:
    """Return whether a sign that is weak by itself stands where it means something: behind an option, in a call, an element, a table."""
    groups, before = match.groupdict(), match.string[max(0, match.start() - 100) : match.start()]
    if groups.get("column") is not None:
        return bool(match["dashes"] or _STARTS_ROW.search(before) or _SETS.search(before))
    if groups.get("option") is not None:
        return bool(match["dashes"] or _SETS.search(before))
    if groups.get("item") is not None:
        return bool(match["dashes"])
    if groups.get("listed") is not None:
        return bool(match["dashes"] or match["name"].isupper() or _IN_A_CALL.search(before))
    if groups.get("element") is not None:
        return before.endswith("<") and not match["name"].startswith("token-")
    return True


def _span(written: re.Match[str]) -> tuple[int, int] | None:
    if written.groupdict().get("bare") is None:
        return written.span("quoted")
    start, text = written.start("bare"), written["bare"]
    while text and text[-1] in _CLOSING and not _is_balanced(text):
        text = text[:-1]
    return (start, start + len(text)) if text else None


def _is_balanced(text: str) -> bool:
    """Return whether the bracket at the end of a text closes one in it."""
    opening = {")": "(", "]": "[", "}": "{"}.get(text[-1])
    return opening is not None and text.count(opening) >= text.count(text[-1])


def _is_lone_word(match: re.Match[str]) -> bool:
    """Return whether `token:` could be of a sentence (`unexpected token: foo`) or the head of a column."""
    sign = match.groupdict().get("assigned") or ""
    weak = (sign[:1] == ":" and ": " in sign) or match.groupdict().get("column") is not None
    return weak and match["name"].lower() in _LONE


def _stands_alone(text: str, match: re.Match[str], span: tuple[int, int]) -> bool:
    """Return whether a line has nothing but this name and its value, or the value has a figure and no word's length."""
    value = text[slice(*span)]
    if len(value) >= 6 and has_digit(value) and not value.isdigit():
        return True
    return bool(_STARTS_LINE.search(text, max(0, match.start() - 100), match.start()) and _ENDS_LINE.match(text, span[1]))
