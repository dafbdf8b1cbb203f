"""Names of array types, so that an annotation says what it holds and not how numpy spells it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]  # of any number of dimensions
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]  # row numbers
Arms = NDArray[np.uint8]  # 0 is control
