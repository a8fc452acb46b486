"""Lines that logs of training and serving hold and that tell nothing of anybody: made anew in each run, and those of the fixtures."""

from __future__ import annotations

import string
import uuid
from pathlib import Path
from random import Random

FIXTURES = Path(__file__).parents[2] / "fixtures"
_HEX = "0123456789abcdef"
_LARGEST = 1 << 20

_FORMS = (
    "HEAD is now at {sha1} fix the loader",
    "image docker.io/vllm/vllm-openai@sha256:{sha256}",
    "sha256:{sha256}  model-0000{digit}-of-00008.safetensors",
    "md5 {md5}  tokenizer.json",
    'etag: "{md5}" size {number}',
    "GET https://huggingface.co/{model}/resolve/{sha1}/config.json 200",
    "loading weights from /root/.cache/huggingface/hub/models--{dashed}/snapshots/{sha1}",
    "wandb: Run data is saved locally in /workspace/wandb/run-20261122_104107-{run}",
    "wandb: View run at https://wandb.ai/lab/project/runs/{run}",
    "task {uuid} finished in {number} ms",
    "torch {version}+cu124 transformers {version} flash_attn-{version}+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl",
    "Collecting nvidia-cublas-cu12==12.4.5.{digit} (from torch=={version})",
    "model_name_or_path={model}, num_tokens={number}, max_new_tokens={number}, pad_token_id={number}, eos_token='</s>'",
    "special tokens: pad_token=<|endoftext|> bos_token=<s> image_token=<image> mask_token=[MASK] token_type_ids=None",
    "{{'loss': 0.{number}, 'grad_norm': 1.{number}, 'learning_rate': 1e-05, 'epoch': 0.{digit}, 'tokens_per_second': {number}}}",
    "sort_keys=True primary_key=id key_value=4096 cache_key={run} partition_key: {word} num_key_value_heads={digit}",
    "key_states = repeat_kv(key_states, self.num_key_value_groups); past_key_values={word}; attn_key={word}",
    "INFO 11-22 10:41:07 engine.py:{number}] Avg prompt throughput: {number}.{digit} tokens/s, tokens: {number}, token usage: 0.{number}",
    "    hidden = self.model(input_ids, token_type_ids=token_type_ids, use_auth_token=use_auth_token, key=key)",
    "    tokenizer = AutoTokenizer.from_pretrained(args.model, token=args.token, trust_remote_code=True)",
    '    token = os.environ.get("HF_TOKEN") or get_token()',
    "KeyError: '{word}_key'; ValueError: token {number} is out of the vocabulary of {number}; unexpected token: {word}",
    "--tokenizer {model} --max-num-batched-tokens {number} --tokens-per-batch {number} --tokenizer_mode auto --password-stdin",
    "ncclInternalError: commHash 0x{hex16} localRank {digit} ptr 0x{hex16} cudaGraph_{number}",
    "_ZN3c104cuda20CUDACachingAllocator6Native{number}mallocE{word} at 0x{hex16}",
    "slurm job {number} on partition gpu, checkpoint-{number}/global_step{number}/zero_pp_rank_{digit}_mp_rank_00_optim_states.pt",
    "ray worker id {hex56} pid={number} actor {hex32}",
    "trace 00-{hex32}-{hex16}-01 span {hex16}",
    "the forward_pass took 0.{number}s, second pass: {number} ms, pass_rate={number}%, bypass={digit}",
    "secret: none, password: no, api_key: required, token: null, HF_TOKEN=$HF_TOKEN, WANDB_API_KEY=${{WANDB_API_KEY}}, token=***",
    "Compiled kernel triton_poi_fused_{word}_{digit} hash c{base32}",
    "ENV={word} MODE={word} OMP_NUM_THREADS={digit} NCCL_DEBUG=INFO TOKENIZERS_PARALLELISM=false PWD=/workspace OLDPWD=/root",
)
_MODELS = (
    "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "meta-llama/Llama-3.1-70B",
    "THUDM/glm-4-9b-chat-1m",
)


def made_lines(count: int, random: Random) -> list[str]:
    """Return so many lines, each of a form that is drawn."""
    return [_made(random.choice(_FORMS), random) for _ in range(count)]


def fixture_lines(count: int, random: Random) -> list[str]:
    """Return so many lines of the project's own logs, machines and configs."""
    files = [path for path in sorted(FIXTURES.rglob("*")) if path.is_file() and path.stat().st_size < _LARGEST]
    texts = [path.read_bytes().decode("utf-8", "ignore") for path in files]
    lines = [line for text in texts if "\0" not in text for line in text.splitlines() if line.strip()]
    return random.sample(lines, count)


def _made(form: str, random: Random) -> str:
    def drawn(alphabet: str, length: int) -> str:
        return "".join(random.choices(alphabet, k=length))

    model = random.choice(_MODELS)
    return form.format(
        sha1=drawn(_HEX, 40), sha256=drawn(_HEX, 64), md5=drawn(_HEX, 32), hex16=drawn(_HEX, 16), hex32=drawn(_HEX, 32), hex56=drawn(_HEX, 56),
        base32=drawn(string.ascii_lowercase + "234567", 50), uuid=uuid.UUID(int=random.getrandbits(128)), run=drawn(string.ascii_lowercase + string.digits, 8),
        model=model, dashed=model.replace("/", "--"), number=random.randint(1, 99_999), digit=random.randint(0, 9),
        version=f"{random.randint(0, 4)}.{random.randint(0, 60)}.{random.randint(0, 9)}", word=drawn(string.ascii_lowercase, random.randint(4, 12)),
    )  # fmt: skip
