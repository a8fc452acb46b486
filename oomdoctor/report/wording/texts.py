"""The words of the report in English and Chinese, by key; whoever wants to change a wording comes here.

A key that is not in a table falls back to its `generic` entry, or to the key itself where that is a word of the programs.
"""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.text import Text
from oomdoctor.report.wording.wording import Wording

REASONS: Mapping[str, Text] = {
    "device-oom": Text("{sure}{memory} ran out{place}{phase}{figures}.", "{place}{phase}{sure}{memory}不足{figures}。"),
    "masked-device-oom": Text(
        "{sure}{memory} ran out{place}{phase}; the message names something else and hides it{figures}.",
        "{place}{phase}{sure}{memory}不足，只是报错写的是别的，把它掩盖了{figures}。",
    ),
    "host-oom": Text(
        "{sure}the host ran out of memory (RAM){place}{phase}{figures}.", "{place}{phase}{sure}主机内存（RAM）不足{figures}。"
    ),
    "host-oom-at-a-limit": Text(
        "{sure}the memory limit of the container or job was reached{place}{phase}{figures}.",
        "{place}{phase}{sure}达到了容器或作业的内存限额{figures}。",
    ),
    "host-oom-at-a-set-limit": Text(
        "{sure}a limit set for the process denied it memory{place}{phase}{figures}.",
        "{place}{phase}{sure}进程申请内存时被为它设置的限额拒绝{figures}。",
    ),
    "host-oom-with-room": Text(
        "{sure}a host memory request was refused{place}{phase}{figures}, although the host had memory free.",
        "{place}{phase}{sure}主机内存的一次申请被拒绝{figures}，而主机当时还有空余。",
    ),
    "shm-oom": Text(
        "{sure}shared memory (/dev/shm) ran out{place}{phase}{figures}.", "{place}{phase}{sure}共享内存（/dev/shm）不足{figures}。"
    ),
    "kernel-resource": Text(
        "Not a memory failure: one kernel needs more on-chip memory than the card has{figures}.",
        "不是显存或内存不足：某个 kernel 需要的片上内存超过了显卡的上限{figures}。",
    ),
    "look-alike": Text("Not a memory failure{first}: {what}.", "不是内存或显存不足{first}：{what}。"),
    "consequence": Text(
        "Not decided yet: the input shows only follow-on errors, not what failed first.",
        "还不能判断：读到的内容里只有后续的报错，最先出错的地方不在其中。",
    ),
    "killed": Text(
        "The host possibly killed it for memory{place}{phase}: the process ended by SIGKILL{code}, and the log does not say why.",
        "{place}{phase}可能因主机内存不足被系统杀掉：进程以 SIGKILL{code}结束，日志里没有写明原因。",
    ),
    "end-unseen": Text(
        "Not decided yet: the end was not recorded; the node or the whole job disappeared at once.",
        "还不能判断：没有进程看到结尾，节点或整个作业一下子就没了。",
    ),
    "output-unseen": Text(
        "Not decided yet: the command ended with {end}, and its output was not captured.",
        "还不能判断：命令以{end}结束，但没有看到它的输出。",
    ),
    "survived": Text(
        "No failure: {memory} ran short{times}{place}{phase}{figures}, and the program handled it and continued.",
        "没有失败：{place}{phase}{memory}{times}不足{figures}，程序自行处理后继续运行了。",
    ),
    "pressure": Text(
        "No failure: {memory} was tight{place}{phase}, but nothing in the input failed because of it.",
        "没有失败：{place}{phase}{memory}紧张，但读到的内容里没有因此出错的地方。",
    ),
    "none": Text("No failure found in the input ({read}).", "在读到的内容中没有发现失败（{read}）。"),
    "other-error": Text(
        "Not a memory failure{first}: {error}",
        "不是内存或显存不足{first}：{error}",
    ),
    "unknown-memory-error": Text(
        "Memory possibly ran out: the input ends with an error that mentions memory but matches no rule: {error}",
        "可能是内存或显存不足：读到的内容以一条提到内存的错误结束，但没有规则认识它：{error}",
    ),
    "not-read-whole": Text(
        "Not decided: the input ({read}) shows no memory failure, but not all of it could be read. {unread}",
        "还不能判断：读到的部分（{read}）没有内存或显存不足，但有内容没能读出来。{unread}",
    ),
    "several-runs": Text("{runs} found: {counts}.", "共分出 {runs}：{counts}。"),
    "told": Text(
        "{sure}{memory} ran out{phase}: the text says so, but contains no message from a program.",
        "{phase}{sure}{memory}不足：文中这样说，但没有贴出程序的报错。",
    ),
    "nothing-read": Text("Nothing could be read, so there is nothing to report yet.", "没有读到任何内容，暂时无法判断。"),
    "generic-yes": Text("{sure}memory ran out{place}{phase}{figures}.", "{place}{phase}{sure}内存或显存不足{figures}。"),
    "generic-no": Text("Not a memory failure.", "不是内存或显存不足。"),
    "generic-possible": Text(
        "Memory possibly ran out{place}{phase}; the log alone does not settle it.", "{place}{phase}可能内存或显存不足；只看日志还不能确定。"
    ),
}

