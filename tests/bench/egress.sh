#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The egress service in one run with tinyproxy, squid, haproxy and no proxy at all, against the budgets:
# egress.sh [FILTER of the variants]. BENCH_ROUNDS=5 and BENCH_SECONDS=2 a measurement. The peers are
# installed when they are missing (without starting them). All is in a network of its own: client on
# CPU 0, origin behind a veth pair on CPU 0, the proxy on CPU 1. Rounds are interleaved, medians printed;
# a ratio is to the direct one of the same round. CPU is the proxy's whole process group; the service's
# keeper, which makes the audit log durable, is also counted for itself.
set -euo pipefail

cd "$(dirname "$0")/../.."
ROUNDS=${BENCH_ROUNDS:-5} SECONDS_EACH=${BENCH_SECONDS:-2}
BENCH=$PWD/build/release/bench/bench_egress
export LAB EGRESS=$PWD/build/release/aqe-egress

if [ "${1-}" != --inside ]; then
	tests/setup/install.sh --for bench
	LAB=$(mktemp -d "$PWD/build/bench-egress-XXXXXX")
	chmod 755 "$LAB"
	rc=0
	unshare -n -m --pid --fork --mount-proc --kill-child bash ${BENCH_TRACE:+-x} "$0" --inside "$@" || rc=$?
	rm -rf "$LAB"
	exit "$rc"
fi
shift

# shellcheck source=tests/integration/egress/lab.bash
. tests/integration/egress/lab.bash

TARGET=10.66.0.2:8000
declare -A PLACE=([direct]=- [aqe]=127.0.0.1:3128 [tinyproxy]=127.0.0.1:8888 [squid]=127.0.0.1:8889 [haproxy]=127.0.0.1:8890)
declare -A PID=()
VARIANTS=(direct aqe tinyproxy squid haproxy)
TICK=$(getconf CLK_TCK)

# In a session of its own, so that all of its processes are found.
start() {
	local name=$1
	shift
	setsid taskset -c 1 "$@" >"$LAB/$name.out" 2>&1 &
	PID[$name]=$!
	[ "$name" = aqe ] || lab_wait "ss -Hltn | grep -q '${PLACE[$name]} '" || { tail -n 20 "$LAB/$name.out" "$LAB"/squid/cache.log >&2; return 1; }
}
# Without this a round would measure the rounds before it: every connection that the proxy ended keeps its
# port for a minute, and with 28,000 ports to one place taken connect(2) looks at all of them, milliseconds each.
forget_ended() {
	sysctl -qw net.ipv4.tcp_max_tw_buckets=64
	lab_in_origin sysctl -qw net.ipv4.tcp_max_tw_buckets=64
}
members() { awk -v s="${PID[$1]}" '$6 == s { print $1 }' /proc/[0-9]*/stat 2>/dev/null; }
# CPU seconds that a variant has used so far.
cpu() {
	[ "$1" != direct ] || { echo 0 && return; }
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v s="${PID[$1]}" -v t="$TICK" '$6 == s { n += $14 + $15 } END { print n / t }'
}
# The same of the process that makes the audit log durable: none of the others does.
cpu_audit() {
	[ "$1" = aqe ] || { echo 0 && return; }
	awk -v t="$TICK" '{ print ($14 + $15) / t }' "/proc/${PID[aqe]}/stat"
}
memory() { # KEY of smaps_rollup, kB
	local p
	for p in $(members "$1"); do cat "/proc/$p/smaps_rollup"; done 2>/dev/null | awk -v k="$2:" '$1 == k { n += $2 } END { print n + 0 }'
}

