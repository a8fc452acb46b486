"""The card and the model that a use case is asked about, by the names that people give them."""

from __future__ import annotations

from oomdoctor.case.shape import Shape
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.tables.cards import Card, card_named
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.setups.hub import fetch_config
from oomdoctor.setups.model_files import read_config, read_shape


def find_card(name: str) -> Card:
    """Return the card of a name (`RTX 4090`, `A100-80GB`) or of a size (`24GB`). Raise UsageError where it is not known."""
    card = card_named(name)
    if card is None:
        raise UsageError(f"--gpu {name}: not known, or known in several sizes; add the size (A100-80GB) or give it alone (24GB)")
    return card


def find_shape(name: object) -> Shape:
    """Return the shape of a model by its name, or by the folder or file of its config.json. Raise UsageError where it is not known."""
    if not name:
        raise UsageError("which model? name it with --model, or give a folder with its config.json")
    shape = read_shape(str(name)) or model_shape(str(name))
    if shape is None:
        raise UsageError(f"the model {name} is not in the table; give a folder or file with its config.json with --model, or --hub")
    return shape


def fetch_unknown(name: object) -> None:
    """Fetch the config.json of a model that neither the table nor this machine knows. Raise UsageError where it cannot be had."""
    if name and model_shape(str(name)) is None and read_config(str(name)) is None:
        fetch_config(str(name))
