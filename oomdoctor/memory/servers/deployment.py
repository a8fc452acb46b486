"""A server with its model and its GPU, in the relevant release and in the older possible ones."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.serving import Served, Server
from oomdoctor.case.setup import Setup
from oomdoctor.memory.servers.engines import serve
from oomdoctor.memory.servers.releases import over_releases


class Deployment(Struct, frozen=True):
    """The requested server: unchanged for an estimate, with changes for a plan."""

    setup: Setup
    server: Server
    total: int
    """Bytes of the GPU."""
    card: str = ""
    """Its name; empty if only its size is known."""
    older: tuple[tuple[str, Server], ...] = ()
    """The same server in older releases, the newest first, each with the release before which it applies."""
    assumptions: tuple[Assumption, ...] = ()

    def served(self) -> Served:
        """Return how the GPU is used, with the range that the releases give."""
        return over_releases(self.newest(), [(before, serve(self.setup, server, self.total)) for before, server in self.older])

    def newest(self) -> Served:
        """Return how the relevant release uses the GPU."""
        return replace(serve(self.setup, self.server, self.total), card=self.card, assumptions=self.assumptions)

    def with_server(self, change: Callable[[Server], Server]) -> Deployment:
        """Return it with the server changed in every release."""
        return replace(self, server=change(self.server), older=tuple((before, change(server)) for before, server in self.older))
