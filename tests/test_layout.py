"""The layout and the import rules of docs/architecture.md."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE_MAY_USE = {"numpy", "frontier"}
TOP_LEVEL = {
    "pyproject.toml",
    "README.md",
    "Makefile",
    "LICENSE",
    "frontier",
    "verify",
    "models",
    "tests",
    "reports",
    "docs",
}


def modules(package):
    return sorted((ROOT / package).rglob("*.py"))


def imports(path):
    """Every module imported anywhere in a file, by full name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


def offending(package, allowed):
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(package)
        for name in imports(path)
        if not allowed(path, name)
    ]


def test_the_core_imports_only_the_standard_library_and_numpy():
    known = (sys.stdlib_module_names - {"time", "datetime"}) | CORE_MAY_USE
    assert not offending("frontier", lambda _, name: name.split(".")[0] in known)


def test_randomness_in_the_core_is_seeded():
    """``random.Random(seed)`` only: the module's global functions have no seed of ours."""
    for path in modules("frontier"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "random"
            ):
                assert node.attr == "Random", f"{path}:{node.lineno} uses random.{node.attr}"


def test_the_engine_imports_neither_core_nor_models():
    def allowed(path, name):
        composes = "cli" in path.relative_to(ROOT).parts or path.name == "pytest_plugin.py"
        return composes or name.split(".")[0] not in {"frontier", "models"}

    assert not offending("verify", allowed)


def test_models_never_import_the_command_line():
    assert not offending("models", lambda _, name: not name.startswith("verify.cli"))


@pytest.mark.parametrize(
    "engine", ["explorer.py", "graph.py", "model.py", "properties.py", "waitfor.py", "verdict.py"]
)
def test_the_search_knows_no_presentation(engine):
    names = list(imports(ROOT / "verify" / engine))
    assert not [n for n in names if "explain" in n or "report" in n or n.startswith("rich")]


def test_no_import_inside_a_function():
    for package in ("frontier", "verify", "models"):
        for path in modules(package):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    inner = [
                        n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)
                    ]
                    assert not inner, f"{path}: {node.name} imports inside"


def test_top_level_holds_what_the_architecture_says():
    tracked = {p.name for p in ROOT.iterdir() if not p.name.startswith(".")}
    generated = {
        name for name in tracked if name.endswith(".egg-info") or name in ("build", "mutants")
    }
    assert tracked - generated == TOP_LEVEL


def test_every_room_is_on_the_map():
    """docs/architecture.md names each module of the three packages, or the folder it is in."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    missing = []
    for package in ("frontier", "verify", "models"):
        for path in (ROOT / package).iterdir():
            known = path.is_dir() and f"`{package}/{path.name}/`" in text
            known |= path.suffix == ".py" and f"{path.name}`" in text
            if not known and path.name not in ("__init__.py", "__pycache__", "cases"):
                missing.append(f"{package}/{path.name}")
    assert not missing
