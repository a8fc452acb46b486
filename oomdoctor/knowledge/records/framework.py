"""The shape of rules/frameworks: how a framework is known in logs and configs, what its keys mean, and what it does by default."""

from typing import Annotated, Literal

from msgspec import Meta

from oomdoctor.case.setup import Engine
from oomdoctor.knowledge.records.base import Plain, Record, RecordKind
from oomdoctor.knowledge.records.condition import Condition
from oomdoctor.knowledge.records.signature import PurposeName, SignatureRecord


class FromKey(Record, frozen=True, kw_only=True):
    """A key whose values mean something else in the common words: `bf16: true` is precision bf16.

    `map` goes from the value, in lower case, to what it means; `*` stands for any other value, and means the value itself
    where it maps to `*`. A value that is not listed says nothing.
    """

    key: str
    map: dict[str, Plain | None]


class KeySpan(Record, frozen=True, kw_only=True):
    """Keys that came and went together; versions are the first and the last examined one that has them."""

    names: str
    since: str | None = None
    until: str | None = None


class KeyTable(Record, frozen=True, kw_only=True):
    """The keys of a framework by version; tools/config_keys.py makes most of them."""

    source: str
    versions: Annotated[list[str], Meta(min_length=1)]
    spans: list[KeySpan]


class LogLine(Record, frozen=True, kw_only=True):
    """A line that only one program prints."""

    literal: str
    """A rare piece of it, as in signatures."""
    pattern: str | None = None
    """The line, where the piece alone does not tell."""
    like: str
    """An example."""


class LogMarks(Record, frozen=True, kw_only=True):
    """What names a framework in logs; knowledge/rows/program_marks.py says what counts as a frame or a command."""

    order: int = 50
    """Of several that are named the lowest counts: the outermost, as it is its config that a person edits."""
    pattern: str | None = None
    """What names it in messages and last frames that are known otherwise."""
    needs: list[str] = []
    """Pieces of which one stands in every text that the pattern matches, so that most patterns are never compiled."""
    tail: str | None = None
    """What it prints so often that it is only looked for at the end of a log."""
    frames: list[str] = []
    """Folders of its code: `torchtune`, or `megatron/core` where the first name alone is not its own."""
    scripts: list[str] = []
    """Scripts of its own, beside those of `programs`."""
    commands: list[str] = []
    """What a command begins with, beside `programs`."""
    programs: bool = True
    """Whether what stands under `programs` names it in logs too: a script named `finetune.py` is anybody's."""
    lines: list[LogLine] = []
    purpose: PurposeName | None = None
    """What its runs are for, where that is always the same."""


class WriteRecord(Record, frozen=True, kw_only=True):
    """How a framework writes a setting, for fixes and plans."""

    key: str
    """As it is written: `a.b` is nested, `-x` is an option, `CAPITALS` are a variable, `call(name)` stands in code."""
    values: dict[str, str] = {}
    """The values that it can be given -> how they are written; where it is empty, any value as it is."""
    default: str | None = None
    """The value where the config does not name the key."""
    when: Condition | None = None
    """It is written so in runs of which this is true."""
    since: str | None = None
    until: str | None = None
    source: str | None = None
    """Where the key was read; `writes_source` where it is not given."""


class Layer(Record, frozen=True, kw_only=True):
    """A program that a run can have below its framework, with a config of its own."""

    facts: list[str]
    """The facts that show it."""
    order: int = 50
    """Of several layers the lowest comes first."""


class TrainingRecord(Record, frozen=True, kw_only=True):
    """What a framework does that no setting says; the fields are those of FrameworkTraits (oomdoctor/case/setup.py)."""

    logits: float
    logits_low: float
    logits_high: float
    converts: float = 0.0
    upcasts: bool = False
    freezes_tower: bool = False
    full_weights: str = "fp32"
    unties: bool = False
    packs_head: bool = False
    adapter_bytes: int = 4
    lora_targets: str = "all"
    adapter_input: float = 3.0
    autocast: bool = True
    keeps_unpacked_input: bool = False
    flat_gradients: bool = False
    fused_qkv: bool = False
    repeats_kv: bool = False
    compiled: float = 1.0
    offloads_checkpoints: bool = False
    accumulates: bool = False
    shards: bool = False
    longest_first: bool = False
    batch: int = 1
    length: int | None = None
    checkpointing: bool = False
    checkpoints_always: bool = False
    finetuning: str = "full"
    optimizer: str = "adamw"
    source: str
    """Where the bytes of a logit come from."""


class TrainingDefault(Record, frozen=True, kw_only=True):
    """What a framework takes where the config says nothing, and where that holds."""

    value: Plain
    since: str | None = None
    until: str | None = None
    """The last series of versions that has it."""
    engines: list[Engine] = []
    """The ways of spreading a run for which it holds; all of them where none is named."""
    methods: list[str] = []
    """The methods for which it holds, by the names that all frameworks share."""
    weights: str | None = None
    """The type that the config must give the weights for it to hold."""
    attentions: list[str] = []
    """The kernels of attention for which it holds; one that the config does not name is sdpa."""
    packed: bool | None = None
    """Whether the frozen weights must be packed."""
    whole: bool | None = None
    """Whether all weights must be trained."""
    source: str


