"""Raw lines -> the text that a program printed, whatever launchers, terminals and web pages put around it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.ingest.clean import clean_lines, split_flows

MESSAGE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def texts(raw: str) -> list[str]:
    return [line.text for line in clean_lines(raw.encode("utf-8", "surrogatepass"), 0)]


@pytest.mark.parametrize(("raw", "rank", "worker", "time"), [
    pytest.param("{}", None, None, None, id="nothing around it"),
    pytest.param("[rank3]: {}", 3, None, None, id="torch's rank"),
    pytest.param("[default7]:{}", 7, None, None, id="torchrun's tee"),
    pytest.param("rank5]: {}", 5, None, None, id="torch's rank without the bracket that copying lost"),
    pytest.param("[rank=5] {}", 5, None, None, id="a rank after an equals sign"),
    pytest.param("[] [rank=5] {}", 5, None, None, id="a task log that leaves the container's name empty"),
    pytest.param("rank 4: {}", 4, None, None, id="a rank in words"),
    pytest.param("12: {}", 12, None, None, id="srun --label"),
    pytest.param("(RayTrainWorker pid=77, ip=10.0.0.9) {}", None, "RayTrainWorker pid=77", None, id="a Ray worker"),
    pytest.param("(WorkerDict pid=77) [rank1]: {}", 1, "WorkerDict pid=77", None, id="a Ray worker with a rank"),
    pytest.param("\x1b[36m(pid=9)\x1b[0m {}", None, "pid=9", None, id="a Ray worker in colour"),
    pytest.param("node-a-1: {}", None, None, None, id="pdsh"),
    pytest.param("trainer-0  | {}", None, None, None, id="docker compose"),
    pytest.param("> {}", None, None, None, id="a quote in an issue"),
    pytest.param("> > {}", None, None, None, id="a quote of a quote"),
    pytest.param("E   {}", None, None, None, id="pytest"),
    pytest.param("stderr: {}", None, None, None, id="accelerate"),
    pytest.param("2026-01-05 10:00:01,123 {}", None, None, "2026-01-05 10:00:01,123", id="a time"),
    pytest.param("2026-01-05T10:00:01.123456789Z stderr F {}", None, None, "2026-01-05T10:00:01.123456789Z", id="the container runtime"),
    pytest.param("[2026-01-05 10:00:01] [rank2]: {}", 2, None, "2026-01-05 10:00:01", id="a time and a rank"),
    pytest.param("ERROR 01-05 10:00:01 {}", None, None, "01-05 10:00:01", id="vLLM's logger"),
    pytest.param("Jan  5 10:00:01 box kernel: [ 1234.567890] {}", None, None, "10:00:01", id="the system log"),
    pytest.param("[ 1234.567890] {}", None, None, None, id="dmesg"),
    pytest.param("\ufeff{}", None, None, None, id="a byte order mark"),
    pytest.param("{}\r", None, None, None, id="a line end of Windows"),
    pytest.param("\x1b]0;title\x07{}", None, None, None, id="a window title"),
    pytest.param("\x1b]8;;http://example.org\x1b\\{}\x1b]8;;\x1b\\", None, None, None, id="a link of a terminal"),
    pytest.param("\x1b[1;31m{}\x1b[0m\x1b[K", None, None, None, id="colours"),
    pytest.param("[31m{}[0m", None, None, None, id="colours whose escape character was lost"),
    pytest.param("\\u001b[31m{}\\u001b[0m", None, None, None, id="colours written out"),
    pytest.param('<span class="x">{}</span>', None, None, None, id="a web page"),
    pytest.param("{}\u200b\u202e", None, None, None, id="marks that nobody sees"),
])  # fmt: skip
def test_the_message_comes_out_alone(raw: str, rank: int | None, worker: str | None, time: str | None) -> None:
    lines = [line for line in clean_lines(raw.format(MESSAGE).encode(), 0) if line.text]
    assert [(line.text, line.rank, line.worker, line.time) for line in lines] == [(MESSAGE, rank, worker, time)]


@pytest.mark.parametrize("text", [
    pytest.param("ranking 4: models", id="a word that begins like a rank"),
    pytest.param("[12 items]", id="brackets"),
    pytest.param("[] [1, 2]", id="an empty list before another"),
    pytest.param("a[0m] = b[31]", id="an index"),
    pytest.param("C:\\new\\train.py", id="a path of Windows is no escaped line end"),
    pytest.param("if a < b and c > d:", id="comparisons"),
    pytest.param("std::vector<int> x", id="templates"),
    pytest.param("slurmstepd: error: Detected 1 oom_kill event", id="a program's own name before a colon"),
    pytest.param("显存不足：已分配 3 GiB", id="Chinese"),
    pytest.param("2.00 GiB", id="a number at the start"),
])  # fmt: skip
def test_is_left_as_it_is(text: str) -> None:
    assert texts(text) == [text]


@pytest.mark.parametrize(("raw", "wanted"), [
    pytest.param("a\rb\nc", ["a", "b", "c"], id="a progress bar writes over its line"),
    pytest.param("a\\nb", ["a", "b"], id="escaped line ends"),
    pytest.param("a<br>b", ["a", "b"], id="line breaks of a web page"),
    pytest.param("in &lt;module&gt; &quot;c&quot; &#39;d&#39;", ["in <module> \"c\" 'd'"], id="entities"),
    pytest.param("a &amp; b", ["a & b"], id="an ampersand"),
    pytest.param("[rank0]: a\n[rank1]: b", ["a", "b"], id="two ranks"),
])  # fmt: skip
def test_becomes_lines(raw: str, wanted: list[str]) -> None:
    assert texts(raw) == wanted


def test_messages_that_two_ranks_wrote_into_each_other_are_read_whole() -> None:
    raw = b"[rank0]: first\n[rank1]: one\n[rank0]: second\n[rank1]: two\n"
    assert sorted(flow.text for flow in split_flows(raw, 0)) == ["first\nsecond\n", "one\ntwo\n"]


def test_lines_that_a_terminal_cut_are_joined_in_a_second_reading() -> None:
    width = 80
    long = MESSAGE * 4
    raw = "\n".join(long[at : at + width] for at in range(0, len(long), width)).encode()
    assert long in [flow.text.strip() for flow in split_flows(raw, 0) if flow.joints]
    assert not any(flow.joints for flow in split_flows(raw, 0, rejoin=False))


@pytest.mark.parametrize(("lost", "joint"), [
    pytest.param(0, "", id="a cut in a word"),
    pytest.param(1, " ", id="a blank at the edge"),
    pytest.param(2, "  ", id="two blanks at the edge"),
    pytest.param(3, "\n", id="a line that ended before the edge"),
])  # fmt: skip
def test_blanks_that_were_lost_at_the_edge_come_back(lost: int, joint: str) -> None:
    first, second, third = "a" * (80 - lost), "b" * 80, "the rest"
    rejoined = [flow.text for flow in split_flows(f"{first}\n{second}\n{third}".encode(), 0) if flow.joints]
    assert rejoined == [f"{first}{joint}{second}{third}\n"]


def test_two_wide_lines_that_begin_like_others_stay_apart() -> None:
    raw = "\n".join(
        f"Memory of rank {rank}: 41.20 GiB of 79.10 GiB in use by PyTorch{'.' * width}" for rank, width in ((1, 9), (2, 9), (3, 2))
    )
    assert not any(flow.joints for flow in split_flows(raw.encode(), 0))


@pytest.mark.parametrize(("before", "after", "joined"), [
    pytest.param("was refused, for it need", "s 2.00 GiB more", True, id="a cut in a word"),
    pytest.param("Tried to allocate 2", "2.00 GiB more", True, id="a cut in a number"),
    pytest.param("which all went well.", "step 3 is done", False, id="a sentence that was at its end"),
    pytest.param("one of the lines that say", "Another thing", False, id="a line that begins one of its own"),
    pytest.param("one of the lines that say", "2026-01-05 10:00:01 step", False, id="a line with a time"),
])  # fmt: skip
def test_one_long_line_is_joined_where_it_breaks_off_in_its_middle(before: str, after: str, joined: bool) -> None:
    raw = f"first\n{before.rjust(100, 'x')}\n{after}\nlast".encode()
    assert [flow.joints != [] for flow in split_flows(raw, 0)] == [False, True][: 1 + joined]


SUPERVISED = [
    pytest.param("{}", id="nothing around it"),
    pytest.param("Jan  5 10:00:01 node7 train.sh[4242]: {}", id="the journal of a unit"),
    pytest.param("2026-01-05T10:00:01.123456Z 00O {}", id="GitLab"),
    pytest.param("[2026-01-05, 10:00:01 UTC] {{subprocess.py:93}} INFO - {}", id="Airflow"),
    pytest.param("2026-01-05 10:00:01,123 - INFO - {}", id="a logger around all output"),
    pytest.param("0: {}", id="srun --label"),
    pytest.param("trainer-1  | {}", id="docker compose"),
    pytest.param("    {}", id="indented as a whole"),
]


@pytest.mark.parametrize("around", SUPERVISED)
def test_what_a_supervisor_put_before_every_line_changes_nothing(around: str) -> None:
    width = 80
    long = "x " * 30 + MESSAGE * 3
    printed = ["Traceback (most recent call last):", "  step(batch)", "", *(long[at : at + width] for at in range(0, len(long), width))]
    flows = split_flows("\n".join(map(around.format, printed)).encode(), 0)
    assert [flow.text for flow in flows] == [flow.text for flow in split_flows("\n".join(printed).encode(), 0)]
    assert long in flows[-1].text


def test_a_journal_of_several_programs_keeps_their_names() -> None:
    raw = "Jan  5 10:00:01 node7 train.sh[42]: step 1\nJan  5 10:00:01 node7 systemd[1]: serve.service: Main process exited"
    assert texts(raw) == ["train.sh[42]: step 1", "systemd[1]: serve.service: Main process exited"]


def test_a_logger_keeps_its_level_where_it_writes_all_lines_itself() -> None:
    raw = "2026-01-05 10:00:01,123 - INFO - out of memory was seen before\n2026-01-05 10:00:02,123 - INFO - all is well"
    assert all("INFO - " in text for text in texts(raw))


@pytest.mark.parametrize(("raw", "wanted"), [
    pytest.param(
        "(Worker_TP1 pid=77) " + "m" * 60 + " CUDA out of memory.\n" + "a" * 99 + "\n" + "b" * 100 + "\nrest\n(Worker_TP0 pid=76) other",
        4, id="pieces of a long line after a prefix on the first",
    ),
    pytest.param(
        "[TRT-LLM] [RANK 1] [E] failed due to insufficient GPU memory.\n\nComponent: KV cache\nTotal: 80\nFree: 3\n[TRT-LLM] [RANK 0] [I] done",
        4, id="a report in bare lines below the line with the rank",
    ),
    pytest.param("[Rank 1] step=19, loss 2.1\nRuntimeError: CUDA out of memory", 1, id="an error after a line of a rank's metrics"),
    pytest.param("[rank1]:   3%|#   | 3/90 [00:09<04:21, 3.00s/it]\nRuntimeError: CUDA out of memory", 1, id="an error after a rank's bar"),
    pytest.param("[rank1]: Traceback (most recent call last):\nRuntimeError: CUDA out of memory", 2, id="an error below its traceback"),
    pytest.param("[Rank 1] step=19, loss 2.1\n  3%|#   | 3/90 [00:09<04:21, 3.00s/it]", 1, id="a bar after a line of a rank's metrics"),
    pytest.param("[rank1]: loss 2.1\nepoch done\n[rank0]: loss 2.2", 1, id="a line of another writer after a rank's own"),
    pytest.param("[rank1]: " + "x" * 91 + "\nepoch done\nmore\n[rank0]: loss", 1, id="one wide line is chance"),
    pytest.param("(EngineCore pid=7) " + "x" * 101 + "\nrest one\n(EngineCore pid=7) " + "y" * 101 + "\nrest two\n[rank0]: loss", 4, id="two long lines of one writer, each cut once"),
])  # fmt: skip
def test_bare_lines_belong_to_the_writer_whose_message_goes_on(raw: str, wanted: int) -> None:
    first = split_flows(raw.encode(), 0)[0]
    assert len(first.lines) == wanted


def test_lines_that_all_name_their_worker_stay_with_it() -> None:
    raw = "(Worker_TP0 pid=7) INFO loading\n(Worker_TP0 pid=7)   took 3 s\n(Worker_TP1 pid=8)   took 4 s\n(Worker_TP1 pid=8)   INFO done"
    assert [flow.text.count("\n") for flow in split_flows(raw.encode(), 0)] == [2, 2]


def test_offsets_are_those_of_the_raw_lines() -> None:
    raw = "显存\r\n[rank1]: x\x1b[0m\n\nlast".encode()
    lines = [line for line in clean_lines(raw, 1000) if line.text]
    assert [raw[line.offset - 1000 :].split(b"\n")[0][:6] for line in lines] == ["显存".encode(), b"[rank1", b"last"]


def test_a_line_without_an_end_is_cut_into_pieces_that_lose_nothing() -> None:
    raw = b"x" * 100_000
    lines = clean_lines(raw, 0)
    assert "".join(line.text for line in lines).encode() == raw and max(len(line.text) for line in lines) <= 1 << 14


def test_the_flow_knows_the_line_of_each_character() -> None:
    for flow in split_flows(b"[rank1]: a\nplain text\n[rank1]: bcd\n", 5):
        for line in flow.lines:
            at = flow.text.index(line.text)
            assert {flow.line_at(at + step) for step in range(len(line.text))} == {line}


JUNK = st.lists(
    st.one_of(
        st.sampled_from([
            "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x9b", "\x07", "\x9c", "[", "0", ";", "3", "m", "[0m", "[1;31m", "\x85", "\x0c", "\x0b", "\x1c", "\u2028",
            "&lt;", "&amp;", "&#27;", "<", ">", "<br>", "</b>", "\\", "\\n", "\\e[", "\\x1b[0m", "u001b", "\ufeff", "\u202e", "\n", "\r", "\0", "\x7f", "a", " ", "[rank1]: ",
        ]),
        st.text(max_size=4),
    ),
    max_size=25,
).map("".join)  # fmt: skip


@settings(max_examples=400)
@given(st.one_of(JUNK.map(lambda text: text.encode("utf-8", "surrogatepass")), st.binary(max_size=200)))
def test_no_control_character_is_left(raw: bytes) -> None:
    for flow in split_flows(raw, 0):
        left = {char for char in flow.text if unicodedata.category(char) == "Cc" and char not in "\n\t"}
        assert left == set()


DECORATIONS = st.lists(
    st.sampled_from(
        ["[rank3]: ", "> ", "2026-01-05 10:00:01 ", "trainer-0  | ", "(pid=9) ", "\x1b[0m", "\x1b]0;t\x07", "\ufeff", "stderr: "]
    ),
    max_size=6,
)
PRINTED = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="&<>\\[\x7f", exclude_categories=["Cc"]), max_size=80
)


@given(DECORATIONS, PRINTED)
def test_cleaning_what_was_cleaned_changes_nothing(decorations: list[str], printed: str) -> None:
    once = texts("".join(decorations) + "Error: " + printed)
    assert texts("\n".join(once)) == once


@given(
    st.lists(
        st.tuples(st.integers(0, len(MESSAGE)), st.sampled_from(["\x1b[31m", "\x1b[0m", "\x1b[K", "\u200b", "\x00", "\x1b]0;t\x07"])),
        max_size=6,
    )
)
def test_what_a_terminal_does_not_show_does_not_part_a_message(inserted: list[tuple[int, str]]) -> None:
    raw = MESSAGE
    for at, escape in sorted(inserted, reverse=True):
        raw = raw[:at] + escape + raw[at:]
    assert texts(raw) == [MESSAGE]


@given(st.binary(max_size=400), st.integers(0, 1 << 40))
def test_offsets_lie_inside_the_window_and_do_not_fall(raw: bytes, base: int) -> None:
    offsets = [line.offset for line in clean_lines(raw, base)]
    assert offsets == sorted(offsets)
    assert all(base <= offset <= base + len(raw) for offset in offsets)


def test_two_lines_of_a_traceback_of_one_width_are_not_one_line() -> None:
    lines = ['  File "/opt/env/graph.py", line 744, in _engine_run', "    return engine.run(  # the C++ engine, backward one", MESSAGE]
    width = max(map(len, lines[:2]))
    raw = "\n".join([line.ljust(width, "x") for line in lines[:2]] + lines[2:])
    assert [flow.text.count("\n") for flow in split_flows(raw.encode(), 0)] == [3]


PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=80)


@given(st.lists(st.tuples(DECORATIONS, PRINTABLE), max_size=6))
def test_a_window_without_odd_bytes_is_read_as_any_other(lines: list[tuple[list[str], str]]) -> None:
    plain = ["".join(decorations) + printed for decorations, printed in lines]
    text = "\n".join(["first", *plain])
    assert texts(f"{text}\nan odd \x00line")[:-1] == texts(text)
