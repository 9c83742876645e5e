"""Imported first in worker processes that do not begin as a copy of their parent: enables the pool that
the environment names, as `cachewise.run` has it.
"""

import os
import sys

import cachewise.numpy

POOL = "CACHEWISE_NUMPY_POOL"

try:
    cachewise.numpy.enable(pool=os.environ[POOL])
except (KeyError, ImportError, RuntimeError, ValueError) as error:
    print(f"cachewise: this worker has no pool: {error}", file=sys.stderr)
