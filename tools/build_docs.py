"""Build the documentation site: `python tools/build_docs.py --out dist/site/docs` (English, and Chinese below zh/).

The generator (zensical) comes from an environment of its own, made where there is none: `--python` names an interpreter that has it.
`--pages FOLDER` writes the Markdown alone, which needs no generator.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from docs_build.pages import WORDS, Section, pages

from oomdoctor import __version__

GENERATOR = "zensical==0.0.73"
_LANGUAGES = ("en", "zh")


def main() -> None:
    """Write the pages, run the generator on them, and say what was made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pages", type=Path, metavar="FOLDER")
    parser.add_argument("--python", help="an interpreter that has the generator")
    asked = parser.parse_args()
    if (asked.out is None) == (asked.pages is None):
        parser.error("give --out or --pages")
    with tempfile.TemporaryDirectory() as folder:
        place = asked.pages or Path(folder)
        for lang in _LANGUAGES:
            write(lang, place / lang)
        if asked.out is not None:
            python = asked.python or install(Path(folder) / "generator")
            for lang in _LANGUAGES:
                generate(python, place / lang, asked.out if lang == "en" else asked.out / lang)


def write(lang: str, folder: Path) -> None:
    """Write the pages of a language, and what the generator is told of them."""
    made, sections = pages(lang)
    for path, text in made.items():
        (folder / "docs" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / path).write_text(text, encoding="utf-8")
    (folder / "zensical.toml").write_text(configuration(lang, sections), encoding="utf-8")


def configuration(lang: str, sections: list[Section]) -> str:
    """Return the generator's own file: nothing is loaded from anywhere else, no fonts and no scripts of others."""
    words = WORDS[lang]
    other = "zh/" if lang == "en" else "../"
    nav = [{words.name: "index.md"}, *({title: [{name: path} for path, name in listed]} for title, listed in sections)]
    return f"""[project]
site_name = "oomdoctor"
copyright = "oomdoctor {__version__}"
nav = {_toml(nav)}
use_directory_urls = false
[project.theme]
language = "{lang}"
font = false
features = ["content.code.copy", "navigation.indexes", "navigation.sections", "navigation.top", "search.highlight", "toc.follow"]
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
[[project.extra.alternate]]
name = "{words.other}"
link = "{other}index.html"
lang = "{"zh" if lang == "en" else "en"}"
[project.markdown_extensions]
attr_list = {{}}
tables = {{}}
toc.permalink = true
pymdownx.highlight = {{}}
pymdownx.superfences = {{}}
pymdownx.inlinehilite = {{}}
"""


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {_toml(each)}" for key, each in value.items()) + "}"
    return "[" + ", ".join(map(_toml, value)) + "]" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


def install(folder: Path) -> str:
    """Make an environment with the generator, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", GENERATOR], check=True)
    return python


def generate(python: str, folder: Path, out: Path) -> None:
    """Run the generator, and put what it wrote into `out`."""
    command = [str(Path(python).parent / "zensical"), "build", "--clean", "--strict"]
    environment = os.environ | {"NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    for path in sorted((folder / "site").rglob("*")):
        if path.is_file():
            to = out / path.relative_to(folder / "site")
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
