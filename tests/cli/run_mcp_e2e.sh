#!/bin/sh
# usage: run_mcp_e2e.sh GRISTMILL CLIENT.py BUILD_FOLDER
# A whole session with the official Python SDK's client, in a virtual environment below the build
# folder. Exit status 77 (skipped) where the SDK cannot be had.
set -u
gristmill=$1 client=$2 build=$3
venv=$build/mcp-venv
if ! "$venv/bin/python" -c 'import mcp' 2>/dev/null; then
  /usr/bin/python3 -m venv "$venv" &&
    timeout 240 "$venv/bin/pip" install --quiet --disable-pip-version-check 'mcp>=2.3,<3' || {
    echo "SKIPPED: the Python SDK (PyPI: mcp) cannot be installed here"
    exit 77
  }
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/docs"
cat > "$scratch/docs/quern.md" <<'END'
# Quern

## Asynchronous copies

`qn_sluice(hopper, bed, stages)` copies a tile in the background and returns a ticket.

## Arithmetic

`qn_grind(a, b, acc)` multiplies two tiles.
END
"$venv/bin/python" "$client" "$gristmill" "$scratch/run" "$scratch/docs"
