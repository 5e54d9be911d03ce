#!/usr/bin/env bash
# Tests of cluster/ with a real Ray: several nodes on this machine. Arguments go to pytest. Where
# Ray's wheel can't be installed, the tests that need it are skipped with the reason.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
[ -x "$OCTET" ] || fail "there is no program $OCTET; run cargo build --release --features cli"
if ! python=$(scripts/venv.sh ray); then
    export OCTET_WITHOUT_RAY="pip can't install the versions of cluster/requirements.txt here"
    say "$OCTET_WITHOUT_RAY; the tests with Ray are skipped"
    python=$(scripts/venv.sh)
fi
export PYTHONPATH=$checkout/cluster RAY_USAGE_STATS_ENABLED=0
case " $* " in *" cluster/tests"*) ;; *) set -- cluster/tests "$@" ;; esac
exec "$python" -m pytest -q -rsf -o tmp_path_retention_policy=failed "$@"
