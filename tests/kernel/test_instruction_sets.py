"""The kernel says the same on every instruction set, and which one it uses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from posterity import kernel
from posterity.kernel.instructions import list_instruction_sets

# Models of every kind, learned in every way, in a process of its own: what they say goes to a file.
SCRIPT = """
import sys
import numpy as np
import posterity as po
from posterity.forgetting import Adaptive, Exponential, Stabilized, Window

rng = np.random.default_rng(0)
said = {}


def note(name, *arrays):
    said.update({f"{name} {i}": np.asarray(array, dtype=float) for i, array in enumerate(arrays)})


for p in (3, 10, 20, 60, 150):
    X = rng.normal(size=(600, p)) * np.logspace(0, 2, p)
    y = X @ rng.normal(size=p) + rng.normal(size=600)
    model = po.BayesianLinearRegression(prior_precision=1.0).fit(X[:300], y[:300])
    told = model.predict_then_learn(X[300:], y[300:])
    note(f"linear {p}", model.coef_, told.mean(), told.std(), model.predict_interval(X[:9]))

X = rng.normal(size=(400, 6))
eta = X @ rng.normal(size=6) / 2
normal = eta + rng.normal(size=400)
labels, counts = (eta > rng.logistic(size=400)).astype(int), rng.poisson(np.exp(eta / 2))
for forgetting in (Exponential(0.98), Stabilized(0.98), Window(60), Adaptive()):
    model = po.BayesianLinearRegression(prior_precision=1.0, forgetting=forgetting)
    told = model.predict_then_learn(X, normal)
    note(f"{forgetting}", model.coef_, told.mean(), told.std())
for settings in ({}, {"forgetting": Stabilized(0.98)}, {"forgetting": Adaptive()}):
    for prior in (1.0, "auto"):
        model = po.BayesianLinearRegression(prior_precision=prior, **settings)
        said_of_rows = []
        for x, target in zip(X[:100], normal):
            said_of_rows.append(model.predict_one(x))
            model.learn_one(x, target)
        note(f"rows {prior} {settings}", said_of_rows, model.coef_)
for model, target in (
    (po.BayesianLogisticRegression(prior_precision=1.0), labels),
    (po.BayesianPoissonRegression(prior_precision=1.0), counts),
    (po.BayesianNegativeBinomialRegression(prior_precision=1.0, dispersion=0.5), counts),
    (po.BayesianRobustRegression(prior_precision=1.0), normal),
    (po.BayesianQuantileRegression(prior_precision=1.0), normal),
):
    name = type(model).__name__
    model.predict_then_learn(X, target)
    note(name, model.coef_, model.fit(X, target).coef_)
keys = rng.integers(0, 20, size=400)
model = po.GroupedRegression().fit(X, normal, groups=keys)
note("grouped", model.predict(X, groups=keys))
np.savez(sys.argv[1], **said)
"""


def outcome(folder: Path, name: str) -> dict[str, np.ndarray]:
    path = folder / f"{name}.npz"
    environment = dict(os.environ, POSTERITY_ISA=name)
    subprocess.run([sys.executable, "-c", SCRIPT, str(path)], env=environment, check=True)
    with np.load(path) as said:
        return dict(said)


@pytest.mark.processes
def test_every_instruction_set_says_the_same(tmp_path: Path) -> None:
    names = list_instruction_sets()
    assert names[-1] == kernel.instruction_set() or "POSTERITY_ISA" in os.environ
    widest = outcome(tmp_path, names[-1])
    for name in names[:-1]:
        said = outcome(tmp_path, name)
        assert said.keys() == widest.keys()
        for what, array in widest.items():
            scale = np.abs(array[np.isfinite(array)]).max(initial=0.0)
            np.testing.assert_allclose(
                said[what], array, 0, 1e-13 * scale, err_msg=f"{name}: {what}"
            )


# What compiles and what runs a program for each: this processor's own, and ARM's under emulation.
TOOLS = {"cc": [], "aarch64-linux-gnu-gcc": ["qemu-aarch64"]}


def emulated(compiler: str, folder: Path) -> dict[str, list[float]]:
    for tool in (compiler, *TOOLS[compiler]):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    program, source = folder / compiler, Path(__file__).with_name("emulated.c")
    headers = Path(__file__).parents[2] / "src/posterity/kernel"
    if not headers.exists():
        pytest.skip("the kernel's headers are not beside its tests")
    options = ["-std=gnu11", "-O1", "-ffp-contract=fast", "-fno-math-errno", "-w", "-static"]
    files = [f"-I{headers}", str(source), "-o", str(program), "-lm"]
    subprocess.run([compiler, *options, *files], check=True)
    command = [*TOOLS[compiler], str(program)]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    said = defaultdict(list)
    for line in lines.splitlines():
        what, number = line.rsplit(" ", 1)
        said[what].append(float(number))
    return said


@pytest.mark.processes
def test_arm_under_emulation_says_the_same(tmp_path: Path) -> None:
    here, there = (emulated(compiler, tmp_path) for compiler in TOOLS)
    assert here.keys() == there.keys()
    for what, numbers in here.items():
        array = np.array(numbers)
        scale = np.abs(array[np.isfinite(array)]).max()
        np.testing.assert_allclose(there[what], array, 0, 1e-13 * scale, err_msg=what)


@pytest.mark.processes
@pytest.mark.parametrize("name", ["avx", "x86_64"])
def test_what_is_no_instruction_set_is_refused(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import posterity.kernel"],
        env=dict(os.environ, POSTERITY_ISA=name),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert f"POSTERITY_ISA is '{name}', which is none: it must be one of" in done.stderr


def test_one_that_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # A build for the machine alone may have any one of them.
    built = ["x86-64", "x86-64-v3", "x86-64-v4"]
    monkeypatch.setattr(kernel.instructions, "_list_built_levels", lambda: built)
    monkeypatch.setattr(kernel.instructions, "level", lambda: 3)
    monkeypatch.setenv("POSTERITY_ISA", "x86-64-v4")
    kernel.instruction_set.cache_clear()
    with pytest.raises(ValueError, match="x86-64-v4', which this processor doesn't offer: it must"):
        kernel.instruction_set()
    monkeypatch.setenv("POSTERITY_ISA", "")
    assert kernel.instruction_set() == "x86-64-v3"
    kernel.instruction_set.cache_clear()


def test_a_build_for_another_processor_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel.instructions, "_list_built_levels", lambda: ["x86-64-v4"])
    monkeypatch.setattr(kernel.instructions, "level", lambda: 3)
    monkeypatch.delenv("POSTERITY_ISA", raising=False)
    kernel.instruction_set.cache_clear()
    with pytest.raises(ImportError, match="x86-64-v4 alone, which this processor doesn't offer"):
        kernel.instruction_set()
    kernel.instruction_set.cache_clear()
