"""Command lines and the shell scripts that hold them. They are read, never run.

A script gives one sheet for the variables that it sets for all, and for each command one for the launcher, one for the
program and one for the variables before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.training import Given, Scalar
from oomdoctor.training.json_reader import read_json
from oomdoctor.training.sheet import LONGEST, MOST_KEYS, Sheet, plain

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
OVERRIDE = re.compile(r"(\+{0,2}~?[A-Za-z_][\w.]{0,150})=(.*)\Z", re.DOTALL)
OPTION = re.compile(r"(--?[A-Za-z][\w.-]{0,150})(?:=(.*))?\Z", re.DOTALL)
REDIRECTION = re.compile(r"\d?(?:>{1,2}|<{1,3})(?P<target>.*)\Z", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w{1,100})|\{(\w{1,100})(?::?[-=]([^}]{0,200}))?\})")
_LIST = re.compile(r"\"?\$(?:(\w{1,100})|\{(\w{1,100})(\[[@*]\])?\})\"?\Z")
_ARGUMENT = re.compile(r"\$(?:\d|\{\d+\})\Z")
_CONFIG = re.compile(r"[^\s=]{1,300}\.(?:ya?ml|json)\Z", re.IGNORECASE)
_OF_INTEREST = re.compile(r"ALLOC|CUDA|TORCH|NPROC|NNODES|WORLD_SIZE|OLLAMA|LLAMA_ARG|VLLM|SGLANG|PIXELS|TOKEN_NUM|XLA|PJRT")
_SECRET = re.compile(r"TOKEN$|KEY|SECRET|PASS")
_LAUNCHERS = (
    "torchrun",
    "deepspeed",
    "accelerate launch",
    "python -m torch.distributed.run",
    "python -m torch.distributed.launch",
    "python -m accelerate.commands.launch",
    "colossalai run",
)
_PROGRAMS = (
    "llamafactory-cli", "swift", "megatron", "trl", "axolotl", "tune run", "vllm", "ollama", "llama-server", "llama-cli",
    "python -m llamafactory.cli", "python -m vllm.entrypoints", "python -m sglang", "sglang serve", "python -m axolotl",
    "accelerate", "python",
)  # fmt: skip
_CONTAINERS = ("docker", "podman", "nerdctl")
_IMAGES = {"vllm/vllm-openai": "python -m vllm.entrypoints.openai.api_server"}
"""Images that take the options of a server: ENTRYPOINT of vllm docker/Dockerfile."""
_OF_A_WORD = ("double", "single", "result", "escape", "array", "close", "bare")
_BETWEEN = ("join", "blank", "end")
_SHORTEST = 5
"""Characters of the shortest list in quotes: `"a b"`."""
_SKIPPED = (
    "sudo", "env", "nohup", "time", "exec", "eval", "srun", "nice", "export", "set", "setx", "declare", "local", "readonly", "typeset",
    "poetry", "uv", "pipenv", "run", "then", "else", "do", "{", "!",
)  # fmt: skip


class Word(Struct, frozen=True):
    """One word of a command, without its quotes."""

    text: str
    line: int
    start: int = 0
    end: int = 0
    """Where it stands in the script, quotes included."""


def read_command_line(file: str, text: str) -> list[Sheet]:
    """The sheets of a script or of one command line; a script without any command of interest gives none."""
    shell = _Shell(file, text)
    exported: list[Given] = []
    sheets: list[Sheet] = []
    for number, command in enumerate(commands(text), 1):
        own: list[Given] = []
        words = list(_without_redirections(shell.run(command, own)))
        if words:
            sheets += [replace(one, command=number) for one in (*_sections(file, words), *_environment(file, own))]
        else:
            exported += own
    return [*sheets, *_environment(file, exported)]


def _environment(file: str, given: Sequence[Given]) -> list[Sheet]:
    return [Sheet(file=file, form="environment", given=tuple(given), framework="environment")] if given else []


def commands(text: str) -> Iterator[list[Word]]:
    """The commands of a script as lists of words; 1-based lines, continuations joined.

    What a variable is given in quotes (`ARGS="--a 1 --b"`) is there twice: as the assignment, and after it word by word, as the words
    of an array are between `ARGS=(` and `)`.
    """
    for words in _split(text, 0, len(text), 1):
        first = _first_word(words)
        yield [*(part for word in words[:first] for part in (word, *_inside(text, word))), *words[first:]]


def _split(text: str, begin: int, stop: int, line: int) -> Iterator[list[Word]]:
    """The commands between two offsets."""
    words: list[Word] = []
    open_word: list[str] | None = None
    word_line = line
    start = count = 0
    array = False
    for found in _PIECE.finditer(text, begin, stop):
        kind, piece = found.lastgroup or "", found[0]
        opens, closes = kind == "array" and open_word is None, kind == "close" and array
        goes_on = not closes and (kind in _OF_A_WORD or (kind == "comment" and open_word is not None))
        if goes_on:
            if open_word is None:
                open_word, word_line, start = [], line, found.start()
            open_word.append(_unquoted(kind, piece))
        if open_word is not None and (opens or not goes_on):
            words.append(Word("".join(open_word)[:LONGEST], word_line, start, found.end() if opens else found.start()))
            open_word, count = None, count + 1
        if closes:
            words.append(Word(")", line, found.start(), found.end()))
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
    """The words in the quoted value of an assignment, where they are options or one command."""
    name, _, value = text[word.start : word.end].partition("=")
    if not ASSIGNED.match(f"{name}=") or len(value) < _SHORTEST or value[0] not in "\"'" or value[0] != value[-1]:
        return []
    begin = word.start + len(name) + 2
    inside: list[Word] = []
    for words in _split(text, begin, word.end - 1, word.line):
        if inside and text[inside[-1].end : words[0].start].strip(" \t\r\n\\"):
            return []
        inside += words
    return inside if len(inside) > 1 or any(OPTION.match(one.text) for one in inside) else []


def _first_word(words: Sequence[Word]) -> int:
    """Where a command begins, behind its variables and what only starts it."""
    at = 0
    while at < len(words):
        assigned = ASSIGNED.match(words[at].text)
        if assigned is None and not (words[at].text.rsplit("/", 1)[-1] in _SKIPPED or (at and words[at].text.startswith("-"))):
            break
        at += 1 if assigned is None or assigned[2] != "(" else _array(words, at)
    return at


def _without_redirections(words: Sequence[Word]) -> Iterator[Word]:
    """The words that the program sees: `> train.log` is for the shell."""
    skip = False
    for word in words:
        found = REDIRECTION.match(word.text)
        if found is None and not skip:
            yield word
        skip = found is not None and not found["target"]


def _unquoted(kind: str, piece: str) -> str:
    if kind == "single":
        return piece.strip("'")
    if kind == "double":
        return re.sub(r'\\(["\\$`])', r"\1", piece[1:].removesuffix('"')).replace("\\\n", "")
    return piece[1:] if kind == "escape" else piece


class _Shell:
    """What a script has given its variables so far."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._texts: dict[str, str] = {}
        self._lists: dict[str, list[Word]] = {}
        self._room = MOST_KEYS
        """How many more words lists may become: one that is used again and again is read for as long as a script can need it."""

    def run(self, command: Sequence[Word], environment: list[Given]) -> list[Word]:
        """The words of a command with its variables filled in, without the assignments that it begins with."""
        own = self._assignments(command, environment)
        evaluated = any(word.text == "eval" for word in command[: len(command) - len(own)])
        words = self._filled(own, split=evaluated)
        # `$COMMAND` may begin with variables of its own.
        return self._assignments(words, environment)

    def _assignments(self, words: Sequence[Word], environment: list[Given]) -> list[Word]:
        """Takes in the variables that a command begins with; the words after them."""
        at = 0
        while at < len(words):
            text = words[at].text
            found = ASSIGNED.match(text)
            size = 1
            if found is not None:
                size = _array(words, at) if found[2] == "(" else 1 + _copied(words, at)
                self._assign(found[1], text.startswith(f"{found[1]}+="), found[2], words[at + 1 : at + size])
                environment += self._of_interest(found[1], words[at])
            elif text.rsplit("/", 1)[-1] not in _SKIPPED and not (at and text.startswith("-")):
                break
            at += size
        return list(words[at:])

    def _assign(self, name: str, adds: bool, value: str, words: Sequence[Word]) -> None:
        text = "" if value == "(" else self._text_of(value)
        if name in self._texts and _ARGUMENT.match(text):
            return  # `MODEL=$1` below `MODEL=...`: what stands above is what holds without arguments
        self._texts[name] = (self._texts.get(name, "") + text if adds else text)[:LONGEST]
        known = self._lists.get(name, []) if adds else []
        self._lists[name] = [*known, *self._filled([one for one in words if one.text != ")"])][:MOST_KEYS]

    def _of_interest(self, name: str, word: Word) -> Iterator[Given]:
        if _OF_INTEREST.search(name) and not _SECRET.search(name):
            yield Given(key=name, value=self._texts[name], file=self._file, line=word.line, framework="environment")

    def _filled(self, words: Sequence[Word], *, split: bool = False) -> list[Word]:
        """The words with the values of variables; a list that stands for itself becomes its words, `split` also in quotes."""
        out: list[Word] = []
        for word in words:
            written = self._text[word.start : word.end]
            quoted = written.startswith('"') and not split
            found = _LIST.match(written)
            listed = self._lists.get(found[1] or found[2], []) if found is not None else []
            if found is not None and (found[3] or (listed and not quoted)):
                out += listed[: self._room]
                self._room -= min(self._room, len(listed))
            elif (text := self._text_of(word.text)) or quoted or not word.text:
                out.append(replace(word, text=text))
        return out

    def _text_of(self, text: str) -> str:
        """`$NAME` with the value that the script gave it; unknown ones stay."""
        if "$" not in text:
            return text
        return _VARIABLE.sub(lambda found: self._texts.get(found[1] or found[2], found[3] or found[0]), text)[:LONGEST]


