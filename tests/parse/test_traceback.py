"""What a program was doing when it failed, read from the frames of its traceback."""

from __future__ import annotations

import pytest

from oomdoctor.parse.traceback import around


def raised(*frames: tuple[str, str, str]) -> bytes:
    """A traceback of (file, function, source line), up to the line of the exception."""
    told = "".join(f'  File "{file}", line 12, in {name}\n    {line}\n' for file, name, line in frames)
    return f"Traceback (most recent call last):\n{told}".encode()


MAIN = ("/opt/run/train.py", "<module>", "train(args)")


@pytest.mark.parametrize(("frames", "phase"), [
    pytest.param([MAIN, ("/opt/v/torch/utils/data/dataloader.py", "__next__", "data = self._next_data()")], "data-loading", id="frames of the loader"),
    pytest.param([MAIN, ("/opt/run/data.py", "collate_fn", "return torch.stack(items)")], "data-loading", id="a function that collates"),
    pytest.param(
        [MAIN, ("/opt/run/train.py", "train", "model, optimizer, train_dataloader = accelerator.prepare(")], None,
        id="a loader that only a source line names",
    ),
    pytest.param([MAIN, ("/opt/v/accelerate/utils/modeling.py", "set_module_tensor_to_device", "new_value = value.to(device)")], "model-load", id="weights are placed"),
    pytest.param(
        [MAIN, ("/opt/v/accelerate/hooks.py", "pre_forward", "set_module_tensor_to_device("), ("/opt/v/accelerate/utils/modeling.py", "set_module_tensor_to_device", "value.to(device)")],
        "forward", id="weights come back from the host for a forward pass",
    ),
    pytest.param([MAIN, ("/opt/v/accelerate/big_modeling.py", "dispatch_model", "model.to(device)")], "model-load", id="a model is spread over cards"),
    pytest.param([MAIN, ("/opt/rl/actor.py", "compute_log_prob", "logits = self.model(ids)")], "forward", id="log-probabilities of reinforcement learning"),
    pytest.param([MAIN, ("/opt/rl/worker.py", "generate_sequences", "probs = logits.softmax(-1)")], "generation", id="a rollout"),
    pytest.param([MAIN], None, id="nothing that tells"),
])  # fmt: skip
def test_the_phase(frames: list[tuple[str, str, str]], phase: str | None) -> None:
    assert around(raised(*frames), b"", None).phase == phase


@pytest.mark.parametrize(("said", "phase"), [
    pytest.param(b"Loading checkpoint shards:  25%|##5  | 1/4", "model-load", id="shards"),
    pytest.param(b"Initializing visual encoder from ckpt/tower ...\n", "model-load", id="an encoder from its checkpoint"),
    pytest.param(b"Loading checkpoint shards:  25%|##5  | 1/4\npython -m tool --training_config conf/epoch_2.json", "model-load", id="training in an option"),
    pytest.param(b"Loading checkpoint shards: 100%|#####| 4/4\n", None, id="all shards"),
    pytest.param(b"Loading checkpoint shards:  25%|##5  | 1/4\nTraining starts\n", None, id="training starts"),
    pytest.param(b"Initializing process group from env\n", None, id="no model"),
])  # fmt: skip
def test_a_model_is_loading_while_nothing_else_was_said(said: bytes, phase: str | None) -> None:
    assert around(said, b"", None).phase == phase
