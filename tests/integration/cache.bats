#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The embedding cache's command line and gateway, with a real redis-server.

bats_require_minimum_version 1.5.0
load env

setup_file() {
	export AQE=${AQE_SHIM%/*}/aqe DIR=$AQE_TMP/cache
	mkdir -p "$DIR"
	chmod 700 "$DIR"
	redis-server --unixsocket "$DIR/redis.sock" --port 0 --save '' --dir "$DIR" >/dev/null 3>&- 4>&- &
	echo $! >"$DIR/redis.pid"
	wait_for test -S "$DIR/redis.sock"
}
teardown_file() { kill "$(cat "$DIR/redis.pid")"; }

# Every command, on a SQLite file and on Redis.
stores() {
	if [ "$1" = sqlite ]; then echo "--path $DIR/c.db"; else echo "--redis-url unix://$DIR/redis.sock"; fi
}

# shellcheck disable=SC2046 # two words
one_store() {
	local s
	s=$(stores "$1")
	$AQE cache clear $s >/dev/null || return 1
	run $AQE cache put $s --model m --content hi <<<'[0.5, 0.25, -1]'
	assert_status 0 || return 1
	[ "${#output}" = 64 ] || return 1
	run $AQE cache get $s --key "$output"
	assert_line '[0.5,0.25,-1]' || return 1
	run $AQE cache get $s --model m --content other
	assert_status 1 || return 1
	run $AQE cache has $s --model m --content hi
	assert_status 0 || return 1
	run $AQE cache has $s --model n --content hi
	assert_status 1 || return 1
	run $AQE cache stats $s --format json
	[ "$(jq -r .entries <<<"$output")" = 1 ] || return 1
	run $AQE cache keys $s
	[ "${#lines[@]}" = 1 ] || return 1
	run $AQE cache delete $s --model m --content hi
	assert_status 0 || return 1
	run $AQE cache delete $s --model m --content hi
	assert_status 1 || return 1
	run $AQE cache prune $s
	assert_status 0
}

@test "commands on SQLite" { one_store sqlite; }
@test "commands on Redis" { one_store redis; }

@test "an export of one back end is imported into the other; a cut one goes on" {
	local i
	for i in 1 2 3 4 5; do $AQE cache put --path "$DIR/e.db" --content "$i" <<<"[$i]" >/dev/null; done
	run $AQE cache export --path "$DIR/e.db" "$DIR/e.jsonl"
	assert_status 0
	[ "$(wc -l <"$DIR/e.jsonl")" = 7 ]
	$AQE cache clear --redis-url "unix://$DIR/redis.sock"
	run bash -c "head -n 3 $DIR/e.jsonl | $AQE cache import --redis-url unix://$DIR/redis.sock -"
	assert_status 1
	assert_has "the file is cut"
	run $AQE cache import --format json --redis-url "unix://$DIR/redis.sock" "$DIR/e.jsonl"
	assert_status 0
	[ "$(jq -r '"\(.stored) \(.present)"' <<<"$output")" = "3 2" ]
	run $AQE cache get --redis-url "unix://$DIR/redis.sock" --content 4
	assert_line '[4]'
	sed -i '3s/value":"./value":"X/' "$DIR/e.jsonl"
	run $AQE cache import --path "$DIR/f.db" "$DIR/e.jsonl"
	assert_status 1
}

@test "wrong words are exit status 2, with one line" {
	run $AQE cache get --path "$DIR/c.db" --key xyz
	assert_status 2
	[ "${#lines[@]}" = 1 ]
	run $AQE cache get --redis-url redis://u:secret@127.0.0.1
	assert_status 2
	refute_has secret
	run $AQE cache put --backend postgres
	assert_status 2
	run $AQE cache nothing
	assert_status 2
}

# A tiny upstream of OpenAI's kind; counts the texts it was paid for.
upstream() {
	cat >"$DIR/up.py" <<'P'
import http.server, json, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers['content-length'])))['input']
        with open(sys.argv[1], 'a') as f:
            f.write('x' * len(texts) + '\n')
        body = json.dumps({'data': [{'index': i, 'embedding': [len(t), 0.5]} for i, t in enumerate(texts)],
                           'usage': {'total_tokens': len(texts)}}).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a):
        pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
print(s.server_port, flush=True)
s.serve_forever()
P
	rm -f "$DIR/port" # of an earlier one
	python3 "$DIR/up.py" "$DIR/paid" >"$DIR/port" 3>&- 4>&- &
	UP=$!
	wait_for test -s "$DIR/port"
}

@test "warm pays for what is missing; serve answers from the cache; SIGTERM ends it" {
	local url gate
	upstream
	url=http://127.0.0.1:$(cat "$DIR/port")
	seq 600 >"$DIR/texts"
	run $AQE cache warm --path "$DIR/w.db" --model m --upstream-kind openai --upstream-url "$url" "$DIR/texts"
	assert_status 0
	assert_line "texts 600, there already 0, fetched 600, tokens paid 600"
	seq 650 >"$DIR/texts"
	run $AQE cache warm --path "$DIR/w.db" --model m --upstream-kind openai --upstream-url "$url" "$DIR/texts"
	assert_line "texts 650, there already 600, fetched 50, tokens paid 50"
	[ "$(tr -d '\n' <"$DIR/paid" | wc -c)" = 650 ]
	$AQE cache serve --listen 127.0.0.1:0 --path "$DIR/w.db" --upstream-kind openai --upstream-url "$url" 2>"$DIR/serve.log" 3>&- 4>&- &
	gate=$!
	wait_for grep -q listening "$DIR/serve.log"
	url=http://$(sed -n 's/.*listening on //p' "$DIR/serve.log")
	run curl -sS -D - -d '{"model":"m","input":["5","new"]}' "$url/v1/embeddings"
	assert_has "X-Aqe-Cache: partial"
	run curl -sS -d '{"model":"m","input":["5","new"]}' "$url/api/embed"
	[ "$(jq -c .embeddings <<<"$output")" = '[[1,0.5],[3,0.5]]' ]
	run $AQE cache stats --url "$url"
	assert_match '^hits +3$'
	kill "$gate"
	wait "$gate"
	kill "$UP"
}

@test "30 writers and 30 readers on one SQLite file for 20 seconds" {
	local t=${AQE_SHIM%/*}/unit/test_cache_sqlite
	[ -x "$t" ] || cannot_run "unit tests are not built"
	AQE_CACHE_STRESS_S=20 run "$t"
	assert_status 0
}
