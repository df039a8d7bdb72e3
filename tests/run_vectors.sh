#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the built binary over tests/vectors: every row of names, addresses and rates must get its
# expected answer from `aqe policy ... --batch`. run_vectors.sh [BINARY]
# The last line is "vectors: N passed, N failed".
set -u

cd "$(dirname "$0")/.." || exit 1
aqe=${1:-build/release/aqe}
pass=0
fail=0

# NAME FILE COMMAND EXPRESSION-OF-THE-EXPECTED-LINE ANSWER-COLUMNS
judge() {
	local name=$1 file=tests/vectors/$2 command=$3 want=$4 columns=$5 good bad out
	out=$(paste <(grep -v '^#' "$file" | tail -n +2 | awk -F'\t' "{ print $want }") \
		<("$aqe" policy "$command" --batch <"$file" | cut -f"$columns") \
		<(grep -v '^#' "$file" | tail -n +2) | awk -F'\t' -v n="$(tr -dc , <<<"$columns" | wc -c)" -v name="$name" '
			{ ok = n ? $1 == $3 && $2 == $4 : $1 == $2 }
			ok { good++; next }
			{ bad++; print "not ok " name ": " $0 }
			END { print good + 0, bad + 0 }')
	grep '^not ok' <<<"$out"
	read -r good bad < <(tail -n 1 <<<"$out")
	pass=$((pass + good))
	fail=$((fail + bad))
}

judge names domain_vectors.tsv match '$3' 1
judge addresses ip_vectors.tsv address '$3 "\t" $2' 1,2
judge rates rate_vectors.tsv simulate '$8 "\t" $9' 1,2
echo "vectors: $pass passed, $fail failed"
[ "$fail" = 0 ] && [ "$pass" -gt 1000 ]
