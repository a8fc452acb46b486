"""What use cases return if it is more than one structure of a case."""

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
    """The memory a run uses on a GPU, and whether it fits."""

    estimate: Estimate | Served
    """For a server that reserves its share of the GPU in advance, how that share is used."""
    needed: Estimate | None = None
    """What must be available on a GPU for no request to fail, with or without a specific GPU; None for a server that reserves a share."""
    fit: Fit | None = None
    """The run checked against the GPU; None for a server, or if no GPU was specified."""
    otherwise: tuple[Otherwise, ...] = ()
    """Decisive assumptions, each taken the other way; those that change the verdict come first."""
    simulation: Simulation | None = None
    """Its first steps, request by request; None if not requested."""
    refusals: tuple[StartupRefusal, ...] = ()
    """Settings with which the program does not start, whatever memory is available."""

    @property
    def fits(self) -> Fits | None:
        """Whether the run fits, or the server starts: `yes`, `no` or `close`; None if no GPU was specified and nothing is refused."""
        return "no" if self.refusals else self.fits_alone

    @property
    def fits_alone(self) -> Fits | None:
        """The same for memory alone, whatever the program refuses."""
        if isinstance(self.estimate, Served):
            return self.estimate.starts
        return None if self.fit is None else self.fit.fits


class ConfigCheck(Struct, frozen=True, kw_only=True):
    """What is wrong with a config before it runs, and whether the run fits."""

    config: RunConfig
    """The settings, and in `issues` what stops the run or has no effect."""
    memory: RunEstimate | None = None
    """None if no GPU was specified, or if `unknown` says why the memory is not known."""
    unknown: str | None = None
    gaps: tuple[Gap, ...] = ()
    """What could not be read or is not known."""
    bugs: tuple[KnownBug, ...] = ()
    """The known memory bugs of the framework's release, if a file names it or it is installed here."""

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
    """The files as they will be (`applied.files`), and each step to them."""
    choice: Choice
    """What is done, what waits for a person's decision, and what else could be done."""
    plans: AnyPlans | None = None
    """What makes the run fit; None if not requested and the logs do not show enough."""
    is_incomplete: bool = False
    """Whether something is left that was not changed."""


class WrittenFix(Struct, frozen=True, kw_only=True):
    """The files that were written."""

    copies: Mapping[str, str]
    """Each changed file, and the copy kept of the old one."""
    created: tuple[str, ...]


class MachineReport(Struct, frozen=True, kw_only=True):
    """A machine, and what is wrong with it."""

    environment: Environment
    findings: tuple[Finding, ...]
    """The worst first."""
    bugs: tuple[KnownBug, ...] = ()
    """The known memory bugs of the releases that are installed."""
