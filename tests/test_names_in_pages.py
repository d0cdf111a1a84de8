"""What README and docs name exists: modules and classes, extras, options of the command."""

from __future__ import annotations

import re
from importlib import import_module, metadata
from pathlib import Path

import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
import click

from posterity.cli.commands import posterity as command

ROOT = Path(__file__).parent.parent
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if not {"_build", "_notebooks", "reference"} & set(path.parts)
]
# Verbs by their words, as ("import", "dsjson"), with their options.
VERBS: dict[tuple[str, ...], set[str]] = {}


def list_verbs(group: click.Group, words: tuple[str, ...] = ()) -> None:
    for name, verb in group.commands.items():
        if isinstance(verb, click.Group):
            list_verbs(verb, (*words, name))
        VERBS[*words, name] = {
            option for param in verb.params for option in (*param.opts, *param.secondary_opts)
        } | {"--help", "-h"}


list_verbs(command)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_dotted_names_exist(path: Path) -> None:
    for name in set(re.findall(r"\bposterity(?:\.[A-Za-z_]\w*)+", path.read_text())):
        if not name.endswith((".db", ".fish", ".png", ".toml")):  # files
            assert exists(name.split(".")), name


def exists(parts: list[str]) -> bool:
    for i in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        except ImportError as error:  # it needs an extra
            return "pip install" in str(error)
        for part in parts[i:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_extras_exist(path: Path) -> None:
    extras = set(metadata.metadata("posterity").get_all("Provides-Extra") or ())
    named = re.findall(r"posterity\[([\w,]+)\]", path.read_text())
    assert {one for names in named for one in names.split(",")} <= extras


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_options_of_commands_exist(path: Path) -> None:
    for line in re.findall(r"(?:^|[|`$ ])posterity ([^`\n]*)", path.read_text(), re.MULTILINE):
        words = line.split()
        verb = next((VERBS[tuple(words[:n])] for n in (2, 1) if tuple(words[:n]) in VERBS), None)
        if verb is None:
            continue
        given = re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", line.partition(" | ")[0])
        assert set(given) <= verb, line


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_options_in_sentences_exist(path: Path) -> None:
    known = set().union(*VERBS.values(), (option for p in command.params for option in p.opts))
    others = {"--no-deps", "--no-build-isolation"}
    for option in re.findall(r"`(--[a-z][a-z-]*)[ `=]", path.read_text()):
        assert option in known | others, option
