"""The nightly workflow of a repository that tracks a planner.

Two jobs: what runs the planners may read the repository and nothing else; what may write runs no code of the
repository, and adds to the history only.
"""

import re
import shlex
from dataclasses import dataclass

from pipebench.domain.errors import PipebenchError

MINUTES_BESIDE = 40
"""Of the job, for installing, compiling and reporting."""
BRANCH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
CRON = re.compile(r"[0-9*,/-]+( [0-9*,/A-Za-z-]+){4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nightly:
    """What a workflow is made of. command: the line that makes it again. record: options of `track record`."""

    command: tuple[str, ...]
    record: tuple[str, ...] = ()
    branch: str = "pipebench-history"
    budget_s: float = 1200.0
    budget: str = "20m"
    cron: str = "23 2 * * *"
    install: str = "python -m pip install ."
    python: str = "3.11"
    baselines: str = "baselines"

    def __post_init__(self) -> None:
        if not BRANCH_NAME.fullmatch(self.branch) or ".." in self.branch or self.branch.endswith(("/", ".lock")):
            raise PipebenchError(f"{self.branch!r} is not the name of a branch")
        if not CRON.fullmatch(self.cron):
            raise PipebenchError(f"{self.cron!r} is not a cron line of five fields", "such as '23 2 * * *'")
        for text in (*self.command, *self.record, self.install, self.python, self.baselines):
            if not text.isprintable() or "${{" in text:
                raise PipebenchError(f"{text!r} cannot stand in a workflow")

    @property
    def text(self) -> str:
        """The workflow file."""
        options = " ".join(shlex.quote(word) for word in ("--budget", self.budget, *self.record))
        acknowledged = shlex.quote(f"{self.baselines}/acknowledged.toml")
        values = {
            "COMMAND": shlex.join(self.command),
            "CRON": self.cron,
            "MINUTES": str(round(self.budget_s / 60) + MINUTES_BESIDE),
            "PYTHON": self.python,
            "INSTALL": self.install,
            "BRANCH": self.branch,
            "BASELINES": shlex.quote(self.baselines),
            "OPTIONS": options,
            "ACKNOWLEDGED": acknowledged,
        }
        return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], TEMPLATE)


TEMPLATE = """\
# Made by `@COMMAND@`: run that again instead of editing this file.
name: nightly
on:
  schedule:
    - cron: "@CRON@"
  workflow_dispatch:
permissions: {}
concurrency:
  group: pipebench-history
  cancel-in-progress: false
jobs:
  measure:
    runs-on: ubuntu-latest
    timeout-minutes: @MINUTES@
    permissions:
      contents: read
    outputs:
      recorded: ${{ steps.record.outputs.recorded }}
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
      - uses: actions/setup-python@v5
        with:
          python-version: "@PYTHON@"
      - name: Install
        run: |
          @INSTALL@
      - name: Fetch the history
        run: |
          code=0
          git ls-remote --exit-code --heads origin "refs/heads/@BRANCH@" || code=$?
          mkdir -p "$RUNNER_TEMP/history"
          if [ "$code" -eq 0 ]; then
            git fetch --quiet --depth 1 origin "refs/heads/@BRANCH@"
            git archive FETCH_HEAD | tar -x -C "$RUNNER_TEMP/history"
          elif [ "$code" -ne 2 ]; then
            exit "$code"
          elif [ -d @BASELINES@ ]; then
            cp -R @BASELINES@/. "$RUNNER_TEMP/history"
          fi
      - name: Record the night
        id: record
        run: |
          pipebench track record --history "$RUNNER_TEMP/history" @OPTIONS@
          echo "recorded=true" >> "$GITHUB_OUTPUT"
      - name: Check
        run: |
          pipebench track check --history "$RUNNER_TEMP/history" --acknowledged @ACKNOWLEDGED@ \\
            --html "$RUNNER_TEMP/report/report.html" --markdown "$RUNNER_TEMP/report/report.md"
      - name: Summary
        if: always()
        run: |
          if [ -f "$RUNNER_TEMP/report/report.md" ]; then
            cat "$RUNNER_TEMP/report/report.md" >> "$GITHUB_STEP_SUMMARY"
          fi
      - uses: actions/upload-artifact@v4
        if: always() && steps.record.outputs.recorded == 'true'
        with:
          name: history
          path: ${{ runner.temp }}/history
          if-no-files-found: error
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: report
          path: ${{ runner.temp }}/report
          if-no-files-found: ignore
  keep:
    needs: measure
    if: always() && needs.measure.outputs.recorded == 'true'
    runs-on: ubuntu-latest
    timeout-minutes: 10
    permissions:
      contents: write
    steps:
      - uses: actions/checkout@v4
      - uses: actions/download-artifact@v4
        with:
          name: history
          path: ${{ runner.temp }}/history
      - name: Add the night to its branch
        run: |
          code=0
          git ls-remote --exit-code --heads origin "refs/heads/@BRANCH@" || code=$?
          if [ "$code" -eq 0 ]; then
            git fetch --quiet --depth 1 origin "refs/heads/@BRANCH@"
            git checkout --quiet --detach FETCH_HEAD
          elif [ "$code" -eq 2 ]; then
            git checkout --quiet --orphan pipebench-first-night
            git rm -rfq .
          else
            exit "$code"
          fi
          cp -R "$RUNNER_TEMP/history/." .
          git add --all
          if git diff --cached --numstat -- '*.jsonl' | awk '$2 != 0 { taken = 1 } END { exit !taken }'; then
            echo "::error::the history lost lines: nothing is pushed"
            exit 1
          fi
          git -c user.name="github-actions[bot]" \\
            -c user.email="41898282+github-actions[bot]@users.noreply.github.com" \\
            commit --quiet --message "Night $(date -u +%Y-%m-%d)"
          git push origin "HEAD:refs/heads/@BRANCH@"
"""
