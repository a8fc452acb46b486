"""What a shell makes of a script: commands, their words, and what its variables and arrays hold. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.settings import WrittenSetting
from oomdoctor.configs.parsed_config import LONGEST, MOST_KEYS
from oomdoctor.configs.readers.windows import JOINER

_PIECE = re.compile(
    r"""(?P<join>\\\r?\n|\^\r?\n|`\r?\n)"""
    r"""|(?P<blank>[ \t]+)"""
    r"""|(?P<end>\r?\n|\r|&&|\|\||[;|&])"""
    r"""|(?P<double>"(?:[^"\\]|\\.)*"?)"""
    r"""|(?P<single>'[^']*'?)"""
    r"""|(?P<result>\$\([^()\n]{0,300}\)|`[^`\n]{0,300}`)"""
    r"""|(?P<escape>\\.)"""
    r"""|(?P<comment>\#[^\n]*)"""
    r"""|(?P<array>[A-Za-z_]\w{0,100}\+?=\((?!\())"""
    r"""|(?P<close>\))"""
    r"""|(?P<bare>[^\s\\;|&"'^`#$)]+|[\^`#\\$])""",
    re.DOTALL,
)
ASSIGNED = re.compile(r"([A-Za-z_]\w{0,100})\+?=(.*)\Z", re.DOTALL)
OPTION = re.compile(r"(--?[A-Za-z][\w.-]{0,150})(?:=(.*))?\Z", re.DOTALL)
REDIRECTION = re.compile(r"\d?(?:>{1,2}|<{1,3})(?P<target>.*)\Z", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w{1,100})|\{(\w{1,100})(?::?[-=]([^}]{0,200}))?\})|%([A-Z_][A-Z0-9_]{0,100})%")
"""A variable of a shell, or `%NAME%` of a batch file."""
_LIST = re.compile(r"\"?\$(?:(\w{1,100})|\{(\w{1,100})(\[[@*]\])?\})\"?\Z")
_ARGUMENT = re.compile(r"\$(?:\d|\{\d+\})\Z")
_OF_INTEREST = re.compile(r"ALLOC|CUDA|TORCH|NPROC|NNODES|WORLD_SIZE|OLLAMA|LLAMA_ARG|VLLM|SGLANG|PIXELS|TOKEN_NUM|XLA|PJRT")
_SECRET = re.compile(r"TOKEN$|KEY|SECRET|PASS")
_OF_A_WORD = ("double", "single", "result", "escape", "array", "close", "bare")
_SHORTEST = 5
"""Characters of the shortest list in quotes: `"a b"`."""
_SKIPPED = (
    "sudo", "env", "nohup", "time", "exec", "eval", "nice", "export", "set", "setx", "declare", "local", "readonly", "typeset",
    "poetry", "uv", "pipenv", "run", "then", "else", "do", "{", "!",
)  # fmt: skip


class Word(Struct, frozen=True):
    """One word of a command, without its quotes."""

    text: str
    line: int
    start: int = 0
    end: int = 0
    """Where it stands in the script, quotes included."""


def commands(text: str) -> Iterator[list[Word]]:
    """Yield the commands of a script as lists of words; 1-based lines, continuations joined.

    What a variable is given in quotes (`ARGS="--a 1 --b"`) is there twice: as the assignment, and after it word by word, as the words
    of an array are between `ARGS=(` and `)`.
    """
    for words in _split(text, 0, len(text), 1):
        first = sum(size for _, size in _leading(words))
        yield [*(part for word in words[:first] for part in (word, *_inside(text, word))), *words[first:]]


def _split(text: str, begin: int, stop: int, line: int) -> Iterator[list[Word]]:
    """Yield the commands between two offsets."""
    words: list[Word] = []
    open_word: list[str] | None = None
    word_line = line
    start = count = 0
    array = False
    for match in _PIECE.finditer(text, begin, stop):
        kind, piece = match.lastgroup or "", match[0]
        opens, closes = kind == "array" and open_word is None, kind == "close" and array
        goes_on = not closes and (kind in _OF_A_WORD or (kind == "comment" and open_word is not None))
        if goes_on:
            if open_word is None:
                open_word, word_line, start = [], line, match.start()
            open_word.append(_unquoted(kind, piece))
        if open_word is not None and (opens or not goes_on):
            words.append(Word("".join(open_word)[:LONGEST], word_line, start, match.end() if opens else match.start()))
            open_word, count = None, count + 1
        if closes:
            words.append(Word(")", line, match.start(), match.end()))
        elif kind == "end" and words and not array:
            yield words
            words = []
        array = opens or (array and not closes)
        line += piece.count("\n")
        if count > MOST_KEYS:
            break
    if open_word is not None:
        words.append(Word("".join(open_word)[:LONGEST], word_line, start, stop))
    if words:
        yield words


def _inside(text: str, word: Word) -> list[Word]:
    """Return the words in the quoted value of an assignment, where they are options or one command."""
    name, _, value = text[word.start : word.end].partition("=")
    if not ASSIGNED.match(f"{name}=") or len(value) < _SHORTEST or value[0] not in "\"'" or value[0] != value[-1]:
        return []
    begin = word.start + len(name) + 2
    inside: list[Word] = []
    for words in _split(text, begin, word.end - 1, word.line):
        if inside and text[inside[-1].end : words[0].start].strip(" \t\r\n\\"):
            return []
        inside += words
    return inside if len(inside) > 1 or any(OPTION.match(inner.text) for inner in inside) else []