class TrainingDefaults(Record, frozen=True, kw_only=True):
    """The defaults of a framework by version; of several the first that holds counts. What is not named here has no default."""

    release: str
    """The release that counts where no version is known: the newest that was read, or what is still run by most."""
    full_weights: list[TrainingDefault] = []
    """Type of the weights that are trained whole; their gradients and states have it too."""
    frozen_weights: list[TrainingDefault] = []
    """Type of the weights below adapters, where they are not packed."""
    adapter_weights: list[TrainingDefault] = []
    """Type of the adapters, their gradients and states."""
    lora_rank: list[TrainingDefault] = []
    lora_targets: list[TrainingDefault] = []
    """Modules that get adapters, as people write them."""
    upcasts: list[TrainingDefault] = []
    """Whether packed models are prepared by peft's prepare_model_for_kbit_training."""
    wide_ends: list[TrainingDefault] = []
    """Whether embedding and output projection are fp32 beside layers in 16 bit, in full training."""
    wide_experts: list[TrainingDefault] = []
    """Whether routed experts stay wide where bitsandbytes packs the rest."""
    wide_gradients: list[TrainingDefault] = []
    """Whether gradients are fp32 over 16-bit weights, with an fp32 copy of the weights in the optimizer."""
    checkpointing: list[TrainingDefault] = []
    """`none`, `selective` or `full`."""
    fused_loss: list[TrainingDefault] = []
    """Whether the loss never sees the logits of all tokens at once."""
    optimizer: list[TrainingDefault] = []
    batch: list[TrainingDefault] = []
    length: list[TrainingDefault] = []


class FrameworkCore(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What every diagnosis needs of a framework: how messages and facts show it."""

    framework: str
    title: str
    names: list[str] = []
    """Other names that people and programs give it."""
    in_logs: LogMarks | None = None
    messages: list[str] = []
    """Programs whose own message shows that this framework's settings count."""
    falls_back_to: list[str] = []
    """Frameworks whose settings this one takes as well; their keys are shown where it has none of its own."""
    layer: Layer | None = None
    """For a program that runs below another framework."""
    always: bool = False
    """Whether its settings are shown in every run."""
    in_code: bool = False
    """Whether its settings stand in code: a measure without a key is as near as one with it."""
    works_on: Literal["text", "pictures", "sound", "tables", "scenes", "code"] | None = None
    """What its models read, where that is always the same: a length in tokens and logits are matters of text. What works on tables, scenes
    or code has no model."""


class FrameworkRecord(FrameworkCore, frozen=True, kw_only=True):
    """rules/frameworks/<framework>.yaml: all that the tool knows of one framework."""

    order: int = 100
    """Configs are tried in this order: frameworks with keys of their own first."""
    shares: list[str] = []
    """Frameworks whose keys are keys of this one too."""
    roots: list[str] = []
    """Blocks under which the shared keys stand."""
    programs: list[str] = []
    """What a command begins with."""
    takes_options: bool = True
    """Whether its programs take settings as options: a script of the same name that is given some is another's."""
    signs: list[list[str]] = []
    """Keys that together show the framework."""
    in_commands: bool = True
    """Whether its signs show it in a command too: what stands in files of its own can be one option among those of a trainer."""
    modules: list[str] = []
    """Packages that only its scripts import."""
    extra: list[str] = []
    """Keys that its packages do not list."""
    blocks: dict[str, list[str]] = {}
    """A block -> keys that count only inside it."""
    inner: list[str] = []
    """Blocks whose keys are in the table of keys too."""
    open: bool = False
    """Whether it takes any key."""
    unknown_keys: Literal["refused", "ignored", "noted"] = "ignored"
    """What becomes of a key that it does not know: the run stops, nothing happens, or a script of one's own may have it."""
    settings: dict[str, list[str | FromKey]] = {}
    """The common name -> the keys that give it, the first one that is there counts."""
    flavors: dict[str, str] = {}
    """Its own name of a model, in lower case with `_` alone between words -> the model."""
    dated: dict[str, list[str]] = {}
    """The last release that takes some keys -> the keys: a config that has one of them is of that release, where nothing names another."""
    sizes: dict[str, list[str | FromKey]] = {}
    """A key of a config.json -> the keys that give it, where configs say the sizes of a model; `vocabulary_of` is a model whose vocabulary
    counts where none is said."""
    signatures: list[SignatureRecord] = []
    """Messages of its own, as in rules/signatures; settings that it prints are rows (`{setting: [a_key], value: int, like: 4}`)."""
    log_settings: dict[str, list[str | FromKey]] = {}
    """The common name -> the fields of these messages that give it."""
    writes: dict[str, str | WriteRecord | list[WriteRecord]] = {}
    """The common name -> the key that fixes and plans set; several where versions or runs differ."""
    writes_source: str = ""
    """Where these keys were read."""
    rank: int = 100
    """Where several frameworks are shown the lowest comes first: those that people use most."""
    renamed: dict[str, str] = {}
    deepspeed_key: str = "deepspeed"
    """The key that names a DeepSpeed file."""
    trains_like: str | None = None
    """The framework whose defaults it has."""
    training: TrainingRecord | None = None
    defaults: TrainingDefaults | None = None
    """What it takes where the config says nothing; it goes before the same name under `training`."""
    source: str = ""
    """Where its keys were read."""
    options: dict[str, KeyTable] = {}
    """A setting that holds several options -> the options."""
    keys: KeyTable | None = None


FRAMEWORKS = RecordKind("frameworks", FrameworkRecord)
