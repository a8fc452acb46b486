"""`oomdoctor rules`: the knowledge, listed, shown, tested and started."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack, builtin_rules, load_pack, packed
from oomdoctor.report.safe import clean, clean_line

_HELP = {"help_option_names": ["-h", "--help"]}
_TEMPLATE = """\
program: {program}
signatures:
  - id: {id}
    kind: device-oom        # device-oom masked-device-oom host-oom shm-oom kernel-resource look-alike consequence context
    certainty: certain      # certain likely possible
    literals: ['a rare part of the message, six letters at least']
    pattern: 'a rare part of the message, six letters at least: (?P<requested_bytes>{{size}}) wanted'
    source: where the format was seen
    examples:
      - text: 'a rare part of the message, six letters at least: 2.00 GiB wanted'
        fields: {{requested_bytes: 2147483648}}
    near_misses:
      - text: 'a rare part of the message, six letters at least, in a help text'
        why: it names no size
"""


@click.group(context_settings=_HELP)
def rules() -> None:
    """List, show, test and start rules.

    \b
    Examples:
      oomdoctor rules list --kind host-oom
      oomdoctor rules show nvml-procs-assert
      oomdoctor rules test
      oomdoctor rules new my-program my-program-out-of-memory > my-program.yaml
    """


@rules.command("list", context_settings=_HELP)
@click.option("--kind", help="Only signatures of this kind.")
@click.option("--program", help="Only signatures of this program.")
@click.option("--problems", is_flag=True, help="Problems instead of signatures.")
@click.option("--rules", "folder", type=click.Path(exists=True, file_okay=False), help="The rules of this folder.")
def list_rules(kind: str | None, program: str | None, problems: bool, folder: str | None) -> None:
    """One line for each rule: its id, and what it says."""
    pack = load_pack(folder)
    if problems:
        for name in pack.names("problems"):
            text = pack.text("problems", name) or {}
            click.echo(f"{name:<44} {text['title']['en']}")
        return
    for core in sorted(pack.signatures, key=lambda core: (core["program"], core["id"])):
        if (kind is None or core["kind"] == kind) and (program is None or core["program"] == program):
            click.echo(f"{core['id']:<44} {core['kind']:<18} {core.get('certainty', '-'):<9} {core['program']}")


@rules.command("show", context_settings=_HELP)
@click.argument("name", metavar="ID")
@click.option("--rules", "folder", type=click.Path(exists=True, file_okay=False), help="The rules of this folder.")
def show(name: str, folder: str | None) -> None:
    """All of one rule: a signature, a problem, a fix or a source."""
    pack = load_pack(folder)
    shown = [_shown(pack, part, name) for part in ("signatures", "problems", "fixes", "sources") if pack.text(part, name) is not None]
    if not shown:
        near = [one for part in ("signatures", "problems", "fixes", "sources") for one in pack.names(part) if name in one][:8]
        raise UsageError(f"no rule has the id '{name}'" + (f"; near it: {', '.join(near)}" if near else ""))
    click.echo("\n".join(shown))


@rules.command("test", context_settings=_HELP)
@click.argument("paths", nargs=-1, type=click.Path(exists=True))
@click.option("--rules", "folder", type=click.Path(exists=True, file_okay=False), help="The rules of this folder.")
def test(paths: tuple[str, ...], folder: str | None) -> None:
    """Run the examples and near misses of rules, and the lint.

    PATHS are rule files or folders; without any, all rules are tested. Status 1 when something is wrong.
    """
    root = Path(folder or builtin_rules()).resolve()
    wanted = [Path(path).resolve() for path in paths]
    complaints = 0
    tested = 0
    for path, name, why in _complaints(root, wanted):
        if why is None:
            tested += 1
            continue
        complaints += 1
        click.echo(f"{_relative(path)}: {name}: {clean_line(why, 400)}")
    click.echo(f"{tested} rules tested, {complaints} complaints")
    if complaints:
        sys.exit(1)


@rules.command("new", context_settings=_HELP)
@click.argument("program")
@click.argument("name", metavar="ID")
def new(program: str, name: str) -> None:
    """A new signature file to fill in, on standard output."""
    click.echo(_TEMPLATE.format(program=program, id=name), nl=False)


def _complaints(root: Path, wanted: list[Path]) -> Iterator[tuple[str, str, str | None]]:
    """(file, id, complaint) for what is wrong, and once (file, id, None) for each rule that was tested."""
    from oomdoctor.examples import check_problem, check_signature  # noqa: PLC0415 - testing loads YAML; the other commands do not
    from oomdoctor.knowledge.lint import lint  # noqa: PLC0415
    from oomdoctor.knowledge.load import LoadedSignature, Rules, load_rules, load_signatures  # noqa: PLC0415
    from oomdoctor.knowledge.pattern import expand  # noqa: PLC0415
    from oomdoctor.parse.events import Recogniser  # noqa: PLC0415

    rules_found = load_rules(root)
    outside: list[LoadedSignature] = []
    for path in wanted:
        for file in [path] if path.is_file() else sorted(path.rglob("*.yaml")):
            if root not in file.parents:
                outside += load_signatures(file)

    def chosen(path: str) -> bool:
        here = Path(path).resolve()
        return not wanted or any(one == here or one in here.parents for one in wanted)

    everything = Rules((*rules_found.signatures, *outside), rules_found.problems, rules_found.fixes, rules_found.sources)
    pack = Pack(packed(everything, str(root)))
    recogniser = Recogniser(pack)
    for complaint in lint(everything, _healthy(root), expand):
        if chosen(complaint.path):
            yield complaint.path, complaint.id, complaint.why
    for loaded in everything.signatures:
        if chosen(loaded.path):
            yield loaded.path, loaded.record.id, None
            yield from ((loaded.path, loaded.record.id, why) for why in check_signature(loaded, recogniser))
    for source, problem in everything.problems:
        if chosen(source):
            yield source, problem.id, None
            yield from ((source, problem.id, why) for why in check_problem(problem, pack))


def _healthy(root: Path) -> list[str]:
    """Lines that programs print when all is well, kept beside the rules."""
    path = root / "healthy.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def _shown(pack: Pack, part: str, name: str) -> str:
    return clean(json.dumps(pack.text(part, name), ensure_ascii=False, indent=2), 1_000_000)


def _relative(path: str) -> str:
    try:
        return str(Path(path).resolve().relative_to(Path.cwd()))
    except ValueError:
        return path
