"""What is built is what is there."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import tqp

ROOT = Path(__file__).parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = {"tqp": "tqp", "operators": "tqp.operators", "planner": "tqp.planner", "tpch": "tqp.tpch"}


def test_every_package_is_listed() -> None:
    found = set()
    for folder, package in FOLDERS.items():
        for path in (ROOT / folder).rglob("__init__.py"):
            if not any(parent.is_symlink() for parent in path.parents if parent != ROOT):
                below = path.parent.relative_to(ROOT / folder).parts
                found.add(".".join((package, *below)))
    assert found == set(PYPROJECT["tool"]["setuptools"]["packages"])


def test_every_folder_with_modules_is_a_package() -> None:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path


def test_links_lead_to_the_mapped_folders() -> None:
    mapping = PYPROJECT["tool"]["setuptools"]["package-dir"]
    for package, folder in mapping.items():
        if package != "tqp":
            link = ROOT / "tqp" / package.removeprefix("tqp.")
            assert link.resolve() == (ROOT / folder).resolve()


def test_queries_and_type_marker_are_package_data() -> None:
    package_data = PYPROJECT["tool"]["setuptools"]["package-data"]
    assert package_data == {"tqp": ["py.typed"], "tqp.tpch": ["queries/*.sql"]}
    assert len(list((ROOT / "tpch" / "queries").glob("q*.sql"))) == 22
    assert (ROOT / "tqp" / "py.typed").exists()


def test_version_is_written_once_and_the_same() -> None:
    assert PYPROJECT["project"]["version"] == tqp.__version__


def test_every_dependency_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {_name(line) for line in lines if line and not line.startswith("#")}
    project = PYPROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    assert {_name(requirement) for requirement in wanted} <= pinned


def _name(requirement: str) -> str:
    """The normalised name in `Some_Name>=1,<2`."""
    for separator in "<>=!~[; ":
        requirement = requirement.split(separator)[0]
    return requirement.strip().lower().replace("_", "-")
