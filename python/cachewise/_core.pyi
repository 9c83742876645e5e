from typing import Any, Literal, TypeAlias

import numpy
from typing_extensions import Buffer

__all__ = [
    "__version__",
    "compare",
    "copy",
    "equal",
    "fill",
    "move",
    "part_noise",
    "verdict",
    "zero",
]

__version__: str

_Reuse: TypeAlias = Literal["soon", "never"] | None
# NumPy says from Python 3.12 on that its arrays are buffers.
_Memory: TypeAlias = Buffer | numpy.ndarray[Any, Any]

def copy(dst: _Memory, src: _Memory, *, reuse: _Reuse = None) -> None: ...
def move(dst: _Memory, src: _Memory, *, reuse: _Reuse = None) -> None: ...
def fill(dst: _Memory, value: int, *, reuse: _Reuse = None) -> None: ...
def zero(dst: _Memory, *, reuse: _Reuse = None) -> None: ...
def compare(a: _Memory, b: _Memory) -> Literal[-1, 0, 1]: ...
def equal(a: _Memory, b: _Memory) -> bool: ...

# The rest is for the package's own modules.
def verdict(median: float, low: float, high: float, rounds: int) -> str: ...
def part_noise() -> float: ...
