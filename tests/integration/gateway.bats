#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Gateways: what a client in a container gets by http://127.0.0.1:3129/NAME/, and what it never sees.
# The upstream speaks TLS with a certificate of its own authority, in a network namespace of its own.

bats_require_minimum_version 1.5.0
load env

SECRET=sk-first-0123456789abcdef
SECOND=sk-other-fedcba9876543210

# The host's curl in an image: programs and libraries come in as read-only mounts of the policy.
client_image() {
	local root=$AQE_TMP/gateway-root id d
	[ ! -e "$AQE_TMP/gateway-of-$AQE_ENGINE" ] || return 0
	if [ ! -e "$AQE_TMP/gateway.tar" ]; then
		mkdir -p "$root"/{usr/lib,etc/ssl/certs,proc,sys,dev,tmp,run,home,opt}
		for d in bin lib lib64; do ln -s "usr/$d" "$root/$d"; done
		printf 'root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/tmp:/bin/sh\n' >"$root/etc/passwd"
		cp /etc/ssl/openssl.cnf "$root/etc/ssl/" 2>/dev/null || :
		tar -C "$root" --owner=0 --group=0 -cf "$AQE_TMP/gateway.tar" .
	fi
	engine import "$AQE_TMP/gateway.tar" localhost/gateway >/dev/null 2>&1
	id=$(engine image inspect --format '{{.Id}}' localhost/gateway)
	echo "sha256:${id#sha256:}" >>"$AQE_TMP/pinned"
	touch "$AQE_TMP/gateway-of-$AQE_ENGINE"
}

origin_start() {
	local pid
	[ -e "$AQE_TMP/gw-cert" ] || openssl req -x509 -newkey rsa:2048 -nodes -keyout "$AQE_TMP/gw-key" -out "$AQE_TMP/gw-cert" -days 2 \
		-subj /CN=api.test -addext 'subjectAltName=DNS:api.test' 2>/dev/null
	chmod 644 "$AQE_TMP/gw-cert"
	unshare -n sleep 36000 3>&- 4>&- &
	pid=$!
	echo $pid >"$AQE_TMP/gw.pid"
	wait_for sh -c "[ \"\$(readlink /proc/self/ns/net)\" != \"\$(readlink /proc/$pid/ns/net)\" ]"
	ip link add gwv0 type veth peer name gwv1 netns $pid
	ip addr add 10.67.0.1/24 dev gwv0
	ip link set gwv0 up
	nsenter -t $pid -n sh -c 'ip link set lo up; ip addr add 10.67.0.2/24 dev gwv1; ip link set gwv1 up'
	: >"$AQE_TMP/gw.jsonl"
	nsenter -t $pid -n python3 "$BATS_TEST_DIRNAME/egress/gateway_origin.py" "$AQE_TMP/gw.jsonl" "$AQE_TMP/gw-cert" "$AQE_TMP/gw-key" \
		10.67.0.2 443 3>&- 4>&- >/dev/null 2>&1 &
	echo $! >>"$AQE_TMP/gw.pid"
	grep -q api.test /etc/hosts || printf '10.67.0.2 api.test wrong.test\n' >>/etc/hosts
	wait_for sh -c "nsenter -t $pid -n ss -Hltn | grep -qF 10.67.0.2:443"
}
origin_stop() {
	local pid
	while read -r pid; do kill "$pid" 2>/dev/null; done <"$AQE_TMP/gw.pid"
	wait_for test ! -e /sys/class/net/gwv0
}

# credential TEXT: in place at once, as the service's own user owns it
credential() {
	printf '%s\n' "$1" >"$AQE_TMP/keys/new"
	chmod 600 "$AQE_TMP/keys/new"
	[ "$AQE_ENGINE" != podman-user ] || chown "$AQE_USER:$AQE_USER" "$AQE_TMP/keys/new"
	mv "$AQE_TMP/keys/new" "$AQE_TMP/keys/api"
}

