"""What the page asks: a request, its inputs and the roles that they play."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.api.inputs import CONFIG_ENDINGS
from oomdoctor.case.settings import Scalar
from oomdoctor.report.wording.wording import Wording


class Input(Struct, forbid_unknown_fields=True):
    """A file of a request; it lies in the folder of the request under its path."""

    path: str
    role: str | None = None

    @property
    def top(self) -> str:
        """What is given to the library: the file, or the folder that it lies in; that of a role of its own is the file."""
        return self.path.partition("/")[0] if self.role is None else self.path


class Question(Struct, forbid_unknown_fields=True):
    """What `estimate` and its neighbours are asked."""

    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    framework: str | None = None
    serve: bool | None = None
    settings: dict[str, Scalar] | None = None


class Request(Struct, kw_only=True):
    """A request, whatever its type; what its type has no use for counts for nothing."""

    type: str
    id: int | str
    lang: str | None = None
    redact: bool | None = None
    text: str | None = None
    inputs: tuple[Input, ...] = ()
    question: Question | None = None
    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    server_version: str | None = None
    axes: str | None = None
    top: int | None = None
    plan: int | None = None
    only: tuple[str, ...] = ()
    review: bool | None = None
    query: str | None = None
    lines: tuple[str, ...] = ()
    of: int | str | None = None
    form: str | None = None
    project: str | None = None

    @property
    def hides_names(self) -> bool:
        """Whether people, machines and paths are taken out besides keys and passwords."""
        return self.redact is not False

    @property
    def wording(self) -> Wording:
        """The language; English where none is named."""
        return Wording("zh" if self.lang == "zh" else "en")

    @property
    def asked(self) -> Question:
        """The question; without one nothing is known."""
        return self.question or Question()

    def of_role(self, role: str, *, takes_model: bool = False) -> list[str]:
        """Return what is given in a role: the path of a file alone, of a folder only its name."""
        paths = (each.top for each in self.inputs if _role(each, takes_model=takes_model) == role)
        return list(dict.fromkeys(paths))

    def model_path(self) -> str | None:
        """Return the config.json of a model, where one is given."""
        return next(iter(self.of_role("model", takes_model=True)), None)


def _role(given: Input, *, takes_model: bool) -> str:
    name = given.path.rpartition("/")[2].lower()
    if given.role is not None:
        return given.role
    if "/" in given.path:
        return "log"
    if takes_model and name == "config.json":
        return "model"
    if name.endswith(CONFIG_ENDINGS):
        return "config"
    if name.endswith(".csv"):
        return "series"
    return "snapshot" if name.endswith((".pickle", ".pkl")) else "log"
