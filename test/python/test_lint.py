"""`make lint` looks with clang-tidy at what changed and at what includes it, and at nothing twice."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lint(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("lint", ROOT / "tools/lint.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("base/a.c", "base/b.c", "base/a.h", ".clang-tidy", "build/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "tracked", lambda *_: ["base/a.c", "base/b.c"])
    module.seen, module.changed, module.findings = [], "", ""

    def run(command):
        match command[:3]:
            case ["ninja", *_]:
                return True, "a.o: #deps 2\n    ../base/a.c\n    ../base/a.h\n\nb.o: #deps 1\n    ../base/b.c\n"
            case ["git", "diff", _]:
                return True, module.changed
            case ["git", *_]:
                return True, ""
        module.seen.append(command[-1])
        return not module.findings, module.findings

    monkeypatch.setattr(module, "run", run)
    module.look = lambda everything=False: module.clang_tidy(tmp_path / "build", 1, everything)
    return module


def test_only_what_changed(lint):
    lint.changed = "base/b.c\n"
    assert lint.look() and lint.seen == ["base/b.c"]


def test_a_header_reaches_what_includes_it(lint):
    lint.changed = "base/a.h\n"
    assert lint.look() and lint.seen == ["base/a.c"]


def test_new_checks_reach_every_file(lint):
    lint.changed = ".clang-tidy\n"
    assert lint.look() and lint.seen == ["base/a.c", "base/b.c"]


def test_what_was_clean_is_not_looked_at_again(lint, tmp_path):
    lint.changed = "base/a.c\n"
    assert lint.look() and lint.look() and lint.seen == ["base/a.c"]
    (tmp_path / "base/a.h").write_text("another text")
    assert lint.look() and lint.seen == ["base/a.c", "base/a.c"]


def test_what_was_found_is_found_again(lint):
    lint.changed, lint.findings = "base/a.c\n", "base/a.c:1:1: warning: odd"
    assert not lint.look() and not lint.look() and len(lint.seen) == 2


def test_everything_on_demand(lint):
    assert lint.look(everything=True) and lint.look(everything=True) and len(lint.seen) == 4
