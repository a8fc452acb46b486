"""Build the documentation site: `python tools/build_docs.py --out dist/site/docs` (English, and Chinese below zh/).

The generator (zensical) comes from an environment of its own, made where there is none: `--python` names an interpreter that has it.
`--pages FOLDER` writes the Markdown alone, which needs no generator. `--url` is the address at which the documents will lie: without it
pages have no canonical address, and the maps of the site (sitemap.xml) are empty.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from docs_build.heads import finished, front_matter
from docs_build.pages import WORDS, Section, pages

from oomdoctor import __version__

GENERATOR = "zensical==0.0.73"
_LANGUAGES = ("en", "zh")


def main() -> None:
    """Write the pages, run the generator on them, and say what was made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pages", type=Path, metavar="FOLDER")
    parser.add_argument("--python", help="an interpreter with the generator installed")
    parser.add_argument("--url", help="the address of the documentation, such as https://example.org/docs/")
    parser.add_argument(
        "--page", default="..", help="the browser page's location relative to the documentation (default: the parent folder)"
    )
    asked = parser.parse_args()
    if (asked.out is None) == (asked.pages is None):
        parser.error("give --out or --pages")
    with tempfile.TemporaryDirectory() as folder:
        place = asked.pages or Path(folder)
        url = f"{asked.url.rstrip('/')}/" if asked.url else None
        for lang in _LANGUAGES:
            write(lang, place / lang, url)
        if asked.out is not None:
            python = os.path.abspath(asked.python) if asked.python else install(Path(folder) / "generator")
            for lang in _LANGUAGES:
                finish = partial(finished, lang=lang, url=url, to_page=asked.page)
                generate(python, place / lang, asked.out if lang == "en" else asked.out / lang, finish)


def write(lang: str, folder: Path, url: str | None = None) -> None:
    """Write the pages of a language, and what the generator is told of them."""
    made, sections = pages(lang)
    for path, text in made.items():
        (folder / "docs" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / path).write_text(front_matter(path, text, lang) + text, encoding="utf-8")
    for script in ("paste.js", "paste.css"):
        shutil.copyfile(Path(__file__).parent / "docs_build" / script, folder / "docs" / script)
    (folder / "zensical.toml").write_text(configuration(lang, sections, url), encoding="utf-8")


def configuration(lang: str, sections: list[Section], url: str | None = None) -> str:
    """Return the generator's own file: nothing is loaded from anywhere else, no fonts and no scripts of others."""
    words = WORDS[lang]
    other = "zh/" if lang == "en" else "../"
    nav = [{words.name: "index.md"}, *({title: [{name: path} for path, name in listed]} for title, listed in sections)]
    address = f"{url}{'zh/' if lang == 'zh' else ''}" if url else ""
    return f"""[project]
site_name = "oomdoctor"
site_url = "{address}"
extra_css = ["paste.css"]
extra_javascript = ["paste.js"]
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


def generate(python: str, folder: Path, out: Path, finish: Callable[[str, str], str]) -> None:
    """Run the generator, and put what it wrote into `out`, each page as `finish` returns it."""
    command = [str(Path(python).parent / "zensical"), "build", "--clean", "--strict"]
    environment = os.environ | {"NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    for path in sorted((folder / "site").rglob("*")):
        if path.is_file():
            to = out / path.relative_to(folder / "site")
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".html" and path.name != "404.html":
                to.write_text(finish(path.read_text(encoding="utf-8"), path.relative_to(folder / "site").as_posix()), encoding="utf-8")
            else:
                to.write_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
