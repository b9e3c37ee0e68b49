"""From a TARGET, as it is written on the command line, to a swarm.

A target is `module:name`, `path/to/file.py:name`, or the name of a registered swarm; `:swarm` may be left out, and
the name may be a function that returns the swarm. Loading runs the user's code: its errors are shown as they are.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarmbus.annotations import annotations_of
from swarmbus.cli.interrupts import Interrupted
from swarmbus.cli.tracebacks import own_traceback
from swarmbus.events import Event
from swarmbus.role import Role
from swarmbus.swarm import Swarm
from swarmbus.table import EventTable
from swarmbus.text import did_you_mean, error_text

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

GROUP = "swarmbus.swarms"
DEFAULT_NAME = "swarm"

_PARTS = ((Role, "a role"), (EventTable, "an event table"), (Event, "an event"))


class TargetError(Exception):
    """A target that leads to no swarm.

    Attributes:
        usage: whether the target is wrong, rather than the code that it leads to.
    """

    def __init__(self, message: str, *, usage: bool = True) -> None:
        super().__init__(message)
        self.usage = usage


def load_swarm(target: str) -> Swarm[Any]:
    """Return the swarm that a target leads to.

    Raises:
        TargetError: there is none; the message says what there is instead.
    """
    registered = {entry.name: entry for entry in entry_points(group=GROUP)}
    if target in registered:
        entry = registered[target]
        module = import_module(entry.module)
        return _swarm_of(module, entry.attr, target)
    append_to_path(_working_folder())
    place, name = _split(target)
    if place.endswith(".py") or "/" in place or "\\" in place or (Path(place).exists() and not _is_source(place)):
        return _swarm_of(_module_of_file(Path(place), target), name or DEFAULT_NAME, target)
    if not all(part.isidentifier() for part in place.split(".")):
        raise TargetError(f"{target!r} is no target; write MODULE:NAME, FILE.py:NAME or one of {_listed(registered)}")
    if not _is_there(place):
        raise TargetError(
            f"there is no module {place!r} in {Path.cwd()} or where Python looks for modules, and no swarm is "
            f"registered under this name{did_you_mean(target, registered)}; registered: {_listed(registered)}"
        )
    return _swarm_of(import_module(place), name or DEFAULT_NAME, target)


def append_to_path(folder: Path) -> None:
    """Let modules be imported from a folder, unless they are found elsewhere."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise TargetError("the working folder was deleted; change to one that exists") from error


def import_module(name: str) -> ModuleType:
    """Import a module of the user's, or of a package's.

    Raises:
        TargetError: it can't be imported; the message holds the original traceback.
    """
    try:
        return importlib.import_module(name)
    except Interrupted:
        raise
    except BaseException as error:
        raise TargetError(_import_failure(name, error), usage=False) from error


def _split(target: str) -> tuple[str, str]:
    """Split off the name behind the last colon; the colon of a drive, as in `C:/swarms.py`, has none behind it."""
    place, colon, name = target.rpartition(":")
    if not colon or "/" in name or "\\" in name:
        return target, ""
    return place, name


def _is_there(module: str) -> bool:
    """Whether the outermost package of a module can be found; whether the rest can, importing it tells."""
    return _found(module) is not None


def _is_source(module: str) -> bool:
    """Whether a name is that of a module that has code, as a mere folder has not."""
    found = _found(module) if all(part.isidentifier() for part in module.split(".")) else None
    return found is not None and found.origin is not None


def _found(module: str) -> ModuleSpec | None:
    """Return how the outermost package of a module would be imported; it is not imported yet."""
    try:
        return importlib.util.find_spec(module.partition(".")[0])
    except ValueError:  # it runs already, and not as a module: __main__
        return None


def _module_of_file(path: Path, target: str) -> ModuleType:
    if not path.exists():
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*.py")])
        raise TargetError(f"{target!r}: there is no file {path}{near}")
    if (path / "__init__.py").is_file():
        path /= "__init__.py"
    if path.is_dir():
        files = ", ".join(sorted(other.name for other in path.glob("*.py"))) or "none"
        raise TargetError(f"{target!r}: {path} is a folder; name a Python file, such as one in it: {files}")
    if path.suffix != ".py":
        raise TargetError(f"{target!r}: {path} is no Python file; its name has to end in .py")
    if not path.is_file():
        raise TargetError(f"{target!r}: {path} is no regular file, but a device, pipe or socket")
    path = path.resolve()
    root, name = _root_and_name(path)
    append_to_path(root)
    if not _is_module(name, path):
        return _import_file(path)
    return import_module(name)


