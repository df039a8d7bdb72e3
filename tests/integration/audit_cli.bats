#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# aqe audit with what is outside of it: collectors over TLS, other processes that write, a terminal,
# programs that keep anchors, a browser. No engine is needed.

load env

AQE=$(dirname "$AQE_SHIM")/aqe

setup_file() {
	make -s build/release/tools/audit_add
	export TLS=$AQE_TMP/tls
	mkdir -p "$TLS"
	(
		cd "$TLS" || exit 1
		local new="req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
		openssl $new -x509 -keyout ca.key -out ca.pem -days 2 -subj /CN=test
		openssl $new -keyout key.pem -out csr -subj /CN=localhost
		printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >ext
		openssl x509 -req -in csr -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile ext
	) >"$AQE_TMP/openssl.log" 2>&1
}

teardown_file() { rm -rf "$TLS"; }

setup() {
	LOG=$BATS_TEST_TMPDIR/log
	BOX=$BATS_TEST_TMPDIR/box
	PIDS=()
	mkdir -p "$BOX"
}

teardown() {
	[ "${#PIDS[@]}" = 0 ] || kill "${PIDS[@]}" 2>/dev/null || :
	wait
}

aqe() { timeout --foreground -k 5 60 "$AQE" audit "$1" --log "$LOG" "${@:2}"; }
# add N [FIRST]: rows with the domain n<i>.example
add() {
	seq "${2-1}" $(($1 + ${2-1} - 1)) | sed 's/.*/kind=request\taction=allowed\tdomain=n&.example/' |
		build/release/tools/audit_add "$LOG" 100
}
# collector [PLAN...]: URL is where it listens; over TLS unless PLAIN is set
collector() {
	local tls=(--tls "$TLS/cert.pem" "$TLS/key.pem")
	[ -z "${PLAIN-}" ] || tls=()
	rm -f "$BOX/port"
	python3 tests/fakes/collector.py "$BOX" "${tls[@]}" "$@" 3>&- >"$BOX/log" 2>&1 &
	COLLECTOR=$!
	PIDS+=("$COLLECTOR")
	wait_for test -f "$BOX/port"
	URL=https://localhost:$(cat "$BOX/port")/v1/rows
	[ -z "${PLAIN-}" ] || URL=http://127.0.0.1:$(cat "$BOX/port")/v1/rows
}
ship() { aqe ship --url "$URL" --ca "$TLS/ca.pem" --retry-wait 20ms --position "$BOX/position" "$@"; }
# The same in the background; SHIP is its process.
ship_on() {
	"$AQE" audit ship --log "$LOG" --url "$URL" --ca "$TLS/ca.pem" --retry-wait 20ms \
		--position "$BOX/position" >"$BOX/ship" 2>&1 3>&- &
	SHIP=$!
	PIDS+=("$SHIP")
}
taken() { jq -r .seq "$BOX/taken" | tr '\n' ' '; }
answers() { jq -r '"\(.answer):\(.rows)"' "$BOX/requests" | tr '\n' ' '; }
numbers() { seq "$1" "$2" | tr '\n' ' '; }

# ---- ship -------------------------------------------------------------------------------------

@test "ship: all rows, in order, in batches" {
	add 1050
	collector
	run ship --once
	assert_status 0
	assert_has "1050 rows taken"
	[ "$(taken)" = "$(numbers 1 1050)" ]
	[ "$(answers)" = "200:500 200:500 200:50 " ]
	# a second time there is nothing to do
	run ship --once
	assert_status 0
	assert_has "0 rows taken"
	[ "$(wc -l <"$BOX/requests")" = 3 ]
}

@test "ship: rows are those of the log, and a request says what it carries" {
	add 3
	collector
	ship --once
	diff "$BOX/taken" <(aqe list --format jsonl)
	jq -e '.headers | .["content-type"] == "application/x-ndjson" and .["x-aqe-rows"] == "1-3" and
		(.["x-aqe-chain"] | test("^[0-9a-f]{64}$")) and (.["idempotency-key"] | test("^[0-9a-f]{16}-1-3$"))' "$BOX/requests"
	[ "$(jq -r .path "$BOX/requests")" = /v1/rows ]
}

