#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The egress service in a network of its own: real sockets, real origins on other addresses. Each
# test makes its network with unshare(1) and leaves nothing. Containers: egress_containers.bats.

bats_require_minimum_version 1.5.0

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	EGRESS=$(realpath "${AQE_EGRESS-$ROOT/build/release/aqe-egress}")
	BENCH=$ROOT/build/release/bench/bench_egress
	export ROOT EGRESS BENCH
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
		scenario() { python3 "$HERE/scenarios.py" "$1" "$LAB" "$LAB_EGRESS" "${@:2}"; }
		load() { PYTHONDONTWRITEBYTECODE=1 python3 "$HERE/load.py" "$1" "$LAB" "$LAB_EGRESS"; }
		export LAB_EGRESS=
		lab_network
		"$1"' - "$1" >"$LAB/out" 2>&1 || {
		tail -n 40 "$LAB/out" "$LAB/egress.err" || :
		return 1
	}
}
web() { lab_origin 10.66.0.2 80 http 10.66.0.3 80 http 10.66.0.2 443 echo 10.66.0.3 443 echo 10.66.0.2 8443 echo 10.66.0.2 8080 http; }
export -f web

@test "all 105 files of tests/vectors/http" {
	body() {
		lab_policy '"limits":{"headerMs":1500}'
		web
		lab_egress
		python3 "$HERE/vectors.py" "$ROOT/tests/vectors/http" "$LAB/origin.jsonl" "$LAB/audit.jsonl"
	}
	in_lab body
}

@test "U34: names that lead to loopback, metadata, own and private addresses" {
	body() {
		lab_policy
		web
		lab_egress
		scenario addresses
		scenario rebinding
	}
	in_lab body
}

@test "U35: a denied name causes no DNS packet" {
	body() {
		lab_policy
		web
		lab_egress
		coproc DNS { lab_in_origin python3 "$HERE/scenarios.py" names "$LAB"; }
		read -r _ <&"${DNS[0]}"
		curl -s -x http://127.0.0.1:3128 http://secret.evil.test/ | grep -q domain_not_allowed
		curl -s -p -x http://127.0.0.1:3128 https://secret2.evil.test/ && return 1
		curl -s -x http://127.0.0.1:3128 http://asked.wild.test/ | grep -q dns_failed
		local pid=$DNS_PID
		echo >&"${DNS[1]}"
		wait "$pid"
	}
	in_lab body
}

@test "SOCKS5: names, addresses, commands, replies" {
	body() {
		lab_policy
		web
		lab_egress --socks 127.0.0.1:1080
		scenario socks
	}
	in_lab body
}

@test "SNI is enforced" {
	body() {
		lab_policy '"limits":{"firstByteMs":1500}'
		web
		lab_egress
		scenario sni
	}
	in_lab body
}

@test "bulk both ways, half-close" {
	body() {
		lab_policy
		sed -i 's/"allowed.test",/"allowed.test","allowed.test:8443","allowed.test:8080",/' "$LAB/policy.json"
		web
		lab_egress
		scenario bulk
		scenario half_close
	}
	in_lab body
}

@test "responses: malformed ones are not passed on" {
	body() {
		lab_policy '"timeoutMs":1500'
		web
		lab_egress
		scenario responses
	}
	in_lab body
}

@test "kept connections: reused, and replaced when they died" {
	body() {
		lab_policy
		web
		lab_egress
		scenario keep_alive
	}
	in_lab body
}

@test "upgrade to WebSocket: refused, tunnelled by policy" {
	body() {
		lab_policy
		web
		lab_egress
		scenario websocket refused
		lab_end
		lab_policy '"webSocket":true'
		lab_egress
		scenario websocket tunnelled
	}
	in_lab body
}

@test "limits: slow heads, floods, tunnels, bytes" {
	body() {
		lab_policy '"limits":{"headerMs":2000,"tunnels":3,"bytesUp":1000000}'
		sed -i 's/"allowed.test",/"allowed.test","allowed.test:8443",/' "$LAB/policy.json"
		web
		lab_egress
		scenario slowloris
		scenario flood
		scenario tunnels_limit
		scenario byte_cap
	}
	in_lab body
}

