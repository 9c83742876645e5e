"""How well hosts agree with each other, and with a profile.

- *agreement*: do two hosts make the same choice? Asked of pairs of hosts at every size: the same kernel, or two
  of which the figures of one of the two hosts allow that their times differ by at most 3 %.
- *served*: do a host's own figures allow that the profile's kernel takes at most 3 % more time than the one it
  chose for itself?

Allowed is what their 95 % interval holds; `xtask agree` asks two tunings of one machine by the same functions. One minute leaves libc at many sizes where a kernel is a little faster,
and finds it at others: two tunings of one machine do that too, so it says nothing about the machines.

The profile knows what all hosts have shown, and a host what a minute has shown it: where the two differ the
profile's kernel is mostly the faster one. So the second question is not whether the two are equal, but whether
the host loses.
"""

import numpy as np
from numpy.typing import NDArray

from .._core import may_lose_nothing, tolerance
from .store import LIBC, UNKNOWN, Measured

# Times that differ by no more than this count as the same choice.
TOLERANCE = tolerance()
# Hosts that each host is compared with, at most.
PARTNERS = 8

Floats = NDArray[np.float32]
Columns = NDArray[np.int32]
Answers = NDArray[np.float32]


class Choices:
    """Figures of hosts, to be asked about choices."""

    def __init__(self, measured: Measured, steps: int) -> None:
        """A kernel has `steps` columns, one for each size."""
        self._chosen = measured.chosen
        self._logs = _with_libc(nearest(measured.logs, steps), np.nan)
        self._errors = _with_libc(nearest(measured.errors, steps), 0.0)
        # The others' figure for a kernel that a host has not measured.
        self._middle = middle(self._logs)

    def agreement(self, seed: int = 0) -> Answers:
        """By host and cell, the share of other hosts that make the same choice."""
        hosts = len(self._chosen)
        order = np.random.default_rng(seed).permutation(hosts)
        # In a ring each host has as many partners as any other, and neighbours are no neighbours by name.
        found = np.zeros(self._chosen.shape, np.float32)
        turns = range(1, min(PARTNERS, hosts - 1) + 1)
        for turn in turns:
            other = np.empty(hosts, np.int64)
            other[order] = np.roll(order, -turn)
            found += self._same(other)
        # A host alone disagrees with no other.
        return found / np.float32(len(turns)) if turns else np.ones_like(found)

    def _same(self, other: NDArray[np.int64]) -> NDArray[np.bool_]:
        mine, theirs = self._chosen, self._chosen[other]
        same = (mine == theirs) & (mine != UNKNOWN)
        lines = np.arange(len(mine))[:, None]
        for host in (lines, other[:, None]):
            more = np.abs(self._logs[host, mine] - self._logs[host, theirs])
            same |= _may_lose_nothing(more, self._error(host, mine, theirs))
        answer: NDArray[np.bool_] = same
        return answer

    def served(self, ours: Columns) -> NDArray[np.bool_]:
        """By host and cell, whether a host loses nothing that it has shown by these choices, one for each cell."""
        chosen = self._chosen
        lines = np.arange(len(chosen))[:, None]
        more = self._logs[:, ours] - self._logs[lines, chosen]
        seen = np.where(np.isnan(more), self._middle[ours] - self._middle[chosen], more)
        error = self._error(lines, ours, chosen)
        lost_nothing = _may_lose_nothing(seen, error)
        served: NDArray[np.bool_] = ((chosen == ours) & (ours != UNKNOWN)) | lost_nothing
        return served

    def _error(self, host: NDArray[np.int64], one: Columns, other: Columns) -> Floats:
        """Standard error of the difference of two kernels' logarithms on a host."""
        found: Floats = np.hypot(
            np.nan_to_num(self._errors[host, one]), np.nan_to_num(self._errors[host, other])
        )
        return found

    def known(self, column: int) -> Floats:
        """Hosts' logarithms of a kernel's time over libc's at a size, of those that have one."""
        logs = self._logs[:, column]
        return logs[~np.isnan(logs)]


def _may_lose_nothing(log: Floats, error: Floats) -> NDArray[np.bool_]:
    """By element, whether the 95 % interval allows that the time is at most 3 % longer; not where it is NaN."""
    logs, errors = (np.ascontiguousarray(values, np.float32) for values in (log, error))
    answers = np.frombuffer(may_lose_nothing(logs.data, errors.data), np.bool_)
    return answers.reshape(log.shape)


def _with_libc(values: Floats, unknown: float) -> Floats:
    """Two columns more: at `UNKNOWN` what is unknown, at `LIBC` libc over libc."""
    more = np.zeros((len(values), 2), np.float32)
    more[:, 0] = unknown
    return np.hstack([values, more])


def middle(logs: Floats) -> Floats:
    """The hosts' median by column; NaN where fewer than half of them have a figure."""
    columns = np.ascontiguousarray(logs.T)
    number = (~np.isnan(columns)).sum(axis=1)
    # NaN is sorted to the end.
    columns.sort(axis=1)
    lines = np.arange(len(columns))
    low, high = columns[lines, np.maximum(number - 1, 0) // 2], columns[lines, number // 2]
    result = (low + high) / 2
    result[number * 2 < len(logs)] = np.nan
    found: Floats = result
    return found


def nearest(values: Floats, steps: int) -> Floats:
    """Fills what is NaN with the same kernel's figure at the size nearest to it that has one."""
    known = values.reshape(values.shape[0], -1, steps)
    there = ~np.isnan(known)
    at = np.arange(steps, dtype=np.int16)
    # For every size, the nearest one below and above that has a figure; itself where it has one.
    below = np.maximum.accumulate(np.where(there, at, np.int16(-2 * steps)), axis=2)
    above = np.where(there, at, np.int16(3 * steps))[:, :, ::-1]
    above = np.minimum.accumulate(above, axis=2)[:, :, ::-1]
    # If none has, any is as good: all are NaN.
    out_of = np.where(at - below < above - at, below, above).clip(0, steps - 1)
    return np.take_along_axis(known, out_of.astype(np.int64), axis=2).reshape(values.shape)
