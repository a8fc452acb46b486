"""`oomdoctor rules`: the knowledge, listed, shown, tested, started and printed as a catalogue."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from oomdoctor.case.event import Kind
from oomdoctor.cli.options import SuggestingGroup
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.pack import PROBLEMS, builtin_rules, load_pack
from oomdoctor.report.handbook.catalogue import catalogue as pages
from oomdoctor.report.safety.sanitize import clean, clean_line

_HELP = {"help_option_names": ["-h", "--help"]}
_SIGNATURE = """\
program: PROGRAM
signatures:
  - id: NAME
    kind: device-oom        # device-oom masked-device-oom host-oom shm-oom kernel-resource look-alike consequence context
    certainty: certain      # certain likely possible
    literals: ['a rare part of the message, six letters at least']
    pattern: 'a rare part of the message, six letters at least: (?P<requested_bytes>{size}) wanted'
    source: where the format was seen
    examples:
      - text: 'a rare part of the message, six letters at least: 2.00 GiB wanted'
        fields: {requested_bytes: 2147483648}
    near_misses:
      - text: 'a rare part of the message, six letters at least, in a help text'
        why: it names no size
"""

_PROBLEM = """\
id: NAME
severity: error           # error warning note
weight: strong            # decisive strong fair even weak: how probable its cause is before other evidence is weighed
title: {en: 'What is wrong, in one line', zh: 一句话说明出了什么问题}
when:
  all:
    - {fact: incident.survived, is: false}
    - {program: pytorch, resource: device, tells: allocation-refused}
why:
  en: What was seen, then what it means.
  zh: 先写看到了什么，再写它说明什么。
fixes: [smaller-batch]
silences: [device-memory-full]
cites:
  - source: pytorch-cuda-notes
examples:
  - name: the message alone
    log: 'torch.cuda.OutOfMemoryError: CUDA out of memory.'
near_misses:
  - name: advice that names the message
    log: 'If the log says CUDA out of memory, lower the batch size and start again.'
    expect: none
"""
_FIX = """\
id: NAME
title: {en: What to change, zh: 改什么}
how:
  en: How to do it, and when it does not help.
  zh: 怎么做，什么时候没有用。
settings:
  - {framework: PROGRAM, key: the_key, to: '1', source: where the key was read}
frees:
  terms: [activations]    # weights gradients optimizer states activations logits kv cache allocator slack ...
  says: {en: activations, zh: 激活值}
harm: slower              # the worst of what it costs: none slower effort quality hardware
costs: {en: Steps take longer., zh: 每步变慢。}
safety: review            # safe: a tool may apply it; review: a person decides
cites: [pytorch-cuda-notes]
"""
_BUG = """\
program: PROGRAM
title: PROGRAM
packages: [PROGRAM]
marks: ['PROGRAM==1.', 'PROGRAM version: ']   # what stands before its version, six letters or digits at least
source: where the marks were read
bugs:
  - id: NAME
    versions: ['<1.3.0']    # who has it; several spans are alternatives, the parts of one are joined by commas
    state: fixed            # fixed; open: no release is known to mend it; intended: a changed default
    fixed_in: '1.3.0'
    memory: card            # card host
    symptom:
      en: What is printed or seen, and with which settings.
      zh: 看到了什么，在什么设置下。
    source: https://example.org/program/issues/1
    evidence: release       # release commit maintainer reporter documented
    shown:                  # without it the bug is named only where versions are asked about
      - message: {literals: ['a rare part of the message'], pattern: 'a rare part of the message, \\d{1,9} times'}
        unmistakable: true  # nothing else prints it: named with an "if" where the version is not known
    examples:
      - name: the message with its version
        log: |
          PROGRAM==1.2.0
          a rare part of the message, 12 times
    near_misses:
      - name: the version alone
        log: PROGRAM==1.2.0
        expect: none
