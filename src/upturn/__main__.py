"""``python -m upturn`` is the command ``upturn``."""

import sys

from upturn.cli import main

if __name__ == "__main__":
    sys.exit(main())
