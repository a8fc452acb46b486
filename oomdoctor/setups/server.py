"""A served run as described by its command, as a setup and a server; what is not given is the server's default, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, convert
from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.event import Value
from oomdoctor.case.serving import Server, ServerProgram, StartupProfile
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import Setup, WeightFormat
from oomdoctor.case.shape import Shape
from oomdoctor.case.text import Text
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.server import SERVERS, ServerDefault, ServerDefaults, ServerRecord
from oomdoctor.knowledge.server_defaults import default_value, held_default
from oomdoctor.knowledge.tables.memory import known_format
from oomdoctor.knowledge.tables.request_lengths import request_length
from oomdoctor.knowledge.tables.served_since import served_since
from oomdoctor.memory.inference import keeps_nothing
from oomdoctor.memory.servers.deployment import Deployment
from oomdoctor.memory.servers.engine import ShareQuery
from oomdoctor.memory.servers.engines import DEFAULT_SERVER, ENGINES, LEAST_WHOLE
from oomdoctor.memory.servers.releases import changed_releases, known_version, newest_release
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.from_log import LoggedRun
from oomdoctor.setups.from_settings import setup_from_settings
from oomdoctor.setups.programs.cache_pools import attention_copies, cache_pools
from oomdoctor.setups.programs.engine import release_of_engine
from oomdoctor.setups.programs.media import media_items
from oomdoctor.setups.weights_said import weights_said
from oomdoctor.units import GIB, MIB

_MEDIA_STEP = 5120
"""Minimum number of tokens in a step that takes prompts with images whole: vllm 0.6.3 to 0.8.5 config.py."""
_PACKS = ("fp8",)
"""Formats to which vLLM itself converts 16-bit weights: vllm/model_executor/layers/quantization/fp8.py."""
_RANK = 16
"""max_lora_rank of vllm/config/lora.py."""
_OWN_LAYERS = frozenset({"nextn", "eagle"})
"""SGLang's names for layers of the model itself, if no draft model is named (sglang/srt/server_args.py)."""
_SIZES = {
    "outside": ("outside_mb", MIB), "graph_layer": ("graph_mb", MIB),
    "draft_beside": ("draft_beside_gb", GIB), "replicas_beside": ("replicas_beside_gb", GIB),
}  # fmt: skip
"""Parts of the profile that the rules give in MiB or GiB."""


class CardLookup(Struct, frozen=True):
    """The GPU of a server: its size determines defaults."""

    name: str
    bytes: int


def server_record(settings: RunSettings, framework: str | None, pack: Pack) -> ServerRecord | None:
    """Return which server it is, if its budget is known; `estimate --serve` alone means vLLM."""
    if framework is None and settings.method == "serve":
        return pack.record(SERVERS, DEFAULT_SERVER)
    return None if framework is None else pack.record(SERVERS, framework)


def server_program(record: ServerRecord) -> ServerProgram:
    """Return what the arithmetic and reports need from a server."""
    inside = record.defaults.graphs_inside or []
    return ServerProgram(
        name=record.server,
        title=record.title,
        engine=record.engine,
        fraction_option=record.fraction_option,
        messages=record.messages,
        graphs_inside_since=next((default.since for default in inside if default.value is True), None),
    )


def deploy_run(known: LoggedRun, log: Mapping[str, Value], shape: Shape, record: ServerRecord, card: CardLookup) -> Deployment:
    """Return the server described by configs and logs, on its GPU."""
    version = log.get(f"log.{record.server}_version")
    named = known.settings.model or log.get("log.model_name_or_path")
    settings = replace(known.settings, model=str(named or ""))
    return deploy(settings, shape, record, card, cards=known.cards, version=str(version) if version else None)


