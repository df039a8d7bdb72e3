#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Everything: run.sh [STAGE...]   stages: setup build unit unit-asan corpus vectors fuzz-replay lint crash integration
# Prints what failed, a summary line a stage, and last "N passed, N failed". With
# AQE_TESTS_MUST_RUN=1 a skipped test is a failure.
set -u

cd "$(dirname "$0")/.." || exit 1
jobs=${JOBS-$(nproc)}
stages=("$@")
[ $# -gt 0 ] || stages=(setup build unit corpus vectors lint unit-asan fuzz-replay crash integration)
mkdir -p build/test
: >build/test/summary
pass=0
fail=0

quiet_make() { make --no-print-directory -s -k -j"$jobs" "$@"; }

# A stage prints its details and ends with "NAME: N passed, N failed".
stage_setup() {
	tests/setup/install.sh && echo "setup: 1 passed, 0 failed" || echo "setup: 0 passed, 1 failed"
}
stage_build() {
	# a broken build fails here with its messages; the other stages then count what is missing
	if quiet_make WERROR=1 all build/release/libaqe.a && [ -x build/release/aqe-shim ]; then
		echo "build: 1 passed, 0 failed"
	else
		echo "build: 0 passed, 1 failed"
	fi
}
stage_unit() {
	quiet_make WERROR=1 unit-programs
	local programs
	mapfile -t programs < <(unit_programs release)
	tests/run_unit.sh "${programs[@]}"
}
stage_unit_asan() {
	quiet_make MODE=asan unit-programs
	local programs
	mapfile -t programs < <(unit_programs asan)
	tests/run_unit.sh "${programs[@]}"
}
# Writers of an audit log killed at random points: CRASH_ROUNDS=200.
stage_crash() {
	local dir
	quiet_make build/release/tools/audit_crash
	dir=$(mktemp -d /var/tmp/aqe-crash-XXXXXX)
	if timeout -k 5 900 build/release/tools/audit_crash "$dir/log" "${CRASH_ROUNDS-200}"; then
		echo "crash: 1 passed, 0 failed"
	else
		echo "crash: 0 passed, 1 failed"
	fi
	rm -rf "$dir"
}
stage_corpus() { tests/run_corpus.sh build/release/aqe-shim; }
stage_vectors() { tests/run_vectors.sh build/release/aqe; }
stage_fuzz_replay() { quiet_make fuzz-replay; }
stage_lint() { tests/lint/lint.sh build/release; }
stage_integration() {
	quiet_make build/release/bench/bench_egress
	tests/run_integration.sh
}

unit_programs() {
	local f
	for f in tests/unit/test_*.c; do
		[ ! -f "$f" ] || echo "build/$1/unit/$(basename "$f" .c)"
	done
}

for s in "${stages[@]}"; do
	log=build/test/$s.log
	started=$SECONDS
	"stage_${s//-/_}" >"$log" 2>&1
	last=$(grep -E '^[a-z]+: [0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
	p=$(sed -n 's/.*: \([0-9]*\) passed.*/\1/p' <<<"$last")
	f=$(sed -n 's/.* \([0-9]*\) failed$/\1/p' <<<"$last")
	# a stage that ended without its summary, or in which nothing ran, failed
	[ "$((p + f))" != 0 ] || f=1
	pass=$((pass + p))
	fail=$((fail + f))
	if [ "$f" != 0 ]; then
		# only what failed, with its indented details; the whole log if that says nothing
		awk '/^not ok/ { show = 1 } /^ok/ { show = 0 } show || /^[^ ]*(error|Error|\*\*\*)/' "$log" | head -n 200 >build/test/shown
		[ -s build/test/shown ] || tail -n 60 "$log" >build/test/shown
		cat build/test/shown
	fi
	grep -E '^# ' "$log" | head -n 20
	printf '%-12s %5d passed %4d failed  %4d s  (%s)\n' "$s" "$((p))" "$f" "$((SECONDS - started))" "$log"
done
echo "$pass passed, $fail failed" | tee build/test/summary
[ "$fail" = 0 ]