@test "load: what 64 tunnels carry in ten minutes, as fast as it goes: memory flat, descriptors as before" {
	body() {
		lab_policy '"limits":{"tunnels":96}'
		sed -i 's/"allowed.test",/"allowed.test","allowed.test:8000",/; s/"perMinute":100000,/"perMinute":1000000,/; s/"burst":100000/"burst":1000000/' "$LAB/policy.json"
		lab_in_origin "$BENCH" origin 10.66.0.2:8000 &
		lab_wait "lab_in_origin ss -Hltn | grep -qF 10.66.0.2:8000"
		lab_egress
		load soak
	}
	in_lab body
}

@test "load: slow clients and floods at each front end: HTTP, SOCKS, TLS, Host, DNS" {
	body() {
		lab_policy '"limits":{"headerMs":2000}'
		web
		lab_egress --socks 127.0.0.1:1080 --tls 127.66.0.1:443 --http 127.66.0.1:80 --dns 127.0.0.1:53
		load fronts
	}
	in_lab body
}

@test "rate limit: exact wait; denied names cost nothing" {
	body() {
		lab_policy '"rate":{"perMinute":5,"perHour":100,"burst":3}'
		sed -i 's/"rate":{"perMinute":100000,"perHour":1000000,"burst":100000},//' "$LAB/policy.json"
		web
		lab_egress
		scenario rate
	}
	in_lab body
}

@test "U40: four verdicts in both modes: a row each with the same fields, and nothing secret" {
	body() {
		local mode
		web
		for mode in enforce report; do
			lab_policy "\"mode\":\"$mode\",\"rate\":{\"perMinute\":5,\"perHour\":100,\"burst\":2}"
			sed -i 's/"rate":{"perMinute":100000,"perHour":1000000,"burst":100000},//' "$LAB/policy.json"
			rm -f "$LAB/audit.jsonl"
			lab_egress
			scenario four_verdicts "$mode"
			lab_end
		done
	}
	in_lab body
}

@test "identical denials are counted" {
	body() {
		lab_policy
		web
		lab_egress
		scenario denials
		lab_end
		scenario repeated
	}
	in_lab body
}

@test "records of ends: stored with the next decision, alone within a moment, all of them when the service ends" {
	body() {
		lab_policy
		web
		mkdir -m 700 "$LAB/log"
		rm -f "$LAB/ready"
		mkfifo "$LAB/ready"
		"$EGRESS" --type qe-lab --policy "$LAB/policy.json" --listen 127.0.0.1:3128 --audit "$LAB/log" --ready-fd 7 7<>"$LAB/ready" 2>>"$LAB/egress.err" &
		LAB_EGRESS=$!
		read -r -n 1 -t 20 <"$LAB/ready"
		scenario ends
		lab_end
		lab_egress
		curl -s -x http://127.0.0.1:3128 http://allowed.test/ >"$LAB/body"
		lab_end
		# nothing waited any longer, and the end comes before the service's own
		tail -n 2 "$LAB/audit.jsonl" | jq -sce 'map(.phase + " " + .reason) == ["close ended", "event stopped"]'
	}
	in_lab body
}

@test "processes: confined; killed four times, the fifth closes; tokens stay spent" {
	body() {
		lab_policy
		web
		lab_egress
		scenario confined
		scenario killed
		wait "$LAB_EGRESS" && return 1
		lab_policy '"rate":{"perMinute":5,"perHour":100,"burst":3}'
		sed -i 's/"rate":{"perMinute":100000,"perHour":1000000,"burst":100000},//' "$LAB/policy.json"
		rm "$LAB/audit.jsonl"
		lab_egress
		scenario remembers
	}
	in_lab body
}

@test "processes: a worker or dialer that hangs is given up, started again and counted" {
	body() {
		lab_policy
		web
		lab_egress --metrics "$LAB/metrics.sock"
		scenario hung
	}
	in_lab body
}

@test "reload: denied tunnels end, a bad policy changes nothing" {
	body() {
		lab_policy
		sed -i 's/"\*.wild.test"/"*.wild.test","allowed.test:8443","x.wild.test:8443"/' "$LAB/policy.json"
		web
		lab_egress
		scenario reload
	}
	in_lab body
}

