"""Classes of which ``help`` and ``dir`` show what they add, and not all that Python's own ones under them have."""

import builtins
import mmap

_PYTHONS = {mmap.mmap, *(found for found in vars(builtins).values() if isinstance(found, type))}


class Shown(type):
    """The type of such a class; its objects are as ever."""

    def __dir__(cls) -> "list[str]":
        own = (found for found in cls.__mro__ if found not in _PYTHONS)
        return sorted({name for found in own for name in vars(found)})
