"""Which hosts of one CPU model behave alike, and which behave like no other.

A host is a curve: the logarithm of each kernel's time over libc's, at every power of two, in the mean over
the states it was measured in. Two hosts are as far apart as their curves are in the mean, where what
differs by more than `CLIP` counts as `CLIP`, so that one wild figure does not make a stranger.

How far apart equal hosts lie is noise, and every fleet has its own: it is taken from the fleet, as the
distance at which a host usually has its nearest few neighbours, and never less than tunings of
one machine lie apart (`ALIKE`). Hosts within `REACH` times that are
neighbours; what hangs together by neighbours is a class (the rule of DBSCAN), if it is large enough. The
others are outliers. So a fleet of two kinds of host has two classes, and hosts that are each broken in
their own way have none.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A difference of 25 % says "different" as loud as one of 300 %.
CLIP = 0.25
# Neighbours are at most this many times as far apart as near neighbours usually are.
REACH = 1.5
# Hosts whose curves differ by no more than this in the mean are equal, however near to each other the rest of the
# fleet is: so far apart are tunings of one simulated machine, a minute each, with different seeds.
ALIKE = 0.04
# Hosts that everybody is compared with: enough that a class of the least share has five among them.
SAMPLE = 100
# Hosts that are compared at a time.
BLOCK = 32
# A class has at least this share of its hosts, and at least so many.
SHARE = 0.05
LEAST = 3

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Classes:
    """Each host's class, from 0 in the order of size; -1 for an outlier."""

    of: NDArray[np.int64]
    # Mean distance to its nearest hosts, per host.
    apart: Matrix
    # Within which hosts are neighbours.
    reach: float

    def members(self, number: int) -> NDArray[np.int64]:
        """The hosts of a class."""
        return np.flatnonzero(self.of == number)

    @property
    def count(self) -> int:
        """Number of classes."""
        return int(self.of.max(initial=-1)) + 1


def distances(curves: Matrix, sample: NDArray[np.int64]) -> Matrix:
    """Distance of every host to every host of the sample; shape (hosts, sample)."""
    # Kernels that no host has measured distinguish no hosts.
    curves = curves[:, ~np.isnan(curves).all(axis=0)]
    others = curves[sample]
    known, theirs = ~np.isnan(curves), ~np.isnan(others)
    shared = known.astype(np.float32) @ theirs.T.astype(np.float32)
    result = np.empty(shared.shape, np.float32)
    # Few hosts at a time: what they are compared in stays in the cache.
    for first in range(0, len(curves), BLOCK):
        mine = curves[first : first + BLOCK]
        difference = np.empty_like(mine)
        for column, other in enumerate(others):
            np.subtract(mine, other, out=difference)
            np.abs(difference, out=difference)
            # Of a number and NaN `fmin` takes the number: what one of the two lacks counts as `CLIP`, and is
            # taken off below.
            np.fmin(difference, np.float32(CLIP), out=difference)
            result[first : first + BLOCK, column] = difference.sum(axis=1)
    result -= np.float32(CLIP) * (curves.shape[1] - shared)
    result /= np.maximum(shared, 1)
    # A host that shares less than half of the other's measurements is unrelated to it.
    result[shared < 0.5 * theirs.sum(axis=1)] = CLIP
    return np.maximum(result, 0)


def classify(curves: Matrix, seed: int = 0) -> Classes:
    """Classes of the hosts of one group; `curves` has a row for each, NaN where it measured nothing."""
    hosts = len(curves)
    if hosts < LEAST:
        # Too few to tell who is the odd one.
        return Classes(np.zeros(hosts, np.int64), np.zeros(hosts, np.float32), 0.0)
    random = np.random.default_rng(seed)
    sample = np.sort(random.permutation(hosts)[:SAMPLE])
    least = max(LEAST, int(np.ceil(SHARE * len(sample))))
    apart = distances(curves, sample)
    # To itself it is no neighbour.
    apart[sample, np.arange(len(sample))] = np.inf
    near = min(least - 1, len(sample) - 1)
    nearest = np.partition(apart, near - 1, axis=1)[:, :near].mean(axis=1)
    reach = REACH * max(float(np.median(nearest)), ALIKE)
    labels = _components(apart[sample] <= reach)
    large = [label for label in range(labels.max() + 1) if (labels == label).sum() >= least]
    of = np.full(hosts, -1, np.int64)
    for label in large:
        mine = np.flatnonzero(labels == label)
        close = np.partition(apart[:, mine], min(1, len(mine) - 1), axis=1)[:, min(1, len(mine) - 1)]
        of[(of < 0) & (close <= reach)] = label
    order = sorted(large, key=lambda label: -int((of == label).sum()))
    renamed = np.full(hosts, -1, np.int64)
    for number, label in enumerate(order):
        renamed[of == label] = number
    return Classes(renamed, nearest, reach)


def _components(linked: NDArray[np.bool_]) -> NDArray[np.int64]:
    labels = np.full(len(linked), -1, np.int64)
    label = -1
    for first in range(len(linked)):
        if labels[first] >= 0:
            continue
        label += 1
        waiting = [first]
        labels[first] = label
        while waiting:
            for other in np.flatnonzero(linked[waiting.pop()] & (labels < 0)):
                labels[other] = label
                waiting.append(int(other))
    return labels
