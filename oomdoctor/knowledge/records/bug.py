"""The shape of rules/bugs: memory bugs and changed defaults of releases of programs, one file a program."""

from typing import Annotated, Literal

from msgspec import Meta

from oomdoctor.knowledge.records.base import Id, Record, RecordKind, TextRecord
from oomdoctor.knowledge.records.condition import Condition

State = Literal["open", "fixed", "intended"]
"""`open`: no release is known to mend it; `intended`: the new behaviour is wanted, as a changed default is."""
Proof = Literal["release", "commit", "maintainer", "reporter", "documented"]
"""How it is known: the first release that holds the fixing commit; a fixing commit; a maintainer's word; reports of users alone; the
program's own documents or the commit that made the change."""
Ground = Literal["card", "host"]


class BugMessage(Record, frozen=True, kw_only=True):
    """A line by which a log or a report shows the bug."""

    literals: Annotated[list[str], Meta(min_length=1)]
    """Rare pieces, of which one stands in each text that the pattern matches."""
    pattern: str


class BugSign(Record, frozen=True, kw_only=True):
    """How a log shows a bug. All that is given must hold."""

    message: BugMessage | None = None
    frames: list[str] = []
    """Pieces of the traceback of the failure, with `/` in paths; all of them stand in it."""
    when: Condition | None = None
    """A condition over the facts and events of the case; unknown counts as false."""
    unmistakable: bool = False
    """Nothing else shows itself so: the bug is named where the version is not known, and where no failure of memory is."""


class BugExample(Record, frozen=True, kw_only=True):
    """A log, and whether the bug is named in it; `if` with a condition, as the version is not known."""

    name: str
    log: str
    expect: Literal["match", "if", "none"] = "match"


class BugRecord(Record, frozen=True, kw_only=True):
    """One memory bug or changed default."""

    id: Id
    versions: Annotated[list[str], Meta(min_length=1)]
    """The releases that have it, as requirements (`>=0.14.0,<0.17.0`); one of them is enough."""
    state: State
    fixed_in: str | None = None
    """The first release without it."""
    memory: Ground = "card"
    symptom: TextRecord
    """What is printed or seen, with the settings in which it happens."""
    workaround: TextRecord | None = None
    """What helps without another release, as an order; None where nothing is known."""
    source: Annotated[str, Meta(pattern=r"^https://\S+$")]
    """The thread or commit in which it was read."""
    evidence: Proof
    shown: list[BugSign] = []
    """One of them is enough. None where no log tells the bug from other failures: then it is named only where versions are asked about."""
    examples: list[BugExample] = []
    near_misses: list[BugExample] = []

    @property
    def came_with_release(self) -> bool:
        """Whether earlier and later releases than those that have it are known to be free of it."""
        return all(span.startswith("==") or "," in span for span in self.versions)


class BugFile(Record, frozen=True, kw_only=True):
    """A file rules/bugs/<program>.yaml."""

    program: Id
    title: str
    packages: list[str] = []
    """Its names in lists of packages."""
    build: str = ""
    """What stands before a release that is only a number: `b` for `b9305`."""
    facts: list[str] = []
    """Facts of a log that hold its version: `torch_version`."""
    marks: list[str] = []
    """What stands before its version in logs and reports, with the first numbers of the version where the rest is too short to be rare."""
    runs: list[str] = []
    """Frameworks as which it shows itself in a log."""
    folders: list[str] = []
    """Folders of its modules, as they stand in frames."""
    source: str
    """Where the marks were read."""
    bugs: Annotated[list[BugRecord], Meta(min_length=1)]


class ProgramBug(Record, frozen=True, kw_only=True):
    """A bug with what its file says of the program."""

    program: str
    title: str
    packages: list[str]
    build: str
    facts: list[str]
    runs: list[str]
    folders: list[str]
    bug: BugRecord

    @property
    def id(self) -> str:
        """The id of the bug."""
        return self.bug.id


def version_field(program: str) -> str:
    """Return the field that holds a version found by the marks of a program."""
    return f"{program.replace('-', '_').replace('.', '_')}_release"


def name_signature(program: str) -> str:
    """Return the id of the signature that finds the name of a program in what a reporter writes."""
    return f"name-of-{program}"


def other_version_field(program: str) -> str:
    """Return the field that holds a second version on the same line."""
    return f"{version_field(program)}_too"


def bug_signature(bug: str, number: int) -> str:
    """Return the id of the signature of a bug's message; `number` is the place of its sign."""
    return f"shows-{bug}" if number == 0 else f"shows-{bug}-{number + 1}"


BUGS = RecordKind("bugs", ProgramBug)