@test "ship: 408, 425, 429 and 5xx are tried again" {
	add 4
	collector 503 408 425 500
	run ship --once
	assert_status 0
	[ "$(answers)" = "503:4 408:4 425:4 500:4 200:4 " ]
	[ "$(taken)" = "1 2 3 4 " ]
}

@test "ship: a server says how long to wait" {
	add 1
	collector 429+2
	run ship --once
	assert_status 0
	jq -se '.[1].at - .[0].at >= 1.9' "$BOX/requests"
}

@test "ship: another 4xx ends it, nothing is left out" {
	local status_sent
	add 2
	for status_sent in 400 401 403 404 422 301; do
		collector "$status_sent"
		run ship --once
		assert_status 1
		assert_has "rows 1 to 2 are not taken: the server answered $status_sent"
		kill "$COLLECTOR"
	done
	[ ! -s "$BOX/taken" ]
	collector
	ship --once
	[ "$(taken)" = "1 2 " ]
}

@test "ship: 413 makes requests smaller" {
	add 8
	collector 413 413
	run ship --once
	assert_status 0
	[ "$(answers)" = "413:8 413:4 200:2 200:2 200:2 200:2 " ]
	[ "$(taken)" = "$(numbers 1 8)" ]
}

@test "ship: 413 for one row is an end" {
	add 1
	collector 413
	run ship --once
	assert_status 1
	assert_has "row 1 alone is too large"
}

@test "ship: a server that dies in the middle of a batch" {
	add 20
	collector 200 die
	# more than one batch, so that the first is taken
	run ship --once --batch 10 --attempts 3
	assert_status 1
	assert_has "gave up after 3 attempts"
	[ "$(taken)" = "$(numbers 1 10)" ]
	collector
	run ship --once --batch 10
	assert_status 0
	[ "$(taken)" = "$(numbers 1 20)" ]
}

@test "ship: an answer that is lost: sent twice, never left out" {
	add 3
	collector lose
	run ship --once
	assert_status 0
	[ "$(taken)" = "1 2 3 1 2 3 " ]
	[ "$(jq -r '.headers["idempotency-key"]' "$BOX/requests" | sort -u | wc -l)" = 1 ]
}

@test "ship: an answer that is cut short" {
	add 3
	collector cut
	run ship --once
	assert_status 0
	[ "$(answers)" = "cut:3 200:3 " ]
}

@test "ship: goes on with rows as they come, and after a kill" {
	add 2
	collector
	ship_on
	has() { [ "$(taken)" = "$1" ]; }
	wait_for has "1 2 "
	add 2 3
	wait_for has "1 2 3 4 "
	kill -KILL "$SHIP"
	wait "$SHIP" || :
	add 2 5
	run ship --once
	assert_status 0
	[ "$(taken)" = "1 2 3 4 5 6 " ]
}

@test "ship: while the collector hangs, rows are stored as ever" {
	add 1
	collector hang
	ship_on
	wait_for test -s "$BOX/requests"
	local before=$EPOCHREALTIME
	add 100 2
	echo "$before $EPOCHREALTIME" | awk '{ exit !($2 - $1 < 5) }'
	[ "$(aqe list --format json | jq .count)" = 101 ]
}

@test "ship: certificates are checked" {
	add 1
	collector
	run aqe ship --url "$URL" --once --attempts 1 --position "$BOX/position"
	assert_status 1
	assert_has "certificate"
	URL=${URL/localhost/127.0.0.2}
	run ship --once --attempts 1
	assert_status 1
	[ ! -s "$BOX/requests" ]
}

@test "ship: plain http to this machine only" {
	add 1
	PLAIN=1 collector
	run aqe ship --url "$URL" --once
	assert_status 0
	[ "$(taken)" = "1 " ]
	run aqe ship --url http://192.0.2.1/ --once
	assert_status 2
	# a name that only looks like this machine
	run aqe ship --url "http://localhost.example/" --once
	assert_status 2
}