@test "without an audit nothing is served" {
	body() {
		lab_policy
		web
		rm -f "$LAB/audit.jsonl"
		ln -s /dev/full "$LAB/audit.jsonl"
		lab_egress
		scenario unaudited
	}
	in_lab body
}

@test "U36: doctor: the host is fit, a client that ignores variables fails when the stub is off, and says so" {
	body() {
		local aqe=$ROOT/build/release/aqe
		mkdir -p "$LAB/root/usr/bin"
		: >"$LAB/root/usr/bin/curl"
		lab_policy '"transparent":false'
		"$aqe" doctor egress --policy "$LAB/policy.json" --type qe-lab --rootfs "$LAB/root" >"$LAB/fit"
		! grep -A99 '^host' "$LAB/fit" | sed '/^clients/,$d' | grep '^  fail'
		grep '^  ok   curl: by proxy variables.*; present \[measured' "$LAB/fit"
		grep "^  fail python aiohttp: heeds no proxy variable, and the type's 'transparent' is off" "$LAB/fit"
		: >"$LAB/root/usr/bin/ssh"
		! "$aqe" doctor egress --policy "$LAB/policy.json" --type qe-lab --rootfs "$LAB/root" --format json >"$LAB/json"
		python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["fails"] and {c["client"]: c["state"] for c in d["clients"]}["ssh, git over ssh"] == "fail", d' "$LAB/json"
	}
	in_lab body
}

@test "metrics" {
	body() {
		lab_policy
		web
		lab_egress --metrics "$LAB/metrics.sock"
		scenario metrics
		lab_end
		[ ! -e "$LAB/metrics.sock" ]
	}
	in_lab body
}

@test "inside a network namespace: proxy variables, none, raw connects, the end" {
	body() {
		openssl req -x509 -newkey rsa:2048 -nodes -keyout "$LAB/key" -out "$LAB/cert" -days 2 -subj /CN=allowed.test \
			-addext 'subjectAltName=DNS:allowed.test,DNS:evil.test,DNS:x.wild.test' 2>/dev/null
		lab_policy
		lab_origin 10.66.0.2 80 http 10.66.0.3 80 http 10.66.0.2 443 "tls:$LAB/cert:$LAB/key" 10.66.0.3 443 "tls:$LAB/cert:$LAB/key"
		lab_container
		lab_serve
		local get="curl -s --max-time 8 --cacert $LAB/cert" proxy=http://127.0.0.1:3128
		# with proxy variables
		lab_inside env https_proxy=$proxy http_proxy=$proxy $get https://allowed.test/ | grep -qx 'tls 10.66.0.2'
		lab_inside env https_proxy=$proxy http_proxy=$proxy $get http://allowed.test/ | grep -qx 'origin 10.66.0.2'
		lab_inside env https_proxy=$proxy $get https://evil.test/ && return 1
		# without
		lab_inside $get https://allowed.test/ | grep -qx 'tls 10.66.0.2'
		lab_inside $get http://x.wild.test/ | grep -qx 'origin 10.66.0.2'
		lab_inside $get https://evil.test/ && return 1
		[ "$(lab_inside getent ahostsv4 allowed.test | cut -d' ' -f1 | sort -u)" = 127.66.0.1 ]
		lab_inside getent ahosts evil.test && return 1
		# a listed name inside the stub's address with another SNI or Host
		lab_inside $get --resolve evil.test:443:127.66.0.1 https://evil.test/ && return 1
		lab_inside $get --resolve evil.test:80:127.66.0.1 http://evil.test/ | grep -q domain_not_allowed
		# no other way: raw address, metadata, the host's addresses
		local a
		for a in 10.66.0.2 10.66.0.1 169.254.169.254 8.8.8.8; do
			lab_inside $get --connect-timeout 2 "http://$a/" && return 1
		done
		! grep -q 10.66.0.3 "$LAB/origin.jsonl"
		# the container ends: so does the service, within a second, and the namespace goes
		local pid=$LAB_EGRESS
		kill -KILL "$LAB_CONTAINER"
		sleep 1
		[ ! -e "/proc/$pid" ] || grep -q 'State:.Z' "/proc/$pid/status"
		wait "$pid"
		grep -q '"reason":"stopped"' "$LAB/audit.jsonl"
	}
	in_lab body
}
