"""A user's program as a type checker sees it; nothing runs it."""

import array

import cachewise
import numpy as np

page = bytearray(8)
cachewise.copy(page, b"12345678", reuse="never")
cachewise.copy(memoryview(page), array.array("b", [1] * 8))
cachewise.zero(np.zeros(8))
cachewise.fill(page, 1)
cachewise.move(page, page)
is_equal: bool = cachewise.equal(page, b"12345678")
order: int = cachewise.compare(np.ones(1), b"1")
version: str = cachewise.__version__
with cachewise.lease("64M") as lease:
    cachewise.zero(lease)
    lease.numpy()[0] = 1
