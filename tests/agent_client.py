"""The protocol's own client, which talks to the real command over its standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

REPOSITORY = Path(__file__).parents[1]
LOG = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB"
CONFIG = """\
### model
model_name_or_path: Qwen/Qwen2.5-7B  # the base
stage: sft
do_train: true
finetuning_type: lora
cutoff_len: 6144
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
"""


class Reply:
    """An answer of a tool, as a client sees it."""

    def __init__(self, result: Any, whole: str = "") -> None:
        self.is_error: bool = result.is_error
        self.text: str = result.content[0].text
        self.fields: Mapping[str, Any] = {} if result.is_error else json.loads(self.text)
        self.whole = whole
        """All of it as JSON, where that was asked for."""
        self.parts: int = len(result.content) + (result.structured_content is not None)


def talk(
    root: Path, *calls: tuple[str, Mapping[str, object]], options: tuple[str, ...] = (), home: Path | None = None, whole: bool = False
) -> tuple[dict[str, Any], list[Reply]]:
    """Start the server, call tools one after the other, and return the tools by name and the answers."""

    async def session() -> tuple[dict[str, Any], list[Reply]]:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "XDG_CACHE_HOME": str(root.parent / "cache"),
            "HOME": str(home or root),
        }
        arguments = ["-m", "oomdoctor", "mcp", "--root", str(root), "--lang", "en", *options]
        async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=environment))) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            return tools, [await ask(client, name, arguments) for name, arguments in calls]

    async def ask(client: Client, name: str, arguments: Mapping[str, object]) -> Reply:
        reply = Reply(result := await client.call_tool(name, dict(arguments)))
        if not whole or reply.is_error:
            return reply
        pages = await client.call_tool("read_answer", {"answer_id": reply.fields["answer_id"], "form": "json", "limit": 40_000})
        return Reply(result, Reply(pages).text)

    return asyncio.run(session())
