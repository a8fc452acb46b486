"""Series made up for tests: shapes by a seed, and files of monitors that hold them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from oomdoctor.case.recorded.series import SeriesColumn
from oomdoctor.units import GIB, MIB

Maker = Callable[[random.Random], list[float]]


def column(levels: list[float], *, total: int = 80 * GIB, interval: float = 1.0) -> SeriesColumn:
    times = tuple(1_790_000_000.0 + at * interval for at in range(len(levels)))
    return SeriesColumn(
        source="made.csv", card="0", used=tuple(max(0, int(level)) for level in levels), times=times, clock="utc", total=total
    )


def _loading(draw: random.Random, level: float) -> list[float]:
    count = draw.randrange(3, 40)
    return [level * at / count for at in range(count)] if draw.random() < 0.5 else []


def _given_back(draw: random.Random) -> list[float]:
    return [0.0] * draw.choice([0, 0, 5, 30])


def steady(draw: random.Random) -> list[float]:
    level = draw.uniform(5, 75) * GIB
    noise = draw.choice([0, 0.001, 0.005, 0.02, 0.05]) * level
    work = [level + draw.gauss(0, noise) for _ in range(draw.randrange(20, 600))]
    return _loading(draw, level) + work + _given_back(draw)


def wandering(draw: random.Random) -> list[float]:
    level = at = draw.uniform(5, 75) * GIB
    out = []
    for _ in range(draw.randrange(50, 600)):
        at += (level - at) * 0.1 + draw.gauss(0, 0.005 * level)
        out.append(at)
    return out


def warmed_up(draw: random.Random) -> list[float]:
    level = draw.uniform(5, 40) * GIB
    return [*_loading(draw, level), *[level] * 5, *(1.5 * level + draw.gauss(0, 0.003 * level) for _ in range(draw.randrange(60, 600)))]


def saw_tooth(draw: random.Random) -> list[float]:
    level, depth, period = draw.uniform(5, 75) * GIB, draw.uniform(0.1, 0.5), draw.randrange(3, 20)
    return [level * (1 - depth * (at % period) / period) + draw.gauss(0, 0.003 * level) for at in range(draw.randrange(100, 600))]


def loading(draw: random.Random) -> list[float]:
    level, count = draw.uniform(5, 70) * GIB, draw.randrange(20, 200)
    return [level * at / count + draw.gauss(0, 0.002 * level) for at in range(count)]


def leak(draw: random.Random) -> list[float]:
    level, count = draw.uniform(5, 40) * GIB, draw.randrange(40, 600)
    noise = draw.choice([0, 0.001, 0.005, 0.02]) * level
    rise = max(draw.uniform(0.05, 0.9) * level, 8 * noise)
    return _loading(draw, level) + [level + rise * at / count + draw.gauss(0, noise) for at in range(count)] + _given_back(draw)


def leak_under_a_saw_tooth(draw: random.Random) -> list[float]:
    level, count, period = draw.uniform(5, 40) * GIB, draw.randrange(200, 600), draw.randrange(3, 10)
    rise, depth = draw.uniform(0.3, 0.9) * level, draw.uniform(0.05, 0.15) * level
    return [level + rise * at / count - depth * (at % period) / period for at in range(count)]


def longest_so_far(draw: random.Random) -> list[float]:
    level, longest, out = draw.uniform(5, 20) * GIB, 0.0, []
    for _ in range(draw.randrange(100, 600)):
        longest = max(longest, draw.lognormvariate(0, 0.5))
        out.append(level * (1 + 0.25 * longest))
    return out


def last_climb(draw: random.Random) -> list[float]:
    level = draw.uniform(5, 40) * GIB
    return [level + draw.gauss(0, 0.003 * level) for _ in range(draw.randrange(60, 600))] + [1.4 * level] * draw.randrange(1, 3)


def mebibytes(levels: list[float]) -> list[int]:
    return [int(level) // MIB for level in levels]


def event_file(points: list[tuple[float, int, str, float]]) -> bytes:
    """An event file of TensorBoard: wall time, step, tag and value of each scalar. Checksums are left empty."""

    def field(number: int, kind: int, data: bytes) -> bytes:
        return bytes([number << 3 | kind]) + data

    def varint(value: int) -> bytes:
        out = b""
        while value > 0x7F:
            out += bytes([value & 0x7F | 0x80])
            value >>= 7
        return out + bytes([value])

    def text(number: int, data: bytes) -> bytes:
        return field(number, 2, varint(len(data)) + data)

    records = [field(1, 1, struct.pack("<d", 1_790_000_000.0)) + text(3, b"brain.Event:2")]
    for time, step, tag, value in points:
        scalar = text(1, tag.encode()) + field(2, 5, struct.pack("<f", value))
        records.append(field(1, 1, struct.pack("<d", time)) + field(2, 0, varint(step)) + text(5, text(1, scalar)))
    return b"".join(struct.pack("<QI", len(record), 0) + record + b"\0\0\0\0" for record in records)