MOUNTS=$(for d in /usr/bin /usr/lib64 "/usr/lib/$(uname -m)-linux-gnu" /usr/lib/ssl; do [ ! -d "$d" ] || echo "$d"; done |
	jq -Rn '[inputs | {source: ., destination: ., readonly: true}]')

gateway_policy() {
	local network
	network=$(jq -n --arg tmp "$AQE_TMP" '{
		agents: {default: {access: "whitelisted", domains: ["listed.test"], allowCidr: ["10.67.0.0/24"],
			rate: {perMinute: 1000, perHour: 10000, burst: 1000}}},
		gateways: {
			api: {upstream: "https://api.test/base", credentialFile: ($tmp + "/keys/api"), prefix: "Bearer ", caFile: ($tmp + "/gw-cert"),
				paths: ["/v1/*"], methods: ["GET", "HEAD", "POST"], maxRequestBytes: 1000000},
			few: {upstream: "https://api.test", caFile: ($tmp + "/gw-cert"), rate: {perMinute: 2, perHour: 2, burst: 2}},
			system: {upstream: "https://api.test"},
			wrong: {upstream: "https://wrong.test", caFile: ($tmp + "/gw-cert")},
			closed: {upstream: "https://api.test:444", caFile: ($tmp + "/gw-cert")},
			others: {upstream: "https://api.test", types: ["qe-test-writer"]}}}')
	usual_policy "jq=.mounts = $MOUNTS | .network = $network"
}

setup_file() {
	engine_start
	install -m 755 "$(dirname "$AQE_SHIM")/aqe" "$AQE_TMP/bin/aqe"
	mkdir -p "$AQE_TMP/keys"
	chmod 755 "$AQE_TMP/keys"
	origin_start
	client_image
	credential "$SECRET"
	gateway_policy
}
teardown_file() {
	engine_clean
	origin_stop
	usual_policy
}
teardown() { engine_clean; }

# shellcheck disable=SC2046 # none or some words
box() { hard_run -d --name gw localhost/gateway sleep 600 >/dev/null; }
inside() { engine exec gw "$@"; }
get() { inside curl -sS --max-time 60 "$@"; }
status_of() { get -o /dev/null -w '%{http_code}\n' "$@"; }
companions() { pgrep -f '^aqe gateway --role=gateway' | wc -l; }
cli() {
	if [ "$AQE_ENGINE" = podman-user ]; then as_user "$AQE_TMP/bin/aqe" "$@"; else "$AQE_TMP/bin/aqe" "$@"; fi
}
rows() { cli audit list --since all --format jsonl; }
API=http://127.0.0.1:3129/api

@test "a request gets the credential outside; nothing of it is inside" {
	box
	run get -i -H 'Authorization: Bearer mine' -H 'X_Api_Key: mine' -H 'Cookie: mine' -H 'Connection: x-hop' -H 'X-Hop: 1' "$API/v1/messages?token=hidden"
	assert_status 0
	assert_has "HTTP/1.1 200 OK"
	assert_has '"path": "/base/v1/messages?token=hidden"'
	refute_has "$SECRET"
	refute_has mine
	refute_has x-hop
	# it did arrive: by the mirror's own log, with the upstream's name
	run jq -c '[.fields.authorization, .fields.host]' "$AQE_TMP/gw.jsonl"
	assert_line "[\"Bearer $SECRET\",\"api.test\"]"
	# nor in an answer that is an error, or a redirect, which is not followed
	run get -i "$API/v1/error"
	assert_has "HTTP/1.1 500"
	refute_has "$SECRET"
	run get -i "$API/v1/moved"
	assert_has "Location: https://elsewhere.test/"
	refute_has "$SECRET"
	# the upstream is no listed host: there is no other way to it
	run get --noproxy '' -x http://127.0.0.1:3128 -k https://api.test/
	assert_has "403"
	# shellcheck disable=SC2016 # for the shell inside
	run inside sh -c 'env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" "\n"; for f in $(find /run /tmp /etc /home -type f 2>/dev/null); do cat "$f"; done 2>/dev/null'
	refute_has "$SECRET"
	# nor where the host's other users look, nor in the log
	run sh -c 'ps -eo args; cat /proc/[0-9]*/environ 2>/dev/null | tr "\0" "\n"'
	refute_has "$SECRET"
	run rows
	assert_has '"/api/v1/messages"'
	assert_has '"gateway api"'
	refute_has "$SECRET"
	refute_has hidden
}

