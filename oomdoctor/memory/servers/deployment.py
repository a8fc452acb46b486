"""A server with its model and its card, in the release that counts and in the older ones that can be meant."""

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
    """What somebody asks about: as it is for an estimate, with changes for a plan."""

    setup: Setup
    server: Server
    total: int
    """Bytes of the card."""
    card: str = ""
    """Its name; empty where only its size is known."""
    older: tuple[tuple[str, Server], ...] = ()
    """The same server as older releases have it, the newest first, each with the release before which it is so."""
    assumptions: tuple[Assumption, ...] = ()

    def served(self) -> Served:
        """Return what becomes of the card, as wide as the releases make it."""
        return over_releases(self.newest(), [(before, serve(self.setup, server, self.total)) for before, server in self.older])

    def newest(self) -> Served:
        """Return what the release that counts makes of the card."""
        return replace(serve(self.setup, self.server, self.total), card=self.card, assumptions=self.assumptions)

    def with_server(self, change: Callable[[Server], Server]) -> Deployment:
        """Return it with a change of the server in every release."""
        return replace(self, server=change(self.server), older=tuple((before, change(server)) for before, server in self.older))
