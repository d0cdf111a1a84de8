"""Importing distributions stays cheap."""

import subprocess
import sys


def test_importing_distributions_imports_no_heavy_part_of_scipy():
    heavy = ["scipy.stats", "scipy.linalg", "scipy.optimize", "sklearn", "pandas", "matplotlib"]
    code = f"import sys, posterity.distributions; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
