"""Command lines and the shell scripts that hold them. They are read, never run.

A script gives one config for the variables that it sets for all, and for each command one for the launcher, one for the
program and one for the variables before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.parsed_config import ParsedConfig, plain_value
from oomdoctor.configs.readers.batch_job import job_settings, per_node, read_job, srun_options
from oomdoctor.configs.readers.json import read_json
from oomdoctor.configs.readers.program_version import named_versions, version_of
from oomdoctor.configs.readers.shell import OPTION, Shell, Word, commands, is_of_interest, without_redirections
from oomdoctor.configs.readers.windows import as_shell

OVERRIDE = re.compile(r"(\+{0,2}~?[A-Za-z_][\w.]{0,150})=(.*)\Z", re.DOTALL)
_CONFIG = re.compile(r"[^\s=]{1,300}\.(?:ya?ml|json|toml)\Z", re.IGNORECASE)
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
    "llama-bench", "llama-mtmd-cli", "llama-perplexity",
    "text-generation-launcher", "lmdeploy serve", "lmdeploy chat", "lmdeploy", "trtllm-serve", "python -m lmdeploy",
    "python -m llamafactory.cli", "python -m vllm.entrypoints", "python -m sglang", "sglang serve", "python -m axolotl",
    "torchtitan.train", "accelerate", "python",
)  # fmt: skip
_CONTAINERS = ("docker", "podman", "nerdctl")
_LIMITS = ("--memory", "-m", "--gpus")
_IMAGES = {
    "vllm/vllm-openai": "python -m vllm.entrypoints.openai.api_server",
    "huggingface/text-generation-inference": "text-generation-launcher",
    "llama.cpp:server": "llama-server",
    "llama.cpp:light": "llama-cli",
}
"""Images that take the options of a server: ENTRYPOINT of vllm docker/Dockerfile, text-generation-inference tgi-entrypoint.sh, llama.cpp
.devops/*.Dockerfile."""
_SERVING_IMAGES = {"vllm/vllm-openai": "vllm serve"}
"""Images that take a model first: ENTRYPOINT of vllm docker/Dockerfile, 0.11 and newer."""
_MODEL_AFTER = {
    "vllm serve": "model_tag",
    "sglang serve": "model",
    "trtllm-serve serve": "model",
    "trtllm-serve": "model",
    "lmdeploy serve api_server": "model_path",
    "python -m lmdeploy serve api_server": "model_path",
    "lmdeploy chat": "model_path",
    "ollama run": "model",
}
"""Commands whose next word without a name is the model, and the setting that it is: vllm/entrypoints/cli/serve.py, tensorrt_llm
commands/serve.py, lmdeploy/cli/serve.py and chat.py, ollama cmd/cmd.go."""


def read_command_line(file: str, text: str, beside: Sequence[str] = ()) -> list[ParsedConfig]:
    """Return the configs of a script or of one command line; a script without any command of interest gives none.

    `beside` are words that stand elsewhere and may name a version: the image in which it runs.
    """
    job, text = read_job(file, text), as_shell(file, text)
    shell = Shell(file, text, None if job is None else job.variables)
    exported: list[WrittenSetting] = []
    configs: list[ParsedConfig] = []
    named = dict(named_versions(beside))
    for number, command in enumerate(commands(text), 1):
        variables: list[WrittenSetting] = []
        words = list(without_redirections(shell.run(command, variables)))
        named.update(named_versions(word.text for word in words))
        if words:
            configs += [replace(config, command=number) for config in (*_sections(file, words), *_environment(file, variables))]
        else:
            exported += variables
    if named:
        configs = [replace(config, version=version_of(config.program, named)) for config in configs]
    return [*configs, *_environment(file, exported), *([job.config] if job else [])]


def _environment(file: str, given: Sequence[WrittenSetting]) -> list[ParsedConfig]:
    return [ParsedConfig(file=file, form="environment", written=tuple(given), framework="environment")] if given else []


def _sections(file: str, words: Sequence[Word]) -> Iterator[ParsedConfig]:
    """Yield what a launcher is given and what it launches: two programs with options of their own."""
    if words[0].text == "srun":
        end = 1 + srun_options([word.text for word in words[1:]])
        yield from _job_step(file, words[1:end])
        yield from _sections(file, words[end:]) if words[end:] else ()
        return
    yield from _around(file, words)
    words = _in_container(words)
    launcher = _begins_with(words, _LAUNCHERS)
    if launcher:
        first = len(launcher.split())
        end = next((at for at in range(first, len(words)) if _is_target(words, at)), len(words))
        yield _config(file, launcher, words[first:end])
        words = words[end:]
    program = _begins_with(words, _PROGRAMS)
    if program:
        yield _config(file, _full_name(program, words), words[len(program.split()) :], _served_model(file, words))
    elif words and words[0].text.endswith(".py"):
        yield _config(file, words[0].text, words[1:])
    elif len(words) > 1 and words[0].text.startswith("--") and words[1].text != ")":  # `--model )` is a label of `case`
        yield _config(file, "", words)


def _job_step(file: str, words: Sequence[Word]) -> Iterator[ParsedConfig]:
    """Yield what `srun` is told of processes and cards."""
    written = per_node(job_settings(file, " ".join(word.text for word in words), words[0].line)) if words else ()
    if written:
        yield ParsedConfig(file=file, form="job", written=written, program="srun", framework="slurm")


def _around(file: str, words: Sequence[Word]) -> Iterator[ParsedConfig]:
    """Yield what `docker run` gives a container: its limits, and the variables of its environment."""
    if not _runs_container(words):
        return
    limits: list[WrittenSetting] = []
    variables: list[WrittenSetting] = []
    for word, value in zip(words, [*words[1:], None]):
        key, mark, inline = word.text.partition("=")
        given = inline if mark else value.text if value is not None else ""
        if key in _LIMITS:
            limits.append(WrittenSetting(key=key, value=_read(given), file=file, line=word.line))
        elif key in ("-e", "--env") and is_of_interest((name := given.partition("="))[0]) and name[2]:
            variables.append(WrittenSetting(key=name[0], value=name[2], file=file, line=word.line, framework="environment"))
    if limits:
        yield ParsedConfig(file=file, form="job", written=tuple(limits), program=words[0].text, framework="docker")
    yield from _environment(file, variables)


def _runs_container(words: Sequence[Word]) -> bool:
    return bool(words) and words[0].text in _CONTAINERS and "run" in (word.text for word in words[1:3])


def _in_container(words: Sequence[Word]) -> Sequence[Word]:
    """Return what a container runs: the command behind its image, or the options of the program that the image starts by itself."""
    if not _runs_container(words):
        return words
    for at, word in enumerate(words):
        inside = words[at + 1 :]
        if _begins_with(inside, (*_LAUNCHERS, *_PROGRAMS)):
            return inside
        images = _IMAGES if inside and inside[0].text.startswith("-") else _SERVING_IMAGES
        started = next((program for image, program in images.items() if image in word.text), None)
        if started is not None and inside:
            return [*(replace(word, text=part) for part in started.split()), *inside]
    return words


def _is_target(words: Sequence[Word], at: int) -> bool:
    """Return whether the program that a launcher starts begins here."""
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


def _config(file: str, program: str, words: Sequence[Word], served: Sequence[WrittenSetting] = ()) -> ParsedConfig:
    given: list[WrittenSetting] = [*served]
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
            given.append(WrittenSetting(key=override[1].lstrip("+~"), value=_read(override[2]), file=file, line=word.line))
        elif _CONFIG.match(word.text):
            named.append(word.text)
    return ParsedConfig(file=file, form="command", written=tuple(given), program=program or None, named=tuple(named))


def _served_model(file: str, words: Sequence[Word]) -> tuple[WrittenSetting, ...]:
    """Return the one word of a server's command that is a setting without a name: the model."""
    command = _begins_with(words, tuple(_MODEL_AFTER))
    named = words[len(command.split()) :][:1] if command else ()
    return tuple(
        WrittenSetting(key=_MODEL_AFTER[command or ""], value=_read(word.text), file=file, line=word.line)
        for word in named
        if not OPTION.match(word.text)
    )


def _values(words: Sequence[Word], at: int) -> list[Word]:
    """Return the words that belong to an option: up to the next option, as programs with lists take them, or to a `key=value`."""
    out: list[Word] = []
    for word in words[at:]:
        if OPTION.match(word.text) and not re.match(r"-\d", word.text):
            break
        if out and OVERRIDE.match(word.text):
            break
        out.append(word)
    return out


def _option(file: str, key: str, values: Sequence[Word], line: int) -> Iterator[WrittenSetting]:
    if len(values) == 1 and values[0].text.lstrip().startswith("{"):
        yield from read_json(file, values[0].text, prefix=key, line=line).written
        return
    value: Scalar | tuple[Scalar, ...]
    if not values:
        value = True
    else:
        read = [_read(word.text) for word in values]
        value = read[0] if len(read) == 1 else tuple(read)
    yield WrittenSetting(key=key, value=value, file=file, line=line)


def _read(text: str) -> Scalar:
    """Return a word as a value; None where it holds a variable or a command whose result is not known."""
    return None if "$" in text or "`" in text else plain_value(text)
