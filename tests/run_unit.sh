#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs unit test programs: run_unit.sh [--valgrind] PROGRAM...
# Counts check's own cases; a program that crashes, hangs or was not built is one failure.
# The last line is "unit: N passed, N failed".
set -u

limit=180
wrap=()
if [ "${1-}" = --valgrind ]; then
	shift
	limit=900
	wrap=(valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite)
	export CK_FORK=no
fi
pass=0
fail=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for t in "$@"; do
	if [ ! -x "$t" ]; then
		echo "not ok $t: not built"
		fail=$((fail + 1))
		continue
	fi
	CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT-60} timeout -k 5 "$limit" "${wrap[@]}" "$t" >"$log" 2>&1
	rc=$?
	line=$(grep -E '^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$log" | tail -n 1)
	checks=$(sed -n 's/.*Checks: \([0-9]*\),.*/\1/p' <<<"$line")
	bad=$(sed -n 's/.*Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 + \2/p' <<<"$line")
	bad=$((bad))
	checks=$((checks))
	# no summary, a failing exit status without a failing case, or no case at all
	if [ "$checks" = 0 ] || { [ "$rc" != 0 ] && [ "$bad" = 0 ]; }; then
		bad=$((bad + 1))
		checks=$((checks + 1))
	fi
	if [ "$bad" = 0 ]; then
		echo "ok $(basename "$t"): $checks"
	else
		echo "not ok $(basename "$t"): $bad of $checks failed, exit status $rc"
		grep -vE '^(Running suite|[0-9]+%: Checks)' "$log" | head -n 60 | sed 's/^/    /'
	fi
	pass=$((pass + checks - bad))
	fail=$((fail + bad))
done
echo "unit: $pass passed, $fail failed"
[ "$fail" = 0 ]
