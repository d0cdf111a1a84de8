"""Write the page: PYTHONPATH=tests/oracles python -m combinations docs/combinations.md."""

import sys
from pathlib import Path

from combinations.page import write

Path(sys.argv[1]).write_text(write(), encoding="utf-8")