HOST_CAUSES: Mapping[str, str] = {"container-memory-limit": "host-oom-at-a-limit", "memory-limit-set": "host-oom-at-a-set-limit"}
"""What the headline says instead of the host, by the cause that the first finding names."""

SETTLE: Mapping[str, Text] = {
    "unknown-error": Text(
        "check the free memory of card and host at that moment (`nvidia-smi`, `free -h`), and look above this error for the first one",
        "查看当时显卡和主机的空闲内存（`nvidia-smi`、`free -h`），并往上找第一条报错",
    ),
    "sigkill": Text(
        "check the kernel log for that minute: `dmesg -T | grep -iE 'killed process|oom'`; if there is nothing, a person, a "
        "scheduler or a time limit sent SIGKILL",
        "查看当时的内核日志：`dmesg -T | grep -iE 'killed process|oom'`；如果没有记录，那就是有人、调度器或时间限制发出了 SIGKILL",
    ),
    "sigkill-slurm": Text(
        "ask Slurm how the job ended: `sacct -j JOB -o JobID,State,ExitCode,MaxRSS,ReqMem`; OUT_OF_MEMORY means its memory "
        "limit, TIMEOUT and CANCELLED do not",
        "向 Slurm 查作业怎样结束：`sacct -j JOB -o JobID,State,ExitCode,MaxRSS,ReqMem`；OUT_OF_MEMORY 是内存限额，"
        "TIMEOUT、CANCELLED 则不是",
    ),
    "sigkill-k8s": Text(
        "ask Kubernetes how the container ended: `kubectl describe pod POD`; OOMKilled means its memory limit",
        "向 Kubernetes 查容器怎样结束：`kubectl describe pod POD`；OOMKilled 就是内存限额",
    ),
    "sigkill-docker": Text(
        "ask Docker how the container ended: `docker inspect -f '{{.State.OOMKilled}}' CONTAINER`; true means its memory limit",
        "向 Docker 查容器怎样结束：`docker inspect -f '{{.State.OOMKilled}}' CONTAINER`；true 就是内存限额",
    ),
    "library-not-initialized": Text(
        "run `nvidia-smi` at that moment (is the card nearly full?), then run again with a much smaller batch: if it passes, "
        "it was memory. If it still fails, compare the driver with the CUDA version of the build, and look further up for an "
        "index error (`device-side assert`), which can end the same way",
        "在出错的时刻看 `nvidia-smi`（显存是否快满了），再用小得多的 batch 跑一次：能跑通就是显存不足。"
        "仍然失败的话，核对驱动与 CUDA 版本是否匹配，并往前找有没有索引越界（`device-side assert`），它也会以这样的报错收场",
    ),
    "nccl-debug": Text(
        "run again with `NCCL_DEBUG=INFO`: the lines before the error name the call that failed, and whether it was an allocation",
        "设置 `NCCL_DEBUG=INFO` 再跑一次：报错之前的几行会写明失败的是哪个调用，是不是分配内存",
    ),
    "first-rank-log": Text(
        "read the log of the rank that failed first: the launcher and the other ranks only report that it was gone. `oomdoctor "
        "diagnose LOGDIR` reads the logs of all ranks together",
        "看最先出错的那个 rank 的日志：启动器和其他 rank 只是报告它已经退出。`oomdoctor diagnose 日志目录` 会把所有 rank 的日志一起读",
    ),
    "first-rank-log-known": Text(
        "read the log of rank {rank}, which failed first: the launcher and the other ranks only report that it was gone. "
        "`oomdoctor diagnose LOGDIR` reads the logs of all ranks together",
        "看 rank {rank} 的日志，它最先出错：启动器和其他 rank 只是报告它已经退出。`oomdoctor diagnose 日志目录` 会把所有 rank 的日志一起读",
    ),
    "unseen-end": Text(
        "check what the scheduler and the kernel of that node logged in that minute: `sacct -j JOB -o State,ExitCode,MaxRSS`, `dmesg -T`",
        "看那一分钟调度系统和该节点内核的记录：`sacct -j 作业号 -o State,ExitCode,MaxRSS`、`dmesg -T`",
    ),
    "unseen-output": Text(
        "run it again with its output in a file: `oomdoctor run --log FILE -- COMMAND 2>&1 | tee FILE`, or `oomdoctor run -- "
        "COMMAND > FILE 2>&1`",
        "再运行一次，并把输出存成文件：`oomdoctor run --log 文件 -- 命令 2>&1 | tee 文件`，或 `oomdoctor run -- 命令 > 文件 2>&1`",
    ),
    "unread-rest": Text(
        "get the missing part: copy the file again, or unpack it where it was written, and diagnose the whole file",
        "补上没读到的部分（重新拷贝文件，或在写出它的机器上解压），再诊断一次",
    ),
    "survived-later": Text(
        "check whether the run continued after this: a later step, a saved checkpoint or exit code 0 means it was handled",
        "看程序之后有没有继续：后面还有训练步、保存了检查点、或退出码为 0，就说明已经处理好了",
    ),
    "generic": Text(
        "keep the whole log, from the start and of every rank, and diagnose it again; on the machine, `nvidia-smi` and `free "
        "-h` during the run show which memory fills up",
        "保留完整的日志（从头开始、所有 rank）再诊断一次；运行时在机器上看 `nvidia-smi` 和 `free -h`，就知道是哪种内存在涨",
    ),
}


