"""Files of monitors: each form gives the same samples, and what cannot be read is one line."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from series.made_series import event_file

from oomdoctor.case.recorded.series import SeriesColumn
from oomdoctor.record.ring import MAGIC
from oomdoctor.series.read import ReadSeries, read_series
from oomdoctor.units import GIB, MIB

TOTAL = 40960
STAMP = "2026/03/04 05:06:{:02d}.250"
USED = [1000 + 10 * at for at in range(12)]


def read(folder: Path, content: str | bytes, name: str = "file.txt") -> ReadSeries:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_series([str(path)])


def lines(head: str, row: str, *, cards: int = 1) -> str:
    rows = [
        row.format(time=STAMP.format(at), card=card, used=used, free=TOTAL - used) for at, used in enumerate(USED) for card in range(cards)
    ]
    return "\n".join([*([head] if head else []), *rows]) + "\n"


WITH_UNITS = lines("timestamp, index, memory.used [MiB], memory.total [MiB]", "{time}, {card}, {used} MiB, 40960 MiB")
DMON = "# gpu     fb   bar1   ccpm\n# Idx     MB     MB     MB\n"
DCGM = 'DCGM_FI_DEV_FB_FREE{{gpu="0",UUID="GPU-1",Hostname="h"}} {free}\nDCGM_FI_DEV_FB_USED{{gpu="0",UUID="GPU-1",Hostname="h"}} {used}'


@pytest.mark.parametrize(("content", "total"), [
    pytest.param(WITH_UNITS, TOTAL, id="head and units"),
    pytest.param(WITH_UNITS.replace("\n", "\r\n"), TOTAL, id="line ends of Windows"),
    pytest.param(WITH_UNITS.encode("utf-16"), TOTAL, id="UTF-16 of PowerShell"),
    pytest.param(gzip.compress(WITH_UNITS.encode()), TOTAL, id="gzip"),
    pytest.param(lines("timestamp, index, memory.used [MiB], memory.total [MiB]", "{time}, {card}, {used}, 40960"), TOTAL, id="a head, no units"),
    pytest.param(lines("", "{time}, {card}, {used} MiB, 40960 MiB"), TOTAL, id="units, no head"),
    pytest.param(lines("", "{time}, {card}, {used}, 40960"), TOTAL, id="neither head nor units"),
    pytest.param(lines("", "{time}, GPU-3f2a11aa, NVIDIA A100-PCIE-40GB, {used} MiB, 40960 MiB"), TOTAL, id="a UUID and a name, no head"),
    pytest.param(lines("name, timestamp, utilization.gpu [%], memory.total [MiB], memory.free [MiB], temperature.gpu", "NVIDIA A100, {time}, 87 %, 40960 MiB, {free} MiB, 61"), TOTAL, id="free instead of used, among other columns"),
    pytest.param(lines("memory.used [MiB]", "{used} MiB"), None, id="one column with a head"),
    pytest.param(lines("", "{used} MiB"), None, id="one column without a head"),
    pytest.param(DMON + lines("", "    {card}  {used}     13      0"), None, id="dmon"),
    pytest.param("#Date       Time        gpu     fb   bar1\n#YYYYMMDD   HH:MM:SS    Idx     MB     MB\n" + lines("", " 20260304   05:06:07      0   {used}     13"), None, id="dmon with date and time"),
    pytest.param("#gpu, fb, bar1, ccpm\n#Idx, MB, MB, MB\n" + lines("", "{card}, {used}, 13, 0"), None, id="dmon as csv"),
    pytest.param("#Entity   FBUSD   FBFRE\nID\n" + lines("", "GPU 0     {used}    {free}"), TOTAL, id="dcgmi dmon"),
    pytest.param(lines("# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).", DCGM), TOTAL, id="scrapes of the exporter of DCGM"),
    pytest.param(lines("key,value,step,timestamp", "system/gpu_0_memory_usage_megabytes,{used},1,1790000000000"), None, id="a table of MLflow"),
])  # fmt: skip
def test_a_form_of_a_monitor_is_read(tmp_path: Path, content: str | bytes, total: int | None) -> None:
    (column,) = read(tmp_path, content).columns
    assert column.used == tuple(used * MIB for used in USED)
    assert column.total == (None if total is None else total * MIB)


def wandb() -> str:
    rows = [f"{at},{used * MIB},{used / 409.6},{3 * used},12.5,{1790000000 + 15 * at}.5" for at, used in enumerate(USED)]
    head = ",system.gpu.0.memoryAllocatedBytes,system.gpu.0.memoryAllocated,system.proc.memory.rssMB,system.gpu.0.temp,_timestamp"
    return "\n".join([head, *rows])


def test_each_figure_of_wandb_is_a_column(tmp_path: Path) -> None:
    columns = {column.name: column for column in read(tmp_path, wandb()).columns}
    assert columns.keys() == {"system.gpu.0.memoryAllocatedBytes", "system.gpu.0.memoryAllocated", "system.proc.memory.rssMB"}
    assert columns["system.gpu.0.memoryAllocatedBytes"].used[1] == 1010 * MIB
    assert columns["system.gpu.0.memoryAllocatedBytes"].times[1] == 1790000015.5
    assert columns["system.gpu.0.memoryAllocated"].is_share
    assert columns["system.proc.memory.rssMB"].of == "host"


def test_event_files_of_tensorboard_are_read(tmp_path: Path) -> None:
    points = [
        (1_790_000_000.0 + at, 10 * at, tag, value)
        for at in range(12)
        for tag, value in (("memory/max_reserved(GiB)", at + 0.5), ("loss", 2.0), ("memory/num_ooms", 0.0))
    ]
    (column,) = read(tmp_path, event_file(points), "events.out.tfevents.1").columns
    assert column.used == tuple(int((at + 0.5) * GIB) for at in range(12))
    assert column.steps == tuple(10 * at for at in range(12))


def test_a_file_of_one_metric_of_mlflow_is_read(tmp_path: Path) -> None:
    text = "\n".join(f"{1790000000000 + 10000 * at} {used} {at}" for at, used in enumerate(USED))
    (column,) = read(tmp_path, text, "gpu_1_memory_usage_megabytes").columns
    assert (column.card, column.used[0], column.times[1] - column.times[0]) == ("1", 1000 * MIB, 10.0)


def test_samples_of_a_watched_run_are_read(tmp_path: Path) -> None:
    sample = {"rss": 5 * GIB, "total": 64 * GIB, "cards": [{"index": 0, "used": 9 * GIB, "total": 24 * GIB, "ours": 8 * GIB}]}
    text = "\n".join(json.dumps({"t": 1_790_000_000.0 + at, **sample}) for at in range(3)) + '\n{"t": 179'
    columns = read(tmp_path, text, "samples.jsonl").columns
    assert [(column.of, column.name, column.used[-1], len(column.used)) for column in columns] == [
        ("card", None, 9 * GIB, 3), ("process", "the run", 8 * GIB, 3), ("host", "rss", 5 * GIB, 3),
    ]  # fmt: skip


def test_processes_of_pmon_are_columns_each(tmp_path: Path) -> None:
    text = "# gpu         pid   type     fb   ccpm    command\n# Idx           #    C/G     MB     MB    name\n"
    text += (
        "    0       1201     C   8123      0    python\n    0       1377     C    512      0    jupyter lab\n    1          -     -      -      -    -\n"
        * 3
    )
    columns = read(tmp_path, text).columns
    assert [(column.card, column.process, column.name, column.used) for column in columns] == [
        ("0", 1201, "python", (8123 * MIB,) * 3), ("0", 1377, "jupyter lab", (512 * MIB,) * 3),
    ]  # fmt: skip


@pytest.mark.parametrize("nothing", ["[N/A]", "[Not Supported]", "[Unknown Error]", "-", ""])
def test_a_value_that_is_none_is_unknown(tmp_path: Path, nothing: str) -> None:
    (column,) = read(tmp_path, WITH_UNITS.replace("1010 MiB", nothing)).columns
    assert column.used[:3] == (1000 * MIB, None, 1020 * MIB)


def test_a_blank_of_dcgm_is_unknown(tmp_path: Path) -> None:
    (column,) = read(tmp_path, lines("", DCGM).replace(" 1010\n", " 9223372036854775794\n")).columns
    assert column.used[:3] == (1000 * MIB, None, 1020 * MIB)


def test_cards_are_told_apart(tmp_path: Path) -> None:
    text = lines("timestamp, index, memory.used [MiB], memory.total [MiB]", "{time}, {card}, {used} MiB, 40960 MiB", cards=3)
    assert [column.card for column in read(tmp_path, text).columns] == ["0", "1", "2"]


def test_a_table_without_a_head_says_what_was_taken_for_granted(tmp_path: Path) -> None:
    assert [gap.why for gap in read(tmp_path, lines("", "{time}, {card}, {used} MiB, 40960 MiB")).gaps] == [
        "it has no header: the column that varies was taken as memory in use"
    ]


@pytest.mark.parametrize("content", [
    pytest.param(b"", id="empty"),
    pytest.param(b"step 1 loss 0.3\nstep 2 loss 0.2\n", id="a log"),
    pytest.param(b"epoch, loss\n1, 0.5\n2, 0.4\n", id="a table without memory"),
    pytest.param(b"# gpu    pid  type   sm   mem  command\n# Idx      #   C/G    %     %  name\n   0    77    C   90   40  python\n", id="pmon of shares of time"),
    pytest.param(b"timestamp, utilization.memory [%]\n2026/03/04 05:06:07.000, 40 %\n", id="how busy the memory is"),
    pytest.param(MAGIC + b"\xff" * 40, id="a damaged ring"),
    pytest.param(b"\x18\0\0\0\0\0\0\0\0\0\0\0\x09" + b"\xff" * 200, id="a damaged event file"),
    pytest.param(b"memory.used [MiB]\n" + b"9" * 100_000 + b" MiB\n", id="a number without end"),
    pytest.param(b"PK\x03\x04" + b"\0" * 100, id="a zip"),
])  # fmt: skip
def test_what_is_no_series_is_one_line(tmp_path: Path, content: bytes) -> None:
    read_back = read(tmp_path, content)
    assert read_back.columns == ()
    assert len(read_back.gaps) == 1


def test_a_missing_file_and_an_empty_folder_are_a_line_each(tmp_path: Path) -> None:
    assert [gap.what for gap in read_series([str(tmp_path / "nowhere.csv"), str(tmp_path)]).gaps] == [
        str(tmp_path / "nowhere.csv"),
        str(tmp_path),
    ]


def test_mutated_files_harm_nothing(tmp_path: Path) -> None:
    points = [(1_790_000_000.0 + at, at, "memory/reserved(GiB)", 1.0) for at in range(20)]
    good = [
        WITH_UNITS.encode(),
        (DMON + lines("", " 0 {used} 1 1")).encode(),
        lines("", DCGM).encode(),
        wandb().encode(),
        event_file(points),
    ]
    for seed in range(300):
        draw = random.Random(seed)
        data = bytearray(draw.choice(good))
        for _ in range(draw.randrange(1, 40)):
            at = draw.randrange(len(data))
            data[at : at + draw.randrange(3)] = draw.randbytes(draw.randrange(4))
        columns: tuple[SeriesColumn, ...] = read(tmp_path, bytes(data)).columns
        assert all(used is None or 0 <= used < 1 << 62 for column in columns for used in column.used)
        assert all(len(column.times) in (0, len(column.used)) for column in columns)
