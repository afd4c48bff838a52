"""A generated package, made importable as pip would leave it: code on the path, metadata beside it."""

import tomllib
from pathlib import Path


def install_generated(package: Path, folder: Path) -> list[str]:
    """Write the metadata of a generated package into `folder`; what to put on the import path."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [f"{name} = {module}" for name, module in project["entry-points"]["pipebench"].items()]
    (info / "entry_points.txt").write_text("[pipebench]\n" + "\n".join(lines) + "\n")
    return [str(folder), str(package / "src")]
