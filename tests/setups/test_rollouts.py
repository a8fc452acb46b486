"""Training with generated answers: the engine that shares the cards, and the reference that is there only where it counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_files import read

import oomdoctor
from oomdoctor.api.results import RunEstimate
from oomdoctor.units import GIB

TRL = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
num_generations: 8
max_completion_length: 1024
max_prompt_length: 512
per_device_train_batch_size: 2
gradient_checkpointing: true
bf16: true
"""
VERL = """\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
  data.max_prompt_length=512 data.max_response_length=1024 \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \\
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \\
  trainer.n_gpus_per_node=8 trainer.nnodes=1
"""


def asked(folder: Path, name: str, text: str, gpu: str | None = "A100-80GB") -> RunEstimate:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return oomdoctor.estimate(file, gpu=gpu)


def parts(run: RunEstimate, phase: str) -> dict[str, int]:
    assert run.needed is not None
    return {term.name: term.bytes for each in run.needed.phases if each.name == phase for term in each.terms}


@pytest.mark.parametrize(("more", "awake"), [
    pytest.param("", None, id="the trainer answers itself"),
    pytest.param("use_vllm: true\nvllm_mode: server\n", None, id="a server on other cards"),
    pytest.param("use_vllm: true\nvllm_mode: colocate\n", 0.3, id="the default share"),
    pytest.param("use_vllm: true\nvllm_mode: colocate\nvllm_gpu_memory_utilization: 0.5\n", 0.5, id="a stated share"),
])  # fmt: skip
def test_an_engine_of_trl_is_there_while_weights_are_updated(more: str, awake: float | None, tmp_path: Path) -> None:
    run = asked(tmp_path, "grpo.yaml", TRL + more)
    engine = parts(run, "backward").get("rollout engine")
    assert (engine is None) == (awake is None)
    assert engine is None or engine == pytest.approx((awake or 0) * 79.18 * GIB, rel=0.03)


def test_an_engine_that_sleeps_is_there_only_while_it_answers(tmp_path: Path) -> None:
    run = asked(tmp_path, "grpo.yaml", TRL + "use_vllm: true\nvllm_mode: colocate\nvllm_enable_sleep_mode: true\n")
    assert "rollout engine" not in parts(run, "backward")
    assert parts(run, "rollout")["rollout engine"] > 20 * GIB


def test_an_engine_makes_a_run_not_fit(tmp_path: Path) -> None:
    small = TRL + "use_peft: true\nlora_r: 8\n"
    assert asked(tmp_path, "grpo.yaml", small, gpu="48GB").fits == "yes"
    assert asked(tmp_path, "grpo.yaml", small + "use_vllm: true\nvllm_gpu_memory_utilization: 0.6\n", gpu="48GB").fits == "no"


def test_without_a_card_nobody_knows_what_a_share_is(tmp_path: Path) -> None:
    run = asked(tmp_path, "grpo.yaml", TRL + "use_vllm: true\nvllm_mode: colocate\n", gpu=None)
    assert "rollout engine" not in parts(run, "backward")
    assert any("uses 0.3 of each" in assumption.text.en for assumption in run.estimate.assumptions)


@pytest.mark.parametrize(("more", "reference"), [
    pytest.param("", False, id="no weight by default"),
    pytest.param("beta: 0.0\n", False, id="a weight of nothing"),
    pytest.param("beta: 0.04\n", True, id="a weight"),
])  # fmt: skip
def test_grpo_has_a_reference_only_where_it_counts(more: str, reference: bool, tmp_path: Path) -> None:
    assert ("reference" in parts(asked(tmp_path, "grpo.yaml", TRL + more), "backward")) == reference


def test_dpo_has_one_whatever_its_beta_is(tmp_path: Path) -> None:
    text = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: dpo\nfinetuning_type: full\ncutoff_len: 1024\nper_device_train_batch_size: 1\n"
    assert "reference" in parts(asked(tmp_path, "dpo.yaml", text), "backward")


def test_verl_shards_its_actor_in_fp32_and_its_engine_sleeps(tmp_path: Path) -> None:
    run = asked(tmp_path, "run.sh", VERL)
    assert parts(run, "rollout")["rollout engine"] == pytest.approx(0.6 * 79.18 * GIB, rel=0.03)
    assert "rollout engine" not in parts(run, "backward")
    assert parts(run, "rollout")["weights"] == pytest.approx(7.6e9 * 4 / 8, rel=0.03)
    offloaded = asked(
        tmp_path, "run.sh", VERL.replace("\n", " actor_rollout_ref.actor.fsdp_config.optimizer_offload=True \\\n", 1).replace("\\ ", " ")
    )
    assert "optimizer" not in parts(offloaded, "rollout")


def test_a_sample_is_a_prompt_with_its_answer() -> None:
    settings = read({"run.sh": VERL}).settings
    assert (settings.prompt_length, settings.completion_length, settings.world_size, settings.method) == (512, 1024, 8, "grpo")


