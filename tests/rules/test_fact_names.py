"""What the code works out is in the list of facts that rules may ask for, and what the list promises is given somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec
import pytest
from builtin_rule_set import builtin_rule_set

from oomdoctor.api.examples import diagnose_example
from oomdoctor.case.environment import Environment
from oomdoctor.configs.readers.read import read_config
from oomdoctor.configs.resolve import resolve_config
from oomdoctor.findings.facts import facts
from oomdoctor.findings.failure_step import failure_step
from oomdoctor.findings.fitting import fitting
from oomdoctor.findings.host_memory import host_memory
from oomdoctor.findings.serving_share import serving_share
from oomdoctor.findings.weight_matrix import weight_matrix
from oomdoctor.knowledge.fact_names import DERIVED, INCIDENT, VERDICT, FactNames, fact_names
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.machine.facts import environment_facts


@cache
def names() -> FactNames:
    return fact_names(builtin_rule_set())


@cache
def of_logs() -> frozenset[str]:
    """The facts of the examples of problems and evidence, and of the steps of a run."""
    out = {*failure_step(500, {"training.eval_steps": 500, "training.save_steps": 100})}
    rules = builtin_rule_set()
    of_problems = [example for _, problem in rules.problems for example in (*problem.examples, *problem.near_misses)]
    for example in (*of_problems, *(example for evidence in rules.evidence for example in evidence.examples)):
        if example.environment is None and example.snapshot is None:
            case = diagnose_example(example, load_pack()).case
            settings = case.training.facts() if case.training is not None else {}
            known = facts(case.incidents, case.verdict, {**case.facts, **settings})
            out |= {*known, *host_memory(case.events, known), *serving_share(known, None)}
            for incident in case.incidents:
                out |= {*fitting(incident.root, case.ledgers, known), *weight_matrix(incident.root, known)}
    return frozenset(out)


@cache
def of_machines() -> frozenset[str]:
    """The facts of the machines in the examples of problems."""
    examples = (example for _, problem in builtin_rule_set().problems for example in (*problem.examples, *problem.near_misses))
    machines = (msgspec.convert(example.environment, Environment) for example in examples if example.environment is not None)
    return frozenset(name for machine in machines for name in environment_facts(machine))


def of_configs() -> Iterator[str]:
    """The settings in the examples of checks."""
    for _, check in builtin_rule_set().checks:
        for example in check.examples:
            configs = [config for name, text in example.files.items() for config in read_config(name, text.encode()) or []]
            run = resolve_config(configs, [], example.known, load_pack())
            yield from run.facts() if run is not None else ()


@pytest.mark.parametrize("emitted", [
    pytest.param(of_logs, id="logs"),
    pytest.param(of_machines, id="machines"),
    pytest.param(of_configs, id="configs"),
])  # fmt: skip
def test_what_the_code_says_can_be_asked_for(emitted: object) -> None:
    assert callable(emitted)
    assert sorted(name for name in emitted() if not names().nearest(name, names().case)[0]) == []


@pytest.mark.parametrize(("prefix", "listed"), [
    pytest.param("derived", DERIVED - {"request_as_product", "request_kind"}, id="figures that follow from a message alone"),
    pytest.param("verdict", VERDICT, id="the verdict"),
    pytest.param("incident", INCIDENT - {"card", "in_python", "inference", "native", "platform", "program", "quantised", "works_on"}, id="the failure"),
])  # fmt: skip
def test_what_can_be_asked_for_is_said_in_some_log(prefix: str, listed: frozenset[str]) -> None:
    assert sorted(name for name in listed if f"{prefix}.{name}" not in of_logs()) == []


def test_a_fact_of_a_machine_is_none_of_two_configs() -> None:
    """Each kind of rule may ask for what it is given: a check of configs never learns what a driver says."""
    assert names().nearest("environment.driver_version", names().case)[0]
    assert not names().nearest("environment.driver_version", names().configs)[0]
