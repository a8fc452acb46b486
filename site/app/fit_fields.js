// The fields of the form, as data, and the question that their values make. Names are those of the library's settings.

/**
 * Of each field: `name`; `kind` (number, text, choice, switch); `of` (train, serve, both); `main` where it is not folded;
 * `from` names a list of choices.json, `options` are `[value, text key, values of its placeholders]`.
 */
export const FIELDS = [
  { name: "model", kind: "text", of: "both", from: "models", main: true },
  { name: "gpus", kind: "number", of: "both", min: 1, max: 100000, main: true },
  { name: "gpu", kind: "text", of: "both", from: "cards", main: true },
  { name: "finetuning", kind: "choice", of: "train", main: true, options: [["lora", "choice.lora"], ["qlora", "choice.qlora"], ["full", "choice.full"], ["freeze", "choice.freeze"]] },
  { name: "server", kind: "choice", of: "serve", from: "servers", main: true },
  { name: "micro_batch", kind: "number", of: "train", min: 1, max: 100000 },
  { name: "sequence_length", kind: "number", of: "train", min: 1, max: 100000000, step: 1 },
  { name: "gradient_checkpointing", kind: "switch", of: "train" },
  { name: "framework", kind: "choice", of: "train", from: "frameworks" },
  { name: "max_model_len", kind: "number", of: "serve", min: 1, max: 100000000 },
  { name: "max_num_seqs", kind: "number", of: "serve", min: 1, max: 100000 },
  { name: "memory_share", kind: "number", of: "serve", min: 0.01, max: 1, step: 0.01 },
  { name: "optimizer", kind: "choice", of: "train", from: "optimizers" },
  { name: "lora_rank", kind: "number", of: "train", min: 1, max: 100000 },
  { name: "accumulation", kind: "number", of: "train", min: 1, max: 1000000 },
  {
    name: "sharding", kind: "choice", of: "train",
    options: [["zero1", "choice.zero", { n: 1 }], ["zero2", "choice.zero", { n: 2 }], ["zero3", "choice.zero", { n: 3 }], ["fsdp", "choice.fsdp"]],
  },
  { name: "offload_optimizer", kind: "switch", of: "train" },
  { name: "offload_params", kind: "switch", of: "train" },
  { name: "load_bits", kind: "choice", of: "train", options: [["4", "choice.bits", { n: 4 }], ["8", "choice.bits", { n: 8 }], ["16", "choice.bits", { n: 16 }]] },
  { name: "precision", kind: "choice", of: "train", options: plain("bf16", "fp16", "fp32") },
  { name: "attention", kind: "choice", of: "train", options: plain("flash_attention_2", "sdpa", "eager") },
  { name: "packing", kind: "switch", of: "train" },
  { name: "fused_cross_entropy", kind: "switch", of: "train" },
  { name: "quantization", kind: "choice", of: "serve", options: plain("fp8", "awq", "gptq", "bitsandbytes") },
  { name: "kv_cache_dtype", kind: "choice", of: "serve", options: plain("auto", "fp8") },
  { name: "tensor_parallel", kind: "number", of: "both", min: 1, max: 100000 },
  { name: "pipeline_parallel", kind: "number", of: "both", min: 1, max: 100000 },
  { name: "max_batched_tokens", kind: "number", of: "serve", min: 1, max: 100000000 },
  { name: "cpu_offload_gb", kind: "number", of: "serve", min: 0, max: 100000, step: 0.1 },
  { name: "enforce_eager", kind: "switch", of: "serve" },
  { name: "server_version", kind: "text", of: "serve" },
];

/** What the form shows at first: a question that many have. */
export const EXAMPLE = { purpose: "train", model: "Qwen/Qwen3-8B", gpus: "1", gpu: "GeForce RTX 4090", finetuning: "qlora" };

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

/** Return what was read (`{name: {value, place}}`, in the words of the library) by the names and in the words of the form. */
export function asFields(read) {
  const { framework, zero_stage: stage, fsdp, world_size: world, ...rest } = read;
  const isServed = read.method?.value === "serve";
  const made = {
    ...rest,
    [isServed ? "server" : "framework"]: framework,
    gpus: rest.gpus ?? world,
    max_model_len: rest.max_model_len ?? rest.sequence_length,
    sharding: stage?.value ? { ...stage, value: `zero${stage.value}` } : fsdp?.value ? { ...fsdp, value: "fsdp" } : undefined,
  };
  const known = FIELDS.filter(({ name, of }) => made[name] && (of === "both" || of === (isServed ? "serve" : "train")));
  return Object.fromEntries(known.map((field) => [field.name, { ...made[field.name], value: written(field, made[field.name].value) }]));
}

function written({ name, kind }, value) {
  if (HOST.includes(name)) return value === "none" ? "no" : "yes";
  return kind === "switch" ? (value ? "yes" : "no") : String(value);
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
