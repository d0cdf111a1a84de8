"""The files of containers, read as Docker does; there is no Docker where tests run."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")
pytest.importorskip("click", reason="needs click (posterity[cli])")

from posterity.cli.commands import posterity
from tests.service.test_crashes import Served

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
STEPS: list[tuple[str, str]] = [
    (line.split(maxsplit=1)[0], line.split(maxsplit=1)[1])
    for line in re.sub(r"\\\n\s*", "", (ROOT / "deploy" / "Dockerfile").read_text()).splitlines()
    if not line.startswith("#")
]
COMPOSE: Any = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())


def find(step: str) -> list[str]:
    return [rest for name, rest in STEPS if name == step]


def test_the_image_installs_extras_that_there_are_and_runs_as_nobody() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"posterity\[([a-z,]+)\]", find("RUN")[0])
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    version = find("FROM")[0].removeprefix("python:").removesuffix("-slim")
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]
    assert [name for name, _ in STEPS].index("USER") < [name for name, _ in STEPS].index("VOLUME")
    (user,) = find("USER")
    assert f"--uid {user} " in find("RUN")[0]
    assert not {"curl", "wget"} & set(re.findall(r"\w+", " ".join(rest for _, rest in STEPS)))


def test_the_command_takes_what_the_files_give_it() -> None:
    program, verb, *rest = json.loads(find("ENTRYPOINT")[0])
    assert program == "posterity"
    service = COMPOSE["services"]["posterity"]
    for words in (rest, [*rest, *service["command"]]):
        context = posterity.commands[verb].make_context(verb, [*words])
        assert context.params["public"]
        assert context.params["folder"] in find("VOLUME")
    assert service["build"]["dockerfile"] == "deploy/Dockerfile"
    assert set(service["depends_on"]) == {"database"} <= set(COMPOSE["services"])
    assert service["ports"] == [f"127.0.0.1:{find('EXPOSE')[0]}:{find('EXPOSE')[0]}"]
    mounted = COMPOSE["services"]["database"]["volumes"]
    assert [one.partition(":")[0] for one in mounted] == [*COMPOSE["volumes"]]


@pytest.mark.processes
def test_the_check_of_health_tells_a_server_that_is_there(tmp_path: Path) -> None:
    server = Served(tmp_path)
    command = json.loads(find("HEALTHCHECK")[0].partition("CMD ")[2])
    check = [sys.executable, *command[1:-1], command[-1].replace("7067", str(server.port))]
    assert subprocess.run(check, check=False).returncode == 0
    server.end(signal.SIGTERM)
    assert subprocess.run(check, check=False, stderr=subprocess.DEVNULL).returncode != 0
