"""swarmbus: multi-agent work on a typed event bus whose wiring is checked before the run.

Its names are listed in `swarmbus.exports`, which is loaded when the first of them is asked for: it takes over half a
second, and the command line wants to hear a Ctrl-C before.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmbus.exports import *  # noqa: F403  # as `__all__` there says
    from swarmbus.exports import __all__ as __all__
else:

    def __getattr__(name: str) -> object:
        """Return a name that is asked for the first time, having loaded them all."""
        if name == "__all__" or not name.startswith("__"):
            from importlib import import_module  # noqa: PLC0415  # it is none of the names

            exports = import_module("swarmbus.exports")
            globals().update({name: getattr(exports, name) for name in ("__all__", *exports.__all__)})
            if name in globals():
                return globals()[name]
        raise AttributeError(f"module 'swarmbus' has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Return all names, for those who look around."""
        __getattr__("__all__")
        return sorted(globals())