PHASES: Mapping[str, Text] = {
    "startup": Text("during start-up", "在启动时"),
    "model-load": Text("while loading the model", "在加载模型时"),
    "training": Text("during training", "在训练时"),
    "forward": Text("during the forward pass", "在前向计算时"),
    "backward": Text("during the backward pass", "在反向传播时"),
    "optimizer-step": Text("during the optimizer step", "在优化器更新时"),
    "data-loading": Text("while loading data", "在读取数据时"),
    "evaluation": Text("during evaluation", "在评估时"),
    "checkpoint-save": Text("while saving a checkpoint", "在保存检查点时"),
    "checkpoint-load": Text("while loading a checkpoint", "在加载检查点时"),
    "generation": Text("during generation", "在生成时"),
    "inference": Text("during inference", "在推理时"),
    "kv-cache-allocation": Text("while allocating the KV cache", "在分配 KV 缓存时"),
    "graph-capture": Text("while capturing CUDA graphs", "在捕获 CUDA graph 时"),
    "profiling": Text("during the profiling run", "在显存预跑（profiling）时"),
    "compile": Text("while compiling", "在编译时"),
    "generic": Text("during {phase}", "在 {phase} 阶段"),
}

FIGURES: Mapping[str, Text] = {
    "requested_bytes": Text("Requested", "申请"),
    "free_bytes": Text("Free", "空闲"),
    "total_bytes": Text("Card total", "整卡"),
    "shm_total_bytes": Text("/dev/shm total", "/dev/shm 总量"),
    "pool_total_bytes": Text("Pool total", "内存池总量"),
    "limit_bytes": Text("Limit", "设定的上限"),
    "allocated_bytes": Text("PyTorch allocated", "PyTorch 已分配"),
    "active_bytes": Text("Active", "正在使用"),
    "private_pools_bytes": Text("in private pools", "其中私有池"),
    "reserved_bytes": Text("PyTorch reserved", "PyTorch 共保留"),
    "reserved_unallocated_bytes": Text("Reserved, unused", "已保留未使用"),
    "cached_bytes": Text("Cached, unused", "已缓存未使用"),
    "process_bytes": Text("This process", "本进程"),
    "other_process_bytes": Text("Other processes", "其他进程"),
    "other_allocations_bytes": Text("Outside PyTorch", "PyTorch 之外"),
    "anon_rss_bytes": Text("In RAM (anon-rss)", "占用内存（anon-rss）"),
    "rss_bytes": Text("In RAM (RSS)", "占用内存（RSS）"),
    "total_vm_bytes": Text("Address space (total-vm)", "地址空间（total-vm）"),
    "host_used_bytes": Text("RAM used", "已用内存"),
    "host_available_bytes": Text("RAM available", "可用内存"),
    "host_total_bytes": Text("Total RAM", "总内存"),
    "host_required_bytes": Text("RAM needed", "需要的内存"),
    "used_bytes": Text("Used", "已用"),
    "others_bytes": Text("Used by others", "其他程序占用"),
    "shared_mem_required_bytes": Text("Needed by the kernel", "kernel 需要"),
    "shared_mem_limit_bytes": Text("Card limit", "显卡上限"),
    "activation_bytes": Text("Activations", "激活值"),
    "activation_peak_bytes": Text("Peak activations", "激活值峰值"),
    "address_space_bytes": Text("Address space", "地址空间"),
    "allocatable_bytes": Text("Allocatable", "可分配"),
    "arena_total_bytes": Text("Arena total", "内存池总量"),
    "argument_bytes": Text("Program arguments", "程序的输入"),
    "available_bytes": Text("Available", "可用"),
    "budget_bytes": Text("Budget", "预算"),
    "buffer_bytes": Text("Buffer", "缓冲区"),
    "constant_bytes": Text("Constants", "常量"),
    "cuda_graph_bytes": Text("CUDA graphs", "CUDA 图"),
    "docker_limit_bytes": Text("Container limit", "容器上限"),
    "encoder_bytes": Text("Encoder", "编码器"),
    "estimated_total_bytes": Text("Estimated total", "估计总量"),
    "exceeded_bytes": Text("Excess", "超出"),
    "expected_bytes": Text("Expected", "预期"),
    "file_rss_bytes": Text("Files in RAM (file-rss)", "文件映射占用（file-rss）"),
    "fragmentation_bytes": Text("Lost to fragmentation", "碎片损失"),
    "got_bytes": Text("Got", "得到"),
    "granted_bytes": Text("Granted", "已批准"),
    "had_bytes": Text("Had", "原有"),
    "held_by_events_bytes": Text("Held until events complete", "等待事件释放"),
    "held_bytes": Text("Held", "占用"),
    "host_free_bytes": Text("Free RAM", "空闲内存"),
    "host_limit_bytes": Text("RAM limit", "内存上限"),
    "in_use_bytes": Text("In use", "在用"),
    "initial_free_bytes": Text("Free at the start", "启动时空闲"),
    "initial_usage_bytes": Text("Used at the start", "启动时已用"),
    "java_heap_bytes": Text("Java heap", "Java 堆"),
    "kernel_gtt_bytes": Text("Driver, in RAM (GTT)", "驱动占用的内存（GTT）"),
    "kernel_vram_bytes": Text("Driver, on the card", "驱动占用的显存"),
    "kv_available_bytes": Text("Left for the KV cache", "可留给 KV 缓存"),
    "kv_bytes": Text("KV cache", "KV 缓存"),
    "kv_cache_bytes": Text("KV cache", "KV 缓存"),
    "kv_needed_bytes": Text("KV cache needed", "需要的 KV 缓存"),
    "kv_total_bytes": Text("KV cache total", "KV 缓存总量"),
    "largest_allocation_bytes": Text("Largest single allocation", "最大的单次分配"),
    "largest_buffer_bytes": Text("Largest buffer", "最大的缓冲区"),
    "largest_free_bytes": Text("Largest free block", "最大的空闲块"),
    "live_out_bytes": Text("Retained results", "保留的结果"),
    "loaded_bytes": Text("Loaded", "已载入"),
    "local_free_bytes": Text("Free on this card", "本卡空闲"),
    "max_rss_bytes": Text("Peak RAM (MaxRSS)", "内存用量峰值（MaxRSS）"),
    "mem_per_cpu_bytes": Text("RAM per CPU", "每个 CPU 的内存"),
    "memory_volume_bytes": Text("Memory volume", "内存卷"),
    "min_free_bytes": Text("Minimum kept free", "至少留空"),
    "node_heap_bytes": Text("Node.js heap", "Node.js 堆"),
    "non_torch_bytes": Text("Outside PyTorch", "PyTorch 之外"),
    "offloaded_bytes": Text("Offloaded", "已卸载"),
    "parameter_bytes": Text("Parameters", "参数"),
    "partial_bytes": Text("Partial", "部分"),
    "peak_active_bytes": Text("Peak active", "在用峰值"),
    "peak_allocated_bytes": Text("PyTorch peak allocated", "PyTorch 分配峰值"),
    "peak_bytes": Text("Peak", "峰值"),
    "peak_delta_bytes": Text("Peak over start", "高于起点的峰值"),
    "peak_reserved_bytes": Text("PyTorch peak reserved", "PyTorch 保留峰值"),
    "peak_used_bytes": Text("Peak used", "已用峰值"),
    "pgtables_bytes": Text("Page tables", "页表"),
    "planned_bytes": Text("Planned", "计划"),
    "program_bytes": Text("The program itself", "程序本身"),
    "region_bytes": Text("Region", "区域"),
    "request_bytes": Text("Job request", "作业的申请量"),
    "required_bytes": Text("Needed", "需要"),
    "reservable_bytes": Text("Reservable", "可保留"),
    "sparsecore_bytes": Text("SparseCore", "SparseCore"),
    "tensorcore_bytes": Text("TensorCore", "TensorCore"),
    "segment_bytes": Text("Segment", "内存段"),
    "segment_reserve_bytes": Text("Reserved for segments", "为内存段保留"),
    "shmem_rss_bytes": Text("Shared memory (shmem-rss)", "共享内存（shmem-rss）"),
    "spilled_bytes": Text("Spilled to RAM", "溢出到内存"),
    "swap_free_bytes": Text("Swap free", "空闲交换空间"),
    "temp_bytes": Text("Temporary space", "临时空间"),
    "threshold_bytes": Text("Threshold", "阈值"),
    "top_consumer_bytes": Text("Largest consumer", "占用最多者"),
    "top_process_bytes": Text("Largest process", "占用最多的进程"),
    "total_allocated_bytes": Text("Total allocated", "已分配总量"),
    "usable_bytes": Text("Usable", "可用"),
    "usage_after_bytes": Text("Used after", "之后已用"),
    "wanted_bytes": Text("Requested", "想要"),
    "weights_and_optimizer_bytes": Text("Weights and optimizer", "权重与优化器"),
    "weights_bytes": Text("Weights", "权重"),
}

