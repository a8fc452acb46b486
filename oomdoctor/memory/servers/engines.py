"""The servers whose memory is known: a new one is a module here, if it does not work like one of them, and a line in `ENGINES`."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.serving import Served, Server
from oomdoctor.case.setup import Setup
from oomdoctor.memory.servers import sglang, vllm
from oomdoctor.memory.servers.engine import ServerEngine

ENGINES: Mapping[str, ServerEngine] = {"vllm": vllm.ENGINE, "sglang": sglang.ENGINE}
"""By the name of their framework."""
DEFAULT_ENGINE = "vllm"
"""The server where somebody serves and does not say with what."""


def serve(setup: Setup, server: Server, total: int) -> Served:
    """Return what a server makes of a card of `total` bytes for the model of a setup."""
    return ENGINES[server.program].start(setup, server, total)
