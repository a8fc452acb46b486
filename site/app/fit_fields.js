// The fields of the form, as data, and the question that their values make. Names are those of the library's settings.

/**
 * Of each field: `name`; `kind` (number, text, choice, switch); `of` (train, serve, both); `more` where it is folded;
 * `from` names a list of choices.json, `options` are `[value, text key, values of its placeholders]`.
 */
export const FIELDS = [
  { name: "model", kind: "text", of: "both", from: "models", whole: true },
  { name: "gpu", kind: "text", of: "both", from: "cards", whole: true },
  { name: "gpus", kind: "number", of: "both", min: 1, max: 100000 },
  { name: "finetuning", kind: "choice", of: "train", options: [["full", "choice.full"], ["lora", "choice.lora"], ["qlora", "choice.qlora"], ["freeze", "choice.freeze"]] },
  { name: "framework", kind: "choice", of: "train", from: "frameworks" },
  { name: "server", kind: "choice", of: "serve", from: "servers" },
  { name: "micro_batch", kind: "number", of: "train", min: 1, max: 100000 },
  { name: "sequence_length", kind: "number", of: "train", min: 1, max: 100000000, step: 1 },
  { name: "gradient_checkpointing", kind: "switch", of: "train" },
  { name: "max_model_len", kind: "number", of: "serve", min: 1, max: 100000000 },
  { name: "max_num_seqs", kind: "number", of: "serve", min: 1, max: 100000 },
  { name: "memory_share", kind: "number", of: "serve", min: 0.01, max: 1, step: 0.01 },
  { name: "optimizer", kind: "choice", of: "train", from: "optimizers", more: true },
  { name: "lora_rank", kind: "number", of: "train", min: 1, max: 100000, more: true },
  { name: "accumulation", kind: "number", of: "train", min: 1, max: 1000000, more: true },
  {
    name: "sharding", kind: "choice", of: "train", more: true,
    options: [["zero1", "choice.zero", { n: 1 }], ["zero2", "choice.zero", { n: 2 }], ["zero3", "choice.zero", { n: 3 }], ["fsdp", "choice.fsdp"]],
  },
  { name: "offload_optimizer", kind: "switch", of: "train", more: true },
  { name: "offload_params", kind: "switch", of: "train", more: true },
  { name: "load_bits", kind: "choice", of: "train", more: true, options: [["4", "choice.bits", { n: 4 }], ["8", "choice.bits", { n: 8 }], ["16", "choice.bits", { n: 16 }]] },
  { name: "precision", kind: "choice", of: "train", more: true, options: plain("bf16", "fp16", "fp32") },
  { name: "attention", kind: "choice", of: "train", more: true, options: plain("flash_attention_2", "sdpa", "eager") },
  { name: "packing", kind: "switch", of: "train", more: true },
  { name: "fused_cross_entropy", kind: "switch", of: "train", more: true },
  { name: "quantization", kind: "choice", of: "serve", more: true, options: plain("fp8", "awq", "gptq", "bitsandbytes") },
  { name: "kv_cache_dtype", kind: "choice", of: "serve", more: true, options: plain("auto", "fp8") },
  { name: "tensor_parallel", kind: "number", of: "both", min: 1, max: 100000, more: true },
  { name: "pipeline_parallel", kind: "number", of: "both", min: 1, max: 100000, more: true },
  { name: "max_batched_tokens", kind: "number", of: "serve", min: 1, max: 100000000, more: true },
  { name: "cpu_offload_gb", kind: "number", of: "serve", min: 0, max: 100000, step: 0.1, more: true },
  { name: "enforce_eager", kind: "switch", of: "serve", more: true },
  { name: "server_version", kind: "text", of: "serve", more: true },
];

/** What the form shows at first: a question that many have. */
export const EXAMPLE = {
  purpose: "train", model: "Qwen/Qwen3-8B", gpu: "NVIDIA GeForce RTX 4090", gpus: "1", finetuning: "lora", framework: "llamafactory", micro_batch: "2", sequence_length: "4096", gradient_checkpointing: "yes",
};

const NOT_SETTINGS = new Set(["model", "gpu", "gpus", "framework", "server", "sharding"]);
const HOST = ["offload_optimizer", "offload_params"];
const HUB = /^https?:\/\/[^/]+\/(?:models\/)?([\w.-]+\/[\w.-]+).*$/;

/** Return the question of the protocol. `values` are texts by the names of fields; what is empty was not said. */
export function question(values) {
  const isServed = values.purpose === "serve";
  const said = FIELDS.filter((field) => values[field.name] && (field.of === "both" || field.of === values.purpose));
  const settings = {};
  for (const field of said) if (!NOT_SETTINGS.has(field.name)) settings[field.name] = setting(field, values[field.name]);
  return {
    model: values.model?.trim().replace(HUB, "$1") || null,
    gpu: values.gpu?.trim() || null,
    gpus: Number(values.gpus) || null,
    framework: (isServed ? values.server : values.framework) || null,
    serve: isServed,
    settings: { ...settings, ...(isServed ? {} : sharding(values.sharding)) },
  };
}

function setting({ name, kind }, text) {
  if (HOST.includes(name)) return text === "yes" ? "cpu" : "none";
  if (kind === "switch") return text === "yes";
  return kind === "number" || name === "load_bits" ? Number(text) : text.trim();
}

function sharding(value) {
  if (value === "fsdp") return { fsdp: true, fsdp_sharding: "FULL_SHARD" };
  return value ? { zero_stage: Number(value.slice(4)) } : {};
}

function plain(...values) {
  return values.map((value) => [value, null]);
}
