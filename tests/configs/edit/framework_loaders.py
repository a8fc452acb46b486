"""Loads configs with the loaders of the frameworks themselves; run by an interpreter that has them, without pytest or oomdoctor.

`python framework_loaders.py FILE...` prints one JSON object: file -> {"by": the loader, "settings": what it read}, {"missing": the package}, or
{"refused": why}. A script is run by bash with the programs replaced by functions that keep their words.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Loader = Callable[[str], Any]

os.environ["DISABLE_VERSION_CHECK"] = "1"  # LLaMA-Factory: one interpreter for all frameworks has versions that each alone would not take
os.environ["VLLM_PLUGINS"] = ""  # ms-swift is one, and wants more than a parser

_SHELL = r"""
keep() { [ -s words ] || { printf '%s\0' "$@" > words; env -0 > variables; }; }
for name in deepspeed llamafactory-cli python swift torchrun tune vllm; do eval "$name() { keep $name \"\$@\"; }"; done
nohup() { "$@"; }
cd() { :; }
source "$1"
wait
"""


def shell(path: str) -> tuple[list[str], dict[str, str]]:
    """The words of the first program that a script starts, and its environment."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["bash", "-c", _SHELL, "bash", os.path.abspath(path)], cwd=folder, check=True, timeout=600, capture_output=True)
        words, variables = ((Path(folder) / name).read_text(encoding="utf-8").split("\0")[:-1] for name in ("words", "variables"))
    return words, dict(one.partition("=")[::2] for one in variables)


def behind(words: Sequence[str], *ends: str) -> list[str]:
    """The words behind the program, which one of these words ends."""
    return list(words[next(at for at, word in enumerate(words) if word.endswith(ends)) + 1 :])


def yaml_of(path: str) -> dict[str, Any]:
    import yaml

    return dict(yaml.safe_load(Path(path).read_text(encoding="utf-8")))


def omegaconf(path: str) -> Any:
    """torchtune (config/_parse.py)."""
    from omegaconf import OmegaConf  # type: ignore[import-not-found]

    return OmegaConf.to_container(OmegaConf.load(path))


def llamafactory(path: str) -> Any:
    """llamafactory-cli train: hparams/parser.py, with its dataclasses."""
    from llamafactory.hparams import parser  # type: ignore[import-not-found]
    from omegaconf import OmegaConf
    from transformers import HfArgumentParser

    given = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(given, dict)
    # The machine of the test has no card, and the files that the config names are not there.
    apart = {"deepspeed": given.pop("deepspeed", None)}
    read = HfArgumentParser(parser._TRAIN_ARGS).parse_dict({"output_dir": "o", **given, "use_cpu": True})
    return {**{name: value for one in read for name, value in plain(one).items()}, **apart}


def llamafactory_options(path: str) -> Any:
    """The same from a command line."""
    from llamafactory.hparams import parser
    from transformers import HfArgumentParser

    words, variables = shell(path)
    read, rest = argparse.ArgumentParser.parse_known_args(
        HfArgumentParser(parser._TRAIN_ARGS), ["--output_dir", "o", *behind(words, "train")]
    )
    return {**plain(read), **variables, "rest": rest}


def ruamel(path: str) -> Any:
    """GLM-4 (finetune.py: FinetuningConfig.from_file)."""
    from ruamel.yaml import YAML  # type: ignore[import-not-found]

    return YAML(typ="safe", pure=True).load(Path(path))


def axolotl(path: str) -> Any:
    """axolotl: the schema that cli/config.py gives a config to."""
    from axolotl.utils.config import validate_config  # type: ignore[import-not-found]
    from axolotl.utils.dict import DictDefault  # type: ignore[import-not-found]

    given = {"learning_rate": 1e-4, "datasets": [{"path": "d", "type": "alpaca"}], **yaml_of(path)}
    # A plugin is code of its own, which wants a card.
    apart = {name: value for name, value in given.items() if name == "plugins" or name.startswith("liger_")}
    read = validate_config(DictDefault({name: value for name, value in given.items() if name not in apart})).to_dict()
    # axolotl keeps the keys of this block without the prefix that it allows.
    read["fsdp_config"] = {f"fsdp_{name.removeprefix('fsdp_')}": value for name, value in (read.get("fsdp_config") or {}).items()}
    return {**read, **apart}


def trl(path: str) -> Any:
    """trl sft --config: TrlParser with SFTConfig."""
    from trl import ModelConfig, ScriptArguments, SFTConfig, TrlParser  # type: ignore[import-not-found]

    read = TrlParser([ScriptArguments, SFTConfig, ModelConfig]).parse_args_and_config(
        ["--config", path, "--output_dir", "o", "--use_cpu", "true"]
    )
    return {name: value for one in read for name, value in plain(one).items()}