@test "ship: a secret in a header comes from a file that is its owner's" {
	add 1
	collector
	printf 'Authorization: Bearer s3cret\n\nX-Team: docs\r\n' >"$BOX/headers"
	chmod 644 "$BOX/headers"
	run ship --once --header-file "$BOX/headers"
	assert_status 1
	assert_has "can be read by others"
	chmod 600 "$BOX/headers"
	run ship --once --header-file "$BOX/headers"
	assert_status 0
	refute_has s3cret
	jq -e '.headers | .authorization == "Bearer s3cret" and .["x-team"] == "docs"' "$BOX/requests"
}

@test "ship: one at a time" {
	add 1
	collector hang
	ship_on
	wait_for test -s "$BOX/requests"
	run ship --once
	assert_status 1
	assert_has "another ship"
}

@test "ship: a rewritten or cut log is not shipped any further" {
	add 5
	collector
	ship --once
	sqlite3 "$LOG/audit.db" "update row set hash = zeroblob(32) where seq = 5"
	run ship --once
	assert_status 1
	assert_has "row 5 is not the one that was shipped"
	sqlite3 "$LOG/audit.db" "delete from row where seq > 3"
	run ship --once
	assert_status 1
	assert_has "the log ends at row 3, but row 5 was shipped"
}

# ---- tail -------------------------------------------------------------------------------------

@test "tail -f: rows as they are stored, through prune and another log" {
	aqe key generate >/dev/null
	add 12
	tail_lines() { [ "$(grep -c . "$BOX/tail")" = "$1" ]; }
	"$AQE" audit tail -f --format jsonl --log "$LOG" >"$BOX/tail" 2>"$BOX/tail.err" 3>&- &
	local pid=$!
	PIDS+=("$pid")
	wait_for tail_lines 10
	[ "$(head -n 1 "$BOX/tail" | jq .seq)" = 3 ]
	add 3 13
	wait_for tail_lines 13
	aqe prune --max-rows 3 >/dev/null
	wait_for tail_lines 14
	# the prune is a row of itself: which rows went, by which limit
	[ "$(tail -n 1 "$BOX/tail" | jq -c '[.seq, .kind, .reason, .rule, .meta.from, .meta.to, .meta.rows, .meta.max_rows]')" = \
		'[16,"system","prune","rows",1,13,13,3]' ]
	aqe verify >/dev/null
	add 2 16
	wait_for tail_lines 16
	[ "$(jq .seq "$BOX/tail" | tr '\n' ' ')" = "$(numbers 3 18)" ]
	# sleeping costs nothing: no processor time in a second without rows
	local t0 t1
	t0=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
	sleep 1.2
	t1=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
	[ $((t1 - t0)) -le 2 ]
	mv "$LOG" "$LOG.old"
	mkdir "$LOG"
	kill -0 "$pid"
}

@test "tail -f: a log in the place of another" {
	add 3
	"$AQE" audit tail -f --format jsonl --log "$LOG" >"$BOX/tail" 2>"$BOX/tail.err" 3>&- &
	PIDS+=($!)
	tail_lines() { [ "$(grep -c . "$BOX/tail")" = "$1" ]; }
	wait_for tail_lines 3
	local now=$LOG
	LOG=$BATS_TEST_TMPDIR/other
	add 2
	# as a restore does: files replaced in the same folder
	rm -f "$now"/audit.db*
	mv "$LOG"/audit.db* "$now/"
	wait_for grep -q "replaced by another" "$BOX/tail.err"
	wait_for tail_lines 5
}

@test "tail: filters, and -n" {
	add 5
	printf 'kind=start\taction=changed\tcontainer=c1\n' | build/release/tools/audit_add "$LOG"
	run aqe tail -n 2 --kind request --format jsonl
	assert_status 0
	[ "$(jq .seq <<<"$output" | tr '\n' ' ')" = "4 5 " ]
}

# ---- a terminal -------------------------------------------------------------------------------

