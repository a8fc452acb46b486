"""What a job is given, cards and host memory and machines, stands in batch scripts, compose files and manifests."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_files import read

import oomdoctor

TRAIN = "python train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --bf16\n"
SLURM = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:a100:4\n#SBATCH --mem=64G\n"
GIB = 2**30
POD = """\
spec:
  nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S}
  containers:
  - image: vllm/vllm-openai:v0.8.5
    args: [--model, Qwen/Qwen3-8B]
    env:
    - {name: VLLM_USE_V1, value: "0"}
    - {name: HF_TOKEN, value: hf_secret}
    resources:
      limits: {nvidia.com/gpu: "2", memory: 64Gi}
"""
SERVICE = """\
services:
  ollama:
    image: ollama/ollama:0.5.7
    environment:
      OLLAMA_CONTEXT_LENGTH: 8192
    deploy:
      resources:
        limits: {memory: 16g}
        reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}
"""
TWO = """\
services:
  chat:
    image: vllm/vllm-openai:v0.8.5
    command: [--model, Qwen/Qwen3-8B, --max-model-len, "4096"]
  other:
    image: ollama/ollama
    environment: [OLLAMA_NUM_PARALLEL=8]
    mem_limit: 4g
"""
JOB = """\
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{image: a, command: [sleep, "1"]}]}}}
    Worker:
      replicas: 3
      template:
        spec:
          containers:
          - image: a
            command: [bash, -c, "torchrun --nproc_per_node 8 train.py --per_device_train_batch_size 1 --bf16"]
"""


@pytest.mark.parametrize(("name", "text", "expected"), [
    pytest.param("a.slurm", SLURM + "srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 4 " + TRAIN[7:],
                 {"card": "a100", "cards": 8, "world_size": 8, "host_limit": 64 * GIB}, id="torchrun says its processes"),
    pytest.param("a.slurm", SLURM + "#SBATCH --ntasks-per-node=4\nsrun " + TRAIN, {"world_size": 8}, id="a task for each card"),
    pytest.param("a.sh", "#!/bin/bash\n#SBATCH -N 1\n#SBATCH --gpus-per-node=h100:8\nsrun -n 8 --cpu-bind=none -u " + TRAIN,
                 {"card": "h100", "cards": 8, "world_size": 8, "micro_batch": 1}, id="srun says the tasks"),
    pytest.param("a.slurm", "#!/bin/bash\n#SBATCH --gres=gpu:2\n#SBATCH --mem=4000\nsrun " + TRAIN,
                 {"card": None, "cards": 2, "host_limit": 4000 * 2**20, "world_size": None}, id="no type; memory without a unit is in MiB"),
    pytest.param("a.slurm", "#!/bin/bash\n#SBATCH --gres=disk:2\n##SBATCH --mem=1G\n" + TRAIN, {"cards": None, "host_limit": None},
                 id="no card is asked for, and what is commented out counts for nothing"),
    pytest.param("a.yaml", POD, {"card": "NVIDIA-L40S", "cards": 2, "host_limit": 64 * GIB, "first_engine": True}, id="a pod"),
    pytest.param("a.yaml", POD.replace("64Gi", "64G"), {"host_limit": 64 * 10**9}, id="G of Kubernetes is decimal"),
    pytest.param("a.yaml", POD.replace("nvidia.com/gpu:", "nvidia.com/mig-3g.40gb:").replace("nodeSelector", "labels")
                 .replace("gpu.product", "none"), {"card": "mig-3g.40gb"}, id="a slice of a card"),
    pytest.param("compose.yaml", SERVICE, {"max_model_len": 8192, "cards": 1, "host_limit": 16 * GIB}, id="a service without a command"),
    pytest.param("compose.yaml", TWO, {"max_model_len": 4096, "max_num_seqs": None, "host_limit": None}, id="another service is another run"),
    pytest.param("job.yaml", JOB, {"world_size": 32}, id="the pods of a training job are machines"),
    pytest.param("a.sh", "docker run --gpus 2 --memory=32g -e CUDA_VISIBLE_DEVICES=0,1 vllm/vllm-openai:v0.8.5 --model Qwen/Qwen3-8B\n",
                 {"cards": 2, "host_limit": 32 * GIB, "visible_devices": "0,1", "model": "Qwen/Qwen3-8B"}, id="docker run"),
    pytest.param("a.sh", "docker run --gpus all -e HF_TOKEN=hf_x vllm/vllm-openai:v0.8.5 --model Qwen/Qwen3-8B\n", {"cards": None},
                 id="all cards are no number"),
])  # fmt: skip
def test_what_a_job_is_given(name: str, text: str, expected: dict[str, object]) -> None:
    run = read({name: text})
    assert {key: getattr(run.settings, key) for key in expected} == expected
    assert not any("hf_" in str(given.value) for given in run.written if given.framework == "environment")


def test_the_card_of_a_job_is_the_card_of_its_estimate(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD, encoding="utf-8")
    asked = oomdoctor.estimate(file)
    named = oomdoctor.estimate(file, gpu="NVIDIA-L40S")
    assert asked.fits == named.fits != None  # noqa: E711 - both say it
    assert "card" in {assumption.id for assumption in asked.estimate.assumptions}
    assert oomdoctor.estimate(file, gpu="24GB").estimate.assumptions != asked.estimate.assumptions
