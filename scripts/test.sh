#!/usr/bin/env bash
# make test: runs all tests. Prints each step with its time, and finally one line with the sums of
# all runners. A step that can't run is a failure; none is skipped silently.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh test
. scripts/environment.sh # the toolchain is chosen by now

logs=$OCTET_CACHE/logs/$(date +%Y%m%d-%H%M%S)-$$
mkdir -p "$logs"
steps=()

# Counts of a runner's log: "passed failed skipped". Knows the closing lines of cargo test,
# wasm-bindgen-test, node's test runner and pytest.
counted() {
    awk '
        /^test result: / { passed += $4; failed += $6; skipped += $8 }
        /^(ℹ|#) pass / { passed += $3 }
        /^(ℹ|#) (fail|cancelled) / { failed += $3 }
        /^(ℹ|#) (skipped|todo) / { skipped += $3 }
        /^(=+ )?[0-9]+ (passed|failed|skipped|errors?|xfailed|xpassed|deselected|warnings?)(,.*)? in [0-9.]+s/ {
            for (i = 1; i < NF; i++) {
                if ($(i + 1) ~ /^passed/) passed += $i
                else if ($(i + 1) ~ /^(failed|error)/) failed += $i
                else if ($(i + 1) ~ /^(skipped|deselected|xfailed)/) skipped += $i
            }
        }
        END { print passed + 0, failed + 0, skipped + 0 }
    ' "$1"
}

# step KIND NAME COMMAND...: runs a step and keeps a log and a result. KIND is `tests` for a runner
# that counts, or `check` for a command that is one test. Its time is given in wall-clock and CPU
# seconds.
step() {
    local kind=$1 name=$2 began=$SECONDS status=0 passed failed skipped took TIMEFORMAT='%U %S'
    shift 2
    local log=$logs/${name// /-}.log
    say "      $name …"
    { time "$@" >"$log" 2>&1 </dev/null; } 2>"$log.time" || status=$?
    took="$((SECONDS - began)) s ($(awk 'END { printf "%.0f", $1 + $2 }' "$log.time") CPU s)"
    if [ "$kind" = tests ]; then
        read -r passed failed skipped < <(counted "$log")
        # A runner that fails without a failed test, or that ran no test, is a failure itself.
        if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; }; then failed=1; fi
    else
        passed=$((status == 0)) failed=$((status != 0)) skipped=0
    fi
    printf '%s %s %s\n' "$passed" "$failed" "$skipped" >"$logs/${name// /-}.result"
    if [ "$failed" -eq 0 ]; then
        say "ok    $name: $passed passed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped"); $took"
    else
        say "FAIL  $name: $passed passed, $failed failed; $took; the end of $log:"
        tail -n 60 "$log" | sed 's/^/      | /' >&2
    fi
}

# behind starts a step in the background. beside does so as soon as fewer than two of its kind run.
# alone waits for its end.
declare -A process
pair=()
behind() {
    steps+=("$2")
    step "$@" &
    process[$2]=$!
}
beside() {
    local one running
    while
        running=()
        for one in "${pair[@]}"; do ! kill -0 "$one" 2>/dev/null || running+=("$one"); done
        [ "${#running[@]}" -ge 2 ]
    do wait -n "${running[@]}" 2>/dev/null || true; done
    behind "$@"
    pair=("${running[@]}" "$!")
}
alone() { behind "$@" && after "$2"; }
# after NAME...: waits until these steps have ended, whatever their result. A step that needs a
# failed one fails itself.
after() {
    local name
    for name in "$@"; do wait "${process[$name]}" || true; done
}
wasm() { node scripts/wasm.mjs "$@"; }
# All crates in one call, so tract is compiled once.
native() { cargo test --release --locked --features cli "${native_packages[@]}" "$@"; }

# Two builds at a time, since one leaves a core idle while it compiles tract-core. Downloads start
# first.
beside tests "native tests" native
beside check "npm packages" scripts/node-modules.sh
beside check "tools" scripts/tools.sh
beside check "corpus" scripts/corpus.sh
beside check "format" scripts/format.sh
beside check "words" node scripts/prose.mjs
beside check "structure" node scripts/structure.mjs
after "npm packages" "tools"
beside check "vendored scripts" node scripts/vendor.mjs
beside check "wasm build threads" wasm build threads
beside check "wasm build tokenizer" wasm build tokenizer
after "native tests"
beside check "command line" cargo build --release --locked --features cli
after "command line" "corpus"
# The oracle computes, while the others compile or wait for a browser, so it runs at a lower
# priority.
behind tests "oracle" nice -n 19 scripts/oracle.sh --ignore=tests/oracle/test_page.py
beside check "wasm build baseline" wasm build baseline
beside tests "cluster" nice -n 19 scripts/cluster.sh
after "wasm build threads" "wasm build tokenizer"
beside check "types" scripts/types.sh
beside check "documentation" env RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps --workspace --locked
beside tests "scripts" node --test --test-reporter=spec tests/scripts/*.test.mjs
beside check "digit model" scripts/digits.sh
after "digit model"
beside check "demo data" node scripts/demo.mjs
for browser in chromium firefox; do beside tests "threads in $browser" wasm test threads "$browser"; done
after "wasm build baseline" "threads in chromium" "threads in firefox" "demo data"
for browser in chromium firefox; do alone tests "baseline in $browser" wasm test baseline "$browser"; done
rm -rf "$OCTET_E2E_OUT" && mkdir -p "$OCTET_E2E_OUT"
alone check "wasm build node" wasm build node
alone tests "npm package" node --test --test-reporter=spec tests/package/all.mjs
alone tests "page" node --test --test-reporter=spec tests/e2e/all.mjs
# The page's tests leave their models for the oracle to check.
alone tests "models of the page" scripts/oracle.sh --numprocesses 0 tests/oracle/test_page.py
wait

passed=0 failed=0 skipped=0
for name in "${steps[@]}"; do
    if read -r p f s <"$logs/${name// /-}.result"; then
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    else
        say "FAIL  $name left no result"
        failed=$((failed + 1))
    fi
done
say "$((SECONDS / 60)) min $((SECONDS % 60)) s; logs in $logs"
printf '%s passed, %s failed%s\n' "$passed" "$failed" "$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
[ "$failed" -eq 0 ]
