"""Options and reports of all Python tests.

`--backend` chooses what the numerical tests run beside the reference execution. A test names the
requirements that it proves, `@pytest.mark.spec("T-014")`; the summary says which ones of
data/spec.tsv no passing test names (`--spec-report FILE` writes them all down).
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "numerics"))
# Compiled kernels of tests, of the stand-in driver's, too, are not among the user's. What was compiled is kept for the
# next run, where there is a build tree; a case that must not find it has a folder of its own.
BUILD = HERE.parent / "build"
if "TILEWRIGHT_CACHE_DIR" not in os.environ:
    FOLDER = BUILD / "test-cache" if os.access(BUILD, os.W_OK) else Path(tempfile.mkdtemp(prefix="tilewright-tests-"))
    os.environ["TILEWRIGHT_CACHE_DIR"] = str(FOLDER)
# NVIDIA's tools, where they are: of tools/requirements.txt (ptxas, nvdisasm), or of a toolkit.
TOOLS = [*(f"{path}/nvidia/cu13/bin" for path in sys.path), "/usr/local/cuda/bin"]
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *TOOLS])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        choices=(
            "reference",
            "cpu",
            "cuda",
            "all",
            "sm_80",
            "sm_89",
            "sm_90a",
            "sm_100a",
            "sm_120a",
        ),
        default="cpu",
        help="what to hold against the reference execution (default: the CPU back end); with the "
        "name of a GPU, kernels are only compiled for it",
    )
    parser.addoption("--spec-report", metavar="FILE", help="write the state of each requirement")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "spec(*ids): requirements of data/spec.tsv it proves")
    config.addinivalue_line("markers", "host_execution: runs on the host only; on a GPU it would hang")
    config.pluginmanager.register(SpecCoverage(config), "spec-coverage")


def pytest_itemcollected(item: pytest.Item) -> None:
    ids = [i for mark in item.iter_markers("spec") for i in mark.args]
    if ids:
        item.user_properties.append(("spec", tuple(ids)))


class SpecCoverage:
    """Collects the requirements of passed and failed tests; works under pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        with open(HERE / "data" / "spec.tsv", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        self.requirements = {row[0]: row[2] for row in rows[1:]}
        self.passed: set[str] = set()
        self.failed: set[str] = set()
        self.report = config.getoption("--spec-report")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = {i for key, value in report.user_properties if key == "spec" for i in value}
        if report.failed:
            self.failed |= ids
        elif report.when == "call" and report.passed:
            self.passed |= ids

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.passed | self.failed:
            return
        proven = (self.passed - self.failed) & self.requirements.keys()
        unknown = (self.passed | self.failed) - self.requirements.keys()
        terminalreporter.write_line(
            f"requirements: {len(proven)} of {len(self.requirements)} have only passing tests, "
            f"{len(self.failed & self.requirements.keys())} have a failing one"
        )
        if unknown:
            terminalreporter.write_line(f"not in data/spec.tsv: {', '.join(sorted(unknown))}")
        if self.report:
            self._write(proven)

    def _write(self, proven: set[str]) -> None:
        with open(self.report, "w") as file:
            for key, text in self.requirements.items():
                state = "failed" if key in self.failed else "proven" if key in proven else "-"
                file.write(f"{key}\t{state}\t{text}\n")
