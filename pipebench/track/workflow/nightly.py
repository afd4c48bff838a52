"""The nightly workflow of a repository that tracks a planner.

Two jobs: what runs the planners may read the repository and nothing else; what may write runs no code of the
repository, and adds to the history only. A step that fails fails the night, but what was found before is kept.
"""

import re
import shlex
from dataclasses import dataclass

from pipebench.domain.errors import PipebenchError

MINUTES_BESIDE = 40
"""Of the job, for installing, compiling and reporting."""
BENCHMARK_MINUTES = 60
"""For all runs of the benchmarks; they have no budget of their own."""
ACTIONS = {
    "actions/checkout": ("3d3c42e5aac5ba805825da76410c181273ba90b1", "v7.0.1"),
    "actions/setup-python": ("5fda3b95a4ea91299a34e894583c3862153e4b97", "v7.0.0"),
    "actions/upload-artifact": ("bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "v7.0.0"),
    "actions/download-artifact": ("3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c", "v8.0.1"),
    "actions/upload-pages-artifact": ("fc324d3547104276b827a68afc52ff2a11cc49c9", "v5.0.0"),
    "actions/deploy-pages": ("cd2ce8fcbc39b97be8ca5fce6e763baed58fa128", "v5.0.0"),
}
"""The commit of each action, and its tag: a tag can be moved, a commit cannot. Our own workflows too use these."""
BENCHMARK_RUNS = 3
"""Processes that run the benchmarks in a night: one process is as fast as its memory lies."""
BRANCH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
CRON = re.compile(r"[0-9*,/-]+( [0-9*,/A-Za-z-]+){4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nightly:
    """What a workflow is made of. command: the line that makes it again. record: options of `track record`.

    install: command that installs the planner, pipebench, and what the benchmarks need. benchmarks: what pytest is
    given, words of a shell; empty where there are none.
    """

    command: tuple[str, ...]
    record: tuple[str, ...] = ()
    branch: str = "pipebench-history"
    budget_s: float = 1200.0
    budget: str = "20m"
    cron: str = "23 2 * * *"
    install: str = "python -m pip install ."
    python: str = "3.11"
    baselines: str = "baselines"
    benchmarks: str = ""

    def __post_init__(self) -> None:
        if not BRANCH_NAME.fullmatch(self.branch) or ".." in self.branch or self.branch.endswith(("/", ".lock")):
            raise PipebenchError(f"{self.branch!r} is not the name of a branch")
        if not CRON.fullmatch(self.cron):
            raise PipebenchError(f"{self.cron!r} is not a cron line of five fields", "such as '23 2 * * *'")
        words = (self.install, self.python, self.baselines, self.benchmarks)
        for text in (*self.command, *self.record, *words):
            if not text.isprintable() or "${{" in text:
                raise PipebenchError(f"{text!r} cannot stand in a workflow")
        try:
            shlex.split(self.benchmarks)
        except ValueError as error:
            raise PipebenchError(f"{self.benchmarks!r} are no words for pytest: {error}") from None

    @property
    def text(self) -> str:
        """The workflow file."""
        minutes = round(self.budget_s / 60)
        values = {
            "COMMAND": shlex.join(self.command),
            "CRON": self.cron,
            "MINUTES": str(minutes + MINUTES_BESIDE + (BENCHMARK_MINUTES if self.benchmarks else 0)),
            "RECORDMINUTES": str(minutes + MINUTES_BESIDE // 2),
            "PYTHON": self.python,
            "INSTALL": self.install,
            "BRANCH": self.branch,
            "BASELINES": shlex.quote(self.baselines),
            "OPTIONS": " ".join(shlex.quote(word) for word in ("--budget", self.budget, *self.record)),
            "ACKNOWLEDGED": shlex.quote(f"{self.baselines}/acknowledged.toml"),
            "BENCHMARKS": self._benchmark_step,
        }
        for name in ACTIONS:
            values[name.partition("/")[2].upper().replace("-", "")] = action(name)
        return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], TEMPLATE)

    @property
    def _benchmark_step(self) -> str:
        if not self.benchmarks:
            return ""
        values = {
            "RUNS": " ".join(str(number) for number in range(1, BENCHMARK_RUNS + 1)),
            "WORDS": " ".join(map(shlex.quote, shlex.split(self.benchmarks))),
            "BENCHMARKMINUTES": str(BENCHMARK_MINUTES),
        }
        return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], BENCHMARK_STEP)


