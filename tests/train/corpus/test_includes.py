from pathlib import Path

import pytest

from planish.core import ProgramError
from planish.levels.llvm.clang import Compiler
from planish.train.corpus.sources import SourceTree, made_up
from train.corpus.sources import write

USES = "int f(void) {{ return {0}; }}\n"


def compiles(compiler: Compiler, root: Path, stubs: Path) -> set[str]:
    """Name the files of a tree that compile by what is guessed."""
    tree = SourceTree(root, compiler.header_folders(), stubs)
    found: set[str] = set()
    for file in tree.c_files():
        try:
            compiler.to_ir(root / file, tree.flags(file))
        except ProgramError:
            continue
        found.add(file)
    return found


def header(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_headers_elsewhere_in_the_tree(compiler: Compiler, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    header(root, "include/lib/a.h", '#include "b.h"\n')
    header(root, "deep/er/b.h", "#define B 1\n")
    write(
        root / "src",
        quoted='#include "lib/a.h"\n' + USES.format("B"),
        angled="#include <lib/a.h>\n" + USES.format("B"),
    )
    assert compiles(compiler, root, tmp_path / "stubs") == {"src/quoted.c", "src/angled.c"}


def test_headers_by_the_names_that_they_are_installed_by(compiler: Compiler, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    header(root, "math/lib_math.h", "#include <lib/lib_types.h>\n#define M T\n")
    header(root, "lib_types.h", "#define T 1\n")
    write(root / "src", x="#include <lib/lib_math.h>\n" + USES.format("M"))
    assert compiles(compiler, root, tmp_path / "stubs") == {"src/x.c"}


def test_the_nearest_of_two_headers(compiler: Compiler, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    for name in ("one", "two"):
        header(root, f"{name}/include/own.h", f"#define OWN_{name} 1\n")
        write(root / name / "src", x='#include "own.h"\n' + USES.format(f"OWN_{name}"))
    assert compiles(compiler, root, tmp_path / "stubs") == {"one/src/x.c", "two/src/x.c"}


def test_the_systems_headers_go_before_replacements_of_them(compiler: Compiler, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    header(root, "compat/string.h", "#error mine\n")
    header(root, "compat/port.h", "")
    write(root, x='#include "port.h"\n#include <string.h>\n' + USES.format('(int)strlen("x")'))
    assert compiles(compiler, root, tmp_path / "stubs") == {"x.c"}


def test_headers_that_the_build_would_make(compiler: Compiler, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    header(root, "version.h.in", "#define MAJOR @MAJOR@\n")
    header(root, "win32/config.h", "#error of another system\n")
    write(
        root / "src",
        generated='#include "parser.tab.h"\n' + USES.format("1"),
        template='#include "version.h"\n' + USES.format("MAJOR"),
        config="#include <config.h>\n#ifdef HAVE_CONFIG_H\n" + USES.format("HAVE_UNISTD_H") + "#endif\n",
        other="#include <other/library.h>\n" + USES.format("1"),
    )
    found = compiles(compiler, root, tmp_path / "stubs")
    assert found == {"src/generated.c", "src/template.c", "src/config.c"}
    assert not list(root.rglob("parser.tab.h"))  # the sources stay as they are


def test_a_template_is_filled_in() -> None:
    template = "#define V @V@.${MINOR}\n# cmakedefine A @A@\n#cmakedefine B\n  #cmakedefine01 C\nint at;\n"
    assert made_up(template) == "#define V 1.1\n# define A 1\n#define B\n  #define C 1\nint at;\n"


def test_files_of_other_systems_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "win32", x=USES.format("1"))
    write(tmp_path / "src", x=USES.format("1"))
    assert SourceTree(tmp_path, [], tmp_path / "stubs").c_files() == ["src/x.c"]


@pytest.mark.parametrize("name", ["../up.h", "/abs.h"])
def test_odd_names_make_nothing_up_outside(name: str, tmp_path: Path) -> None:
    root = write(tmp_path / "tree", x=f'#include "{name}"\n')
    SourceTree(root, [], tmp_path / "stubs").flags("x.c")
    assert {path.name for path in tmp_path.iterdir()} <= {"tree", "stubs"}
    assert not list((tmp_path / "stubs").rglob("*.h"))