def _array(words: Sequence[Word], at: int) -> int:
    """How many words an array is, from `NAME=(` to `)`."""
    return next((end + 1 for end in range(at + 1, len(words)) if words[end].text == ")"), len(words)) - at


def _copied(words: Sequence[Word], at: int) -> int:
    """How many words after an assignment are those in its quotes."""
    own = words[at]
    return next((end for end in range(at + 1, len(words)) if not own.start < words[end].start < own.end), len(words)) - at - 1


def _sections(file: str, words: Sequence[Word]) -> Iterator[Sheet]:
    """A launcher and what it launches are two programs with options of their own."""
    words = _in_container(words)
    launcher = _begins_with(words, _LAUNCHERS)
    if launcher:
        first = len(launcher.split())
        end = next((at for at in range(first, len(words)) if _is_target(words, at)), len(words))
        yield _sheet(file, launcher, words[first:end])
        words = words[end:]
    program = _begins_with(words, _PROGRAMS)
    if program:
        yield _sheet(file, _full_name(program, words), words[len(program.split()) :])
    elif words and words[0].text.endswith(".py"):
        yield _sheet(file, words[0].text, words[1:])
    elif len(words) > 1 and words[0].text.startswith("--") and words[1].text != ")":  # `--model )` is a label of `case`
        yield _sheet(file, "", words)