PARTS: Mapping[str, Text] = {
    "live tensors": Text("live tensors", "在用的张量"),
    "other live tensors": Text("other live tensors", "其他在用的张量"),
    "weights": Text("weights", "权重"),
    "KV cache": Text("KV cache", "KV 缓存"),
    "activations": Text("activations of the profiling run", "试跑时的激活值"),
    "left to others by the share": Text("not in the server's share", "不在服务份额之内"),
    "allocated by PyTorch": Text("PyTorch allocated", "PyTorch 已分配"),
    "in private pools": Text("private pools", "私有池"),
    "private pools": Text("private pools", "私有池"),
    "reserved but unallocated": Text("reserved, unused", "已保留未使用"),
    "reserved but unused": Text("reserved, unused", "已保留未使用"),
    "cached": Text("cached, unused", "已缓存未使用"),
    "non-PyTorch": Text("outside PyTorch", "PyTorch 之外"),
    "this process outside PyTorch": Text("outside PyTorch", "PyTorch 之外"),
    "other processes": Text("other processes", "其他进程"),
    "unaccounted": Text("unaccounted for", "去向不明"),
    "free": Text("free", "空闲"),
}


GAPS: dict[str, str] = {
    "no such file": "没有这个文件",
    "nothing in it describes a machine": "里面没有描述机器的内容",
    "permission denied": "没有读取权限",
    "a loop of symbolic links": "符号链接成环",
    "a folder": "这是一个文件夹",
    "a device, not a log": "这是设备，不是日志",
    "no process writes to this pipe": "没有程序向这个管道写入",
    "a config that another one names": "另一个配置引用的文件",
    "give this file too": "请把这个文件也一并给出",
    "a binary file, not a config": "这是二进制文件，不是配置",
    "not a file": "这不是普通文件",
    "a zip archive": "这是 zip 压缩包",
    "not text": "这不是文本",
    "zstandard is not installed": "未安装 zstandard",
    "check the path and its permissions": "请检查路径和权限",
    "give the log file itself, or pipe it in with -": "请直接给出日志文件，或用 - 从管道读入",
    "start the writer first, or use -": "请先启动写入方，或改用 -",
    "unpack it and give the folder": "请先解压，再给出文件夹",
}
"""Chinese for what a gap can say; other reasons come from the system and are shown as they are."""


def gap_text(text: str, wording: Wording) -> str:
    """Return a gap's reason or remedy in the language of the report."""
    return GAPS.get(text, text) if wording.is_chinese else text
