#!/usr/bin/env bash
# One abi3 wheel in OUT, checked: what it needs, what it exports, how big it is.
# usage: wheel.sh BUILD_DIR OUT
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 out=$2 python=$1/venv/bin/python
rm -rf "$build/wheel-raw" "$out"
mkdir -p "$out"
launcher=$(command -v ccache || true)
"$python" -m build --no-isolation --wheel -o "$build/wheel-raw" -Cbuild-dir="$build/wheel" \
  ${launcher:+-Ccmake.define.CMAKE_C_COMPILER_LAUNCHER=$launcher -Ccmake.define.CMAKE_CXX_COMPILER_LAUNCHER=$launcher} \
  . > "$build/wheel.log" 2>&1 || { tail -40 "$build/wheel.log" >&2; exit 1; }
PATH=$PWD/$build/venv/bin:$PATH "$build/venv/bin/auditwheel" repair --plat manylinux_2_34_x86_64 -w "$out" "$build"/wheel-raw/*.whl \
  >> "$build/wheel.log" 2>&1 || { tail -40 "$build/wheel.log" >&2; exit 1; }
"$python" tools/check_so.py "$out"/*.whl