@test "bodies pass both ways, events as they come" {
	local sum
	box
	sum=$(head -c 300000 /dev/zero | sha256sum | cut -d' ' -f1)
	run inside sh -c "head -c 300000 /dev/zero >/tmp/body; curl -sS --max-time 60 --data-binary @/tmp/body $API/v1/a --next -sS --max-time 60 -H 'Transfer-Encoding: chunked' --data-binary @/tmp/body $API/v1/b"
	assert_status 0
	[ "$(grep -c "$sum" <<<"$output")" = 2 ]
	run inside sh -c "curl -sS --max-time 60 $API/v1/bytes | wc -c"
	assert_line 1048576
	run get -o /dev/null -w '%{http_code} %{num_connects}\n' -I "$API/v1/head"
	assert_line "200 1"
	# the second event is sent when somebody who saw the first one asks for it
	run inside sh -c "curl -sSN --max-time 60 $API/v1/events >/tmp/events & until grep -q one /tmp/events; do sleep 0.1; done
		curl -sS --max-time 60 $API/v1/go >/tmp/go; wait; cat /tmp/events"
	assert_has "data: one"
	assert_has "data: two"
}

refused() {
	cat <<-R
		404_gateway_unknown http://127.0.0.1:3129/nobody/v1/x
		404_gateway_unknown http://127.0.0.1:3129/others/v1/x
		403_path_not_allowed $API/v2/x
		403_path_not_allowed $API/V1/x
		403_method_not_allowed -X DELETE $API/v1/x
		403_method_not_allowed -X TRACE $API/v1/x
		400_path_invalid $API/v1/../v2/x
		400_path_invalid $API/v1/%2e%2e/x
		400_path_invalid $API/v1/a%2fb
		400_path_invalid $API/v1//x
		400_path_invalid http://127.0.0.1:3129//api/v1/x
		403_upgrade_refused -H Connection:Upgrade -H Upgrade:websocket $API/v1/x
		502_tls_failed http://127.0.0.1:3129/system/x
		502_tls_failed http://127.0.0.1:3129/wrong/x
		502_connect_refused http://127.0.0.1:3129/closed/x
	R
}

@test "what is refused says why, and reaches nobody" {
	local row word want seen i=0
	box
	seen=$(wc -l <"$AQE_TMP/gw.jsonl")
	refused | while read -r _ word; do echo "curl -sS --max-time 60 -i --path-as-is $word; echo =end="; done >"$AQE_TMP/gw-ask"
	run inside sh -c "$(cat "$AQE_TMP/gw-ask")"
	while read -r want _; do
		i=$((i + 1))
		word=$(awk -v i=$i 'BEGIN { RS = "=end=\n" } NR == i' <<<"$output")
		grep -qF "HTTP/1.1 ${want/_/ }" <<<"$word" && grep -qF "X-Aqe-Reason: ${want#*_}" <<<"$word" &&
			grep -qF "X-Aqe-Deny: ${want#*_}" <<<"$word" &&
			grep -qF "\"reason\":\"${want#*_}\"" <<<"$word" || {
			echo "wanted $want: $word"
			return 1
		}
	done < <(refused)
	# `policy check` says the same of what needs no connection
	refused | grep -vE '^[0-9]+_(upgrade|tls|connect)_' >"$AQE_TMP/gw-asked"
	while read -r want word; do
		row=$(sed -n 's/^-X \([A-Z]*\) .*/\1/p' <<<"$word")
		run cli policy check default "gateway:${word##*127.0.0.1:3129/}" ${row:+"$row"}
		assert_status 1
		assert_has " ${want#*_}"
	done <"$AQE_TMP/gw-asked"
	run cli policy check default gateway:api/v1/x POST
	assert_status 0
	run inside sh -c "head -c 1000001 /dev/zero >/tmp/large; curl -sS --max-time 60 -o /tmp/out -w '%{http_code}\n' --data-binary @/tmp/large $API/v1/x; cat /tmp/out"
	assert_line 413
	assert_has body_too_large
	[ "$(wc -l <"$AQE_TMP/gw.jsonl")" = "$seen" ]
	run rows
	for row in gateway_unknown path_not_allowed method_not_allowed path_invalid upgrade_refused tls_failed connect_refused body_too_large; do
		assert_has "$row"
	done
}

