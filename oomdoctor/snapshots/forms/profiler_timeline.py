"""The profiler's memory timelines: `export_memory_timeline` to .json and .raw.json (torch/profiler/_memory_profiler.py).

The first is `[times, sizes]`, each of the sizes 9 numbers: a 0, then the live bytes of each category. The second is a list of
`[time, action, bytes, category]`, times in nanoseconds and -1 for what was there before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from oomdoctor.case.gap import Gap
from oomdoctor.snapshots.forms.ledger import Ledger
from oomdoctor.snapshots.opcodes import NotReadable
from oomdoctor.snapshots.recording import Device, Recording, profiled
from oomdoctor.snapshots.stacks import NO_STACK, Stacks

_CATEGORIES = ("parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail", "unknown")
_STACKS = Stacks()
_BY_CATEGORY = [NO_STACK, *(_STACKS.add("", category=profiled(name)) for name in _CATEGORIES)]
"""The number of the stack that stands for each, behind one for none."""
_PREEXISTING, _CREATE, _VERSION, _DESTROY = 1, 2, 3, 4
_MOST = 1 << 62
_LACKS = Gap(
    "the requesting lines, segments and failed requests",
    "a profiler memory timeline contains only bytes by category",
    'torch.cuda.memory._record_memory_history(stacks="python"), then torch.cuda.memory._dump_snapshot("memory.pickle")',
)


def read_timeline(value: Sequence[object]) -> Recording | None:
    """Return what a timeline holds; None where the value is none."""
    if len(value) == 2 and _is_series(value[0], value[1]):
        return _recorded(_series(value[0], value[1]), 0)  # type: ignore[arg-type]
    if value and all(isinstance(row, list) and len(row) == 4 for row in value[:8]):
        return _raw(value)
    return None


def _recorded(device: Device, unreadable: int) -> Recording:
    return Recording("timeline", None, (device,), _STACKS, (), {}, unreadable, gaps=(_LACKS,))


def _is_series(times: object, sizes: object) -> bool:
    if not isinstance(times, list) or not isinstance(sizes, list) or len(times) != len(sizes):
        return False
    return all(isinstance(row, list) for row in sizes[:8])


def _series(times: Sequence[object], sizes: Sequence[object]) -> Device:
    """Make blocks of the bytes of each category: one that grows gets a block more, one that shrinks its last ones less."""
    ledger, next_address = Ledger(), 1
    held: list[list[tuple[int, int]]] = [[] for _ in _BY_CATEGORY]
    totals = [0] * len(_BY_CATEGORY)
    for row, (time, amounts) in enumerate(zip(times, sizes, strict=True)):
        if not isinstance(amounts, list):
            raise NotReadable("it is not a timeline: a row of sizes is invalid")
        at = time if type(time) is int and 0 <= time < _MOST else 0
        missing = [0, *(_bytes(amount) - totals[category] for category, amount in enumerate(amounts[1 : len(_BY_CATEGORY)], 1))]
        for category, change in enumerate(missing):
            while missing[category] < 0 and held[category]:
                address, size = held[category].pop()
                ledger.free(address, size, time=at, row=row)
                missing[category] += size
            totals[category] += change
        for category, size in enumerate(missing):
            if size > 0:
                ledger.allocate(next_address, size, stack=_BY_CATEGORY[category], time=at, row=row)
                held[category].append((next_address, size))
                next_address += 1
    return ledger.device(0)


def _raw(rows: Sequence[object]) -> Recording:
    ledger, unreadable, next_address = Ledger(), 0, 1
    held: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, values in enumerate(rows):
        numbers = values if isinstance(values, list) and len(values) == 4 and all(type(number) is int for number in values) else None
        if numbers is None or not abs(numbers[2]) < _MOST or not 0 <= numbers[3] < len(_CATEGORIES):
            unreadable += 1
            continue
        time, action, size, category = max(0, numbers[0]) // 1000, numbers[1], abs(numbers[2]), numbers[3] + 1
        if action == _DESTROY or (action == _VERSION and numbers[2] < 0):
            addresses = held[category, size]
            address = addresses.pop() if addresses else next_address
            next_address += not addresses
            ledger.free(address, size, time=time, row=row)
        elif action in (_PREEXISTING, _CREATE, _VERSION):
            ledger.allocate(next_address, size, stack=_BY_CATEGORY[category], time=time, row=row)
            held[category, size].append(next_address)
            next_address += 1
        else:
            unreadable += 1
    if unreadable == len(rows):
        raise NotReadable("it is a list of rows, but none of them belongs to a memory timeline")
    return _recorded(ledger.device(0), unreadable)


def _bytes(amount: object) -> int:
    return amount if type(amount) is int and 0 <= amount < _MOST else 0