on_terminal() { # on_terminal COLUMNS WORDS...
	local cmd
	printf -v cmd '%q ' "$AQE" audit "${@:2}" --log "$LOG"
	SHELL=/bin/bash TERM=${TERM_IS-xterm} timeout -k 5 30 script -qefc "stty cols $1; $cmd" /dev/null </dev/null | tr -d '\r'
}

@test "list: the table fits the terminal, times are relative, colours can be switched off" {
	local long
	long=$(printf 'x%.0s' {1..150})
	printf 'kind=request\taction=blocked\tdomain=%s.example\tagent_id=a\treason=%s\n' "$long" "$long" |
		build/release/tools/audit_add "$LOG"
	run on_terminal 100 list
	assert_status 0
	assert_has $'\033[31mblocked\033[0m'
	assert_match '(now|[0-9]+s ago) '
	assert_has "…"
	local width
	# shellcheck disable=SC2001
	width=$(sed 's/\x1b\[[0-9;]*m//g' <<<"$output" | LC_ALL=C.UTF-8 wc -L)
	[ "$width" -le 100 ]
	[ "$width" -ge 90 ]
	run on_terminal 100 list --absolute
	assert_match '20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9:]{8} '
	NO_COLOR=1 run on_terminal 100 list
	refute_has $'\033['
	TERM_IS=dumb run on_terminal 100 list
	refute_has $'\033['
	# not on a terminal: everything, without colours
	run aqe list
	assert_has "$long.example"
	refute_has $'\033['
}

@test "list: ends quietly when its reader does" {
	add 3000
	aqe list --format jsonl | head -n 1 | jq -e '.seq == 1'
}

# ---- anchors and exports ----------------------------------------------------------------------

@test "anchor: to a file and to a program; a cut tail is found with it" {
	aqe key generate >/dev/null
	add 10
	aqe anchor -o "$BOX/anchors"
	add 5 11
	aqe anchor --command /usr/bin/tee -a "$BOX/anchors" >/dev/null
	[ "$(grep -c '^aqe-audit-anchor 1 chain=' "$BOX/anchors")" = 2 ]
	aqe checkpoint >/dev/null
	cp "$LOG/key.pub" "$BOX/key.pub"
	run aqe verify --anchor "$BOX/anchors" --public-key "$BOX/key.pub"
	assert_status 0
	assert_has "anchored to row 15"
	refute_has "not proven"
	sqlite3 "$LOG/audit.db" "delete from row where seq > 12; delete from point where seq > 12"
	run aqe verify --anchor "$BOX/anchors" --public-key "$BOX/key.pub"
	assert_status 1
	assert_has TAMPERED
}

@test "anchor: a program that fails is a failure, and no shell is used" {
	add 1
	run aqe anchor --command /bin/false
	assert_status 1
	assert_has "failed with exit status 1"
	run timeout 20 "$AQE" audit anchor --log "$LOG" --command /bin/echo '$(id)' '; id'
	assert_status 0
	assert_line '$(id) ; id'
	run timeout 20 "$AQE" audit anchor --log "$LOG" --command /nonexistent
	assert_status 1
}

@test "verify: an export elsewhere, with nothing but the public key" {
	aqe key generate >/dev/null
	add 50
	aqe export -o "$BOX/export.jsonl"
	[ "$(stat -c %a "$BOX/export.jsonl")" = 600 ]
	cp "$LOG/key.pub" "$BOX/key.pub"
	rm -rf "$LOG"
	run "$AQE" audit verify --export "$BOX/export.jsonl" --public-key "$BOX/key.pub"
	assert_status 0
	assert_has "intact"
	run "$AQE" audit verify --export - --public-key "$BOX/key.pub" <"$BOX/export.jsonl"
	assert_status 0
	sed 's/n7\.example/n8.example/' "$BOX/export.jsonl" >"$BOX/changed.jsonl"
	run "$AQE" audit verify --export "$BOX/changed.jsonl" --public-key "$BOX/key.pub" --format json
	assert_status 1
	[ "$(jq -r '"\(.verdict) \(.first_bad)"' <<<"$output")" = "tampered 7" ]
}

