"""The names of the parts of a card's memory, and of the moments of a run."""

from __future__ import annotations

from oomdoctor.case.text import Text
from oomdoctor.report.wording.wording import Wording

_NAMES = {
    "weights": Text("weights", "模型权重"),
    "reference": Text("reference model", "参考模型"),
    "reward model": Text("reward model", "奖励模型"),
    "critic": Text("critic with its optimizer states", "critic 及其优化器状态"),
    "critic gradients": Text("critic gradients", "critic 的梯度"),
    "critic activations": Text("critic activations", "critic 的激活值"),
    "text encoders": Text("text encoders", "文本编码器"),
    "reading": Text("encoding the text", "读取提示词"),
    "vae": Text("VAE", "VAE"),
    "vae pass": Text("VAE pass", "VAE 编解码的临时显存"),
    "denoiser": Text("one denoising step", "单步去噪的临时显存"),
    "gathered weights": Text("weights gathered from other cards", "临时聚合的权重"),
    "unpacked weights": Text("weights unpacked for use", "反量化的权重"),
    "autocast copies": Text("16-bit copies of the weights", "autocast 的半精度副本"),
    "adapters": Text("adapters", "LoRA 等适配器"),
    "optimizer": Text("optimizer states", "优化器状态"),
    "gradients": Text("gradients", "梯度"),
    "buckets": Text("gradient buckets", "梯度通信缓冲"),
    "step": Text("optimizer step temporaries", "优化器更新时的临时显存"),
    "activations": Text("activations", "激活值"),
    "recomputed layer": Text("one recomputed layer", "重计算的一层"),
    "vision tower": Text("vision tower activations", "视觉塔的激活值"),
    "logits": Text("logits and loss", "logits 与损失"),
    "gathered logits": Text("logits gathered from all cards", "从各卡汇集的 logits"),
    "collected logits": Text("logits collected for metrics", "为评测保留的 logits"),
    "kv cache": Text("KV cache", "KV 缓存"),
    "prompt": Text("reading the prompt", "预填充（prefill）"),
    "allocator": Text("reserved by the allocator, unused", "分配器预留而未使用"),
    "context": Text("CUDA context and NCCL", "CUDA 上下文与 NCCL"),
    "loading": Text("temporary memory for loading", "加载时的临时显存"),
    "saving": Text("temporary memory for saving", "保存时的临时显存"),
    "outside torch": Text("outside torch", "torch 之外"),
    "working set": Text("working memory for one step", "单步计算的临时显存"),
    "sampler": Text("sampler, one row per request", "采样器（每个请求一行 logits）"),
    "encoder": Text("image encoder", "图像编码器"),
    "cuda graphs": Text("CUDA graphs", "CUDA 图"),
    "request table": Text("request table", "请求索引表"),
    "rollout engine": Text("rollout engine", "生成回答的推理引擎"),
    "draft": Text("token-proposal layer", "预测层（MTP）"),
}
_PHASES = {
    "load": Text("loading the model", "加载模型"),
    "forward": Text("end of the forward pass", "前向结束时"),
    "backward": Text("backward pass", "反向传播"),
    "step": Text("optimizer step", "优化器更新"),
    "text": Text("encoding the text", "读取提示词"),
    "denoising": Text("denoising", "去噪"),
    "decoding": Text("decoding the result", "解码结果"),
    "encoding": Text("encoding a batch", "编码一个批次"),
    "critic": Text("training the critic", "训练 critic"),
    "evaluation": Text("evaluation", "评测"),
    "rollout": Text("generating responses", "生成回答（rollout）"),
    "prompt": Text("reading the prompt", "预填充（prefill）"),
    "generation": Text("generating", "生成"),
    "save": Text("saving a checkpoint", "保存检查点"),
    "merge": Text("merging adapters into the base model", "合并 LoRA 等适配器"),
}


def part_name(term: str, wording: Wording) -> str:
    """Return the name of a part of the memory."""
    return wording.say(_NAMES[term])


def phase_name(phase: str, wording: Wording) -> str:
    """Return the name of a moment of a run."""
    return wording.say(_PHASES[phase])
