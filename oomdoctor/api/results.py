"""What use cases return where it is more than one structure of a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from oomdoctor.case.diagnosis import Finding, KnownBug
from oomdoctor.case.environment import Environment
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.gap import Gap
from oomdoctor.case.plan import Fit, Fits, Otherwise
from oomdoctor.case.refusal import StartupRefusal
from oomdoctor.case.serving import AnyPlans, Served
from oomdoctor.case.settings import RunConfig
from oomdoctor.simulation.simulated_run import Simulation

if TYPE_CHECKING:
    from oomdoctor.configs.proposals.apply import AppliedProposals
    from oomdoctor.configs.proposals.choice import Choice


class RunEstimate(Struct, frozen=True, kw_only=True):
    """What a run takes of a card, and whether it fits there."""

    estimate: Estimate | Served
    """Of a server that takes its share of the card in advance, what becomes of that share."""
    needed: Estimate | None = None
    """What the run must find on a card so that no request fails, with a card or without; None for a server that takes a share."""
    fit: Fit | None = None
    """The run held against the card; None for a server, and where no card was named."""
    otherwise: tuple[Otherwise, ...] = ()
    """What was assumed and decides, taken the other way; what turns the verdict stands first."""
    simulation: Simulation | None = None
    """Its first steps, request by request; None where nobody asked."""
    refusals: tuple[StartupRefusal, ...] = ()
    """Settings for which the program does not start, whatever memory there is."""

    @property
    def fits(self) -> Fits | None:
        """Whether the run fits, or the server starts: `yes`, `no` or `close`; None where no card was named and nothing is refused."""
        return "no" if self.refusals else self.fits_alone

    @property
    def fits_alone(self) -> Fits | None:
        """The same of the memory alone, whatever the program refuses."""
        if isinstance(self.estimate, Served):
            return self.estimate.starts
        return None if self.fit is None else self.fit.fits


class ConfigCheck(Struct, frozen=True, kw_only=True):
    """What is wrong with a config before it runs, and whether the run fits."""

    config: RunConfig
    """The settings, and in `issues` what stops the run or has no effect."""
    memory: RunEstimate | None = None
    """None where no card was named, and where `unknown` says why the memory cannot be told."""
    unknown: str | None = None
    gaps: tuple[Gap, ...] = ()
    """What could not be read or is not known."""
    bugs: tuple[KnownBug, ...] = ()
    """The known memory bugs of the framework's release, where a file names it or it is installed here."""

    def is_wrong(self, *, strict: bool = False) -> bool:
        """Return whether there is an error or the run does not fit; `strict` counts warnings, and a run that may not fit."""
        severities = ("error", "warning") if strict else ("error",)
        if any(issue.severity in severities for issue in self.config.issues):
            return True
        return self.memory is not None and self.memory.fits in (("no", "close") if strict else ("no",))


class ConfigFix(Struct, frozen=True, kw_only=True):
    """The changes to the config files of a run. Nothing is written before `apply_fix` is called."""

    before: Mapping[str, bytes]
    """The files as they are, by path."""
    applied: AppliedProposals
    """The files as they are to be (`applied.files`), and each step to them."""
    choice: Choice
    """What is done, what waits for a person's decision, and what else could be done."""
    plans: AnyPlans | None = None
    """What makes the run fit; None where nobody asked and the logs do not tell enough."""
    is_incomplete: bool = False
    """Whether something is left that was not changed."""


class WrittenFix(Struct, frozen=True, kw_only=True):
    """The files that were written."""

    copies: Mapping[str, str]
    """Each changed file, and the copy that was kept of the old one."""
    created: tuple[str, ...]


class MachineReport(Struct, frozen=True, kw_only=True):
    """A machine, and what is wrong with it."""

    environment: Environment
    findings: tuple[Finding, ...]
    """The worst first."""
    bugs: tuple[KnownBug, ...] = ()
    """The known memory bugs of the releases that are installed."""
