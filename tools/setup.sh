#!/usr/bin/env bash
# Install what a group of targets needs: Debian packages (root or sudo) and, for `build`, the venv.
# usage: setup.sh BUILD_DIR build|lint|test
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 group=$2
mkdir -p "$build/stamp"

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo > /dev/null; then sudo "$@"; else
  say "these packages are missing and this is neither root nor is sudo there; as root, run:"; echo "  $*" >&2; return 1; fi; }

apt_install() {
  [ $# -gt 0 ] || return 0
  command -v apt-get > /dev/null || { say "not a Debian machine: install $* (or what your system calls them) and try again"; exit 1; }
  say "installing Debian packages: $*"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" > "$build/stamp/apt.log" ||
    { tail -20 "$build/stamp/apt.log" >&2; exit 1; }
}

missing=()
while read -r in_group name file; do
  [ "$in_group" = "$group" ] || continue
  if [ "$file" = - ]; then
    dpkg-query -W -f '${db:Status-Status}' "$name" 2> /dev/null | grep -qx installed || missing+=("$name")
  else
    [ -e "$file" ] || missing+=("$name")
  fi
done < <(grep -v '^#' tools/packages.txt)
if [ "$group" = build ]; then
  command -v python3 > /dev/null || missing+=(python3 python3-dev python3-venv)
fi
apt_install "${missing[@]}"

if [ "$group" = build ]; then
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { say "Python 3.11 or newer is needed; python3 is $(python3 --version)"; exit 1; }
  # Debian ships the venv module and the headers apart from the interpreter.
  missing=()
  python3 -c 'import ensurepip, venv' 2> /dev/null || missing+=(python3-venv)
  [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] || missing+=(python3-dev)
  apt_install "${missing[@]}"

  venv=$build/venv
  [ -x "$venv/bin/python" ] || { say "creating $venv"; python3 -m venv "$venv"; }
  if ! "$venv/bin/python" tools/check_requirements.py 2> /dev/null; then
    say "installing Python packages into $venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check -r tools/requirements.txt
  fi
  # A venv that is a link is shared by several checkouts: none of them may become its tilewright.
  if [ ! -L "$venv" ]; then
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "$PWD/python" > "$site/tilewright-dev.pth"
    printf '#!/bin/sh\nexec "%s" -m tilewright "$@"\n' "$PWD/$venv/bin/python" > "$venv/bin/tilewright"
    chmod +x "$venv/bin/tilewright"
  fi
  touch "$build/stamp/setup"
else
  touch "$build/stamp/$group"
fi