def deploy(
    settings: RunSettings, shape: Shape, record: ServerRecord, card: CardLookup, *, cards: int = 1, version: str | None = None
) -> Deployment:
    """Return the server with these settings on its GPU; if the version is unknown, also as in the older possible releases.

    A version in the log takes precedence over one in the settings.
    """
    named = version or known_version(settings)
    version = named or (f"{settings.server_before}.dev0" if settings.server_before else None)
    if keeps_nothing(shape):
        raise UsageError(
            f"{shape.name} is an encoder: it keeps no KV cache, so a server's budget does not apply; estimate it without --serve"
        )
    tensor = positive(settings.tensor_parallel) or 1
    shape = replace(shape, vision=None) if _reads_text_alone(settings) else shape
    shape = replace(shape, longest=shape.longest or request_length(settings.model, shape.name))
    made = _spread(settings, shape, record.server, cards)
    given = positive(settings.max_model_len) or positive(settings.sequence_length)
    length = given or shape.longest

    setup = replace(
        made,
        layout=replace(made.layout, replicas=attention_copies(settings, tensor)),
        weights=_as_packed(weights_said(shape, settings.quantization, settings.model, tensor=tensor) or made.weights),
        length=length or made.length,
        batch=1,
    )

    def server_at(release: str | None) -> Server:
        return _server(settings, setup, length, record, card, version=release)

    server, is_open = server_at(version), named is None and record.newest is not None
    since, before = served_since(record.server, settings.model, shape.name), _release_before(record, settings)
    changes = changed_releases(record, since, before) if is_open else ()
    return Deployment(
        setup,
        server,
        card.bytes,
        card.name,
        older=tuple((release, server_at(f"{release}.dev0")) for release in changes),
        assumptions=(*((_release_assumed(record, settings),) if is_open else ()), *_assumptions(settings, setup, server)),
    )


def _as_packed(form: WeightFormat) -> WeightFormat:
    """Return the format as servers keep it: what they pack with bitsandbytes has packed scales too, as its checkpoints do.

    Source: vllm 0.8.5 and 0.19.0 model_executor/model_loader, compress_statistics=True.
    """
    return known_format("nf4-dq") if form.name == "nf4" else form


def _release_before(record: ServerRecord, settings: RunSettings) -> str | None:
    """Return the first impossible release: it rejects an option, or has no engine of the requested kind."""
    told = record.first_engine[0].until if settings.first_engine and record.first_engine else None
    return settings.server_before or told


def _release_assumed(record: ServerRecord, settings: RunSettings) -> Assumption:
    """Return the assumed release if none is named: the newest, or those that have the requested engine."""
    if not (settings.first_engine and record.first_engine):
        return newest_release(record, settings)
    return assumed(
        "server_engine",
        f"{record.title}'s first engine (VLLM_USE_V1=0), included in releases before {record.first_engine[0].until}",
        f"使用 {record.title} 的 V0 引擎（VLLM_USE_V1=0），{record.first_engine[0].until} 之前的版本才有",
    )