def swift(path: str) -> Any:
    """swift sft: the argparse parser that ms-swift makes of SftArguments; 3.x calls tuner_type train_type."""
    from swift.arguments import SftArguments  # type: ignore[import-not-found]
    from transformers import HfArgumentParser

    words, variables = shell(path)
    read, rest = argparse.ArgumentParser.parse_known_args(HfArgumentParser([SftArguments]), behind(words, "sft"))
    assert rest in ([], ["--train_type", "lora"]), rest
    return {**plain(read), **variables}


def accelerate(path: str) -> Any:
    """accelerate launch --config_file."""
    from accelerate.commands.config.config_args import load_config_from_file  # type: ignore[import-not-found]

    return load_config_from_file(path).to_dict()


def deepspeed(path: str) -> Any:
    """transformers hands the file to accelerate's HfDeepSpeedConfig."""
    from accelerate.utils.deepspeed import HfDeepSpeedConfig  # type: ignore[import-not-found]

    return HfDeepSpeedConfig(path).config


def deepspeed_itself(path: str) -> Any:
    """DeepSpeed's own reader, which allows comments (runtime/config.py: hjson)."""
    from deepspeed.runtime.config import DeepSpeedConfig

    return DeepSpeedConfig(path)._param_dict


def trainer(path: str) -> Any:
    """transformers: HfArgumentParser.parse_json_file with TrainingArguments."""
    from transformers import HfArgumentParser, TrainingArguments

    given = json.loads(Path(path).read_text(encoding="utf-8"))
    # As above; what is inside of `deepspeed` is DeepSpeed's.
    (read,) = HfArgumentParser(TrainingArguments).parse_dict({**given, "deepspeed": None, "use_cpu": True}, allow_extra_keys=True)
    return {**plain(read), "deepspeed": given.get("deepspeed")}


def trainer_options(path: str) -> Any:
    """A command whose options go to TrainingArguments: the argparse parser that transformers makes of them."""
    from transformers import HfArgumentParser, TrainingArguments

    words, variables = shell(path)
    read, _ = argparse.ArgumentParser.parse_known_args(HfArgumentParser(TrainingArguments), ["--output_dir", "o", *behind(words, ".py")])
    return {**plain(read), **variables}


def torchtune(path: str) -> Any:
    """tune run: overrides, which config/_utils.py gives to OmegaConf; torchtune 0.6.1 itself takes no torch of today."""
    from omegaconf import OmegaConf

    overrides = [word for word in behind(shell(path)[0], "llama3_1/8B_lora_single_device") if "=" in word]
    return OmegaConf.to_container(OmegaConf.from_dotlist(overrides))


def vllm(path: str) -> Any:
    """vllm serve and the OpenAI server: FlexibleArgumentParser with the arguments of the engine."""
    import vllm.platforms as platforms  # type: ignore[import-not-found]
    from vllm.platforms.cpu import CpuPlatform  # type: ignore[import-not-found]

    platforms._current_platform = CpuPlatform()  # what it finds by itself has a card
    from vllm.engine.arg_utils import AsyncEngineArgs  # type: ignore[import-not-found]
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found]

    parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
    words = parser.load_config_file(path) if path.endswith(".yaml") else behind(shell(path)[0], "serve", ".api_server")
    return plain(argparse.ArgumentParser.parse_known_args(parser, words)[0])


def sglang(path: str) -> Any:
    """python -m sglang.launch_server."""
    from sglang.srt.server_args import ServerArgs  # type: ignore[import-not-found]

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return plain(parser.parse_args(behind(shell(path)[0], ".launch_server")))


def plain(read: Any) -> dict[str, Any]:
    """The attributes of what a parser gives, enumerations by their values."""
    return {name: getattr(value, "value", value) for name, value in vars(read).items()}


LOADERS: tuple[tuple[tuple[str, ...], Loader], ...] = (
    (("torchrun-hf.sh", "deepspeed-launch.sh"), trainer_options),
    (("llamafactory-cli.sh",), llamafactory_options),
    (("llamafactory-",), llamafactory),
    (("torchtune-lora.yaml",), omegaconf),
    (("torchtune-run.sh",), torchtune),
    (("glm4-", "anchors.yaml"), ruamel),
    (("axolotl-",), axolotl),
    (("trl-",), trl),
    (("swift-",), swift),
    (("vllm-",), vllm),
    (("sglang-",), sglang),
    (("accelerate-",), accelerate),
    (("deepspeed-comments",), deepspeed_itself),
    (("deepspeed-", "ds_zero"), deepspeed),
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