@test "a route has a rate of its own" {
	box
	run status_of http://127.0.0.1:3129/few/x
	assert_line 200
	run status_of http://127.0.0.1:3129/few/x
	assert_line 200
	run get -i http://127.0.0.1:3129/few/x
	assert_has "HTTP/1.1 429 rate_limit_exceeded"
	assert_match "^Retry-After: [1-9]"
	run status_of "$API/v1/x"
	assert_line 200
}

few_is() { answers http://127.0.0.1:3129/few/x "$1"; }

@test "a worker that is killed gives no route its tokens back, and takes none away; nor does a new start" {
	local worker
	box
	run status_of http://127.0.0.1:3129/few/x
	assert_line 200
	worker=$(pgrep -x egress-worker)
	kill -KILL "$worker"
	# one is left, not two and not none
	wait_for few_is 200
	[ "$(pgrep -x egress-worker)" != "$worker" ]
	run status_of http://127.0.0.1:3129/few/x
	assert_line 429
	# the route that has spent nothing has all of it
	run status_of "$API/v1/x"
	assert_line 200
	engine stop -t 0 gw >/dev/null
	wait_for sh -c '! pgrep -f "^aqe gateway --role=gateway"' # its state is saved by then
	engine start gw >/dev/null
	run status_of http://127.0.0.1:3129/few/x
	assert_line 429
	run status_of "$API/v1/x"
	assert_line 200
}

uses() { get "$API/v1/which" >/dev/null && tail -n 1 "$AQE_TMP/gw.jsonl" | grep -qF "Bearer $1"; }
answers() { status_of "$1" | grep -qx "$2"; }

@test "another credential is used as soon as the file is another; without one nothing passes" {
	box
	uses "$SECRET"
	credential "$SECOND"
	wait_for uses "$SECOND"
	run get "$API/v1/mirror"
	refute_has "$SECOND"
	rm "$AQE_TMP/keys/api"
	wait_for answers "$API/v1/x" 503
	run get "$API/v1/x"
	assert_has '"reason":"credential_unavailable"'
	credential "$SECRET"
	wait_for uses "$SECRET"
}

@test "a credential that all may read, or that is not there, lets no container start" {
	chmod 644 "$AQE_TMP/keys/api"
	run hard_run --rm localhost/gateway true
	credential "$SECRET"
	assert_status "$(refused_status run)"
	assert_has "others may read it"
	refute_has "$SECRET"
	rm "$AQE_TMP/keys/api"
	run hard_run --rm localhost/gateway true
	credential "$SECRET"
	assert_status "$(refused_status run)"
	assert_has "gateway 'api'"
	assert_no_leaks
}

@test "the companion is confined, comes back when it is killed, and ends with the container" {
	local pid
	box
	[ "$(companions)" = 1 ]
	pid=$(pgrep -f '^aqe gateway --role=gateway')
	run cat "/proc/$pid/status"
	assert_match '^CapEff:	0000000000000000$'
	assert_match '^NoNewPrivs:	1$'
	assert_match '^Seccomp:	2$'
	run status_of "$API/v1/x"
	assert_line 200
	kill -KILL "$pid"
	wait_for answers "$API/v1/x" 200
	[ "$(companions)" = 1 ]
	[ "$(pgrep -f '^aqe gateway --role=gateway')" != "$pid" ]
	kill -KILL "$(pid_of gw)"
	wait_for sh -c '! pgrep -f "^aqe gateway --role=gateway"'
	engine_clean
	assert_no_leaks
}
