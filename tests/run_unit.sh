#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs unit test programs, one a processor: run_unit.sh [--valgrind] PROGRAM...
# Counts check's own cases; a program that crashes, hangs or was not built is one failure.
# The last line is "unit: N passed, N failed".
set -u

limit=600
wrap=()
if [ "${1-}" = --valgrind ]; then
	shift
	limit=1800
	wrap=(valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite)
	export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT-600}
fi
export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT-60}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# The failed cases of a log, without those that valgrind ended.
failed_of() { grep -E '^[^ ]+:[0-9]+:[FE]:' "$1" | grep -v 'return value 99' | cut -d: -f5; }
# tests/unit/valgrind.txt: PROGRAM CASE REASON
known_of() { awk -v p="$1" '$1 == p { print $2 }' "$(dirname "$0")/unit/valgrind.txt"; }

# Writes $out/NAME.log (the program's output) and $out/NAME.result: "passed failed exit-status".
one() {
	local t=$1 name line checks bad rc
	name=$(basename "$t")
	# a session of its own: nothing a test signals can be this script
	setsid -w timeout -k 5 "$limit" "${wrap[@]}" "$t" >"$out/$name.log" 2>&1 </dev/null
	rc=$?
	line=$(grep -E '^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$out/$name.log" | tail -n 1)
	checks=$(sed -n 's/.*Checks: \([0-9]*\),.*/\1/p' <<<"$line")
	bad=$(sed -n 's/.*Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 + \2/p' <<<"$line")
	bad=$((bad))
	checks=$((checks))
	if [ "${#wrap[@]}" != 0 ]; then
		# what a list says cannot be so under valgrind; what valgrind itself found always counts
		bad=$((bad - $(failed_of "$out/$name.log" | grep -cFx -f <(known_of "$name"))))
	fi
	# no summary, a failing exit status without a failing case, or no case at all
	if [ "$checks" = 0 ] || { [ "$rc" != 0 ] && [ "$bad" = 0 ] && [ "${#wrap[@]}" = 0 ]; }; then
		bad=$((bad + 1))
		checks=$((checks + 1))
	fi
	echo "$((checks - bad)) $bad $rc" >"$out/$name.result"
}

jobs_max=${JOBS-$(nproc)}
for t in "$@"; do
	one "$t" &
	[ "$(jobs -rp | wc -l)" -lt "$jobs_max" ] || wait -n
done
wait

pass=0
fail=0
for t in "$@"; do
	name=$(basename "$t")
	read -r p f rc <"$out/$name.result"
	if [ "$f" = 0 ]; then
		echo "ok $name: $p"
	else
		echo "not ok $name: $f of $((p + f)) failed, exit status $rc"
		grep -vE '^(Running suite|[0-9]+%: Checks)' "$out/$name.log" | head -n 60 | sed 's/^/    /'
	fi
	pass=$((pass + p))
	fail=$((fail + f))
done
echo "unit: $pass passed, $fail failed"
[ "$fail" = 0 ]
