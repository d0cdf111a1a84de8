"""Importing distributions stays cheap."""

import subprocess
import sys


def test_importing_distributions_imports_no_heavy_part_of_scipy():
    heavy = ["scipy.stats", "scipy.linalg", "scipy.optimize", "sklearn", "pandas", "matplotlib"]
    code = (  # some versions of scipy.special import more than others
        "import sys, scipy.special; before = set(sys.modules); import posterity.distributions; "
        f"print([m for m in {heavy} if m in sys.modules and m not in before])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