def _root_and_name(path: Path) -> tuple[Path, str]:
    """Return the folder from which a file can be imported, and the name it then has."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def _is_module(name: str, path: Path) -> bool:
    """Whether this name, when imported, is this file, rather than another of the same name."""
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    outermost = _found(name)
    if outermost is None or outermost.origin is None:
        return False
    depth = name.count(".") + (path.stem == "__init__")
    expected = path.parents[depth - 1] / "__init__.py" if depth else path
    return Path(outermost.origin).resolve() == expected


def _import_file(path: Path) -> ModuleType:
    """Import a file whose name is taken, or can't be a module's, under a name of its own."""
    name = f"swarmbus_target_{path.stem}"
    within = [str(path.parent)] if path.stem == "__init__" else None  # where a package has its modules
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=within)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Interrupted:
        raise
    except BaseException as error:
        del sys.modules[name]
        raise TargetError(_import_failure(str(path), error), usage=False) from error
    return module


def _import_failure(what: str, error: BaseException) -> str:
    lines = [own_traceback(error), f"{what} can't be imported: {error_text(error)}"]
    if not isinstance(error, Exception):
        lines.append('it ends the program when it is imported; put that under `if __name__ == "__main__":`')
    if isinstance(error, ModuleNotFoundError) and error.name:
        lines += _hidden(error.name)
    return "\n".join(lines)


def _hidden(missing: str) -> list[str]:
    """Say so where a module can't be found because a package of the user's hides ours of the same name."""
    package = missing.partition(".")[0]
    found = sys.modules.get(package)
    file = getattr(found, "__file__", None)
    if package not in ("roles", "swarmbus") or not file or missing == package:
        return []
    cure = "give it another name"
    if Path(file).name == "__init__.py":
        line = "from pkgutil import extend_path; __path__ = extend_path(__path__, __name__)"
        cure = f"delete it if it is empty, or put this line into it: {line}"
    return [f"{file} hides the package {package!r} that comes with swarmbus; {cure}"]


def _swarm_of(module: ModuleType, name: str, target: str) -> Swarm[Any]:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise TargetError(_no_such_name(module, name))
        found = getattr(found, part)
    if callable(found) and _part(found) is None:
        found = _called(found, f"{module.__name__}.{name}")
    if not isinstance(found, Swarm):
        raise TargetError(
            f"{target!r}: {name} is {_kind(found)}, not a swarm; name a swarm, or a function that returns one. "
            f"{_place(module)} has: {_swarms_in(module)}"
        )
    return found


def _called(function: Any, name: str) -> Any:
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise TargetError(f"{name} can't be called without arguments: {error}") from error
    try:
        result = function()
    except Interrupted:
        raise
    except BaseException as error:
        told = f"{own_traceback(error)}\n{name}() failed: {error_text(error)}"
        raise TargetError(told, usage=False) from error
    if inspect.iscoroutine(result):
        result.close()
        raise TargetError(f"{name} is an async function; a target is a swarm, or a plain function that returns one")
    return result


def _no_such_name(module: ModuleType, name: str) -> str:
    swarms, makers = _swarms_and_makers(module)
    near = did_you_mean(name, [*swarms, *makers])
    return f"{_place(module)} has no {name!r}{near}; it has: {_swarms_in(module)}"


def _place(module: ModuleType) -> str:
    """Return where a module stands: its file, or its folder where it is a package that has no file of its own."""
    if module.__file__ is not None:
        return module.__file__
    return f"{next(iter(module.__path__), module.__name__)}, a folder without an __init__.py,"


def _swarms_and_makers(module: ModuleType) -> tuple[list[str], list[str]]:
    """Return the names of a module's swarms, and of the functions that may return one."""
    exported = {other: getattr(module, other, None) for other in getattr(module, "__all__", ())}
    values = {**exported, **vars(module)}  # what is exported may be loaded when it is first asked for
    swarms = [other for other, value in values.items() if isinstance(value, Swarm)]
    public = {other: value for other, value in values.items() if inspect.isfunction(value) and other[0] != "_"}
    return swarms, [other for other, function in public.items() if _may_make_swarm(function, module)]


def _may_make_swarm(function: Any, module: ModuleType) -> bool:
    """Whether a function of a module may return a swarm: it says so, or is the module's own and says nothing."""
    returned = annotations_of(function).get("return")
    if returned is None:
        return bool(function.__module__ == module.__name__)
    return re.search(r"\bSwarm\b", str(returned)) is not None


def _swarms_in(module: ModuleType) -> str:
    swarms, makers = _swarms_and_makers(module)
    there = [f"{other} (a swarm)" for other in swarms] + [f"{other} (a function)" for other in makers]
    return ", ".join(there) or "no swarm and no function"


def _part(value: object) -> str | None:
    """Return what a part of a swarm is called, be it the class or an object of it; None where it is no part."""
    cls = value if isinstance(value, type) else type(value)
    return next((name for base, name in _PARTS if issubclass(cls, base)), None)


def _kind(value: object) -> str:
    part = _part(value)
    if part is not None:
        return f"{part}, one of the parts that a swarm is made of: `swarm = Swarm(ROLES, table=EventTable(ROWS))`"
    return "None" if value is None else f"of type {type(value).__name__}"


def _listed(registered: dict[str, Any]) -> str:
    return ", ".join(sorted(registered)) or "none"