def _in_container(words: Sequence[Word]) -> Sequence[Word]:
    """What a container runs: the command behind its image, or the options of the program that the image starts by itself."""
    if not words or words[0].text not in _CONTAINERS or "run" not in (word.text for word in words[1:3]):
        return words
    for at, word in enumerate(words):
        started = next((program for image, program in _IMAGES.items() if image in word.text), None)
        inside = words[at + 1 :]
        if _begins_with(inside, (*_LAUNCHERS, *_PROGRAMS)):
            return inside
        if started is not None and inside and inside[0].text.startswith("-"):
            return [*(replace(word, text=part) for part in started.split()), *inside]
    return words


def _is_target(words: Sequence[Word], at: int) -> bool:
    """Whether the program that a launcher starts begins here."""
    text = words[at].text
    if text.endswith(".py") or text in ("llamafactory-cli", "axolotl", "swift"):
        return True
    return words[at - 1].text in ("-m", "--module") and "." in text


def _begins_with(words: Sequence[Word], programs: Sequence[str]) -> str | None:
    for program in programs:
        parts = program.split()
        if len(words) >= len(parts) and all(
            _same(word.text, part, last=part == parts[-1]) for word, part in zip(words, parts, strict=False)
        ):
            return program
    return None


def _same(word: str, part: str, *, last: bool) -> bool:
    name = word.rsplit("/", 1)[-1].rsplit("\\", 1)[-1].removesuffix(".exe")
    if part == "python":
        return re.fullmatch(r"python[\d.]{0,5}", name) is not None
    return name == part or (last and "." in part and word.startswith(part))


