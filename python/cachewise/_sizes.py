"""Sizes as people write them."""

import re

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def parse_size(size: "int | str") -> int:
    """Bytes from a number or from text like ``"512M"`` (powers of 1024).

    >>> parse_size("1.5G"), parse_size("64 MiB"), parse_size(4096)
    (1610612736, 67108864, 4096)
    """
    if isinstance(size, bool) or not isinstance(size, (int, str)):
        raise TypeError(f"size: expected a number of bytes or text like '512M', found {size!r}")
    if isinstance(size, int):
        parsed = size
    else:
        found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)(?:I?B)?\s*", size, re.IGNORECASE)
        if found is None:
            raise ValueError(f"size: expected bytes with K, M, G or T behind them, found {size!r}")
        number, unit = found.groups()
        parsed = int(float(number) * (1 << _UNITS[unit.upper()]))
    if not 1 <= parsed < 1 << 48:
        raise ValueError(f"size: expected 1 byte to 256 TiB, found {size!r}")
    return parsed
