"""How Sphinx builds this site: `make docs`. Nothing is fetched from the network."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

import planish

project = "planish"
author = "the authors of planish"
release = version = planish.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"planish {release}"
html_static_path = ["_static"]
html_copy_source = False

# What is copied from an example of the console is its commands, without prompts and output.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

# Links of the form page.md#some-heading.
myst_heading_anchors = 3

# Docstrings put code between single backticks, as Markdown does.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
# Types as the source spells them: the full paths of private modules would be less readable.
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

DOCS = Path(__file__).parent
ROOT = DOCS.parent
# Files outside of docs/ that are pages too; a page there has an include and nothing else.
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "readme.md",
    "experiments/architecture_aware/results.md": "experiments/architecture-aware.md",
    "experiments/architecture_aware/tables.md": "experiments/architecture-aware-tables.md",
    "experiments/autotvm/results.md": "experiments/autotvm.md",
    "experiments/cc/results.md": "experiments/cc.md",
    "experiments/clock/results.md": "experiments/clock.md",
    "experiments/gevo_ml/results.md": "experiments/gevo-ml.md",
    "experiments/llvm_soundness.md": "experiments/llvm-soundness.md",
    "experiments/looptune/results.md": "experiments/looptune.md",
    "experiments/thesis_ch4/baselines.md": "experiments/thesis-ch4-baselines.md",
    "experiments/thesis_ch4/results.md": "experiments/thesis-ch4.md",
    "experiments/thesis_ch5/results.md": "experiments/thesis-ch5.md",
    "experiments/thesis_ch6/results.md": "experiments/thesis-ch6.md",
    "experiments/thesis_ch6/sampling.md": "experiments/thesis-ch6-sampling.md",
    "experiments/thesis_ch6/scaling.md": "experiments/thesis-ch6-scaling.md",
}


def relink(text: str, written: Path, shown: Path) -> str:
    """Lead links between files of the repository to pages of the site, and others to the files themselves.

    Pictures outside of docs/ stay where they are: an include with `:relative-images:` finds them.

    Args:
        text: Markdown.
        written: the folder of the file that it is in.
        shown: the folder of the page that it is shown on.
    """

    def moved(link: re.Match[str]) -> str:
        path, mark, heading = link[2].partition("#")
        file = (written / path).resolve()
        page = PAGES.get(os.path.relpath(file, ROOT))
        leads = DOCS / page if page else file
        inside = leads.is_relative_to(DOCS)
        if link[1] and not inside:
            return link[0]
        return f"{link[1] or ''}]({'' if inside else 'path:'}{os.path.relpath(leads, shown)}{mark}{heading})"

    return re.sub(r"(!\[[^\]]*)?\]\((?![a-z]+:|#)([^)\s]+)\)", moved, text)


def on_page(app: Sphinx, docname: str, text: list[str]) -> None:
    """Fix the links of a page as it is read."""
    folder = app.env.doc2path(docname).parent
    text[0] = relink(text[0], folder, folder)


def on_include(app: Sphinx, path: Path, _: str, text: list[str]) -> None:
    """Fix the links of what a page includes."""
    file = (app.srcdir / path).resolve()
    text[0] = relink(text[0], file.parent, (DOCS / PAGES[os.path.relpath(file, ROOT)]).parent)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", on_page)
    app.connect("include-read", on_include)
