"""Secrets go, the rest stays."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report import samples

from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.render.markdown import render
from oomdoctor.report.safety.redact import redact, redact_text
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

KEY = "hf_" + "aB3" * 12

GOES = [
    ("/home/alice/run/train.py", "/home/<user-1>/run/train.py", "a home on Linux"),
    ("/Users/alice/run", "/Users/<user-1>/run", "a home on a Mac"),
    (r"C:\Users\Jane Doe\run", r"C:\Users\<user-1>\run", "a home on Windows, with a blank in the name"),
    (r"'C:\\Users\\jane\\run'", r"'C:\\Users\\<user-1>\\run'", "a path with doubled backslashes"),
    ("/home/alice/x and /data/alice/y", "/home/<user-1>/x and /data/<user-1>/y", "a name that a home has named, in another path"),
    ("bob@gpu-node7:~$ python", "<user-1>@<host-1>:~$ python", "a prompt"),
    ("root@gpu-node7:/workspace# ls", "root@<host-1>:/workspace# ls", "root is nobody"),
    ("mail me at a.b+c@example.co.uk", "mail me at <email-1>", "a mail address"),
    ("connect to 10.12.0.5:29500", "connect to <ip-1>:29500", "an address with a port"),
    ("fe80::1ff:fe23:4567:890a", "<ip-1>", "an IPv6 address"),
    ("link 00:1B:44:11:3a:b7 up", "link <mac-1> up", "a MAC address"),
    (f"HF_TOKEN={KEY}", "HF_TOKEN=<token-1>", "a Hugging Face key"),
    ("OPENAI sk-proj-abcdefghij0123456789", "OPENAI <token-1>", "a key that starts with sk-"),
    ("ghp_abcdefghijklmnopqrst0123", "<token-1>", "a GitHub key"),
    ("AKIAIOSFODNN7EXAMPLE", "<token-1>", "an AWS key"),
    ("xoxb-123456789012-abcdef", "<token-1>", "a Slack key"),
    ("wandb api_key: " + "0a" * 20, "wandb api_key: <token-1>", "a wandb key"),
    ("Authorization: Bearer abc.def-123", "Authorization: Bearer <token-1>", "a bearer token"),
    ("https://bob:hunter2@host/x", "https://<user-1>:<token-1>@host/x", "a password in an address"),
    ("password = hunter2", "password = <token-1>", "a password"),
    ("--token=0f3e2d1c0b", "--token=<token-1>", "a token that is given"),
    ("  host      : gpu-node7", "  host      : <host-1>", "the host in torchrun's box"),
    ("gpu-node7:41022:41377 [3] NCCL WARN", "<host-1>:41022:41377 [3] NCCL WARN", "the host before an NCCL line"),
    ("slurmstepd-node1: error", "slurmstepd-<host-1>: error", "the host in a name of slurmstepd"),
    ("srun: error: node1: task 0: Killed", "srun: error: <host-1>: task 0: Killed", "the host in an error of srun"),
    ("Nov 20 10:22:33 gpu7 kernel: oom", "Nov 20 10:22:33 <host-1> kernel: oom", "the host in a line of the kernel"),
    ("MASTER_ADDR=node-a1", "MASTER_ADDR=<host-1>", "the host of the rendezvous"),
    ("  host : node17\nnode17 died", "  host : <host-1>\n<host-1> died", "a host that was named, as a word elsewhere"),
]
STAYS = [
    ("max_tokens=4096, pad_token: 151329", "tokens of a text"),
    ("eos_token: 12345678a", "a special token"),
    ("token: Unexpected end", "a word after token"),
    ("CUDA 12.4.1.1, driver version: 12.4.1.2, nccl==2.18.1.3", "versions of four parts"),
    ("libcudart.so.12.4.1.1", "a version of a library's file"),
    ("127.0.0.1:29500 and ::1 and 0.0.0.0", "addresses of every machine"),
    ("at 12:30:45, step 3:14", "times"),
    ("c10::Error at::Tensor std::bad_alloc", "names of C++"),
    ("bus 00000000:3B:00.0", "a PCI address"),
    ("git+https://github.com/x/y.git@main", "a branch"),
    ("localhost:1:2 [0] NCCL INFO", "localhost"),
    ("<user-1>@<host-1>: /home/<user-2>/x token=<token-1>", "placeholders"),
]


@pytest.mark.parametrize(("text", "safe"), [pytest.param(text, safe, id=why) for text, safe, why in GOES])
def test_goes(text: str, safe: str) -> None:
    assert redact_text(text) == safe


@pytest.mark.parametrize("text", [pytest.param(text, id=why) for text, why in STAYS])
def test_stays(text: str) -> None:
    assert redact_text(text) == text


def test_the_same_secret_has_the_same_placeholder_and_another_one_another() -> None:
    assert redact_text("10.0.0.5 10.0.0.6 10.0.0.5") == "<ip-1> <ip-2> <ip-1>"


def test_numbers_go_on_after_placeholders_that_are_there() -> None:
    assert redact_text("<ip-3> 10.0.0.5") == "<ip-3> <ip-4>"


_PIECES = st.sampled_from(
    [text for text, _, _ in GOES] + [text for text, _ in STAYS] + ["@", ":", "/", " ", "\n", "=", "token", "a", "1.2.3.4"]
)
_TEXT = st.one_of(st.text(max_size=200), st.lists(_PIECES, max_size=8).map("".join))


@given(_TEXT)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


def test_a_document_is_redacted_as_a_whole_and_twice_is_once() -> None:
    once = redact(compose(samples.device_oom(), Wording("en"), "0.1.0"))
    text = render(once)
    assert "alice" not in text
    assert "gpu-node7" not in text
    assert redact(once) == once


def test_the_json_is_redacted_by_the_names_of_its_keys_too() -> None:
    base = samples.killed_by_kernel()
    dict_fields = dict(base.case.incidents[0].root.fields)
    dict_fields["host"] = "dsw"
    report = json_text(convert_diagnosis(samples.with_fields(base, dict_fields), Wording("en"), "0"), redact=True)
    assert "dsw" not in report
    assert "gpu-node7" not in report
    assert re.search(r'"host": "<host-\d>"', report)


@pytest.mark.parametrize(
    "piece", ["a@", "sk-", "1.", "a:", "token=", "/home/", "x@y.", "::", "C:\\Users\\", "host : ", "password", " kernel: "]
)
def test_a_hostile_text_is_redacted_like_any_other(piece: str) -> None:
    """That it takes linear time is what tests/test_patterns.py holds."""
    once = redact_text(piece * (20_000 // len(piece)) + " token=hf_" + "a1" * 12)
    assert "hf_a1" not in once
    assert redact_text(once) == once
