#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make bench: in-process costs, the egress service paired with other proxies, then aqe-shim paired with bare
# crun and runc, against the budgets.
# BENCH_ROUNDS=40 sets how many lives of a container each variant gets.  BENCH_ROWS=1000000: rows of the audit log.
set -euo pipefail

cd "$(dirname "$0")/../.."
SHIM=$PWD/build/release/aqe-shim
rc=0

# ok-base.json with a root file system that exists and without the corpus' two binds.
make_bundle() {
	mkdir -p "$1/rootfs"/{bin,dev,etc,proc,sys,tmp,run}
	cp /bin/busybox "$1/rootfs/bin/"
	ln -s busybox "$1/rootfs/bin/sleep"
	chown -R 100000:100000 "$1/rootfs"
	jq --arg root "$1/rootfs" '.root.path = $root | .process.args = ["/bin/sleep", "1000"]
		| .process.cwd = "/" | .annotations = {} | .linux.rootfsPropagation = "rprivate"
		| .linux.cgroupsPath = "/aqe-shim/bench" | .hostname = "bench"
		| .mounts |= map(select(.type != "bind"))' tests/corpus/spec/ok-base.json >"$1/config.json"
	chmod 755 "$1"
}

# The cache in one run with bare SQLite, bare Redis and, where npm can build it, better-sqlite3.
bench_cache() {
	local dir npm=build/bench/npm status=0
	dir=$(mktemp -d)
	build/release/bench/bench_cache "$dir" || status=1
	[ -d "$npm/node_modules/better-sqlite3" ] ||
		(mkdir -p "$npm" && cd "$npm" && npm_config_nodedir=/usr npm_config_build_from_source=true timeout 1800 npm install --silent --no-audit --no-fund better-sqlite3@12) >/dev/null 2>&1 || :
	node tests/bench/bench_cache.mjs "$PWD/$npm" "$dir/js.db" 2>/dev/null || echo "better-sqlite3 12: not to be had here"
	! command -v redis-benchmark >/dev/null || bench_redis "$dir"
	rm -r "$dir"
	return "$status"
}
bench_redis() {
	redis-server --unixsocket "$1/redis.sock" --port 0 --save '' --dir "$1" >/dev/null &
	local pid=$!
	while [ ! -S "$1/redis.sock" ]; do sleep 0.1; done
	redis-benchmark -s "$1/redis.sock" -n 20000 -c 1 -d 3104 -t set,get --csv | awk -F'"' 'NR > 1 { printf "redis-benchmark: %-41s %10.2f us\n", $2, $10 * 1000 }'
	kill "$pid"
	wait "$pid" || :
}

if [ "${1-}" = --inside ]; then
	mkdir -p /etc/aqe-shim
	make_bundle "$AQE_TMP/bench"
	# on the disk that the tree is on: a flush to the sandbox's tmpfs would cost nothing
	log=$(mktemp -d "$PWD/build/bench-audit-XXXXXX")
	build/release/bench/bench_cycle "$SHIM" "$AQE_TMP/bench" "${BENCH_ROUNDS:-40}" "$log" || rc=1
	rm -r "$log"
	exit "$rc"
fi
build/release/bench/bench_verify || rc=1
build/release/bench/bench_policy || rc=1
build/release/bench/bench_dial || rc=1
bench_cache || rc=1
log=$(mktemp -d "$PWD/build/bench-audit-XXXXXX")
build/release/bench/bench_audit "$log" "${BENCH_ROWS:-1000000}" || rc=1
rm -r "$log"
tests/bench/egress.sh || rc=1
tests/setup/sandbox.sh "$PWD/tests/bench/run.sh" --inside || rc=1
exit "$rc"
