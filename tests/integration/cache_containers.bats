#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The embedding cache inside containers: http://127.0.0.1:3130, with misses fetched from an upstream in
# a network namespace of its own, behind a veth pair, under the agent's network policy.

bats_require_minimum_version 1.5.0
load env

AQE=${AQE_SHIM%/*}/aqe

# An upstream of OpenAI's kind: the numbers are the text's length and the number of texts paid for so
# far. Each line of its log is a request: its key and its texts.
upstream_start() {
	cat >"$AQE_TMP/up.py" <<'P'
import http.server, json, sys, threading
paid, lock = [0], threading.Lock()
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers['content-length'])))['input']
        with lock:
            paid[0] += len(texts)
            with open(sys.argv[1], 'a') as f:
                f.write(json.dumps([self.headers.get('authorization'), texts]) + '\n')
        body = json.dumps({'data': [{'index': i, 'embedding': [len(t), paid[0]]} for i, t in enumerate(texts)]}).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a):
        pass
http.server.ThreadingHTTPServer(('10.67.0.2', 8080), H).serve_forever()
P
	unshare -n sleep 36000 3>&- 4>&- &
	local pid=$!
	echo $pid >"$AQE_TMP/up.pid"
	wait_for test "$(readlink /proc/self/ns/net)" != "$(readlink /proc/$pid/ns/net)"
	ip link add ecv0 type veth peer name ecv1
	wait_for ip link set ecv1 netns $pid
	ip addr add 10.67.0.1/24 dev ecv0
	ip link set ecv0 up
	nsenter -t $pid -n sh -c 'ip link set lo up; ip addr add 10.67.0.2/24 dev ecv1; ip link set ecv1 up'
	: >"$AQE_TMP/up.log"
	nsenter -t $pid -n python3 "$AQE_TMP/up.py" "$AQE_TMP/up.log" 3>&- 4>&- >/dev/null 2>&1 &
	echo $! >>"$AQE_TMP/up.pid"
	grep -q up.test /etc/hosts || echo '10.67.0.2 up.test denied.test' >>/etc/hosts
	wait_for up_listens $pid
}
up_listens() { nsenter -t "$1" -n ss -Hltn | grep -qF 10.67.0.2:8080; }
upstream_stop() {
	local pid
	while read -r pid; do kill "$pid" 2>/dev/null; done <"$AQE_TMP/up.pid"
	wait_for test ! -e /sys/class/net/ecv0
}

# cache_policy [FILTER]: three types: default may reach the upstream, qe-test-writer twice a minute,
# qe-test-refactorer not at all.
cache_policy() {
	usual_policy "jq=.images[].types = [\"default\", \"qe-test-writer\", \"qe-test-refactorer\"]
		| .network = {agents: (reduce (\"default\", \"qe-test-writer\", \"qe-test-refactorer\") as \$t ({};
			.[\$t] = {access: \"whitelisted\", domains: [\"up.test:8080\"], allowCidr: [\"10.67.0.0/24\"],
				rate: {perMinute: 1000, perHour: 10000, burst: 1000}}))}
		| .network.agents[\"qe-test-writer\"].rate = {perMinute: 2, perHour: 100, burst: 2}
		| .network.agents[\"qe-test-refactorer\"].domains = [\"other.test\"]
		| .cache = {backend: \"sqlite\", sqlite: {path: \"$CACHE/c.db\"},
			upstream: {kind: \"openai\", url: \"http://up.test:8080\", credentialFile: \"$AQE_TMP/key.txt\", tries: 2, backoffMs: 10}}
		${1:+| $1}"
}

setup_file() {
	engine_start
	# beside the shim, where the egress service looks for its companions' program
	install -m 755 "$AQE" "$AQE_TMP/bin/aqe"
	upstream_start
	echo secret-key-1 >"$AQE_TMP/key.txt"
	chmod 600 "$AQE_TMP/key.txt"
	[ "$AQE_ENGINE" != podman-user ] || chown "$AQE_UID" "$AQE_TMP/key.txt"
	export CACHE=$AQE_TMP/cache-of-$AQE_ENGINE/db
	mkdir -p "${CACHE%/*}"
	[ "$AQE_ENGINE" != podman-user ] || chown "$AQE_UID" "${CACHE%/*}"
	cache_policy
}
teardown_file() {
	engine_clean
	upstream_stop
}
paid() { jq -s 'map(.[1] | length) | add // 0' "$AQE_TMP/up.log"; }

# embed TYPE TEXT...: what one container gets for each text, with the head.
embed() {
	local type=$1 t script=
	shift
	for t in "$@"; do script+="wget -Y off -S -O - --post-data '{\"model\":\"m\",\"input\":\"$t\"}' http://127.0.0.1:3130/v1/embeddings 2>&1; echo; "; done
	hard_run --rm -e AQE_AGENT_TYPE="$type" $IMG sh -c "$script"
}

@test "a miss is fetched with the credential added outside, then hits; the next container of the type hits, too" {
	local before
	before=$(paid)
	run embed default one one
	assert_has "X-Aqe-Cache: miss"
	assert_has "X-Aqe-Cache: hit"
	refute_has secret-key
	run embed default one
	assert_has "X-Aqe-Cache: hit"
	refute_has "X-Aqe-Cache: miss"
	[ $(($(paid) - before)) = 1 ]
	[ "$(jq -rs 'last[0]' "$AQE_TMP/up.log")" = "Bearer secret-key-1" ]
	run "$AQE" audit list --domain up.test --format jsonl
	assert_has '"allowed"'
}

@test "another type has no part in it; a domain that is not its own is 403, its rate 429" {
	local before
	run embed default two
	before=$(paid)
	run embed qe-test-refactorer two
	assert_has "HTTP/1.1 403"
	[ "$(paid)" = "$before" ]
	run embed qe-test-writer two three four two
	[ "$(grep -c 'X-Aqe-Cache: miss' <<<"$output")" = 2 ]
	assert_has "HTTP/1.1 429"
	assert_has "X-Aqe-Cache: hit" # a hit costs nothing
	[ $(($(paid) - before)) = 2 ]
}

# told TYPE TEXT...: the same with the heads of refusals, which wget keeps to itself
told() {
	local type=$1 id t
	shift
	id=$(hard_run -d -e AQE_AGENT_TYPE="$type" $IMG sleep 600)
	for t in "$@"; do
		nsenter -t "$(pid_of "$id")" -n curl -sS -i --max-time 60 --noproxy '*' -d "{\"model\":\"m\",\"input\":\"$t\"}" http://127.0.0.1:3130/v1/embeddings
	done
	engine kill "$id" >/dev/null
	engine rm -f "$id" >/dev/null
}

@test "a refusal of the policy has its reason in the head; an answer has none" {
	run told qe-test-refactorer six
	assert_has "HTTP/1.1 403"
	assert_match "^X-Aqe-Reason: domain_not_allowed"
	assert_match "^X-Aqe-Deny: domain_not_allowed"
	run told qe-test-writer seven eight nine
	[ "$(grep -c '^X-Aqe-Cache: miss' <<<"$output")" = 2 ]
	[ "$(grep -c '^X-Aqe-Deny: ' <<<"$output")" = 1 ]
	assert_has "HTTP/1.1 429"
	assert_match "^X-Aqe-Reason: rate_limit_exceeded"
	assert_match "^X-Aqe-Deny: rate_limit_exceeded"
}

@test "scope all: one cache for all types; scope agent: none in common" {
	cache_policy '.cache.scope = "all"'
	run embed default five
	assert_has "X-Aqe-Cache: miss"
	run embed qe-test-refactorer five
	assert_has "X-Aqe-Cache: hit"
	cache_policy '.cache.scope = "agent"'
	run embed default five
	assert_has "X-Aqe-Cache: miss"
	run embed default five
	assert_has "X-Aqe-Cache: miss"
	cache_policy
}

@test "a type without gateway has no listener; a section that cannot be used refuses the start" {
	cache_policy '.cache.agents = {default: {gateway: false}}'
	run embed default one
	assert_has "onnection refused"
	cache_policy '.cache.upstream.credentialFile = "/nowhere"'
	run embed default one
	assert_status "$(refused_status run)"
	assert_has "/nowhere"
	cache_policy '.cache.maxSize = 0'
	run embed default one
	assert_status "$(refused_status run)"
	assert_has "'maxSize': wanted a whole number"
	cache_policy
}

no_companion() { ! pgrep -f 'aqe gateway --role=cache'; }

@test "what serves has no rights: its own user, no capabilities, a filter" {
	local pid id
	id=$(hard_run -d $IMG sleep 600)
	pid=$(pgrep -f 'aqe gateway --role=cache' | head -n 1)
	[ -n "$pid" ]
	run cat "/proc/$pid/status"
	assert_match '^CapEff:[[:space:]]0000000000000000$'
	assert_match '^Seccomp:[[:space:]]2$'
	assert_match '^NoNewPrivs:[[:space:]]1$'
	[ "$AQE_ENGINE" = podman-user ] || refute_has "$(printf 'Uid:\t0')"
	# another section: one that has it takes its place
	cache_policy '.cache.ttlMs = 5000'
	run "$AQE" policy reload
	assert_status 0
	wait_for test ! -e "/proc/$pid"
	wait_for pgrep -f 'aqe gateway --role=cache'
	engine kill "$id" >/dev/null
	engine rm -f "$id" >/dev/null
	wait_for no_companion
	cache_policy
}
