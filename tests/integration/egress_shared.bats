#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The rate limit that egress services share through Redis: two services, one redis-server that is
# frozen, killed and started again; and a soak of the limit alone on the real clock through restart,
# reload and suspend of the service (SOAK_S seconds; 180 for the README's figure).

bats_require_minimum_version 1.5.0

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	EGRESS=$(realpath "${AQE_EGRESS-$ROOT/build/release/aqe-egress}")
	export ROOT EGRESS
}

# in_lab FUNCTION: runs it in a new network, with the lab's functions.
in_lab() {
	export LAB=$BATS_TEST_TMPDIR
	: >"$LAB/origin.jsonl"
	# shellcheck disable=SC2163 # the function whose name it holds
	export -f "$1"
	unshare -n -m --fork --pid --mount-proc --kill-child bash -c '
		set -eu; [ -z "${LAB_TRACE-}" ] || set -x
		. "$ROOT/tests/integration/egress/lab.bash"
		shared() { python3 "$HERE/shared.py" "$1" "$LAB" "${@:2}"; }
		lab_network
		lab_origin 10.66.0.2 80 http
		"$1"' - "$1" >"$LAB/out" 2>&1 || {
		tail -n 60 "$LAB/out" "$LAB/egress.err"
		return 1
	}
}

@test "two services share a limit: exact together, one server's failures hurt nobody" {
	body() {
		install -m 600 /dev/null "$LAB/password"
		echo "a secret" >"$LAB/password"
		lab_policy '"sharedRate":{"perMinute":1200,"perHour":1000000,"burst":60}'
		sed -i 's|"network":{|"network":{"cluster":{"address":"127.0.0.1:6390","passwordFile":"'"$LAB"'/password","db":2,"timeoutMs":20000},|' "$LAB/policy.json"
		shared two_services
	}
	in_lab body
}

@test "the server away: local goes on and says so, deny refuses; neither waits" {
	body() {
		lab_policy '"sharedRate":{"perMinute":1200,"perHour":1000000,"burst":60}'
		sed -i 's|"network":{|"network":{"cluster":{"address":"127.0.0.1:6390"},|' "$LAB/policy.json"
		shared away_local
		sed -i 's|"address":|"onStoreError":"deny","address":|' "$LAB/policy.json"
		shared away_deny
	}
	in_lab body
}

@test "the server by TLS: certificate, name and authority are checked" {
	body() {
		local n
		for n in redis other; do
			openssl req -x509 -newkey rsa:2048 -nodes -keyout "$LAB/$n.key" -out "$LAB/$n.pem" -days 2 -subj /CN=$n.test \
				-addext "subjectAltName=DNS:$n.test,IP:127.0.0.1" 2>/dev/null
		done
		echo "127.0.0.1 redis.test" >>"$LAB/hosts"
		lab_policy
		shared tls
	}
	in_lab body
}

@test "the local limiter comes first; the key is the type's or the agent's; a reload changes the limit" {
	body() {
		lab_policy
		sed -i 's|"network":{|"network":{"cluster":{"address":"127.0.0.1:6390","prefix":"p:","share":"agent","timeoutMs":20000},|' "$LAB/policy.json"
		shared keys
	}
	in_lab body
}

@test "soak: four clients get what is due, never more; restart, reload and suspend in the middle" {
	body() {
		lab_policy
		shared soak "${SOAK_S-12}"
	}
	in_lab body
	echo "# $(grep '^soak' "$BATS_TEST_TMPDIR/out")" >&3
}
