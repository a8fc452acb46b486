"""The words for what a triage tells."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.text import Text
from oomdoctor.report.wording.wording import Counted

TITLE = Text("oomdoctor {version} · triage", "oomdoctor {version} · 批量诊断")
JOBS = Counted("{n:,} job", "{n:,} jobs", "{n:,} 个作业")
IN_FILES = Counted("in {n:,} file", "in {n:,} files", "{n:,} 个文件")
DAYS = Counted("{n} day", "{n} days", "{n} 天")
DIED = Counted(
    "{n:,} job ({share}) ran out of memory", "{n:,} jobs ({share}) ran out of memory", "{n:,} 个作业（{share}）因内存或显存不足而失败"
)
NONE_READ = Text("None of them could be read, so there is nothing to report yet", "日志都读不出，还无法判断")
NONE_ENDED = Text("No job ended in that period", "这段时间没有作业结束")
NONE_DIED = Text("No job ran out of memory", "没有作业因内存或显存不足而失败")
IN_GROUPS = Counted("in {n} group", "in {n} groups", "分为 {n} 组")
HOURS = Text("{hours:,} GPU hours lost", "损失 {hours:,} GPU 小时")
GROUPS = Text("Same failures", "同类失败")
GROUP_JOBS = Counted("{n:,} job", "{n:,} jobs", "{n:,} 个作业")
MORE_GROUPS = Counted("{n:,} more group with {jobs:,} jobs", "{n:,} more groups with {jobs:,} jobs", "另有 {n:,} 组，共 {jobs:,} 个作业")
ALSO = Text("Also", "另外")
POSSIBLE = Counted("{n:,} job may have", "{n:,} jobs may have", "{n:,} 个作业可能是")
POSSIBLE_NEXT = Text("Scheduler records settle some of them: --records FILE", "调度器的记录可以确定其中一些：--records FILE")
SURVIVED = Counted("{n:,} job ran short but continued", "{n:,} jobs ran short but continued", "{n:,} 个作业一度不足，但继续运行了")
UNREAD = Counted("nothing could be read for {n:,} job", "nothing could be read for {n:,} jobs", "{n:,} 个作业的日志完全读不出")
UNREAD_FILES = Counted(
    "{n:,} file could not be read (`unreadable` in its row says why)",
    "{n:,} files could not be read (`unreadable` in their rows says why)",
    "{n:,} 个文件读不出（原因见各行的 `unreadable`）",
)
BY_RECORDS = Counted(
    "{n:,} job only in the scheduler's records", "{n:,} jobs only in the scheduler's records", "{n:,} 个作业只有调度器的记录能看出"
)
WITHOUT_LOG = Counted("no log for {n:,} of them", "no log for {n:,} of them", "其中 {n:,} 个没有日志")
BY_FILE_DATE = Counted(
    "{n:,} job has no date in its log; its file's date is used",
    "{n:,} jobs have no date in their logs; the file dates are used",
    "{n:,} 个作业的日期取自文件时间：日志中没有时间",
)
NO_ZONE = Counted(
    "the log of {n:,} job has no time zone and was read as UTC",
    "the logs of {n:,} jobs have no time zone and were read as UTC",
    "{n:,} 个作业的日志没有写时区，按 UTC 计",
)
ENDED_SINCE = Text("Ended since {since} UTC", "自 {since}（UTC）起结束的作业")
ENDED_BEFORE = Text("Ended before {until} UTC", "{until}（UTC）之前结束的作业")
ENDED_BETWEEN = Text("Ended between {since} and {until} UTC", "{since} 至 {until}（UTC）结束的作业")
CONTRADICTED = Counted("the record of {n:,} job disagrees", "the records of {n:,} jobs disagree", "{n:,} 个作业的调度器记录与日志不符")
NODES = Text("Nodes with more than their share of failures", "失败偏多的节点")
NODE = Text(
    "{failed} of {jobs} jobs ran out of memory; {expected} expected",
    "{jobs} 个作业中 {failed} 个因内存失败，通常约 {expected} 个",
)
USERS = Counted("{n} user", "{n} users", "{n} 个用户")
NAMES_WITHOUT_USER = Counted("{n} name without a known user", "{n} names without a known user", "{n} 个作业名，用户不明")
NEW = Text("new", "新出现")
NEWS = Counted("{n} new group of memory failures", "{n} new groups of memory failures", "新出现 {n} 组内存或显存失败")
BACK = Text("came back", "再次出现")
SINCE = Text("since {day}", "始于 {day}")
BEGAN = Text(
    "Group {n} began only on {day} and accounts for {jobs} of {all} failures: what changed then?",
    "第 {n} 组从 {day} 才开始出现，占 {all} 次失败中的 {jobs} 次：当时改了什么？",
)
ON = Text("on {day}", "{day}")
FROM_TO = Text("{first} to {last}", "{first} 至 {last}")
NEXT = Text(
    "Next: `oomdoctor triage show {n}` for a group, `--output rows.jsonl` for all rows.",
    "接下来：`oomdoctor triage show {n}` 看一组的详情，`--output rows.jsonl` 导出全部结果。",
)
MEMORY: Mapping[str, Text] = {
    "device-oom": Text("GPU memory", "显存不足"),
    "masked-device-oom": Text("GPU memory, hidden by another message", "显存不足（报错写的是别的）"),
    "host-oom": Text("host memory", "主机内存不足"),
    "shm-oom": Text("shared memory", "共享内存不足"),
}
HELD = Text("other processes were using the card", "显卡被其他进程占用")
ASKED = Text("{size} requested", "申请 {size}")
FREE = Text("{size} free", "空闲 {size}")
OF = Text("of {size}", "共 {size}")
ONLY_RECORD = Text("{source} reports out of memory; no log", "{source} 记录为内存不足；没有日志")
USERS_MORE = Text("{names} and {n} more", "{names} 等（另有 {n} 个）")
RETRY: Mapping[str, Text] = {
    "stop": Text("do not restart as is", "不改设置就不要重启"),
    "smaller": Text("needs less at once", "需要减小单步用量"),
    "more-memory": Text("needs more host memory or fewer workers", "需要更多主机内存，或减少 worker"),
    "other-node": Text("check the node, run elsewhere", "检查该节点，换一台运行"),
    "retry": Text("a restart may work", "重启可能就好"),
}
LARGER_SHM = Text("needs a larger /dev/shm or fewer workers", "需要更大的 /dev/shm，或减少 worker")
COMES_AGAIN = Text("it will recur: a restart alone is not enough", "反复出现，只重启解决不了")
NOT_MEMORY = Text("no memory failure in the log", "日志中没有内存或显存不足")
NOTHING_READ = Text("none of the log could be read", "日志完全读不出")
PERHAPS = Text("possible; the log does not settle it", "可能是，日志不足以确定")
BY_DAY = Text("Jobs that ran out of memory, by day", "每天因内存或显存不足而失败的作业")
BY_USER = Text("Users whose jobs ran out of memory", "作业因内存或显存不足而失败的用户")
USER = Text("user", "用户")
UNKNOWN_USER = Text("unknown", "不明")
FAILED = Text("out of memory", "失败")
ALL_JOBS = Text("total jobs", "作业总数")
SHARE = Text("share", "占比")
USER_GROUPS = Text("groups", "组数")
GPU_HOURS = Text("GPU hours", "GPU 小时")
BY_NODE = Text("Nodes with the most failures, by day", "失败最多的节点，按天")
SHOWN_KINDS = Text("Show", "只看")
ALL_KINDS = Text("all", "全部")
KIND_JOBS = Text("{kind} ({n:,})", "{kind}（{n:,}）")
ALL_GROUPS = Counted("{n:,} group, largest first", "{n:,} groups, largest first", "{n:,} 组，从大到小")
CAUSE = Text("cause", "原因")
GROUP = Text("Group {n}: {what}", "第 {n} 组：{what}")
OF_TRIAGE = Text("From the triage that ended at {time} UTC, stored in {store}", "来自 {time}（UTC）结束的批量诊断，保存在 {store}")
WHO = Text("who", "用户")
NAMES = Text("what", "作业名")
WHERE = Text("where", "节点")
WHEN = Text("when", "时间")
COST = Text("cost", "代价")
RECOVERED = Counted("{n} recovered on a later start", "{n} recovered on a later start", "{n} 个在后来的重启中恢复")
THE_JOBS = Text("Its jobs", "包含的作业")
MORE_JOBS = Counted("{n:,} more job", "{n:,} more jobs", "另有 {n:,} 个作业")
IN_FULL = Text("One of them in full", "其中一个的完整诊断")
GONE = Text("Its log no longer exists, or is inside another file; the message was:", "它的日志已不在，或位于其他文件之中；当时的报错是：")
MESSAGE = Text("To the user", "给用户的消息")
MESSAGE_ALL = Text("To the users and the node administrators", "给用户和节点管理员的消息")
RAN_OUT_OF: Mapping[str, Text] = {
    "device-oom": Text("GPU memory", "显存"),
    "masked-device-oom": Text("GPU memory", "显存"),
    "host-oom": Text("host memory", "主机内存"),
    "shm-oom": Text("shared memory (/dev/shm)", "共享内存（/dev/shm）"),
    "": Text("memory", "内存"),
}
RAN_OUT = Text("ran out of {memory}{phase}", "{phase}{memory}不足")
RAN_OUT_LIKELY = Text("most likely ran out of {memory}{phase}", "很可能{phase}{memory}不足")
HELLO = Counted(
    "Your job {jobs}{name} {what}.",
    "{n} of your jobs{name} {what}: {jobs}.",
    "你的 {n} 个作业{name}失败了：{what}。作业：{jobs}。",
)
HELLO_ALL = Text(
    "{n} jobs of {users} users{place} {what}: {jobs}.",
    "{users} 个用户的 {n} 个作业{place}失败了：{what}。作业：{jobs}。",
)
ASKED_ONE = Text(
    "It requested {asked} when {free} of {total} was free.",
    "它申请 {asked}，而 {total} 中只空闲 {free}。",
)
ASKED_FIRST = Text(
    "Job {job} requested {asked} when {free} of {total} was free.",
    "作业 {job} 申请 {asked}，而 {total} 中只空闲 {free}。",
)
HELD_BY_OTHERS = Text("Other processes were using memory on the card.", "显卡的一部分被其他进程占用。")
SAYS = Text('The log says: "{text}"', "日志原文：“{text}”")
TRY = Text("What helps: {fix}", "建议：{fix}")
TRY_PERHAPS = Text("What may help: {fix}", "可以试试：{fix}")
ADVICE: Mapping[str, Text] = {
    "stop": Text("As is, it will fail again: change it before you restart.", "不改设置还会失败，重启前请先修改。"),
    "smaller": Text("It must need less memory at once before a restart can work.", "需要先减小单步用量，重启才有用。"),
    "more-memory": Text("It needs more host memory or fewer workers.", "需要更多主机内存，或减少 worker。"),
    "other-node": Text("Run it on another node while this one is being checked.", "请换一个节点运行，原节点需要检查。"),
    "retry": Text("A restart may work.", "重启可能就好。"),
}
ADVICE_SHM = Text("It needs a larger /dev/shm or fewer workers.", "需要更大的 /dev/shm，或减少 worker。")
ADVICE_AGAIN = Text("It will recur: a restart alone is not enough.", "反复出现，只重启解决不了。")
SUBJECT = Counted(
    "{n} of your jobs ran out of memory ({when})",
    "{n} of your jobs ran out of memory ({when})",
    "你有 {n} 个作业因内存或显存不足而失败（{when}）",
)
JOB = Text("job {id}", "作业 {id}")
RANK = Text("rank {n}", "rank {n}")
SHARD_DONE = Text(
    "Shard {n} of {of} is done: {files:,} files, {read:,} sets of them newly read. When all are done: oomdoctor triage merge {store}",
    "分片 {n}/{of} 已完成：{files:,} 个文件，本次读取 {read:,} 组。全部完成后：oomdoctor triage merge {store}",
)
READING = Text("{done:,} of {all:,} files, {rate:,} per second", "已读 {done:,} / {all:,} 个文件，每秒 {rate:,} 个")
