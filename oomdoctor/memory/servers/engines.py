"""The kinds of startup arithmetic: a server names its own in rules/servers; a new one is a module here and a line in `ENGINES`."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.serving import EngineName, Served, Server
from oomdoctor.case.setup import Setup
from oomdoctor.memory.servers import free_share, sglang, vllm
from oomdoctor.memory.servers.engine import ServerEngine

ENGINES: Mapping[EngineName, ServerEngine] = {"vllm": vllm.ENGINE, "sglang": sglang.ENGINE, "free-share": free_share.ENGINE}
DEFAULT_SERVER = "vllm"
"""The server assumed for serving if none is named."""
LEAST_WHOLE = 2048
"""Minimum number of tokens in a step that takes requests whole: max(max_model_len, 2048) of vllm 0.2.6 to 0.7.3 config.py."""


def serve(setup: Setup, server: Server, total: int) -> Served:
    """Return how a server uses a GPU of `total` bytes for the model of a setup."""
    return ENGINES[server.program.engine].start(setup, server, total)