def _server(
    settings: RunSettings, setup: Setup, length: int | None, record: ServerRecord, card: CardLookup, *, version: str | None
) -> Server:
    """Return the server's settings, given or default in this version."""
    layout, shape = setup.layout, setup.shape
    tensor, pipeline = layout.tensor, layout.pipeline
    defaults, version = record.defaults, release_of_engine(version, record, settings, shape, card.name)

    def default(rows: Sequence[ServerDefault]) -> int | float | bool:
        return default_value(rows, card=card.bytes, card_name=card.name, version=version, tensor=tensor)

    def held(rows: Sequence[ServerDefault] | None) -> ServerDefault | None:
        return held_default(rows or (), card=card.bytes, card_name=card.name, version=version, tensor=tensor)

    def default_fraction() -> float:
        if (stated := held(defaults.memory_share)) is not None:
            return float(stated.value)
        beside = held(defaults.beside_gb)
        query = ShareQuery(
            card=card.bytes,
            batched=batched,
            graphs=requests if graphs else 0,
            cards=tensor * pipeline,
            pipeline=pipeline,
            replicas=layout.replicas,
            drafts=settings.draft_method is not None or settings.draft_model is not None,
            shape=shape,
            profile=profile,
            beside=None if beside is None else GIB * (beside.value + beside.each_card * tensor * pipeline),
        )
        return ENGINES[record.engine].default_fraction(query)

    profile = _profile(defaults, default)
    whole = default(defaults.whole_requests) if defaults.whole_requests is not None else 0
    chunks = _chunks(settings, shape, length, whole, profile)
    takes_whole = positive(settings.max_batched_tokens) is None and length is not None and not chunks
    least = _MEDIA_STEP if shape.vision is not None and whole else LEAST_WHOLE
    offline = held(defaults.offline_batched_tokens) if settings.offline else None
    usual = int(default(defaults.max_batched_tokens) if offline is None else offline.value)
    step = usual if not takes_whole else max(length or 0, least if whole else usual)
    most = _requests(settings, int(default(defaults.max_num_seqs)), limits=ENGINES[record.engine].limits_requests)
    if profile.caps_step and length:
        step = min(step, most * length)
    batched = positive(settings.max_batched_tokens) or step
    requests = min(most, batched)
    graphs = settings.enforce_eager is not True
    fraction: float | None = settings.memory_share
    if fraction is None or not 0 < fraction <= 1:
        fraction = default_fraction()
    return Server(
        program=server_program(record),
        memory_fraction=float(fraction),
        batched=batched,
        requests=requests,
        length=length,
        takes_whole=takes_whole,
        graphs=graphs,
        graphs_inside=defaults.graphs_inside is not None and default(defaults.graphs_inside) is True,
        offload=_offload(settings),
        caches_prefixes=profile.caches_prefixes if settings.prefix_caching is None else settings.prefix_caching,
        whole_windows=_whole_windows(settings, profile),
        drafted=_drafted(settings),
        media=media_items(settings, shape, length=length, batched=batched, profile=profile, version=version),
        cache_told=settings.cache_memory if settings.cache_memory and settings.cache_memory > 0 else None,
        blocks_told=positive(settings.cache_blocks),
        dealt=min(positive(settings.decode_context_parallel) or 1, tensor),
        packs=settings.quantization in _PACKS and weights_said(shape, settings.model, tensor=tensor) is None,
        adapters=(positive(settings.adapter_slots) or 1) if settings.served_adapters else 0,
        adapter_rank=positive(settings.adapter_rank) or _RANK,
        profile=profile,
        pools=cache_pools(settings, shape, version, None if (slots := held(defaults.state_slots)) is None else int(slots.value)),
    )


def _requests(settings: RunSettings, usual: int, *, limits: bool) -> int:
    """Return the requests that run at a time or, if that is a different number, those of the largest CUDA graph."""
    running = positive(settings.max_num_seqs)
    if limits:
        return running or usual
    return positive(settings.graph_requests) or min(usual, running or usual)


def _spread(settings: RunSettings, shape: Shape, framework: str, cards: int) -> Setup:
    """Return the setup across all GPUs. Copies of the rest of the model divide the experts among all of their GPUs.

    Source: FusedMoEParallelConfig.make of vllm/model_executor/layers/fused_moe/config.py, with and without expert parallelism.
    """
    tensor, pipeline = positive(settings.tensor_parallel) or 1, positive(settings.pipeline_parallel) or 1
    copies = positive(settings.data_parallel) or 1
    divided = tensor * copies if copies > 1 else settings.expert_parallel
    told = replace(settings, method="serve", expert_parallel=divided)
    return setup_from_settings(told, shape, framework, max(cards, tensor * pipeline * copies))[0]


def _chunks(settings: RunSettings, shape: Shape, length: int | None, whole: float, profile: StartupProfile) -> bool:
    """Return whether a step reads a long prompt in parts: from a certain length, except for what vLLM's first engine cannot divide.

    Source: _set_default_args_v0 of vllm 0.8.5 engine/arg_utils.py, create_engine_config of 0.6.3 to 0.7.3.
    """
    if settings.chunked_prefill is not None:
        return settings.chunked_prefill
    if not whole:
        return True
    latent = shape.latent is not None and profile.caches_latent
    window = shape.window is not None and shape.windowed_layers is None and not shape.each
    drafts = settings.draft_model or settings.draft_method
    return (length or 0) > whole and not (shape.vision is not None or latent or window or drafts or settings.served_adapters)


def _reads_text_alone(settings: RunSettings) -> bool:
    return settings.text_only is True or settings.images_per_prompt == 0 == settings.videos_per_prompt


def _share_assumed(server: Server) -> Assumption:
    """Return the default share, and what it is a share of."""
    fraction = f"{server.memory_fraction:g}"
    if server.profile.of_free:
        return assumed(
            "memory_share",
            f"{fraction} of the memory free after the model is loaded, the server's default",
            f"占用模型加载后空闲显存的 {fraction}，即该服务的默认值",
        )
    return assumed("memory_share", f"{fraction} of the card, the server's default", f"占用显卡的 {fraction}，即该服务的默认值")