def test_an_engine_holds_its_own_weights_whatever_its_share_is(tmp_path: Path) -> None:
    run = asked(tmp_path, "grpo.yaml", TRL + "use_vllm: true\nvllm_gpu_memory_utilization: 0.1\n", gpu="24GB")
    assert parts(run, "backward")["rollout engine"] == pytest.approx(7.6e9 * 2, rel=0.02)
    halved = asked(
        tmp_path, "grpo.yaml", TRL + "use_vllm: true\nvllm_gpu_memory_utilization: 0.1\nvllm_tensor_parallel_size: 2\n", gpu="24GB"
    )
    assert parts(halved, "backward")["rollout engine"] == pytest.approx(7.6e9, rel=0.02)


def fixes(folder: Path, text: str, gpu: str) -> list[set[str]]:
    file = folder / "grpo.yaml"
    file.write_text(text, encoding="utf-8")
    return [{measure.fix for measure in plan.measures} for plan in oomdoctor.plan(file, gpu=gpu).plans]


def test_plans_make_room_beside_the_engine(tmp_path: Path) -> None:
    every = fixes(tmp_path, TRL + "use_vllm: true\nuse_peft: true\nvllm_gpu_memory_utilization: 0.6\n", "48GB")
    assert any("server-sleeps-while-training" in each for each in every)
    assert any("lower-serving-share" in each for each in every)


def test_plans_of_a_trainer_that_answers_itself_know_no_engine(tmp_path: Path) -> None:
    every = fixes(tmp_path, TRL + "use_peft: true\n", "24GB")
    assert every
    assert not any(each & {"server-sleeps-while-training", "lower-serving-share"} for each in every)


VERL_PPO = VERL.replace("adv_estimator=grpo", "adv_estimator=gae")
OPENRLHF = """\
python3 -m openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen2.5-7B-Instruct --reward_pretrain Qwen/Qwen2.5-7B-Instruct \\
  --micro_train_batch_size 2 --micro_rollout_batch_size 4 --zero_stage 3 --actor_num_gpus_per_node 8 \\
"""


@pytest.mark.parametrize(("name", "text", "critic", "reward"), [
    pytest.param("ppo.sh", VERL_PPO, True, False, id="verl has a critic where it is told gae"),
    pytest.param("ppo.sh", VERL_PPO.rstrip() + " reward_model.model.path=Qwen/Qwen2.5-7B-Instruct\n", True, True, id="and a reward model where one is named"),
    pytest.param("grpo.sh", VERL, False, False, id="grpo has neither"),
    pytest.param("ppo.sh", OPENRLHF + " --advantage_estimator gae\n", False, False, id="OpenRLHF gives each model cards of its own"),
    pytest.param("ppo.sh", OPENRLHF + " --advantage_estimator gae --colocate_all_models\n", True, True, id="unless it is told to share them"),
    pytest.param("ppo.yaml", TRL.replace("num_generations: 8", "num_ppo_epochs: 4"), True, True, id="TRL puts all four on each card"),
])  # fmt: skip
def test_ppo_has_the_models_that_its_program_puts_there(name: str, text: str, critic: bool, reward: bool, tmp_path: Path) -> None:
    setup = asked(tmp_path, name, text).estimate.setup
    assert (setup.critic is not None, setup.reward is not None) == (critic, reward)


def test_a_critic_is_trained_whole_and_a_reward_model_is_not() -> None:
    # 7.07 billion parameters without the output projection; TRL loads what it trains in fp32, with two moments of the same type.
    run = oomdoctor.estimate(model="Qwen2.5-7B", framework="trl", gpu="H200", settings={"method": "ppo", "finetuning": "lora"})
    found = parts(run, "backward")
    assert found["reward model"] == pytest.approx(2 * 7.07e9, rel=0.01)
    assert found["critic"] == pytest.approx(12 * 7.07e9, rel=0.01)
    assert found["critic gradients"] == pytest.approx(4 * 7.07e9, rel=0.01)
    assert parts(run, "forward")["critic activations"] > 0


def test_a_smaller_reward_model_is_counted_at_its_own_size() -> None:
    settings = {"method": "ppo", "reward_model": "Qwen/Qwen2.5-0.5B-Instruct"}
    run = oomdoctor.estimate(model="Qwen2.5-7B", framework="trl", gpu="H200", settings=settings)
    assert parts(run, "load")["reward model"] < 1.1 * GIB
    assert any("like Qwen/Qwen2.5-0.5B" in each.text.en for each in run.estimate.assumptions)


def test_a_critic_that_takes_turns_is_not_there_while_the_model_is_trained() -> None:
    run = oomdoctor.estimate(model="Qwen2.5-7B", framework="slime", gpu="H200", gpus=8, settings={"method": "ppo"})
    assert "critic" not in parts(run, "backward")
    assert "weights" not in parts(run, "critic")
    assert parts(run, "critic")["critic"] > 10 * GIB


@pytest.mark.parametrize(("model", "grows"), [
    pytest.param("Qwen/Qwen2.5-7B-Instruct", True, id="ppo"),
    pytest.param(None, False, id="a preference run has none"),
])  # fmt: skip
def test_only_ppo_has_a_critic(model: str | None, grows: bool) -> None:
    run = oomdoctor.estimate(model="Qwen2.5-7B", framework="trl", settings={"method": "ppo" if model else "dpo"})
    assert (run.estimate.setup.critic is not None) is grows
