#!/usr/bin/env bash
# make test: every test there is. Prints each step with its time, and at the very end one line that sums up
# what all runners counted. A step that can't run is a failure; nothing is skipped in silence.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh test
. scripts/environment.sh # the toolchain is chosen by now

logs=$OCTET_CACHE/logs/$(date +%Y%m%d-%H%M%S)-$$
mkdir -p "$logs"
steps=()

# What a runner's log counted: "passed failed skipped". Knows the closing lines of cargo test and
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

# step KIND NAME COMMAND...: runs it and leaves a log and a result. KIND is `tests` for a runner that counts,
# `check` for a command that is itself one test.
step() {
    local kind=$1 name=$2 began=$SECONDS status=0 passed failed skipped
    shift 2
    local log=$logs/${name// /-}.log
    say "      $name …"
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ "$kind" = tests ]; then
        read -r passed failed skipped < <(counted "$log")
        # A runner that fails without a failed test, or that ran none, is a failure itself.
        if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; }; then failed=1; fi
    else
        passed=$((status == 0)) failed=$((status != 0)) skipped=0
    fi
    printf '%s %s %s\n' "$passed" "$failed" "$skipped" >"$logs/${name// /-}.result"
    if [ "$failed" -eq 0 ]; then
        say "ok    $name: $passed passed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped"), $((SECONDS - began)) s"
    else
        say "FAIL  $name: $passed passed, $failed failed, $((SECONDS - began)) s; the end of $log:"
        tail -n 60 "$log" | sed 's/^/      | /' >&2
    fi
}

# Steps that may run side by side, two at a time (each of them is a build that fills the cores in turns).
beside() {
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
    declare_step "$2"
    step "$@" &
}
alone() { declare_step "$2"; step "$@"; }
declare_step() { steps+=("$1"); }

wasm() { node scripts/wasm.mjs "$@"; }
native() { cargo test --release --locked --features cli --package octet --package octet-kernels --package inventory --package rustfft "$@"; }

# What the other steps stand on. The builds come first, since they take longest when the cache is empty.
beside tests "native tests" native
beside check "tools" scripts/tools.sh wasm-bindgen-cli wasm-pack geckodriver
beside check "format" scripts/format.sh
beside check "npm packages" scripts/node-modules.sh
wait
beside check "wasm build threads" wasm build threads
beside check "wasm build baseline" wasm build baseline
wait
beside check "command line" cargo build --release --locked --features cli
beside check "types" scripts/types.sh
beside check "corpus" scripts/corpus.sh
beside check "vendored scripts" node scripts/vendor.mjs
wait
# The oracle computes, the tests in browsers mostly wait: it gets what they leave of the cores.
beside tests "oracle" nice -n 19 scripts/oracle.sh --ignore=tests/oracle/test_page.py
alone tests "scripts" node --test --test-reporter=spec tests/scripts/*.test.mjs
for variant in threads baseline; do
    for browser in chrome firefox; do
        alone tests "$variant in $browser" wasm test "$variant" "$browser"
    done
done
alone check "digit model" scripts/digits.sh
alone check "demo data" node scripts/demo.mjs
rm -rf "$OCTET_E2E_OUT" && mkdir -p "$OCTET_E2E_OUT"
alone tests "page" node --test --test-reporter=spec tests/e2e/all.mjs
# The page leaves the models it made for the oracle to judge.
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
