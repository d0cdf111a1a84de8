"""The learners that all tests of inputs share, as a module that they can import."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location("learners", Path(__file__).parent / "learners.py")
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["learners"] = _module
_spec.loader.exec_module(_module)
