"""The class that runs a config: by its own name where transformers or diffusers has it, else by its model_type."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import transformers

from oomdoctor.errors import Untraceable

_KINDS = (
    ("MODEL_FOR_CAUSAL_LM_MAPPING", "AutoModelForCausalLM"),
    ("MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING", "AutoModelForImageTextToText"),
    ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING", "AutoModelForSeq2SeqLM"),
    ("MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING", "AutoModelForSpeechSeq2Seq"),
    ("MODEL_FOR_MASKED_LM_MAPPING", "AutoModelForMaskedLM"),
    ("MODEL_FOR_CTC_MAPPING", "AutoModelForCTC"),
    ("MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING", "AutoModelForImageClassification"),
    ("MODEL_MAPPING", "AutoModel"),
)
"""What a config is run as where it names no class of its own; what has a loss comes first."""

_LANGUAGE = frozenset(auto for _, auto in _KINDS[:3])


def is_diffusion(config: Mapping[str, object]) -> bool:
    """Return whether a config.json is one of diffusers: it names its class and has no model_type."""
    return "_class_name" in config and "model_type" not in config


def transformers_class(config: Any) -> Any:
    """Return what makes a model of a config of transformers. Raise Untraceable where nothing does."""
    kinds = [auto for mapping, auto in _KINDS if type(config) in getattr(transformers, mapping)]
    if "AutoModelForMaskedLM" in kinds and not getattr(config, "is_decoder", False):
        # An encoder, or one with a decoder: as a decoder alone few are run.
        kinds = [auto for auto in kinds if auto != "AutoModelForCausalLM"]
    own = _own_class(config)
    if own is not None and ("For" in own.__name__ or not kinds or kinds[0] not in _LANGUAGE):
        return own
    if not kinds:
        raise Untraceable(f"transformers {transformers.__version__} has no model for model_type {config.model_type}")
    return getattr(transformers, kinds[0])


def _own_class(config: Any) -> Any:
    """Return the class that a config names, if transformers has it and it is for such a config."""
    written = (getattr(config, "architectures", None) or [""])[0]
    own: Any = getattr(transformers, str(written), None)
    is_model = inspect.isclass(own) and issubclass(own, transformers.PreTrainedModel)
    return own if is_model and own.config_class is type(config) else None


def diffusers_class(config: Mapping[str, object]) -> Any:
    """Return the class that a config of diffusers names. Raise Untraceable where it is not installed or has no such model."""
    try:
        diffusers = import_module("diffusers")
    except ImportError as error:
        raise Untraceable(f"this is a diffusers config: pip install diffusers ({error})") from error
    # It warns of types that nobody reads here.
    diffusers.utils.logging.set_verbosity_error()
    name = str(config["_class_name"])
    chosen = getattr(diffusers, name, None)
    if not (inspect.isclass(chosen) and issubclass(chosen, diffusers.ModelMixin)):
        raise Untraceable(f"diffusers {diffusers.__version__} has no model {name[:60]}")
    return chosen
