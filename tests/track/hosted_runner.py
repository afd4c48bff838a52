"""What GitHub does with a workflow, as far as ours goes: jobs in order, steps with their conditions, four actions.

`run:` blocks run as they stand, by `bash -e FILE`, which is what GitHub uses where a step names no shell.
Actions do what they are documented to do: checkout clones, upload and download copy folders. An expression or an
action that is not known here is an error, so that a workflow cannot grow past what is tried.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
STEP_VALUE = re.compile(r"(steps|needs)\.(\w+)\.(?:outputs\.(\w+)|(outcome))")


@dataclass
class FinishedStep:
    """outcome: success, failure or skipped."""

    name: str
    outcome: str
    said: str = ""
    outputs: dict[str, str] = field(default_factory=dict)


@dataclass
class FinishedJob:
    """failed: a step of it failed. summary: what stands on the page of the run."""

    steps: list[FinishedStep]
    outputs: dict[str, str]
    failed: bool
    skipped: bool = False
    summary: str = ""

    def step(self, name: str) -> FinishedStep:
        return next(step for step in self.steps if step.name == name)

    @property
    def said(self) -> str:
        return "\n".join(f"== {step.name}: {step.outcome}\n{step.said}" for step in self.steps)


class HostedRunner:
    """A repository (origin: its bare clone), a folder for machines, and what is kept of each run: artifacts."""

    def __init__(self, origin: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self.origin, self.folder, self.environment = origin, folder, environment
        self.runs = 0

    def run(self, workflow: str) -> dict[str, FinishedJob]:
        """All jobs of a workflow, in the order in which they stand, needs before those that need them."""
        self.runs += 1
        self.artifacts = self.folder / f"run{self.runs}" / "artifacts"
        read = yaml.safe_load(workflow)
        jobs: dict[str, FinishedJob] = {}
        for name, job in read["jobs"].items():
            needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            known = {f"needs.{other}": jobs[other] for other in needs}
            failed = any(other.failed or other.skipped for other in known.values())
            values = {
                f"{place}.outputs.{key}": value
                for place, other in known.items()
                for key, value in other.outputs.items()
            }
            if not holds(job.get("if", "success()"), values, failed):
                jobs[name] = FinishedJob([], {}, failed=False, skipped=True)
                continue
            jobs[name] = _Machine(self, name).run(job)
        return jobs


def holds(condition: str, values: Mapping[str, str], failed: bool) -> bool:
    """A condition: parts joined by `&&`; without a status function, success() is meant too."""
    text = condition.strip()
    found = EXPRESSION.fullmatch(text)
    parts = [part.strip() for part in (found[1] if found else text).split("&&")]
    status = {"always()": True, "success()": not failed, "failure()": failed, "!cancelled()": True}
    answers = []
    for part in parts:
        if part in status:
            answers.append(status[part])
            continue
        compared = re.fullmatch(r"(\S+)\s*==\s*'([^']*)'", part)
        assert compared is not None, f"the condition {part!r} is not known to this runner"
        assert STEP_VALUE.fullmatch(compared[1]), f"the value {compared[1]!r} is not known to this runner"
        answers.append(values.get(compared[1], "") == compared[2])
    if not any(part in status for part in parts):
        answers.append(not failed)
    return all(answers)


class _Machine:
    """One job on a fresh machine: a folder of its own, nothing of other jobs but what artifacts carry."""

    def __init__(self, runner: HostedRunner, name: str) -> None:
        top = runner.folder / f"run{runner.runs}" / name
        self.runner = runner
        self.workspace, self.temp = top / "work", top / "temp"
        self.workspace.mkdir(parents=True)
        self.temp.mkdir()
        self.values: dict[str, str] = {}
        self.path = runner.environment["PATH"]
        self.failed = False

    def run(self, job: Mapping[str, Any]) -> FinishedJob:
        steps = []
        for number, step in enumerate(job["steps"]):
            name = step.get("name") or step["uses"].partition("@")[0]
            if not holds(str(step.get("if", "success()")), self.values, self.failed):
                done = FinishedStep(name, "skipped")
            elif "run" in step:
                done = self._script(name, step["run"], number)
            else:
                done = self._action(name, step["uses"], step.get("with", {}))
            if "id" in step:
                self.values[f"steps.{step['id']}.outcome"] = done.outcome
                self.values |= {f"steps.{step['id']}.outputs.{key}": value for key, value in done.outputs.items()}
            self.failed = self.failed or done.outcome == "failure"
            steps.append(done)
        outputs = {key: self._filled(value) for key, value in job.get("outputs", {}).items()}
        summaries = "".join(file.read_text() for file in sorted(self.temp.glob("summary-*")))
        return FinishedJob(steps, outputs, self.failed, summary=summaries)

    def _filled(self, text: Any) -> str:
        def value(found: "re.Match[str]") -> str:
            if found[1] == "runner.temp":
                return str(self.temp)
            assert STEP_VALUE.fullmatch(found[1]), f"the expression {found[1]!r} is not known to this runner"
            return self.values.get(found[1], "")

        return EXPRESSION.sub(value, str(text))

    def _script(self, name: str, script: str, number: int) -> FinishedStep:
        file, output = self.temp / f"script-{number}.sh", self.temp / f"output-{number}"
        file.write_text(self._filled(script))
        output.touch()
        done = subprocess.run(
            ["bash", "-e", str(file)],
            cwd=self.workspace,
            env={
                **self.runner.environment,
                "PATH": self.path,
                "RUNNER_TEMP": str(self.temp),
                "GITHUB_WORKSPACE": str(self.workspace),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(self.temp / f"summary-{number}"),
                "CI": "true",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return FinishedStep(name, "success" if done.returncode == 0 else "failure", done.stdout, outputs)

    def _action(self, name: str, uses: str, given: Mapping[str, Any]) -> FinishedStep:
        words = {key: self._filled(value) for key, value in given.items()}
        actions = {
            "actions/checkout": self._checkout,
            "actions/setup-python": self._python,
            "actions/upload-artifact": self._upload,
            "actions/download-artifact": self._download,
        }
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", uses), f"{uses} is not pinned by a commit"
        said = actions[uses.partition("@")[0]](words)
        return FinishedStep(name, "failure" if said else "success", said)

    def _checkout(self, given: Mapping[str, str]) -> str:
        depth = int(given.get("fetch-depth", "1"))
        shallow = [f"--depth={depth}"] if depth else []
        address = self.runner.origin.as_uri()
        clone = ["git", "clone", "-q", *shallow, "--branch", "main", address, str(self.workspace)]
        subprocess.run(clone, check=True)
        return ""

    def _python(self, _given: Mapping[str, str]) -> str:
        """An interpreter whose packages are its own; those that this test runs with can be imported."""
        place = self.temp / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
        site = next(place.glob("lib/python*/site-packages"))
        shared = [path for path in sys.path if path.endswith("site-packages")]
        (site / "shared.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in shared))
        for command, start in (
            ("pipebench", "from pipebench.cli.main import entry as main"),
            ("pytest", "from pytest import console_main as main"),
        ):
            script = place / "bin" / command
            script.write_text(f"#!{place / 'bin' / 'python'}\nimport sys\n{start}\nsys.exit(main())\n")
            script.chmod(0o755)
        self.path = f"{place / 'bin'}{os.pathsep}{self.path}"
        return ""

    def _upload(self, given: Mapping[str, str]) -> str:
        folders = [Path(line) for line in given["path"].splitlines() if Path(line).exists()]
        target = self.runner.artifacts / given["name"]
        for folder in folders:
            # with several paths, the least common folder is kept
            inside = target / folder.name if len(given["path"].splitlines()) > 1 else target
            shutil.copytree(folder, inside, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
        if not folders and given.get("if-no-files-found") == "error":
            return f"no files at {given['path']}"
        return ""

    def _download(self, given: Mapping[str, str]) -> str:
        source = self.runner.artifacts / given["name"]
        if not source.exists():
            return f"no artifact {given['name']}"
        shutil.copytree(source, given["path"], dirs_exist_ok=True)
        return ""