def _profile(defaults: ServerDefaults, default: Callable[[Sequence[ServerDefault]], float | bool]) -> StartupProfile:
    """Return what startup of this version uses, as far as the server's rules give it."""
    rows = {name: getattr(defaults, name) for name in StartupProfile.__struct_fields__ if name not in _SIZES}
    known = {name: default(row) for name, row in rows.items() if row is not None}
    sizes = ((name, getattr(defaults, key), unit) for name, (key, unit) in _SIZES.items())
    known |= {name: round(default(row) * unit) for name, row, unit in sizes if row is not None}
    return convert(known, StartupProfile)


def _whole_windows(settings: RunSettings, profile: StartupProfile) -> bool:
    """Return whether layers with a window keep all tokens: as set, or otherwise the release's default."""
    if settings.whole_windows is not None:
        return settings.whole_windows
    return profile.whole_windows or (profile.whole_with_connector and settings.cache_connector is not None)


def _drafted(settings: RunSettings) -> int:
    """Return the tokens that the model's own layers draft in a step; 0 if they are not loaded, or another model drafts."""
    method = (settings.draft_method or "").lower()
    own = settings.draft_model is None and ("mtp" in method or method in _OWN_LAYERS)
    return positive(settings.draft_tokens) or 1 if own else 0


def _offload(settings: RunSettings) -> int:
    """Return the bytes to offload: cpu_offload_gb is GiB per GPU (vllm/config/cache.py)."""
    size = settings.cpu_offload_gb
    return round(size * GIB) if size is not None and 0 < size < 1 << 20 else 0


def _assumptions(settings: RunSettings, setup: Setup, server: Server) -> Iterator[Assumption]:
    if setup.shape.guessed:
        yield assumed(
            "shape",
            f"only the size of {setup.shape.name} is known; its layers are taken from a similar model",
            f"只知道 {setup.shape.name} 的参数量，层结构取自相近的模型",
        )
    if settings.memory_share is None:
        yield _share_assumed(server)
    if server.length is None:
        yield assumed(
            "max_model_len",
            "the maximum request length is the model's own limit, which is not known here",
            "单个请求的最大长度取模型自身的上限，而这里并不知道它是多少",
        )
    elif positive(settings.max_model_len) is None and positive(settings.sequence_length) is None:
        yield assumed(
            "max_model_len",
            f"a maximum request length of {server.length} tokens, the model's own limit",
            f"最长请求 {server.length} 个 token，即模型自身的上限",
        )
    if settings.max_batched_tokens is None:
        yield assumed(
            "max_batched_tokens",
            f"{server.batched} tokens per step, the server's default on this card",
            f"单步最多 {server.batched} 个 token，即该服务在这张卡上的默认值",
        )
    program = server.program
    if ENGINES[program.engine].limits_requests and settings.max_num_seqs is None:
        yield assumed(
            "max_num_seqs",
            f"{server.requests} concurrent requests, the server's default on this card",
            f"最多并发 {server.requests} 个请求，即该服务在这张卡上的默认值",
        )
    if draft := settings.draft_model:
        yield assumed(
            "draft_model",
            f"the draft model {draft} needs its own weights and cache, which are not counted",
            f"草稿模型 {draft} 自己的权重和缓存没有计入",
        )
    if server.drafted:
        yield assumed(
            "draft_method",
            "the model's token-proposal layer is loaded and keeps its own cache",
            "模型自带的预测层（MTP）已加载，并有自己的缓存",
        )
    if server.graphs and program.graphs_inside_since is not None:
        named = f"{program.title} {program.graphs_inside_since}"
        where = (
            (f"comes out of the share ({named} and newer)", f"从份额里扣除（{named} 及以后）")
            if server.graphs_inside
            else (f"comes on top of the share ({program.title} before {program.graphs_inside_since})", f"在份额之外另占（{named} 以前）")
        )
        yield Assumption(id="cuda_graphs", text=Text(f"memory for CUDA graphs {where[0]}", f"CUDA 图占用的显存{where[1]}"))
