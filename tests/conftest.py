"""Shared set-up: a compile cache named by the kernels' source, and the folder of real data when there is one."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src" / "upturn" / "kernels"

if "NUMBA_CACHE_DIR" not in os.environ:  # before numba is imported; `make` sets it to a folder of the same kind
    source = b"".join(path.read_bytes() for path in sorted(KERNELS.glob("*.py")))
    os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / f"pytest-{zlib.crc32(source):08x}")

from hypothesis import settings

settings.register_profile("upturn", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("upturn")
