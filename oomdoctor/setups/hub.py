"""The config.json of a model from a hub, if the user requests it: one small file, and nothing else of the model."""

from __future__ import annotations

import os

from oomdoctor import cache
from oomdoctor.errors import UsageError
from oomdoctor.setups.model_files import MOST_BYTES, is_hub_name, kept_name

_HUB = "https://huggingface.co"
_SECONDS = 15
_REFUSED = {401: "it requires a login", 403: "it requires a login", 404: "it has no such model"}


def fetch_config(name: str) -> None:
    """Keep the config.json of a model in the user's cache, where `read_config` finds it.

    The hub is HF_ENDPOINT, or otherwise huggingface.co; no token is sent. Raise UsageError with the reason if it is not available.
    """
    from urllib import error, request  # noqa: PLC0415 - 20 ms that only who asks a hub pays for

    hub = (os.environ.get("HF_ENDPOINT") or _HUB).rstrip("/")
    if not is_hub_name(name):
        raise UsageError(f"{name} is not a hub model name; those include an owner (Qwen/Qwen2.5-7B)")
    if not hub.startswith(("https://", "http://")):
        raise UsageError("HF_ENDPOINT is not a URL")
    try:
        with request.urlopen(request.Request(f"{hub}/{name}/resolve/main/config.json"), timeout=_SECONDS) as answer:  # noqa: S310 - http and https only
            data = answer.read(MOST_BYTES)
    except error.HTTPError as why:
        why.close()
        raise UsageError(f"{hub} did not return the config.json of {name}: {_REFUSED.get(why.code, f'status {why.code}')}") from why
    except (error.URLError, OSError, ValueError) as why:
        raise UsageError(f"{hub} cannot be reached: {getattr(why, 'reason', why)}") from why
    cache.keep(kept_name(name), data)
