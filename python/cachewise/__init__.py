"""Copy, move, fill, zero and compare memory as this machine's measured profile says.

The operations take anything with the buffer protocol, NumPy arrays among them. They look at the profile
that ``cachewise tune`` measured on this machine; without one, decisions are computed from the CPU.

`lease` and `cachewise.cuda.pinned` give memory of `cachewise scrubd`.

>>> import cachewise
>>> page = bytearray(8)
>>> cachewise.copy(page, b"12345678", reuse="never")
>>> cachewise.equal(page, b"12345678")
True
"""

from ._command import CommandError
from ._core import __version__, compare, copy, equal, fill, move, zero
from ._lease import Lease, LeaseError, lease
from ._records import RecordError, records

__all__ = [
    "CommandError",
    "Lease",
    "LeaseError",
    "RecordError",
    "__version__",
    "compare",
    "copy",
    "equal",
    "fill",
    "lease",
    "move",
    "records",
    "zero",
]