@test "export: an old file stays when the new one fails" {
	add 2
	echo old >"$BOX/export"
	mkdir "$BOX/small"
	mount -t tmpfs -o size=64k none "$BOX/small"
	cp "$BOX/export" "$BOX/small/"
	printf 'kind=system\taction=allowed\treason=%s\n' "$(printf 'x%.0s' {1..2000})" >"$BOX/line"
	for _ in {1..60}; do cat "$BOX/line"; done | build/release/tools/audit_add "$LOG" 100
	run aqe export -o "$BOX/small/export"
	local left
	left=$(ls "$BOX/small")
	cat "$BOX/small/export" >"$BOX/kept"
	umount "$BOX/small"
	assert_status 1
	assert_has "No space left"
	[ "$left" = export ]
	[ "$(cat "$BOX/kept")" = old ]
}

@test "export: the report in a browser: light, dark, narrow, print" {
	local shots=build/test/report
	mkdir -p build/test
	aqe key generate >/dev/null
	python3 tests/tools/audit_rows.py 3000 7 | build/release/tools/audit_add "$LOG" 1000
	aqe export --format html -o "$BOX/report.html"
	python3 tests/tools/browser.py "$BOX/report.html" "$shots" >"$BOX/found.json"
	aqe stats --since all --format json >"$BOX/stats.json"
	look() { jq -e --slurpfile s "$BOX/stats.json" "$1" "$BOX/found.json" || { jq . "$BOX/found.json"; return 1; }; }
	# it loads nothing but itself, and the browser has nothing to complain of
	look '.requests | length == 1 and (.[0] | startswith("file://"))'
	look '.complaints == []'
	look '.light | .scripts == 0 and .images == 0 and .links == 0 and .handlers == 0'
	# what it says is what `stats` says
	look '.light.verdict == "verdict intact"'
	look '(.light.tiles | map_values(gsub(","; "") | tonumber)) as $t | $s[0] as $s |
		$t.requests == $s.requests.total and $t.allowed == $s.requests.allowed and
		$t.blocked == $s.requests.blocked and $t["rate limited"] == $s.requests.rate_limited and
		$t.refused == $s.by_kind.refusal and $t["containers started"] == $s.by_kind.start and
		$t["waivers used"] == $s.by_kind.waiver and $t["not recorded"] == $s.not_recorded'
	look '.light | .charts == 2 and .bars.good > 20 and .bars.bad > 5 and .bars.warn > 2 and .shares > 10'
	look '.light.rows > 100'
	# light and dark differ, and both can be read
	look '.light.background != .dark.background and .light.fills != .dark.fills'
	look '.light.contrast.ratio >= 4.5 and .dark.contrast.ratio >= 4.5'
	# nothing sticks out at any width
	look '[.light, .dark, .narrow | .overflow] == [0, 0, 0]'
	look '.pages >= 2'
	for f in light.png dark.png narrow.png print.pdf; do
		[ "$(stat -c %s "$shots-$f")" -gt 10000 ]
	done
}

@test "export: the report of an empty log and of one that was tampered with, in a browser" {
	mkdir -p build/test
	add 5
	sqlite3 "$LOG/audit.db" "update row set domain = 'x.example' where seq = 2"
	aqe export --format html -o "$BOX/bad.html"
	python3 tests/tools/browser.py "$BOX/bad.html" build/test/report-tampered >"$BOX/bad.json"
	jq -e '.light.verdict == "verdict tampered" and .complaints == []' "$BOX/bad.json"
	LOG=$BATS_TEST_TMPDIR/empty
	build/release/tools/audit_add "$LOG" </dev/null
	aqe export --format html -o "$BOX/empty.html"
	python3 tests/tools/browser.py "$BOX/empty.html" build/test/report-empty >"$BOX/empty.json"
	jq -e '.light | .verdict == "verdict intact" and .charts == 0 and .tiles.requests == "0"' "$BOX/empty.json"
	jq -e '.complaints == [] and .narrow.overflow == 0' "$BOX/empty.json"
}
