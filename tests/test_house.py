"""The house rules that no other tool checks: what an import loads, what is exported, sizes, and the README's map."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SOURCES = sorted(chain((ROOT / "swarmbus").rglob("*.py"), (ROOT / "roles").rglob("*.py")))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, TOOLS = PYPROJECT["project"], PYPROJECT["tool"]
HEAVY = (
    "openai",
    "networkx",
    "rich",
    "typer",
    "kreuzberg",
    "html_to_markdown",
    "pygraphviz",
    "nats",
    "opentelemetry",
    "genai_prices",
)
EXPORTING = ("swarmbus", "swarmbus.models", "swarmbus.testing", "roles.standard", "roles.analysis")


def python(code: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT, timeout=50
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("module", ["swarmbus", "roles.standard"])
def test_an_import_loads_no_heavy_library(module: str) -> None:
    listed = "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = python(f"import sys; from {module} import *; {listed}").split()
    assert not set(HEAVY) & set(loaded)


def test_the_root_and_the_start_of_the_command_line_load_next_to_nothing() -> None:
    loaded = python("import sys, swarmbus.cli; print(*sorted(sys.modules))").split()
    assert not {"anyio", "asyncio", "pydantic", "typer"} & set(loaded)
    assert [name for name in loaded if name.partition(".")[0] == "swarmbus"] == [
        "swarmbus",
        "swarmbus.cli",
        "swarmbus.cli.files",
        "swarmbus.cli.foreign",
        "swarmbus.cli.interrupts",
        "swarmbus.cli.leaving",
        "swarmbus.cli.output",
        "swarmbus.cli.start",
        "swarmbus.cli.streams",
        "swarmbus.errors",
    ]


def test_the_root_has_its_names_its_modules_and_no_other() -> None:
    printed = python(
        "import swarmbus; print(swarmbus.Swarm.__name__, swarmbus.errors.__name__, hasattr(swarmbus, 'Swrm'),"
        "set(swarmbus.__all__) <= set(dir(swarmbus)))"
    )
    assert printed == "Swarm swarmbus.errors False True\n"


def test_an_import_prints_nothing_and_opens_nothing() -> None:
    code = """
        import sys, pydantic, anyio, typing_extensions, rpds  # what these do on import is their business
        opened = []
        sys.addaudithook(lambda event, args: opened.append((event, *args)) if event in WATCHED else None)
        from swarmbus import *
        print(opened)
    """
    watched = '{"socket.connect", "socket.bind", "subprocess.Popen", "os.putenv", "sqlite3.connect", "os.mkdir"}'
    assert python("\n".join(line.strip() for line in code.splitlines()).replace("WATCHED", watched)) == "[]\n"


@pytest.mark.parametrize("name", EXPORTING)
def test_exports_are_unique_and_exist(name: str) -> None:
    module = importlib.import_module(name)
    assert len(module.__all__) == len(set(module.__all__))
    assert not [export for export in module.__all__ if not hasattr(module, export)]


@pytest.mark.parametrize(
    "target",
    [*PROJECT["scripts"].values(), *chain.from_iterable(group.values() for group in PROJECT["entry-points"].values())],
)
def test_an_entry_point_leads_to_a_function(target: str) -> None:
    assert callable(pkgutil.resolve_name(target))


def test_the_import_contracts_are_kept() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=50)
    assert run.returncode == 0, run.stdout


def test_every_package_is_typed_and_roles_itself_is_open_to_users() -> None:
    assert (ROOT / "swarmbus" / "py.typed").is_file()
    assert all((package / "py.typed").is_file() for package in (ROOT / "roles").iterdir() if package.name[0] != "_")
    assert not (ROOT / "roles" / "__init__.py").exists()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_owns_and_stays_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree)
    assert text.count("\n") <= 400
    assert not [f"{name}: {lines} lines" for name, lines in functions(tree) if lines > 60]


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_the_map_in_the_readme_is_the_layout_and_the_import_contract() -> None:
    folders = mapped()
    bands = [set(names.split()) for names in folders["swarmbus/"].values()]
    contract = next(contract for contract in TOOLS["importlinter"]["contracts"] if contract["id"] == "bands")
    assert bands == [set(re.findall(r"\w+", layer)) - {"__main__"} for layer in contract["layers"]]
    assert set().union(*bands) == children("swarmbus")
    assert {name.rstrip("/") for name in folders["roles/"]} == children("roles")
    assert list(folders) == ["swarmbus/", "roles/", "examples/", "tests/"]


@pytest.mark.parametrize("half", ["delivery", "thinking"])
def test_each_module_of_a_half_stands_once_in_the_readme(half: str) -> None:
    listing = re.search(rf"^{half}/ .*\n((?:  .*\n)+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert listing is not None
    names = [
        name for line in listing[1].splitlines() for name in re.split(r" {2,}", line.strip(), maxsplit=1)[1].split()
    ]
    assert sorted(names) == sorted(children(f"swarmbus/{half}"))


def children(folder: str) -> set[str]:
    """Name the modules and packages of a folder."""
    there = {path.stem for path in (ROOT / folder).iterdir() if path.suffix == ".py" or path.is_dir()}
    return {name for name in there if not name.startswith("__")}


def mapped() -> dict[str, dict[str, str]]:
    """Read the map: what stands below each folder, a name and what is said about it."""
    block = re.search(r"^## The map\n.*?```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert block is not None
    folders: dict[str, dict[str, str]] = {}
    for line in re.sub(r"\n {4,}", " ", block[1]).splitlines():  # where a line is not enough, it goes on below
        name, said = line.split(maxsplit=1)
        if line.startswith(" "):
            folders[list(folders)[-1]][name] = said
        else:
            folders[name] = {}
    return folders
