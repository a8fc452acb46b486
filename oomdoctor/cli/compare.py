"""`oomdoctor compare`: two runs or machines, and what changed between them that matters for memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from oomdoctor import __version__
from oomdoctor.cli.machine import description
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack

if TYPE_CHECKING:
    from oomdoctor.case.comparison import Comparison, Side
    from oomdoctor.case.environment import Environment
    from oomdoctor.knowledge.pack import Pack

FORMATS = ("terminal", "markdown", "json", "html")
_CONFIGS = (".yaml", ".yml", ".json", ".sh")
_NONE = "-"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("before", metavar="A", type=click.Path(exists=True))
@click.argument("after", metavar="B", type=click.Path(exists=True))
@click.option("--config", "-c", nargs=2, multiple=True, metavar="A B", help="A config file of each run (- for none; repeatable).")
@click.option("--env", nargs=2, default=(_NONE, _NONE), metavar="A B", help="A text that describes each run's machine (- for none).")
@click.option("--format", "-f", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="Form of the answer.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the answer to this file.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language (default: the locale's).")
@click.option("--rules", type=click.Path(exists=True, file_okay=False), help="Use the rules in this folder instead of the built-in ones.")
@click.option("--exit-zero", is_flag=True, help="End with status 0 also when something that matters changed.")
@click.option("--no-redact", is_flag=True, help="Keep user and host names, paths, addresses and tokens as they are.")
def compare(
    before: str,
    after: str,
    config: tuple[tuple[str, str], ...],
    env: tuple[str, str],
    format_: str,
    output: str | None,
    lang: str | None,
    rules: str | None,
    exit_zero: bool,
    no_redact: bool,
) -> None:
    """Say what changed from A to B that matters for memory, the most suspicious first ("it fitted last week").

    A and B are logs or folders of logs, configs (.yaml, .json, .sh), or machines: the JSON of `oomdoctor env`, or what
    collect_env, transformers env, nvidia-smi, pip freeze and the like printed. A log may hold its machine's description.

    \b
    Examples:
      oomdoctor compare monday.log today.log
      oomdoctor compare monday.log today.log --config old.yaml new.yaml --env old.json new.json
      oomdoctor compare old.yaml new.yaml
      oomdoctor env --format json > now.json && oomdoctor compare last-week.json now.json

    Exit status: 0 nothing changed that is known to matter, 1 something did, 2 could not run.
    """
    from oomdoctor.comparing.compare import compare as run  # noqa: PLC0415 - wrong use loads nothing

    pack = load_pack(rules)
    files = [[pair[at] for pair in config if pair[at] != _NONE] for at in (0, 1)]
    found = run(_side(before, files[0], env[0], pack), _side(after, files[1], env[1], pack), pack)
    if not found.compared and not found.matters:
        raise UsageError(f"{before} and {after} say nothing about the same thing; --config and --env add what belongs to them")
    language = lang or locale_language(os.environ)
    write(render(found, format_, language, redact=not no_redact, to_terminal=output is None), output)
    if found.matters and not exit_zero:
        sys.exit(1)


def render(found: Comparison, format_: str, lang: str, *, redact: bool, to_terminal: bool) -> str:
    """The answer as text."""
    from oomdoctor.report.comparison.compare import compose, to_json  # noqa: PLC0415 - as above

    if format_ == "json":
        import json  # noqa: PLC0415 - each format loads only what it needs

        return json.dumps(to_json(found, version=__version__, redact=redact, lang=lang), ensure_ascii=False, indent=1) + "\n"
    document = compose(found, lang, __version__)
    if redact:
        from oomdoctor.report.safety.redact import redact as hide  # noqa: PLC0415

        document = hide(document)
    return show(document, format_, to_terminal=to_terminal)


def _side(path: str, configs: Sequence[str], env: str, pack: Pack) -> Side:
    """What one argument and the files beside it tell."""
    from oomdoctor.case.comparison import Side  # noqa: PLC0415 - as above

    machine = None if env == _NONE else _machine(env)
    if env != _NONE and machine is None:
        raise UsageError(f"--env {env}: nothing in it describes a machine")
    if os.path.isdir(path):
        return _run(path, configs, machine, pack)
    own = _machine(path)
    if path.lower().endswith(_CONFIGS):
        return _settings(path, configs if own is not None else [path, *configs], machine or own, pack)
    found = _run(path, configs, machine or own, pack)
    # A description of a machine is read as a log too, and as such it says nothing.
    return Side(name=path, environment=machine or own) if own is not None and _is_no_log(found) else found


def _is_no_log(side: Side) -> bool:
    case = side.diagnosis.case if side.diagnosis is not None else None
    return case is None or (not case.incidents and case.verdict.memory_failure == "no" and not case.training)


def _machine(path: str) -> Environment | None:
    """The machine that a file describes, if it does."""
    from oomdoctor.machine.reports.read import describes_nothing, read_report  # noqa: PLC0415 - as above

    found = read_report(description(path, "compare"), path)
    return None if describes_nothing(found) else found


def _settings(name: str, files: Sequence[str], machine: Environment | None, pack: Pack) -> Side:
    """A run without a log: what its config files and its machine tell."""
    from oomdoctor.case.comparison import Side  # noqa: PLC0415 - as above
    from oomdoctor.configs.files import read_files  # noqa: PLC0415
    from oomdoctor.configs.resolve import resolve_config  # noqa: PLC0415

    sheets, gaps = read_files(files)
    unread = next((gap for gap in gaps if gap.what in files), None)
    if unread is not None:
        raise UsageError(f"{unread.what}: {unread.why}")
    return Side(name=name, environment=machine, training=resolve_config(sheets, (), {}, pack))


def _run(path: str, configs: Sequence[str], machine: Environment | None, pack: Pack) -> Side:
    """A run with its log."""
    from oomdoctor.api.pipeline import diagnose_logs  # noqa: PLC0415
    from oomdoctor.case.comparison import Side  # noqa: PLC0415 - as above
    from oomdoctor.ingest.sources import expand_sources  # noqa: PLC0415

    for name in configs:
        if not os.path.isfile(name):
            raise UsageError(f"--config {name}: no such file")
    found = diagnose_logs(list(expand_sources([path])), pack, config=configs, jobs=min(4, os.cpu_count() or 1))
    if not any(source.size for source in found.case.sources):
        why = next((gap.why for gap in found.case.gaps), "nothing to read in it")
        raise UsageError(f"{path}: {why}")
    return Side(name=path, diagnosis=found, environment=machine, training=found.case.training)
