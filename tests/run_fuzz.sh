#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Replays each fuzz target's stored corpus, or explores: run_fuzz.sh [--time SECONDS] PROGRAM...
# Corpus: tests/fuzz/corpus/<what>/ and, for documents, the verify corpus. A crash is kept in
# build/fuzz/crashes/. The last line is "fuzz: N passed, N failed".
set -u

cd "$(dirname "$0")/.." || exit 1
seconds=0
if [ "${1-}" = --time ]; then
	seconds=$2
	shift 2
fi
pass=0
fail=0
mkdir -p build/fuzz/crashes
log=$(mktemp)
scratch=$(mktemp -d)
trap 'rm -rf "$log" "$scratch"' EXIT

# Directories a target replays: its own, and the shared documents its name calls for.
corpus_of() {
	local what=$1
	echo "tests/fuzz/corpus/$what"
	case $what in
	*rewrite*) echo "tests/corpus/spec tests/corpus/malformed tests/samples" ;;
	*inspect*) echo "tests/corpus/inspect tests/corpus/malformed tests/samples-inspect" ;;
	json | *spec* | *verify* | oci*) echo "tests/corpus/spec tests/corpus/malformed" ;;
	http1) echo "tests/vectors/http" ;;
	*policy*) echo "tests/corpus/policy.json" ;;
	esac
}

for t in "$@"; do
	what=$(basename "$t")
	what=${what#fuzz_}
	if [ ! -x "$t" ]; then
		echo "not ok fuzz $what: not built"
		fail=$((fail + 1))
		continue
	fi
	inputs=()
	for d in $(corpus_of "$what"); do
		[ ! -e "$d" ] || mapfile -t -O "${#inputs[@]}" inputs < <(find "$d" -type f | sort)
	done
	if [ "${#inputs[@]}" = 0 ]; then
		echo "not ok fuzz $what: no corpus"
		fail=$((fail + 1))
		continue
	fi
	if [ "$seconds" = 0 ]; then
		timeout -k 5 120 "$t" -timeout=10 -artifact_prefix=build/fuzz/crashes/"$what"- "${inputs[@]}" >"$log" 2>&1
	else
		mkdir -p "$scratch/$what"
		cp "${inputs[@]}" "$scratch/$what/"
		timeout -k 5 $((seconds + 60)) "$t" -timeout=10 -max_total_time="$seconds" -print_final_stats=1 \
			-artifact_prefix=build/fuzz/crashes/"$what"- "$scratch/$what" >"$log" 2>&1
	fi
	rc=$?
	if [ "$rc" = 0 ]; then
		echo "ok fuzz $what: ${#inputs[@]} inputs$(sed -n 's/^stat::number_of_executed_units: */, runs: /p' "$log")"
		pass=$((pass + 1))
	else
		echo "not ok fuzz $what: exit status $rc"
		tail -n 40 "$log" | sed 's/^/    /'
		fail=$((fail + 1))
	fi
done
echo "fuzz: $pass passed, $fail failed"
[ "$fail" = 0 ]