start_aqe() {
	lab_policy ""
	sed -i 's/"allowed.test",/"allowed.test","allowed.test:8000",/; s/100000,"perHour":1000000,"burst":100000/1000000,"perHour":1000000,"burst":1000000/' "$LAB/policy.json"
	mkdir -m 700 "$LAB/audit"
	mkfifo "$LAB/ready"
	# the audit log that a container's service writes too: SQLite, a durable row before any byte
	start aqe "$EGRESS" --type qe-lab --policy "$LAB/policy.json" --listen 127.0.0.1:3128 --audit "$LAB/audit" --ready-fd 7 7<>"$LAB/ready"
	read -r -n 1 -t 20 <>"$LAB/ready" || { cat "$LAB/aqe.out" && return 1; }
}
start_peers() {
	cat >"$LAB/tinyproxy.conf" <<-C
		Port 8888
		Listen 127.0.0.1
		Timeout 600
		LogFile "$LAB/tinyproxy.log"
		LogLevel Connect
		MaxClients 500
		DisableViaHeader Yes
	C
	cat >"$LAB/squid.conf" <<-C
		http_port 127.0.0.1:8889
		acl good dstdomain allowed.test
		http_access allow good
		http_access deny all
		cache deny all
		cache_mem 8 MB
		pid_filename none
		access_log stdio:$LAB/squid/log
		cache_log $LAB/squid/cache.log
		coredump_dir $LAB/squid
		visible_hostname bench
		pinger_enable off
		max_filedescriptors 4096
	C
	cat >"$LAB/haproxy.conf" <<-C
		global
			nbthread 1
		defaults
			timeout connect 5s
			timeout client 60s
			timeout server 60s
		listen web
			mode http
			bind 127.0.0.1:8890
			server o $TARGET
		listen relay
			mode tcp
			bind 127.0.0.1:8891
			server o $TARGET
	C
	install -d -o proxy "$LAB/squid"
	start tinyproxy tinyproxy -d -c "$LAB/tinyproxy.conf"
	start squid squid -N -f "$LAB/squid.conf"
	start haproxy haproxy -db -f "$LAB/haproxy.conf"
}

# measure VARIANT WHAT [N]: "operations/s cpu/operation p99 audit's-cpu/operation"
measure() {
	local name=$1 what=$2 proxy=${PLACE[$1]} target="$TARGET=allowed.test:8000" before after out audit
	if [ "$name" = haproxy ]; then # it cannot end a CONNECT: a relay, and a reverse proxy
		proxy=- target=127.0.0.1:8891
		[ "$what" != http ] || target=${PLACE[haproxy]}
	fi
	before=$(cpu "$name") audit=$(cpu_audit "$name")
	out=$(taskset -c 0 "$BENCH" "$what" "$proxy" "$target" "$SECONDS_EACH" "${@:3}")
	after=$(cpu "$name")
	awk -v b="$before" -v a="$after" -v d="$(cpu_audit "$name")" -v c="$audit" \
		'{ printf "%.3f %.12f %s %.12f\n", $1 / $2, (a - b) / ($1 + 1), $3, (d - c) / ($1 + 1) }' <<<"$out"
}

lab_network
forget_ended
mount -t tmpfs -o mode=1777 shm /dev/shm # squid leaves its segments
lab_in_origin taskset -c 0 "$BENCH" origin "$TARGET" &
lab_wait "lab_in_origin ss -Hltn | grep -qF '$TARGET '"
start_aqe
start_peers
echo "egress: $ROUNDS rounds of $SECONDS_EACH s, load $(cut -d' ' -f1 /proc/loadavg) before, $(nproc) CPUs"
rss=$(memory aqe Rss) pss=$(memory aqe Pss)
for round in $(seq "$ROUNDS"); do
	for what in setups bulk:1 bulk:8 http; do
		for name in "${VARIANTS[@]}"; do
			# shellcheck disable=SC2086 # name and number
			echo "$what $name $round $(measure "$name" ${what/:/ })"
		done
	done
done >"$LAB/rows"
echo "RSS after the load, kB: $(for v in aqe tinyproxy squid haproxy; do echo -n "$v $(memory "$v" Rss)  "; done)"
python3 tests/bench/egress.py "$LAB/rows" "$rss" "$pss"
