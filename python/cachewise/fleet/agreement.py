"""How well hosts agree with a profile.

Two questions, asked of every host at every cell (operation, hint, power of two):

- *served*: do the host's own figures allow that the profile's kernel takes at most 3 % more time than the
  one it decided for itself? Allowed is what their 95 % intervals hold, as where the tuner's referee lets a
  cell pass. This is what decides whether hosts can share a profile.
- *same*: did it decide for the same kernel, or for one whose time differs from it by at most 3 %, on that
  host or in the hosts' middle? So two tunings of one machine are compared, and those are the same at 85 % of
  sizes only: a minute shows one tuning what it does not show another.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Times that differ by no more than this count as the same choice.
TOLERANCE = 0.03
# Standard errors in half a 95 % interval.
WIDE = 1.96
# In place of a kernel's column: libc, and a kernel that nobody has figures of.
LIBC, UNKNOWN = -1, -2

Floats = NDArray[np.float32]
Columns = NDArray[np.int32]


@dataclass(frozen=True)
class Agreement:
    """By host and cell."""

    served: NDArray[np.bool_]
    same: NDArray[np.bool_]


def agreement(
    curves: Floats, errors: Floats, middle: Floats, theirs: Columns, ours: Columns, steps: int
) -> Agreement:
    """Compares each host's decisions with one list of them.

    `curves` and `errors` are logarithms of times over libc's and their standard errors, shape (hosts,
    kernels' columns); `middle` is the hosts' middle. `theirs` has a column number for each host and cell,
    `ours` for each cell. A kernel has `steps` columns, one for each size.
    """
    curves, errors = nearest(curves, steps), nearest(errors, steps)
    middle = nearest(middle[None, :], steps)[0]
    hosts = len(curves)
    served = np.empty(theirs.shape, bool)
    same = np.empty(theirs.shape, bool)
    # Behind the last column: libc over libc, and what is unknown.
    nothing = np.zeros((hosts, 1), np.float32)
    unknown = np.full((hosts, 1), np.nan, np.float32)
    curves = np.hstack([curves, unknown, nothing])
    errors = np.hstack([errors, nothing, nothing])
    middle = np.concatenate([middle, np.array([np.nan, 0], np.float32)])
    lines = np.arange(hosts)
    for cell, mine in enumerate(ours):
        chosen = theirs[:, cell]
        equal = (chosen == mine) & (mine != UNKNOWN)
        more = curves[:, mine] - curves[lines, chosen]
        in_the_middle = middle[mine] - middle[chosen]
        # Where the host has not measured one of the two, the others have.
        seen = np.where(np.isnan(more), in_the_middle, more)
        error = np.hypot(np.nan_to_num(errors[:, mine]), np.nan_to_num(errors[lines, chosen]))
        with np.errstate(invalid="ignore"):
            served[:, cell] = equal | (seen - WIDE * error <= np.log1p(TOLERANCE))
            near = np.abs(np.expm1(more)) <= TOLERANCE
            near |= np.abs(np.expm1(in_the_middle)) <= TOLERANCE
        same[:, cell] = equal | near
    return Agreement(served, same)


def nearest(values: Floats, steps: int) -> Floats:
    """Fills what is NaN with the same kernel's figure at the size nearest to it that has one."""
    shape = (values.shape[0], values.shape[1] // steps, steps)
    known = values.reshape(shape)
    filled = known.copy()
    for off in range(1, steps):
        for into, out_of in (
            (filled[:, :, :-off], known[:, :, off:]),
            (filled[:, :, off:], known[:, :, :-off]),
        ):
            np.copyto(into, out_of, where=np.isnan(into))
    return filled.reshape(values.shape)
