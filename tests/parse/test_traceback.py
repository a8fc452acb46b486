"""What a program was doing when it failed, read from the frames of its traceback."""

from __future__ import annotations

import pytest

from oomdoctor.parse.traceback import find_traceback


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
    pytest.param([MAIN, ("/opt/v/torch/serialization.py", "save", "_save(obj, opened_zipfile, pickle_module)")], "checkpoint-save", id="torch.save"),
    pytest.param([MAIN, ("/opt/v/torch/serialization.py", "_load", "result = unpickler.load()")], "model-load", id="torch.load"),
    pytest.param(
        [MAIN, ("/opt/v/torch/serialization.py", "persistent_load", "typed = load_tensor(dtype)"), ("/opt/v/torch/serialization.py", "default_restore_location", "fn(storage, location)")],
        "model-load", id="a storage goes back to the card that it was saved from",
    ),
    pytest.param([MAIN, ("C:\\v\\torch\\serialization.py", "_cuda_deserialize", "return obj.cuda(device)")], "model-load", id="torch.load on Windows"),
    pytest.param([MAIN], None, id="nothing that tells"),
])  # fmt: skip
def test_the_phase(frames: list[tuple[str, str, str]], phase: str | None) -> None:
    assert find_traceback(raised(*frames), b"", None).phase == phase


@pytest.mark.parametrize(("said", "phase"), [
    pytest.param(b"Loading checkpoint shards:  25%|##5  | 1/4", "model-load", id="shards"),
    pytest.param(b"Initializing visual encoder from ckpt/tower ...\n", "model-load", id="an encoder from its checkpoint"),
    pytest.param(b"Loading checkpoint shards:  25%|##5  | 1/4\npython -m tool --training_config conf/epoch_2.json", "model-load", id="training in an option"),
    pytest.param(b"Loading checkpoint shards: 100%|#####| 4/4\n", None, id="all shards"),
    pytest.param(b"Loading checkpoint shards:  25%|##5  | 1/4\nTraining starts\n", None, id="training starts"),
    pytest.param(b"Initializing process group from env\n", None, id="no model"),
])  # fmt: skip
def test_a_model_is_loading_while_nothing_else_was_said(said: bytes, phase: str | None) -> None:
    assert find_traceback(said, b"", None).phase == phase


@pytest.mark.parametrize(("said", "phase"), [
    pytest.param(b"Training: 100%|####| 64/64\nValidation:  12%|#2  | 3/25 [00:01<00:08]", "evaluation", id="a bar of tqdm"),
    pytest.param(b"\rValidation DataLoader 0:   0%|    | 0/25 [00:00<?, ?it/s]\n", "evaluation", id="a bar of Lightning"),
    pytest.param(b" - (Val)  :   4%|    | 1/25 [00:00<?, ?it/s]\n", "evaluation", id="a name in brackets"),
    pytest.param(b"Validation: 100%|####| 25/25\nstarting again\n", None, id="a validation that has ended"),
    pytest.param(b"Validation:  12%|#2  | 3/25\rEpoch 2:   3%|    | 2/64", None, id="training goes on after it"),
    pytest.param(b"Value of epoch 2:   3%|    | 2/64", None, id="another word"),
    pytest.param(b"a|%|b", None, id="no bar"),
])  # fmt: skip
def test_a_progress_bar_that_is_called_validation(said: bytes, phase: str | None) -> None:
    assert find_traceback(said, b"", None).phase == phase


def test_a_forward_pass_under_a_bar_of_validation_is_one_of_evaluation() -> None:
    net = ("/opt/run/net.py", "forward", "return self.conv(x)")
    assert find_traceback(b"Validation:  12%|#2  | 3/25\n" + raised(MAIN, net), b"", None).phase == "evaluation"


MESSAGE = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.31 GiB. GPU 2 has a total capacity of 79.10 GiB of which 1.20 GiB is free.\n"


@pytest.mark.parametrize(("below", "frame"), [
    pytest.param(b'\nFile "rl/loss.py", line 81, in loss\n    p = probs(x)\nFile "rl/probs.py", line 9, in probs\n    return x - x.max()\n', "rl/probs.py:9 in probs", id="two frames"),
    pytest.param(b'...\n  File "/opt/v/torch/nn/modules/linear.py", line 125, in forward\n', "/opt/v/torch/nn/modules/linear.py:125 in forward", id="one frame after dots"),
    pytest.param(b'\nFile "rl/loss.py", line 81, in loss\n' + b"step done\n" * 60 + b'File "rl/other.py", line 9, in other\n', "rl/loss.py:81 in loss", id="a second one far below"),
    pytest.param(b"step done\n" * 200 + b'File "rl/other.py", line 9, in other\n', None, id="frames of another time"),
    pytest.param(b"the run ended\n", None, id="no frames"),
])  # fmt: skip
def test_frames_that_were_pasted_below_the_message(below: bytes, frame: str | None) -> None:
    assert find_traceback(b"", MESSAGE + below, None).frame == frame


def test_frames_below_a_message_are_those_of_its_rank() -> None:
    below = b'[rank1]: File "rl/loss.py", line 81, in loss\n[rank0]: File "rl/data.py", line 9, in batches\n'
    assert find_traceback(b"", b"[rank1]: " + MESSAGE + below, 1).frame == "rl/loss.py:81 in loss"


def test_frames_above_a_message_come_before_those_below() -> None:
    assert (
        find_traceback(raised(MAIN), MESSAGE + b'\nFile "rl/loss.py", line 81, in loss\n', None).frame == "/opt/run/train.py:12 in <module>"
    )
