"""What a reporter states about the run in the text around a log: one reader for lists, issue forms and sentences.

A label says what its value is; a sentence is read like a question in words (told.py). Only statements about the run itself count: not
possibilities, what works elsewhere or what was tried. If two places say different things, nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from oomdoctor.case.settings import Scalar
from oomdoctor.case.stated import StatedFact, StatedRun
from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.knowledge.tables.stated_words import program_in, program_place
from oomdoctor.setups.words.labels import labelled_values
from oomdoctor.setups.words.passages import Labelled, Sentence
from oomdoctor.setups.words.told import methods_in, read_told
from oomdoctor.setups.words.told_cards import said_count, told_card, uses_count

_OF_THE_RUN = (
    "finetuning", "lora_rank", "micro_batch", "accumulation", "sequence_length", "gradient_checkpointing", "zero_stage",
    "offload_optimizer", "fsdp", "packing", "optimizer",
)  # fmt: skip
"""What sentences say about a run, apart from its model, its GPUs and its program."""
_RUNS = re.compile(
    r"(?i)\b(?:using|use|used|with|in|run(?:ning)?|ran|via|through|launch\w*|start\w*|serv\w*|deploy\w*|from)(?: (?:the|latest))? $"
    r"|(?:用|使用|通过|基于|跑|启动|在) ?$"
)
"""Before the name of a program: it is the one that runs."""
_SEVERAL_SIZES = re.compile(r"(?i)\d ?b ?/ ?\d|/\d{1,3}b\b")
_HUB = re.compile(r"^(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co|modelscope\.cn)/(?:models/)?")
_RLHF = re.compile(r"(?i)(?<![\w-])(ppo|grpo|dpo)(?![\w-])")
_MACHINES = re.compile(
    r"(?i)\b(?:[2-9]|\d{2,3}|two|three|four|multiple|several|multi)[ -](?:nodes?|machines|servers)\b|[\d两三四多] ?(?:台|机|个?节点)"
)
"""More than one machine: the number of GPUs next to it is per machine."""
_ADAPTS = ("lora", "qlora", "dora")


def read_stated(passages: Sequence[tuple[str, Sequence[Labelled], Sequence[Sentence]]]) -> StatedRun:
    """Return what the passages of logs, each with the name of its log, state about the run."""
    facts: list[StatedFact] = []
    tried: list[StatedFact] = []
    for name, marked, spoken in passages:
        facts += [fact for labelled in marked for fact in _of_label(labelled, name)]
        facts += [fact for sentence in spoken if sentence.mood == "run" for fact in _of_sentence(sentence, name)]
        tried += [fact for sentence in spoken if sentence.mood == "tried" for fact in _of_sentence(sentence, name)]
    return StatedRun(facts=tuple(_agreed(facts)), tried=tuple(fact for fact in tried if fact.name in _OF_THE_RUN))


def _of_label(labelled: Labelled, file: str) -> Iterator[StatedFact]:
    for name, value in labelled_values(labelled.means, labelled.value):
        yield StatedFact(name=name, value=value, says=labelled.label, file=file, line=labelled.line, is_labelled=True)


def _of_sentence(sentence: Sentence, file: str) -> Iterator[StatedFact]:
    for name, value in _said(sentence.text):
        yield StatedFact(name=name, value=value, says=sentence.text, file=file, line=sentence.line)


def _said(text: str) -> Iterator[tuple[str, Scalar]]:
    told = read_told(text)
    settings = told.settings
    if told.shape is not None and settings.model is not None and not _SEVERAL_SIZES.search(settings.model):
        yield "model", _HUB.sub("", settings.model)
    methods = {"adapters" if method in _ADAPTS else method for method in methods_in(text)}
    for name in _OF_THE_RUN:
        value = getattr(settings, name)
        if value is not None and not (name == "finetuning" and len(methods) > 1):
            yield name, value
    card, _ = told_card(text)
    if card is not None:
        yield "gpu_name", card
    rewards = {match[1].lower() for match in _RLHF.finditer(text)}
    if len(rewards) == 1:
        yield "method", rewards.pop()
    count = None if _MACHINES.search(text) else said_count(text)
    if count is not None:
        yield "gpu_count", count
        if uses_count(text):
            yield "world_size", count
    program = program_in(text)
    if program is not None and _RUNS.search(text[: program_place(text)]):
        yield "framework", program


def _agreed(facts: Sequence[StatedFact]) -> Iterator[StatedFact]:
    """Yield one fact per name: labels take precedence over sentences, and anything stated differently in two places is unknown."""
    by_name: dict[str, list[StatedFact]] = {}
    for fact in facts:
        by_name.setdefault(fact.name, []).append(fact)
    for alike in by_name.values():
        counting = [fact for fact in alike if fact.is_labelled] or alike
        if _are_one(fact.value for fact in counting):
            yield max(counting, key=lambda fact: len(str(fact.value)))


def _are_one(values: Iterable[Scalar]) -> bool:
    """Return whether values agree: the longest name contains the others (`8B` and `Llama-3.1-8B`), a GPU is the same by any name."""
    different = list(dict.fromkeys(str(value).lower() for value in values))
    longest = max(different, key=len)
    if all(value in longest for value in different) and not longest.isdigit():
        return True
    cards = {card.name if (card := card_named(value)) is not None else value for value in different}
    return len(cards) == 1