def _full_name(program: str, words: Sequence[Word]) -> str:
    """`vllm serve`, `python train.py`: the program and the words after it that are no options."""
    number = len(program.split())
    rest = [word.text for word in words[number : number + 2]]
    if rest[:1] == ["-m"] and len(rest) > 1:
        return f"{program} -m {rest[1]}"
    return " ".join([program, *(text for text in rest[:1] if not text.startswith("-") and "=" not in text and not _CONFIG.match(text))])


def _sheet(file: str, program: str, words: Sequence[Word]) -> Sheet:
    given: list[Given] = list(_served_model(file, program, words))
    named: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        option = OPTION.match(word.text)
        override = None if option else OVERRIDE.match(word.text)
        at += 1
        if option is not None and option[2] is not None:
            given += _option(file, option[1], [Word(option[2], word.line)], word.line)
        elif option is not None:
            values = _values(words, at)
            given += _option(file, option[1], values, word.line)
            named += [value.text for value in values if _CONFIG.match(value.text)]
            at += len(values)
        elif override is not None:
            given.append(Given(key=override[1].lstrip("+~"), value=_read(override[2]), file=file, line=word.line))
        elif _CONFIG.match(word.text):
            named.append(word.text)
    return Sheet(file=file, form="command", given=tuple(given), program=program or None, named=tuple(named))


def _served_model(file: str, program: str, words: Sequence[Word]) -> Iterator[Given]:
    """`vllm serve MODEL`: the one word without a name that is a setting (vllm/entrypoints/cli/serve.py, model_tag)."""
    after = words[1:2] if program == "vllm serve" else ()
    yield from (Given(key="model_tag", value=_read(one.text), file=file, line=one.line) for one in after if not OPTION.match(one.text))


def _values(words: Sequence[Word], at: int) -> list[Word]:
    """The words that belong to an option: up to the next option, as programs with lists take them, or to a `key=value`."""
    out: list[Word] = []
    for word in words[at:]:
        if OPTION.match(word.text) and not re.match(r"-\d", word.text):
            break
        if out and OVERRIDE.match(word.text):
            break
        out.append(word)
    return out


def _option(file: str, key: str, values: Sequence[Word], line: int) -> Iterator[Given]:
    if len(values) == 1 and values[0].text.lstrip().startswith("{"):
        yield from read_json(file, values[0].text, prefix=key, line=line).given
        return
    value: Scalar | tuple[Scalar, ...]
    if not values:
        value = True
    else:
        read = [_read(word.text) for word in values]
        value = read[0] if len(read) == 1 else tuple(read)
    yield Given(key=key, value=value, file=file, line=line)


def _read(text: str) -> Scalar:
    """A word as a value; None where it holds a variable or a command whose result is not known."""
    return None if "$" in text or "`" in text else plain(text)