def without_redirections(words: Sequence[Word]) -> Iterator[Word]:
    """Yield the words that the program sees: `> train.log` is for the shell."""
    skip = False
    for word in words:
        match = REDIRECTION.match(word.text)
        if match is None and not skip:
            yield word
        skip = match is not None and not match["target"]


def _unquoted(kind: str, piece: str) -> str:
    if kind == "single":
        return piece.strip("'")
    if kind == "double":
        return re.sub(r'\\(["\\$`])', r"\1", piece[1:].removesuffix('"')).replace("\\\n", "")
    return piece[1:] if kind == "escape" else piece


class Shell:
    """What a script has given its variables so far; `known` are those that it is started with."""

    def __init__(self, file: str, text: str, known: Mapping[str, str] | None = None) -> None:
        self._file = file
        self._text = text
        self._texts: dict[str, str] = dict(known or {})
        self._lists: dict[str, list[Word]] = {}
        self._room = MOST_KEYS
        """How many more words lists may become: one that is used again and again is read for as long as a script can need it."""

    def run(self, command: Sequence[Word], environment: list[WrittenSetting]) -> list[Word]:
        """Return the words of a command with its variables filled in, without the assignments that it begins with."""
        program = self._assignments(command, environment)
        evaluated = any(word.text == "eval" for word in command[: len(command) - len(program)])
        words = self._filled(program, split=evaluated)
        # `$COMMAND` may begin with variables of its own.
        return self._assignments(words, environment)

    def _assignments(self, words: Sequence[Word], environment: list[WrittenSetting]) -> list[Word]:
        """Take in the variables that a command begins with, and return the words after them."""
        end = 0
        for at, size in _leading(words):
            match = ASSIGNED.match(words[at].text)
            if match is not None:
                self._assign(match[1], words[at].text.startswith(f"{match[1]}+="), match[2], words[at + 1 : at + size])
                environment += self._of_interest(match[1], words[at])
            end = at + size
        return list(words[end:])

    def _assign(self, name: str, adds: bool, value: str, words: Sequence[Word]) -> None:
        text = "" if value == "(" else self._text_of(value)
        if name in self._texts and _ARGUMENT.match(text):
            return  # `MODEL=$1` below `MODEL=...`: what stands above is what holds without arguments
        self._texts[name] = (self._texts.get(name, "") + text if adds else text)[:LONGEST]
        known = self._lists.get(name, []) if adds else []
        self._lists[name] = [*known, *self._filled([word for word in words if word.text != ")"])][:MOST_KEYS]

    def _of_interest(self, name: str, word: Word) -> Iterator[WrittenSetting]:
        if is_of_interest(name):
            value = self._texts[name].replace(JOINER, " ")
            yield WrittenSetting(key=name, value=value, file=self._file, line=word.line, framework="environment")

    def _filled(self, words: Sequence[Word], *, split: bool = False) -> list[Word]:
        """Return the words with the values of variables; a list that stands for itself becomes its words, `split` also in quotes."""
        out: list[Word] = []
        for word in words:
            source = self._text[word.start : word.end]
            quoted = source.startswith('"') and not split
            match = _LIST.match(source)
            listed = self._lists.get(match[1] or match[2], []) if match is not None else []
            if match is not None and match[3] and not quoted:
                listed = [replace(item, text=part) for item in listed for part in item.text.split()]
            if match is not None and (match[3] or (listed and not quoted)):
                out += listed[: self._room]
                self._room -= min(self._room, len(listed))
            elif (text := self._text_of(word.text)) or quoted or not word.text:
                out += [replace(word, text=part) for part in text.split(JOINER)[: self._room]]
        return out

    def _text_of(self, text: str) -> str:
        """`$NAME` with the value that the script gave it; unknown ones stay."""
        if "$" not in text and "%" not in text:
            return text
        return _VARIABLE.sub(lambda match: self._texts.get(match[1] or match[2] or match[4], match[3] or match[0]), text)[:LONGEST]


def is_of_interest(name: str) -> bool:
    """Return whether a variable of the environment decides about memory, and holds no secret."""
    return _OF_INTEREST.search(name) is not None and _SECRET.search(name) is None


def _leading(words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Yield what a command begins with, its variables and what only starts it: the place of each, and how many words it is."""
    at = 0
    while at < len(words):
        text = words[at].text
        assigned = ASSIGNED.match(text)
        if assigned is None and not (text.rsplit("/", 1)[-1] in _SKIPPED or (at and text.startswith("-"))):
            return
        size = 1 if assigned is None else _array(words, at) if assigned[2] == "(" else 1 + _copied(words, at)
        yield at, size
        at += size


def _array(words: Sequence[Word], at: int) -> int:
    """Return how many words an array is, from `NAME=(` to `)`."""
    return next((end + 1 for end in range(at + 1, len(words)) if words[end].text == ")"), len(words)) - at


def _copied(words: Sequence[Word], at: int) -> int:
    """Return how many words after an assignment are those in its quotes."""
    assignment = words[at]
    return next((end for end in range(at + 1, len(words)) if not assignment.start < words[end].start < assignment.end), len(words)) - at - 1
