#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# aqe policy serve with its audit log and on the real clock: rows, reloads, and a soak of the rate
# limit with a restart and a reload in the middle (AQE_SOAK_S seconds, 180 for the figures).

bats_require_minimum_version 1.5.0
load env

AQE=$(dirname "$AQE_SHIM")/aqe

setup() {
	BOX=$BATS_TEST_TMPDIR
	SOCKET=$BOX/s
	export XDG_STATE_HOME=$BOX/state
	rm -rf /etc/aqe-shim /var/lib/aqe-shim
	mkdir -p /etc/aqe-shim
	policy '"domains": ["a.example", "*.b.example"], "rate": {"perMinute": 300, "perHour": 100000, "burst": 20}'
}

teardown() {
	[ -z "${SERVER-}" ] || kill "$SERVER" 2>/dev/null || :
	wait
	rm -rf /etc/aqe-shim /var/lib/aqe-shim
}

policy() {
	printf '{ "version": 1,\n"network": { "agents": { "soak": { %s } } } }\n' "$1" >"$POLICY.new"
	chmod 644 "$POLICY.new"
	mv "$POLICY.new" "$POLICY"
}

ask() { python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
print(s.makefile().readline(), end="")' "$SOCKET" "$1"; }

serve() {
	"$AQE" policy serve "$@" "$SOCKET" 3>&- 2>>"$BOX/err" &
	SERVER=$!
	wait_for ask '{"op":"policy","type":"soak"}'
}

@test "record: one row a request, with verdict, rule, policy and time; reloads have rows too" {
	serve
	run ask '{"op":"record","type":"soak","agent":"me","host":"x.b.example","method":"GET","status":200,"responseMs":150}'
	assert_has '"verdict":"allow"'
	run ask '{"op":"record","type":"soak","agent":"me","host":"evil.test"}'
	assert_has '"reason":"domain_not_allowed"'
	policy '"domains": ["*.com"]'
	run ask '{"op":"reload"}'
	assert_has '"ok":false'
	policy '"domains": [], "mode": "report"'
	run ask '{"op":"reload"}'
	assert_has '"changed":true'
	run ask '{"op":"record","type":"soak","agent":"me","host":"evil.test"}'
	assert_has '"wouldDeny":true'
	kill "$SERVER"
	wait "$SERVER"
	run "$AQE" audit list --format jsonl
	[ "$(jq -r '[.kind, .action, .domain // "-", .rule // "-", .reason // "-", .agent_id // "-", (.response_ns // 0)] | join(" ")' <<<"$output" |
		sed 's/: .*//')" = "policy changed - - - - 0
request allowed x.b.example *.b.example - me 150000000
request blocked evil.test - domain_not_allowed me 0
policy refused - - $POLICY:2
policy changed - - - - 0
request allowed evil.test - domain_not_allowed me 0" ] || {
		show_output
		return 1
	}
	run "$AQE" audit verify
	assert_status 0
}

@test "output that is lost is said in one line by every command, and is no success" {
	local words said
	for words in "policy show" "policy check soak a.example" "policy address 8.8.8.8" "doctor egress" "egress --help" \
		"sandbox types" "supervise --help" "audit --help" "cache stats --path $BOX/c/c.db" --version; do
		# shellcheck disable=SC2086 # words
		! said=$("$AQE" $words 2>&1 >/dev/full) || {
			echo "no failure: $words"
			return 1
		}
		[[ $said == "aqe"*"write to standard output: "* && $said != *$'\n'* ]] || {
			echo "$words: $said"
			return 1
		}
	done
}

@test "check and serve answer the same, and show names the line" {
	local host
	serve --no-audit
	for host in x.b.example b.example c.example A.EXAMPLE. 10.0.0.1 a..b; do
		run "$AQE" policy check soak "$host" --format json
		[ "$(jq -c '[.verdict, .reason, .rule.entry, .digest]' <<<"$output")" = \
			"$(ask "{\"op\":\"check\",\"type\":\"soak\",\"agent\":\"x\",\"host\":\"$host\"}" |
				jq -c '[.verdict, .reason, .rule.entry, .digest]')" ]
	done
	run "$AQE" policy show --effective soak
	assert_has "$POLICY:2"
}

@test "U32: a bad rule is refused with file and line, and the service keeps the old policy" {
	local rule
	serve --no-audit
	for rule in '*' '*.com' '*.co.uk' 'a*.example.com' '.example.com' '*.*.x' 'https://x' '0x0a000001' '10.0.0.0/8'; do
		policy "\"domains\": [\"$rule\"]"
		run "$AQE" policy reload "$SOCKET"
		assert_status 4
		assert_has "$POLICY:2: '/network/agents/soak/domains/0' entry '$rule'"
	done
	run ask '{"op":"reload"}'
	assert_has '"ok":false'
	run ask '{"op":"check","type":"soak","agent":"x","host":"a.example"}'
	assert_has '"verdict":"allow"'
}

@test "soak: four clients get what is due, never more; a reload and a restart in the middle" {
	local seconds=${AQE_SOAK_S-24} soak
	serve --no-audit --state "$BOX/limits"
	python3 tests/tools/policy_soak.py "$SOCKET" "$seconds" 4 300 20 >"$BOX/out" 2>&1 3>&- &
	soak=$!
	sleep $((seconds / 4))
	kill -HUP "$SERVER"
	sleep $((seconds / 4))
	kill "$SERVER"
	wait "$SERVER"
	serve --no-audit --state "$BOX/limits"
	wait "$soak" || {
		cat "$BOX/out"
		return 1
	}
	echo "# $(cat "$BOX/out")" >&3
}
