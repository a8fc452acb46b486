"""The compiled pack: never stale, never in the way, and read only as far as it is asked."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from oomdoctor.errors import RuleError
from oomdoctor.knowledge.compiled.compile import compile_pack
from oomdoctor.knowledge.pack import FIXES, PROBLEMS, SIGNATURES, Pack, builtin_rules, load_pack
from oomdoctor.knowledge.records.base import RecordKind
from oomdoctor.knowledge.records.change import CHANGES
from oomdoctor.knowledge.records.check import CHECKS
from oomdoctor.knowledge.records.evidence import EVIDENCE, HOLDINGS
from oomdoctor.knowledge.records.layout import LAYOUTS
from oomdoctor.parse import reading
from oomdoctor.parse.recogniser import Recogniser

SIGNATURE = """\
program: prog
signatures:
  - id: prog-{name}
    kind: host-oom
    certainty: certain
    literals: ['no room for {name}']
    pattern: 'no room for {name}'
    source: 'prog source'
    examples: [{{text: 'no room for {name}'}}]
    near_misses: [{{text: 'room', why: 'another'}}]
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    write(folder, "apples")
    return folder


def write(folder: Path, name: str, file: str = "prog.yaml") -> Path:
    path = folder / "signatures" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SIGNATURE.format(name=name), encoding="utf-8")
    return path


def ids(pack: Pack) -> list[str]:
    return [event.signature for event in reading.read_events("no room for apples\n\nno room for olives\n", Recogniser(pack))]


def load(folder: Path, cache: Path) -> Pack:
    return load_pack(str(folder), str(cache))


