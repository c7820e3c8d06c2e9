#!/bin/bash
# Everything of docs/first-hour.md, in a fresh environment; prints what each step takes, and the page's table with
# these times.
#
#     tools/first-hour.sh [FOLDER]      FOLDER: for the environment and all files; a temporary one by default
#
# Needs Python 3.11 or newer, a C compiler, clang, and LLVM of the same major version.
set -euo pipefail

checkout=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
export PLANISH_STORE=$folder/planish.db PLANISH_CACHE=$folder/cache
times=()

step() {
    local name=$1 began=$EPOCHREALTIME
    shift
    set +e
    (set -e; "$@") >"$folder/$name.log" 2>&1
    local code=$?
    set -e
    if ((code)); then
        echo "$name failed:" >&2
        tail -n 20 "$folder/$name.log" >&2
        exit "$code"
    fi
    times+=("$(awk -v began="$began" -v ended="$EPOCHREALTIME" 'BEGIN { printf "%.0f", ended - began }')")
    printf '%-12s %5d s\n' "$name" "${times[-1]}"
}

install() {
    python3 -m venv "$folder/env"
    "$folder/env/bin/pip" install "$checkout[graph,serve]"
}

from_python() {
    python - "$folder/run" <<'PYTHON'
import sys

import numpy as np
import planish

result = planish.tune("C[m,n] += A[m,k] * B[k,n]", size={"m": 192, "n": 192, "k": 192}, seconds=20)
print(result)
open(sys.argv[1], "w").write(result.run.id)
a, b = (np.random.rand(192, 192).astype("float32") for _ in range(2))
np.testing.assert_allclose(result(a, b), a @ b, rtol=1e-4)
np.testing.assert_allclose(planish.einsum("mk,kn->mn", a, b), a @ b, rtol=1e-4)
PYTHON
}

from_c() {
    planish export "$(cat "$folder/run")" "$folder/kernel" --name kernel
    cat >"$folder/main.c" <<'C'
#include <stdio.h>
#include "kernel.h"

static float A[192 * 192], B[192 * 192], C[192 * 192];

int main(void)
{
    for (int i = 0; i < 192 * 192; i++) A[i] = 1, B[i] = 2;
    kernel(A, B, C);
    printf("%g\n", C[0]);
    return 0;
}
C
    cc -I"$folder/kernel" "$folder/main.c" "$folder/kernel/kernel.s" -o "$folder/main"
    test "$("$folder/main")" = 384
}

smaller() {
    cp -r "$checkout/examples/wordcount" "$folder/wordcount"
    make -C "$folder/wordcount" CC="planish cc" CFLAGS=-Oz
    planish report "$folder/wordcount"
    "$folder/wordcount/wordcount" "$checkout/README.md"
}

network() {
    planish compile "$checkout/examples/graph/cnn-small-torchscript.onnx" -o "$folder/net"
}

live() {
    planish dashboard --port 0 --no-browser >"$folder/address" &
    local server=$!
    until grep -q Ctrl-C "$folder/address"; do sleep 0.1; done
    python -c '
import re, sys, urllib.request
address = re.search(r"http://\S+", open(sys.argv[1]).read())[0]
assert "<h1>Runs</h1>" in urllib.request.urlopen(address).read().decode()' "$folder/address"
    kill "$server"
    wait "$server"
}

searcher() {
    pip install "$checkout/examples/plugin_searcher"
    planish tune "$checkout/benchmarks/llvm_functions/utf8.ll" --searcher climb --trials 20
}

step install install
PATH=$folder/env/bin:$PATH
step python from_python
step c from_c
step smaller smaller
step network network
step report planish report "$(cat "$folder/run")" -o "$folder/report.html"
step live live
step searcher searcher
echo "All files are in $folder."
echo
grep -hE " in all |against ONNX Runtime's" "$folder/smaller.log" "$folder/network.log"
awk -v times="${times[*]}" 'BEGIN { split(times, time, " ") }
    /^\| / && !/^\| you get/ { sub(/\| [^|]*\|$/, "| " time[++row] " s |") }
    /^\|/' "$checkout/docs/first-hour.md"
