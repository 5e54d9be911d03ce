#!/usr/bin/env bash
# make fuzz: gives damaged files to the targets of crates/fuzz, guided by the branches that they reach.
#
#   scripts/fuzz.sh [TARGET …]   all targets where none is named
#     OCTET_FUZZ_SECONDS   seconds for each target; 60 by default
#
# A file that breaks a promise is kept under target/fuzz in the cache, and its path is printed. The
# corpus of each target is kept there, too, and made small again after each run.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
scripts/setup.sh serve
. scripts/environment.sh # the toolchain is chosen by now
seconds=${OCTET_FUZZ_SECONDS:-60}
cargo_fuzz=0.13.2
tools=$OCTET_CACHE/tools
if ! at_least "$cargo_fuzz" "$(cargo fuzz --version 2>/dev/null | awk '{ print $2 }')"; then
    say "installing cargo-fuzz $cargo_fuzz"
    cargo install --quiet --locked --root "$tools" --version "$cargo_fuzz" cargo-fuzz
fi
# The counters of branches are an option of the compiler's LLVM that stable compilers take, too. The
# address sanitizer is not, and Octet has few unsafe lines; Miri and the kernels' tests cover these.
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$OCTET_CACHE/target/fuzz
seeds() { CARGO_TARGET_DIR=$OCTET_CACHE/target cargo run --quiet --release --locked -p octet-fuzz --example seeds -- "$@"; }
fuzz() { cargo fuzz "$1" --fuzz-dir fuzz --sanitizer none "${@:2}"; }
targets=("$@")
[ "${#targets[@]}" -gt 0 ] || mapfile -t targets < <(seeds)
status=0
for target in "${targets[@]}"; do
    corpus=$OCTET_CACHE/fuzz/corpus/$target
    found=$OCTET_CACHE/fuzz/found/$target
    mkdir -p "$corpus" "$found"
    seeds "$target" "$corpus"
    say "$target: $seconds s"
    # Ten seconds, 2 GiB and a mebibyte are the limits of a file.
    if fuzz run "$target" "$corpus" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=1048576 \
        -artifact_prefix="$found/" -print_final_stats=1 -verbosity=0; then
        fuzz cmin "$target" "$corpus" >/dev/null 2>&1 || say "$target: the corpus is not made smaller"
    else
        status=1
    fi
    say "$target: $(find "$corpus" -type f | wc -l) files in the corpus, $(find "$found" -type f | wc -l) that break a promise in $found"
done
exit "$status"
