"""Computes with columns as data programs do: each step makes new arrays of 8 MB and frees them.

    cachewise advise -- python3 columns.py
"""

import numpy as np

price = np.linspace(1.0, 2.0, 1_000_000)
amount = np.linspace(3.0, 0.0, 1_000_000)
total = 0.0
for day in range(100):
    worth = price * amount * (1 + day / 365)
    total += float(worth[worth > 2.5].sum())
print(f"{total:.9e}")
