"""Run at the start of every interpreter below a watched run: waits for the import of a library that allocates on devices.

It stands in front of the sitecustomize of the user, which is run next. Any Python may read this file, so it is written for 2.7, too;
nothing is imported but what is there already, as start-up must not be felt.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # noqa: F401 - in type comments

LIBRARIES = ("torch", "torch_npu", "torch_musa", "torch_mlu", "jax", "tensorflow")


class LibraryFinder(object):  # noqa: UP004 - for Python 2.7
    """Finds nothing itself, but wraps how the others load the libraries."""

    oomdoctor = True

    def __init__(self, here):  # type: (str) -> None
        self._here = here
        self._busy = False

    def find_spec(self, name, path=None, target=None):  # type: (str, Any, Any) -> Any
        """Return the spec that the other finders have for a library; None for everything else."""
        if name not in LIBRARIES or self._busy:
            return None
        self._busy = True
        try:
            spec = self._by_others(name, path, target)
        finally:
            self._busy = False
        try:
            self._wrap(name, spec)
        except Exception:  # a loader of another kind
            return spec
        return spec

    def _by_others(self, name, path, target):  # type: (str, Any, Any) -> Any
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _wrap(self, name, spec):  # type: (str, Any) -> None
        """Let the recorder start after the library ran. The loader is as it was then."""
        loader = spec.loader
        execute = loader.exec_module

        def exec_module(module):  # type: (Any) -> None
            loader.__dict__.pop("exec_module", None)
            execute(module)
            self._start(name)

        if hasattr(exec_module.__code__, "replace"):  # tracebacks leave out the frames of the import system, and this is one
            exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
        if "exec_module" not in loader.__dict__:
            loader.exec_module = exec_module

    def _start(self, name):  # type: (str) -> None
        sys.path.insert(0, self._here)
        try:
            import oomdoctor_inside  # type: ignore[import-not-found]

            oomdoctor_inside.start("sitecustomize", name)
        except Exception:
            return
        finally:
            sys.path.remove(self._here)


def _install(here):  # type: (str) -> None
    if sys.version_info >= (3, 7) and not any(getattr(finder, "oomdoctor", False) for finder in sys.meta_path):
        sys.meta_path.insert(0, LibraryFinder(here))


def _run_the_next(here):  # type: (str) -> None
    """Run the sitecustomize that would have run without this one. What it raises, Python treats as it would have."""
    own = sys.modules.pop(__name__)
    at = sys.path.index(here) if here in sys.path else None
    sys.path[:] = [entry for entry in sys.path if entry != here]
    try:
        __import__(__name__)
    except ImportError as error:
        if getattr(error, "name", __name__) != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)
        if at is not None:
            sys.path.insert(min(at, len(sys.path)), here)


if __name__ == "sitecustomize":
    _HERE = __file__.rpartition("/")[0] or __file__.rpartition("\\")[0]
    try:
        _install(_HERE)
    except Exception:
        pass
    _run_the_next(_HERE)
