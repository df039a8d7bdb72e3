#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the built binary over tests/corpus: every file must get its index's verdict, and a
# violation must name one of the index's properties. run_corpus.sh [BINARY]
# The last line is "corpus: N passed, N failed".
set -u

cd "$(dirname "$0")/.." || exit 1
shim=${1:-build/release/aqe-shim}
policy=tests/corpus/policy.json
pass=0
fail=0

# verify options that POLICY.md asks for
info_of() {
	case $1 in
	inspect/docker-*) echo --engine-info tests/corpus/inspect/info-docker-ok.json ;;
	inspect/rootless-podman-*) echo --engine-info tests/corpus/inspect/info-podman-ok.json ;;
	esac
}

bad() {
	echo "not ok $1: $2"
	fail=$((fail + 1))
}

# "file TAB failed properties" of every document that can be read, by one run a group of files.
properties() {
	local group
	for group in "spec/*" "malformed/*" "inspect/docker-*" "inspect/rootless-podman-*" "inspect/podman-*" \
		"inspect/image-*" "inspect/info-*"; do
		# shellcheck disable=SC2046,SC2086 # patterns and words
		"$shim" verify --policy "$policy" $(info_of "$group") --format json tests/corpus/$group.json 2>&1
	done | grep '^{' | jq -r 'select(type == "object") |
		[.file, ([.properties[]? | select(.result == "fail" or .result == "unknown") | .id] | join(" "))] | @tsv' 2>&1
}

check_row() {
	local dir=$1 file=$2 verdict=$3 props=$4 name=$1/$2 out rc want got p
	case $verdict in
	conform) want=0 ;;
	violate) want=1 ;;
	malformed) want=3 ;;
	*)
		bad "$name" "index has verdict '$verdict'"
		return
		;;
	esac
	# shellcheck disable=SC2046 # two words or none
	out=$("$shim" verify --policy "$policy" $(info_of "$name") "tests/corpus/$name" 2>&1)
	rc=$?
	if [ "$rc" != "$want" ]; then
		bad "$name" "exit status $rc, wanted $want ($verdict $props): $(head -c 300 <<<"$out" | tr '\n' ' ')"
		return
	fi
	if [ "$verdict" = violate ]; then
		got=" ${failed[tests/corpus/$name]-} "
		for p in ${props//,/ }; do
			if [[ $got == *" $p "* ]]; then
				pass=$((pass + 1))
				return
			fi
		done
		bad "$name" "none of '$props' among the failed: $got"
		return
	fi
	pass=$((pass + 1))
}

declare -A failed=()
while IFS=$'\t' read -r file got; do
	[ -z "$file" ] || failed[$file]=$got
done < <(properties)

for dir in spec malformed inspect; do
	[ -f "tests/corpus/$dir/index.tsv" ] || continue
	while IFS=$'	' read -r file verdict props _; do
		case $file in '' | '#'* | file) continue ;; esac
		check_row "$dir" "$file" "$verdict" "$props"
	done <"tests/corpus/$dir/index.tsv"
done
echo "corpus: $pass passed, $fail failed"
[ "$fail" = 0 ]
