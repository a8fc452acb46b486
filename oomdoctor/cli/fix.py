"""`oomdoctor fix`: the changes that a diagnosis and the complaints about a config ask for, written into the files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from oomdoctor.cli.output import coloured, locale_language, write
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack, load_pack

if TYPE_CHECKING:
    from oomdoctor.case.diagnosis import Diagnosis
    from oomdoctor.case.training import Complaint
    from oomdoctor.changes.proposal import Proposal
    from oomdoctor.changes.settle import Settled


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option(
    "--config",
    "-c",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A config file or launch script of the run, to be changed (repeatable).",
)
@click.option("--dry-run", is_flag=True, help="Show the difference and write nothing.")
@click.option("--yes", "-y", is_flag=True, help="Write without asking, and also what a person should decide.")
@click.option("--only", multiple=True, metavar="ID", help="Only this fix or complaint (repeatable).")
@click.option("--output", "-o", type=click.Path(file_okay=False), metavar="DIR", help="Write the changed files into this folder instead.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Language of what is said (default: the locale's).")
@click.option("--rules", type=click.Path(exists=True, file_okay=False), help="Use the rules in this folder instead of the built-in ones.")
def fix(
    paths: tuple[str, ...],
    config: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    only: tuple[str, ...],
    output: str | None,
    lang: str | None,
    rules: str | None,
) -> None:
    """Change the config of a run that died so that it fits: only the values, with comments, order and quotes as they are.

    PATHS are the logs of the run, and --config names its files. Without --config, PATHS are config files, and what is wrong
    in them is put right. The difference is shown first; a copy of each changed file is kept as FILE.bak-1, FILE.bak-2 and so
    on. A fix that needs a DeepSpeed JSON or an accelerate file creates it, and never overwrites one.

    \b
    Examples:
      oomdoctor fix train.log --config sft.yaml --dry-run
      oomdoctor fix train.log --config sft.yaml --config ds_z2.json
      oomdoctor fix train.log --config sft.yaml --only smaller-batch --yes
      oomdoctor fix sft.yaml

    Exit status: 0 changed or nothing to change, 1 something was not changed, 2 could not run. --dry-run ends like the run
    that writes.
    """
    from oomdoctor.changes.settle import settle  # noqa: PLC0415 - wrong use needs none of it
    from oomdoctor.report.changes import render  # noqa: PLC0415

    language = lang or locale_language(os.environ)
    if "-" in paths and not (yes or dry_run):
        raise UsageError("the log comes from standard input, so nothing can be asked there: give --yes or --dry-run")
    run = _Run(paths, config, load_pack(rules), output)
    chosen, waiting = _chosen(run.proposals(), yes=yes, only=only)
    settled = settle(run.files, chosen, run.judge, run.there, run.older)
    write(render(settled, run.files, waiting, language, color=coloured()), None)
    left = any(step.left for step in settled.steps) or bool(only and waiting)
    if settled.files and not dry_run:
        left = not _write(settled, run.files, output, language, ask=not yes) or left
    if left:
        sys.exit(1)


class _Run:
    """The files, what is to be done to them, and what they were."""

    def __init__(self, paths: Sequence[str], config: Sequence[str], pack: Pack, output: str | None) -> None:
        from oomdoctor.changes.homes import Homes  # noqa: PLC0415 - as above
        from oomdoctor.changes.store import in_force, modified, read  # noqa: PLC0415
        from oomdoctor.training.files import read_files  # noqa: PLC0415

        self._pack, self._output, self.there = pack, output, read
        configs = config or paths
        sheets, gaps = read_files(configs)
        unread = next((gap for gap in gaps if gap.what in configs), None)
        if unread is not None:
            raise UsageError(f"{unread.what}: {unread.why}")
        self._homes = Homes(sheets, pack)
        if not any(sheet.framework for sheet in self._homes.sheets):
            raise UsageError(f"{configs[0]} is no config that is known; name the config of the run with --config")
        self.files: dict[str, bytes] = {path: data for path in self._homes.files() if (data := read(path)) is not None}
        moment = modified(list(paths)) if config else None
        versions = {path: in_force(path, moment) for path in self.files}
        self.older = {path: read(version) or b"" for path, version in versions.items() if version != path}
        self._found = _diagnosis(paths, config, versions, pack) if config else None

    def judge(self, files: Mapping[str, bytes]) -> tuple[Complaint, ...]:
        """What is wrong with the configs as they would be. What the log says of values is not asked: they are to change."""
        from oomdoctor.training.configs import training  # noqa: PLC0415 - as above
        from oomdoctor.training.readers import read_config  # noqa: PLC0415

        sheets = [sheet for path, data in files.items() for sheet in read_config(path, data) or ()]
        found = training(sheets, (), {} if self._found is None else self._found.case.facts, self._pack)
        return () if found is None else found.complaints

    def proposals(self) -> list[Proposal]:
        """What the configs need to be right at all, then what the diagnosis proposes, the most useful first."""
        from oomdoctor.changes.proposal import of_complaint, of_fix  # noqa: PLC0415 - as above
        from oomdoctor.report.steps import proposed  # noqa: PLC0415

        out = [of_complaint(one, self._homes) for one in self.judge(self.files) if one.instead is not None or one.severity != "note"]
        if self._found is not None:
            training = self._found.case.training
            settings = {} if training is None else training.settings
            fixes = [one for one in proposed(self._found.findings) if one.settings]
            out += [of_fix(one, self._homes, settings, self._pack, self._output) for one in fixes]
        return out


def _diagnosis(paths: Sequence[str], config: Sequence[str], versions: Mapping[str, str], pack: Pack) -> Diagnosis:
    from oomdoctor.cli.diagnose import say_gaps  # noqa: PLC0415 - only with a log
    from oomdoctor.pipeline import diagnose  # noqa: PLC0415
    from oomdoctor.scan.sources import expand  # noqa: PLC0415

    found = diagnose(list(expand(paths)), pack, config=config, version=lambda path: versions.get(path, path))
    if say_gaps(found):
        sys.exit(2)
    return found


def _chosen(proposals: Sequence[Proposal], *, yes: bool, only: Sequence[str]) -> tuple[list[Proposal], list[Proposal]]:
    """What is done, and what waits for a person. Notes about a config are done only by name."""
    named = {one.id for one in proposals}
    unknown = next((one for one in only if one not in named), None)
    if unknown is not None:
        raise UsageError(f"--only {unknown}: not proposed here" + (f"; there is {', '.join(sorted(named))}" if named else ""))
    asked = [one for one in proposals if one.id in only or not only]
    notes = [one for one in asked if not only and one.complaint is not None and not one.safe]
    chosen = [one for one in asked if one not in notes and (one.safe or yes)]
    return chosen, [one for one in asked if one not in chosen and one.changes and one not in notes]


def _write(settled: Settled, before: Mapping[str, bytes], output: str | None, lang: str, *, ask: bool) -> bool:
    """Whether the files were written."""
    from oomdoctor.changes.store import write as put  # noqa: PLC0415 - as above
    from oomdoctor.report.changes import declined, question, written  # noqa: PLC0415

    files = settled.files if output is None else _elsewhere(settled.files, output)
    if not files:
        return True
    if ask and not _agreed(question(lang)):
        click.echo(declined(lang))
        return False
    copies = put(files, before if output is None else {})
    write(written(copies, [path for path in files if path not in copies], lang), None)
    return True


def _elsewhere(files: Mapping[str, bytes], folder: str) -> dict[str, bytes]:
    """The files that are not in `folder` as they are to be. Raises UsageError where one of that name says something else."""
    from oomdoctor.changes.store import read  # noqa: PLC0415 - as above

    os.makedirs(folder, exist_ok=True)
    out: dict[str, bytes] = {}
    for path, data in files.items():
        place = os.path.join(folder, os.path.basename(path))
        if place in out or (os.path.lexists(place) and read(place) != data):
            raise UsageError(f"{place} is there already and says something else; it is not overwritten")
        if not os.path.lexists(place):
            out[place] = data
    return out


def _agreed(text: str) -> bool:
    try:
        return click.confirm(text)
    except click.Abort:
        click.echo()
        return False