def action(name: str) -> str:
    """An action as a workflow names it: by its commit, the tag beside it."""
    commit, tag = ACTIONS[name]
    return f"{name}@{commit} # {tag}"


BENCHMARK_STEP = """\
      - name: Run the benchmarks
        timeout-minutes: @BENCHMARKMINUTES@
        run: |
          mkdir -p "$RUNNER_TEMP/benchmarks"
          code=0
          for run in @RUNS@; do
            pytest @WORDS@ \\
              -p pipebench.testing.benchmarks --benchmark-enable \\
              --benchmark-json "$RUNNER_TEMP/benchmarks/$run.json" || code=$?
          done
          exit "$code"
"""

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
      - uses: @CHECKOUT@
        with:
          fetch-depth: 0
      - uses: @SETUPPYTHON@
        with:
          python-version: "@PYTHON@"
      - name: Install
        run: |
          @INSTALL@
      - name: Fetch the history
        id: fetch
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
          cp -R "$RUNNER_TEMP/history" "$RUNNER_TEMP/before"
@BENCHMARKS@      - name: Record the night
        id: record
        if: ${{ !cancelled() && steps.fetch.outcome == 'success' }}
        timeout-minutes: @RECORDMINUTES@
        run: |
          set -- --history "$RUNNER_TEMP/history"
          for file in "$RUNNER_TEMP"/benchmarks/*.json; do
            if [ -s "$file" ]; then set -- "$@" --benchmark-json "$file"; fi
          done
          code=0
          pipebench track record "$@" @OPTIONS@ || code=$?
          if ! diff -rq "$RUNNER_TEMP/before" "$RUNNER_TEMP/history"; then
            echo "recorded=true" >> "$GITHUB_OUTPUT"
          fi
          exit "$code"
      - name: Draw the history
        if: ${{ !cancelled() && steps.record.outputs.recorded == 'true' }}
        run: |
          pipebench track page --history "$RUNNER_TEMP/history" --acknowledged @ACKNOWLEDGED@
      - name: Check
        if: ${{ !cancelled() && steps.record.outputs.recorded == 'true' }}
        run: |
          pipebench track check --history "$RUNNER_TEMP/history" --acknowledged @ACKNOWLEDGED@ \\
            --html "$RUNNER_TEMP/report/report.html" --markdown "$RUNNER_TEMP/report/report.md"
      - name: Summary
        if: always()
        run: |
          if [ -f "$RUNNER_TEMP/report/report.md" ]; then
            cat "$RUNNER_TEMP/report/report.md" >> "$GITHUB_STEP_SUMMARY"
          fi
      - uses: @UPLOADARTIFACT@
        if: always() && steps.record.outputs.recorded == 'true'
        with:
          name: history
          path: ${{ runner.temp }}/history
          if-no-files-found: error
      - uses: @UPLOADARTIFACT@
        if: always()
        with:
          name: report
          path: |
            ${{ runner.temp }}/report
            ${{ runner.temp }}/benchmarks
          if-no-files-found: ignore
  keep:
    needs: measure
    if: always() && needs.measure.outputs.recorded == 'true'
    runs-on: ubuntu-latest
    timeout-minutes: 10
    permissions:
      contents: write
    steps:
      - uses: @CHECKOUT@
      - uses: @DOWNLOADARTIFACT@
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