def test_a_kept_pack_is_used_again(rules: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert ids(load(rules, cache)) == ["prog-apples"]
    (kept,) = cache.iterdir()
    before = kept.stat().st_mtime_ns
    assert ids(load(rules, cache)) == ["prog-apples"]
    assert [one.stat().st_mtime_ns for one in cache.iterdir()] == [before]


def test_a_changed_file_is_seen_even_with_the_same_size(rules: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert ids(load(rules, cache)) == ["prog-apples"]
    path = write(rules, "olives")
    assert path.stat().st_size == len(SIGNATURE.format(name="apples"))
    assert ids(load(rules, cache)) == ["prog-olives"]


def test_a_changed_file_is_seen_even_with_the_same_size_and_time(rules: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    path = rules / "signatures" / "prog.yaml"
    times = path.stat()
    assert ids(load(rules, cache)) == ["prog-apples"]
    write(rules, "olives")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ids(load(rules, cache)) == ["prog-olives"]


def test_a_file_replaced_by_another_is_seen(rules: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    load(rules, cache)
    os.replace(write(rules, "olives", "new.txt"), rules / "signatures" / "prog.yaml")
    assert ids(load(rules, cache)) == ["prog-olives"]


@pytest.mark.parametrize(("change", "wanted"), [
    pytest.param(lambda rules: write(rules, "olives", "more.yaml"), ["prog-apples", "prog-olives"], id="a new file"),
    pytest.param(lambda rules: (rules / "signatures" / "prog.yaml").unlink(), [], id="a file less"),
    pytest.param(lambda rules: (rules / "signatures" / "prog.yaml").rename(rules / "signatures" / "gone.txt"), [], id="a file renamed"),
])  # fmt: skip
def test_files_that_come_and_go_are_seen(change: Callable[[Path], object], wanted: list[str], rules: Path, tmp_path: Path) -> None:
    load(rules, tmp_path / "cache")
    change(rules)
    assert ids(load(rules, tmp_path / "cache")) == wanted


def test_two_folders_with_the_same_files_do_not_share_a_pack(rules: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    path = write(other, "olives")
    times = (rules / "signatures" / "prog.yaml").stat()
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [ids(load(folder, tmp_path / "cache")) for folder in (rules, other)] == [["prog-apples"], ["prog-olives"]]


@pytest.mark.parametrize("make", [
    pytest.param(lambda path: path.write_text("a file where the folder should be"), id="a file in its place"),
    pytest.param(lambda path: (path.mkdir(), path.chmod(0o500)), id="a folder that cannot be written"),
    pytest.param(lambda path: path.symlink_to(path), id="a link to itself"),
    pytest.param(lambda path: path.symlink_to("/proc/self/nothing"), id="a link to where nothing can be"),
])  # fmt: skip
def test_a_cache_that_cannot_be_written_is_no_error(make: Callable[[Path], object], rules: Path, tmp_path: Path) -> None:
    make(tmp_path / "cache")
    assert [ids(load(rules, tmp_path / "cache")) for _ in range(2)] == [["prog-apples"]] * 2


def test_a_cache_that_refuses_every_write_is_no_error(rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", refuse)
    assert ids(load(rules, tmp_path / "cache")) == ["prog-apples"]


@pytest.mark.parametrize("damage", [
    pytest.param(lambda _data: b"", id="empty"),
    pytest.param(lambda data: b"\0" * len(data), id="zeros, as after a power cut"),
    pytest.param(lambda data: data[:50], id="cut off in its head"),
    pytest.param(lambda data: data[:-40], id="cut off at its end"),
    pytest.param(lambda data: data.partition(b"\n")[0], id="the head alone"),
    pytest.param(lambda _data: b"null\n", id="another document"),
    pytest.param(lambda _data: b"[1]\n", id="a list"),
    pytest.param(lambda _data: b"{}\n", id="an empty head"),
    pytest.param(lambda _data: b'{"format": 2}\n', id="a head without its parts"),
    pytest.param(lambda data: data.replace(b'"format":', b'"format":9', 1), id="another format"),
    pytest.param(lambda data: b"\xff" + data, id="no UTF-8"),
    pytest.param(lambda _data: b"[" * 100_000, id="brackets without end"),
])  # fmt: skip
def test_a_damaged_kept_pack_is_made_again(damage: Callable[[bytes], bytes], rules: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    load(rules, cache)
    (kept,) = cache.iterdir()
    kept.write_bytes(damage(kept.read_bytes()))
    pack = load(rules, cache)
    assert ids(pack) == ["prog-apples"]
    assert [record.source for record in pack.records(SIGNATURES)] == ["prog source"]


def test_a_wrong_rule_is_an_error_and_leaves_nothing_in_the_cache(rules: Path, tmp_path: Path) -> None:
    (rules / "signatures" / "prog.yaml").write_text("program: prog\nsignatures: 3\n")
    with pytest.raises(RuleError):
        load(rules, tmp_path / "cache")
    assert not (tmp_path / "cache").exists() or list((tmp_path / "cache").iterdir()) == []


def test_old_packs_are_cleared_away(rules: Path, tmp_path: Path) -> None:
    for number in range(14):
        write(rules, f"apples{number}")
        load(rules, tmp_path / "cache")
    assert 1 <= len(list((tmp_path / "cache").iterdir())) <= 8


def test_only_texts_of_asked_rules_are_parsed(rules: Path) -> None:
    write(rules, "olives", "olives.yaml")
    head, *lines = compile_pack(str(rules)).split(b"\n")
    spoilt = [line.replace(b"{", b"<", 1) if b"olives" in line and b"apples" not in line else line for line in lines]
    assert spoilt != lines
    texts = b"\n".join(spoilt)
    checked = json.dumps({**json.loads(head), "check": zlib.crc32(texts)}).encode()
    pack = Pack(checked + b"\n" + texts)
    apples = pack.signature("prog-apples")
    assert apples is not None and apples.source == "prog source"
    assert [event.signature for event in reading.read_events("no room for apples", Recogniser(pack))] == ["prog-apples"]
    with pytest.raises(msgspec.DecodeError):
        pack.signature("prog-olives")


def test_a_text_of_a_rule_that_does_not_exist() -> None:
    pack = load_pack()
    assert pack.fix("no-such-fix") is None
    assert pack.signature(pack.names("signatures")[0]) is not None


def test_the_built_in_rules_lie_in_a_folder_and_load() -> None:
    assert os.path.isdir(builtin_rules())
    assert {"signatures", "problems", "fixes", "sources"} == {
        part for part in ("signatures", "problems", "fixes", "sources") if load_pack().names(part)
    }


def test_a_pack_without_examples_has_all_else() -> None:
    whole, bare = load_pack(), Pack(compile_pack(builtin_rules(), has_examples=False))
    kinds: tuple[RecordKind[Any], ...] = (SIGNATURES, PROBLEMS, FIXES, CHECKS, EVIDENCE, HOLDINGS, LAYOUTS, CHANGES)
    for kind in kinds:
        records = [
            replace(record, **{name: [] for name in ("examples", "near_misses") if hasattr(record, name)}) for record in whole.records(kind)
        ]
        assert records == list(bare.records(kind)) != []
    assert bare.signatures == whole.signatures


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format"):
        Pack(b'{"format": -1}\n')
