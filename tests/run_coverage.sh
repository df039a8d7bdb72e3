#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the unit tests built with MODE=cov and prints line coverage a file, least covered first.
set -u

cd "$(dirname "$0")/.." || exit 1
find build/cov -name '*.gcda' -delete
tests/run_unit.sh build/cov/unit/test_* | tail -n 1
find build/cov -name '*.gcda' ! -path '*/tests/*' -print0 | xargs -0 -r gcov -n 2>&1 |
	awk '/^File / { f = $2; gsub("\047", "", f) }
	     /^Lines executed:/ { split($0, a, /[:% ]+/); if (f !~ /^\/|^tests\//) { p[f] = a[3]; n[f] = a[5] } f = "/" }
	     END { for (f in p) { printf "%6.1f%% %5d %s\n", p[f], n[f], f; c += p[f] * n[f] / 100; t += n[f] }
	           if (t) printf "%6.1f%% %5d total\n", 100 * c / t, t }' | sort -n
