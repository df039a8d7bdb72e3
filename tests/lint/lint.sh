#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# House rules that a tool can check: lint.sh BUILD_DIR. One line a check, findings indented.
# The last line is "lint: N passed, N failed".
set -u

cd "$(dirname "$0")/../.." || exit 1
build=${1:-build/release}
here=tests/lint
pass=0
fail=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

table() { grep -v '^#' "$here/$1"; }
tracked() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ ! -f "$f" ] || echo "$f"; done; }
sources() { tracked '*.c' '*.h'; }
ours() { sources | grep -v '^tests/'; }

folder_of() {
	case $1 in
	shim/core/*) echo shim/core ;;
	*) echo "${1%%/*}" ;;
	esac
}

layers() {
	local f folder inc target allowed
	ours | while read -r f; do
		folder=$(folder_of "$f")
		allowed=$(table layers.txt | awk -F'\t' -v d="$folder" '$1 == d { print $3 }')
		[ -n "$allowed" ] || {
			echo "$f: folder '$folder' is not in layers.txt"
			continue
		}
		sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\(.*\)".*/\1/p' "$f" | while read -r inc; do
			target=$(folder_of "$inc")
			if [ "$target" = "$inc" ] || [ ! -f "$inc" ]; then
				echo "$f: include \"$inc\" is not a path from the root"
			elif [ "$target" = shim ] && [ "$folder" != shim ]; then
				echo "$f: includes $inc; nobody includes a file directly below shim/"
			elif [ "$target" != "$folder" ] && [[ " $allowed " != *" $target "* ]]; then
				echo "$f: $folder must not include $inc"
			fi
		done
	done
}

foreign() {
	local header owners f
	table foreign.txt | while IFS=$'\t' read -r header owners; do
		ours | while read -r f; do
			grep -q "^[[:space:]]*#[[:space:]]*include[[:space:]]*<$header" "$f" || continue
			[[ " $owners " == *" $f "* ]] || echo "$f: <$header> belongs to $owners only"
		done
	done
}

headers() {
	local f
	sources | grep '\.h$' | while read -r f; do
		gcc -std=gnu11 -D_GNU_SOURCE -I. -Wall -Wextra -Werror -fsyntax-only -x c "$f" 2>"$scratch/err" ||
			sed "s|^|$f alone: |" "$scratch/err" | head -n 3
	done
}

guards() {
	local f want
	ours | grep '\.h$' | while read -r f; do
		want=AQE_$(basename "$(dirname "$f")" | tr 'a-z-' 'A-Z_')_$(basename "$f" .h | tr 'a-z-' 'A-Z_')_H
		grep -q "^#ifndef $want\$" "$f" || echo "$f: guard is not $want"
	done
}

# Functions carry the prefix in small letters, const tables in capitals.
symbols() {
	local f prefix
	ours | grep '\.c$' | while read -r f; do
		[ -f "$build/${f%.c}.o" ] || continue
		prefix=$(table layers.txt | awk -F'\t' -v d="$(folder_of "$f")" '$1 == d { print $2 }')
		nm -g --defined-only "$build/${f%.c}.o" | awk -v p="$prefix" -v f="$f" \
			'NF == 3 && index(tolower($3), p) != 1 && $3 != "main" && $3 != "HARDENING_PROFILE" {
				print f ": " $3 " lacks the prefix " p }'
	done
}

# Comments and strings are not code.
code_only() {
	gcc -fpreprocessed -dD -E -P -x c "$1" 2>&1 | sed 's/"\([^"\\]\|\\.\)*"/""/g'
}

banned() {
	local f name where names
	names=$(table banned.txt | cut -f1 | paste -sd'|')
	ours | grep '\.c$' | while read -r f; do
		code_only "$f" | grep -oE "(^|[^_[:alnum:].>])($names)[[:space:]]*\(" | grep -oE '[a-z_]+' | sort -u |
			while read -r name; do
				where=$(table banned.txt | awk -F'\t' -v n="$name" '$1 == n { print $2 }')
				[[ $f == "$where"* && $f != shim/core/* ]] || echo "$f: $name() is banned here"
			done
	done
}

lengths() {
	local f n limit
	sources | while read -r f; do
		n=$(wc -l <"$f")
		limit=800
		[[ $f != *.h ]] || limit=150
		[ "$n" -le "$limit" ] || echo "$f: $n lines, limit $limit"
	done
}

# From the line of a function's opening brace (column 1, Linux style) to its closing one.
functions() {
	ours | grep '\.c$' | xargs -r awk '
		/^{/ { start = FNR }
		/^}$/ { if (start && FNR - start + 1 > 62) printf "%s:%d: function of %d lines, limit 60\n", FILENAME, start, FNR - start - 1; start = 0 }'
}

spdx() {
	local f
	{ sources; tracked Makefile '*.sh' '*.bats' '*.bash' .ci/run; } | sort -u | while read -r f; do
		head -n 2 "$f" | grep -q 'SPDX-License-Identifier: MIT' || echo "$f: no SPDX line at the top"
	done
}

width() {
	# shellcheck disable=SC2016 # awk's own variables
	ours | xargs -r awk '{ line = $0; gsub(/\t/, "        ", line); if (length(line) > 100) printf "%s:%d: %d columns\n", FILENAME, FNR, length(line) }'
}

format() { sources | xargs -r clang-format --dry-run 2>&1 | grep -E 'warning|error' | head -n 20; }
spelling() {
	tracked | grep -vE '^tests/(corpus|data|fuzz/corpus|golden)/' |
		xargs -r codespell --ignore-words "$here/spelling.txt" 2>&1
}
shell() { tracked '*.sh' '*.bash' '*.bats' .ci/run | xargs -r shellcheck -x -P SCRIPTDIR -e SC2009,SC2086,SC2046,SC2016,SC2030,SC2031,SC2317 2>&1 | head -n 60; }
local_paths() { tracked | xargs -r grep -nIE '/(farm/in|work/(main|wt|shared|steering|\.library|\.mirror))' | grep -v '^tests/lint/lint.sh:' | head; }
toplevel() {
	tracked | cut -d/ -f1 | sort -u | while read -r f; do
		case $f in
		.* | Makefile | README.md | LICENSE | shim | oci | hardening | netpolicy | cache | audit | hooks | tests) ;;
		*) echo "top level has '$f'" ;;
		esac
	done
}

run() {
	local name=$1 out
	out=$("$2")
	if [ -z "$out" ]; then
		echo "ok lint $name"
		pass=$((pass + 1))
	else
		echo "not ok lint $name"
		printf '    %s\n' "${out//$'\n'/$'\n    '}"
		fail=$((fail + 1))
	fi
}

run "layers" layers
run "third-party headers" foreign
run "headers compile alone" headers
run "header guards" guards
run "symbol prefixes" symbols
run "banned functions" banned
run "file length" lengths
run "function length" functions
run "line width" width
run "licence lines" spdx
run "format" format
run "spelling" spelling
run "shell" shell
run "paths of one machine" local_paths
run "top level" toplevel
echo "lint: $pass passed, $fail failed"
[ "$fail" = 0 ]
