"""Loads config files with the loaders of the frameworks themselves; run by an interpreter that has them, without pytest or oomdoctor.

`python framework_loaders.py FILE...` prints one JSON object: file -> {"by": the loader, "settings": what it read}, {"missing": the package}, or {"refused": why}.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Loader = Callable[[str], Any]


def omegaconf(path: str) -> Any:
    """LLaMA-Factory (hparams/parser.py: read_args) and torchtune (config/_parse.py)."""
    from omegaconf import OmegaConf  # type: ignore[import-not-found]

    return OmegaConf.to_container(OmegaConf.load(path))


def ruamel(path: str) -> Any:
    """GLM-4 (finetune.py: FinetuningConfig.from_file)."""
    from ruamel.yaml import YAML  # type: ignore[import-not-found]

    return YAML(typ="safe", pure=True).load(Path(path))


def pyyaml(path: str) -> Any:
    """axolotl (cli/config.py), TRL (TrlParser), vLLM."""
    import yaml

    return yaml.safe_load(Path(path).read_text(encoding="utf-8"))


def accelerate(path: str) -> Any:
    """accelerate launch --config_file."""
    from accelerate.commands.config.config_args import load_config_from_file  # type: ignore[import-not-found]

    return load_config_from_file(path).to_dict()


def deepspeed(path: str) -> Any:
    """transformers hands the file to accelerate's HfDeepSpeedConfig, DeepSpeed to its own reader."""
    from accelerate.utils.deepspeed import HfDeepSpeedConfig  # type: ignore[import-not-found]

    return HfDeepSpeedConfig(path).config


def trainer(path: str) -> Any:
    """transformers: HfArgumentParser.parse_json_file with TrainingArguments."""
    from transformers import HfArgumentParser, TrainingArguments

    given = json.loads(Path(path).read_text(encoding="utf-8"))
    given.update(deepspeed=None, use_cpu=True)  # the machine of the test has no card
    (read,) = HfArgumentParser(TrainingArguments).parse_dict(given, allow_extra_keys=True)
    return {**vars(read), "optim": getattr(read.optim, "value", read.optim)}


def options(path: str) -> Any:
    """A command whose options go to TrainingArguments: the argparse parser that transformers makes of them."""
    from transformers import HfArgumentParser, TrainingArguments

    words = shlex.split(Path(path).read_text(encoding="utf-8").replace("\\\n", " "), comments=True)
    read, _ = HfArgumentParser(TrainingArguments).parse_known_args(
        ["--output_dir", "o", *[word for word in words if word not in ("2>&1", "|", ";")]]
    )
    return vars(read)


LOADERS: tuple[tuple[tuple[str, ...], Loader], ...] = (
    (("torchrun-hf.sh", "deepspeed-launch.sh"), options),
    (("llamafactory-train.json", "llamafactory-", "torchtune-lora.yaml"), omegaconf),
    (("glm4-", "anchors.yaml"), ruamel),
    (("axolotl-", "trl-", "vllm-config"), pyyaml),
    (("accelerate-fsdp", "accelerate-deepspeed"), accelerate),
    (("deepspeed-zero2", "deepspeed-offload", "deepspeed-one-line", "ds_zero"), deepspeed),
    (("hf-",), trainer),
)


def load(path: str) -> dict[str, Any]:
    """What the loader of a file reads; nothing where no framework of the test takes it."""
    name = Path(path).name
    loader = next((loader for names, loader in LOADERS if name.startswith(names)), None)
    if loader is None:
        return {}
    try:
        return {"by": (loader.__doc__ or "").strip(), "settings": loader(path)}
    except ImportError as why:
        return {"missing": str(why.name or why)}
    except (Exception, SystemExit) as why:  # noqa: BLE001 - whatever a framework raises is its answer
        return {"refused": f"{type(why).__name__}: {why}"}


if __name__ == "__main__":
    print(json.dumps({path: load(path) for path in sys.argv[1:]}, default=str))
