"""The config files of a run: one way to read them, and one way to fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from oomdoctor.case.gap import Gap
from oomdoctor.case.settings import ConfigIssue, RunConfig
from oomdoctor.configs.files import read_files
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.configs.resolve import resolve_config
from oomdoctor.errors import UsageError
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.tables.other_servers import other_server


def no_config(path: str, issues: Iterable[ConfigIssue]) -> str:
    """Return the message for a file that is not a config, with the first error in its syntax."""
    issue = next(iter(issues), None)
    return f"{path} is not a known config" + (f" ({issue.file}:{issue.line}: {issue.what.en})" if issue is not None else "")


def read_configs(paths: Sequence[str], *, all_needed: bool = True) -> tuple[list[ParsedConfig], list[Gap]]:
    """Read config files and the neighboring files they name; return them with what could not be read.

    Raise UsageError if one of `paths` cannot be read; without `all_needed`, only if none of them can.
    """
    configs, gaps = read_files(paths)
    unread = next((gap for gap in gaps if gap.what in paths), None)
    if all_needed and unread is not None:
        raise UsageError(f"{unread.what}: {unread.why}")
    if not all_needed and not configs:
        raise UsageError("; ".join(f"{gap.what}: {gap.why}" for gap in gaps) or other_server(paths) or "nothing to read in these files")
    return configs, gaps


def read_settings(
    paths: Sequence[str], pack: Pack, *, facts: Mapping[str, Fact] | None = None, all_needed: bool = True
) -> tuple[RunConfig | None, list[Gap]]:
    """Read a run's settings from its config files; None if they contain none. `facts` are known from elsewhere (`log.NAME`).

    Raise UsageError as `read_configs` does.
    """
    configs, gaps = read_configs(paths, all_needed=all_needed)
    return resolve_config(configs, (), facts or {}, pack), gaps