"""
_ONE = {"fixes": "fix"}
_TEMPLATES = {"signature": _SIGNATURE, "problem": _PROBLEM, "fix": _FIX, "bug": _BUG}


@click.group(cls=SuggestingGroup, context_settings=_HELP)
def rules() -> None:
    """List, show, test, create and export rules.

    \b
    Examples:
      oomdoctor rules list --kind host-oom
      oomdoctor rules show nvml-procs-assert
      oomdoctor rules test
      oomdoctor rules catalogue docs/catalogue
      oomdoctor rules new my-program my-program-out-of-memory > my-program.yaml
    """


@rules.command("list", context_settings=_HELP)
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="Only signatures of this kind.")
@click.option("--program", help="Only signatures of this program.")
@click.option("--problems", is_flag=True, help="Problems instead of signatures.")
@click.option("--rules", "folder", type=click.Path(exists=True, file_okay=False), help="Include the rules in this folder.")
def list_rules(kind: str | None, program: str | None, problems: bool, folder: str | None) -> None:
    """Print one line per rule: its ID and what it says."""
    pack = load_pack(folder)
    if problems:
        for problem in pack.records(PROBLEMS):
            click.echo(f"{problem.id:<44} {problem.title.en}")
        return
    for core in sorted(pack.signatures, key=lambda core: (core.program, core.id)):
        if (kind is None or core.kind == kind) and (program is None or core.program == program):
            click.echo(f"{core.id:<44} {core.kind:<18} {core.certainty or '-':<9} {core.program}")


@rules.command("show", context_settings=_HELP)
@click.argument("name", metavar="ID")
@click.option("--rules", "folder", type=click.Path(exists=True, file_okay=False), help="Include the rules in this folder.")
def show(name: str, folder: str | None) -> None:
    """Show a complete rule: a signature, a problem, a fix, a source or a known bug."""
    book = Book(load_pack(folder))
    parts = ("signatures", "problems", "fixes", "sources", "bugs")
    shown = [_shown(book, part, name) for part in parts if name in book.pack.names(part)]
    if not shown:
        near = [identity for part in parts for identity in book.pack.names(part) if name in identity][:8]
        raise UsageError(f"no rule has the ID '{name}'" + (f"; similar: {', '.join(near)}" if near else ""))
    click.echo("\n".join(shown))


@rules.command("test", context_settings=_HELP)
@click.argument("paths", nargs=-1, type=click.Path(exists=True))
@click.option("--rules", "folder", type=click.Path(exists=True, file_okay=False), help="Include the rules in this folder.")
def test(paths: tuple[str, ...], folder: str | None) -> None:
    """Run the rules' examples and near misses, and the linter.

    PATHS are rule files or folders; without any, all rules are tested. Exit status 1 if anything is wrong.
    """
    from oomdoctor.api.rules import try_rules  # noqa: PLC0415 - testing loads YAML and all readers; the other commands do not

    trial = try_rules(Path(folder or builtin_rules()).resolve(), [Path(path).resolve() for path in paths])
    for issue in trial.issues:
        click.echo(f"{_relative(issue.path)}:{issue.line}:{issue.column}: {issue.id}: {clean_line(issue.why, 400)}")
    tested = ", ".join(f"{count} {_ONE.get(kind, kind[:-1]) if count == 1 else kind}" for kind, count in trial.tested.items())
    click.echo(f"{tested or 'nothing'} tested, {len(trial.issues)} complaints")
    if trial.issues:
        sys.exit(1)


@rules.command("new", context_settings=_HELP)
@click.argument("program")
@click.argument("name", metavar="ID")
@click.option(
    "--as", "part", type=click.Choice(list(_TEMPLATES)), default="signature", show_default=True, help="The kind of rule to create."
)
def new(program: str, name: str, part: str) -> None:
    """Write a template for a new rule to standard output.

    PROGRAM is the program that prints a message or has a bug, the area of a problem, or the framework of a fix. Unedited, the
    rule passes `oomdoctor rules test`; CONTRIBUTING.md explains it line by line.
    """
    click.echo(_TEMPLATES[part].replace("PROGRAM", program).replace("NAME", name), nl=False)


@rules.command("catalogue", context_settings=_HELP)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--rules", "root", type=click.Path(exists=True, file_okay=False), help="Include the rules in this folder.")
def catalogue(folder: str, root: str | None) -> None:
    """Write all rules as Markdown pages into DIR, in English and Chinese.

    Exit status 2 if a page cannot be written.
    """
    where = Path(folder)
    try:
        where.mkdir(parents=True, exist_ok=True)
        for name, text in pages(Book(load_pack(root))).items():
            (where / name).write_text(text, encoding="utf-8")
            click.echo(where / name)
    except OSError as why:
        raise UsageError(f"cannot write {folder}: {(why.strerror or str(why)).lower()}") from why


def _shown(book: Book, part: str, name: str) -> str:
    return clean(json.dumps(book.as_json(part, name), ensure_ascii=False, indent=2), 1_000_000)


def _relative(path: str) -> str:
    try:
        return str(Path(path).resolve().relative_to(Path.cwd()))
    except ValueError:
        return path
