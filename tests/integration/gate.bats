#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The gate: running containers, with what the engine says beside what the kernel shows; and reports
# as other programs read them.

bats_require_minimum_version 1.5.0
load env

setup_file() { engine_start; }
teardown_file() { engine_clean; }

engine_name() {
	case $AQE_ENGINE in
	podman*) echo podman ;;
	docker*) echo docker ;;
	esac
}

# The gate in the engine's environment.
gate() {
	case $AQE_ENGINE in
	podman-root)
		CONTAINERS_STORAGE_CONF=$AQE_TMP/storage.conf "$AQE_SHIM" verify --policy "$POLICY" "$@"
		;;
	podman-user) as_user "$AQE_TMP/bin/aqe-shim" verify --policy "$POLICY" "$@" ;;
	docker*) "$AQE_SHIM" verify --policy "$POLICY" "$@" ;;
	esac
}

# hidden_gate PID WORD...: the gate where /proc/PID is an empty directory
hidden_gate() (
	export -f gate as_user
	export AQE_ENGINE AQE_USER AQE_UID AQE_SHIM POLICY
	unshare --mount --propagation private bash -c 'mount --bind "$AQE_TMP/nothing" "/proc/$1" && shift && gate "$@"' \
		bash "$@"
)

@test "container through the shim: judged on what it is, declared beside effective" {
	local json
	hard_run -d --name gated $IMG sleep 1000
	run gate --container "$(engine_name):gated"
	assert_status 0
	assert_has "judged by the shim's record"
	assert_match 'capabilities: declared fail, effective pass'
	assert_match 'gated: conform: '
	assert_has "kernel read back"
	json=$(gate --format json --container "$(engine_name):gated")
	[ "$(jq -r .kind <<<"$json")" = container ]
	[ "$(jq -r '[.properties[] | select(.result == "fail")] | length' <<<"$json")" = 0 ]
	[ "$(jq -r '.properties[] | select(.id == "capabilities") | .inspect.result' <<<"$json")" = fail ]
	engine_clean
}

@test "container with a user namespace below the engine's" {
	[ "$AQE_ENGINE" = podman-user ] || return 0
	shim run -d --name nested --userns=auto --network none $IMG sleep 1000
	run gate --container podman:nested
	assert_status 0
	assert_has "kernel read back"
	engine_clean
}

@test "changed behind the engine's back: the kernel shows it" {
	local pid
	hard_run -d --name changed $IMG sleep 1000
	pid=$(pid_of changed)
	nsenter -t "$pid" -m mount -t tmpfs -o size=1m behind /tmp
	run gate --container "$(engine_name):changed"
	assert_status 1
	assert_match 'fail tmpfs at /proc/[0-9]+/mountinfo'
	assert_has "kernel read back"
	engine_clean
}

@test "what the kernel does not show is said, and is no pass" {
	local pid
	hard_run -d --name hidden $IMG sleep 1000
	pid=$(pid_of hidden)
	mkdir -p "$AQE_TMP/nothing"
	run hidden_gate "$pid" --container "$(engine_name):hidden"
	assert_status 4
	assert_match "hidden: what the kernel shows: .*$pid"
	assert_match 'hidden: unknown$'
	refute_has "kernel read back"
	engine_clean
}

@test "several containers and a file in one call" {
	local spec=tests/corpus/spec/user-uid-gid-0.json out
	hard_run -d --name one $IMG sleep 1000
	hard_run -d --name two $IMG sleep 1000
	out=$(gate --format json --container "$(engine_name):one" --container "$(engine_name):two" \
		--container "$(engine_name):none-of-this-name" - <"$spec") || :
	[ "$(jq -rs 'map(.verdict) | join(" ")' <<<"$out")" = "violate conform conform unknown" ]
	engine_clean
}

@test "stopped container: the record decides, the kernel is not read" {
	hard_run -d --name ended $IMG true
	wait_for eval '[ "$(engine inspect --format "{{.State.Running}}" ended)" = false ]'
	run gate --container "$(engine_name):ended"
	# podman deletes the runtime's container with the process, and the record with it
	[ "$status" = 0 ] || [ "$status" = 1 ]
	refute_has "kernel read back"
	engine_clean
}

@test "container of the bare runtime: judged on what the engine says, and fails" {
	bare run -d --name plain $IMG sleep 1000
	run gate --container "$(engine_name):plain"
	assert_status 1
	refute_has "the shim's record"
	assert_match 'fail capabilities'
	engine_clean
}

@test "no such container, no such engine" {
	run gate --container "$(engine_name):none-of-this-name"
	assert_status 4
	assert_match 'unknown$'
	run gate --container "nerdctl:x"
	assert_status 2
	run gate --container "$(engine_name):--help"
	assert_status 2
}

@test "JUnit and SARIF are read by other programs' parsers" {
	local spec=tests/corpus/spec/user-uid-gid-0.json bad=tests/corpus/malformed/dup-uid.json
	"$AQE_SHIM" verify --policy "$POLICY" --format junit "$spec" "$bad" >"$AQE_TMP/j.xml" || :
	"$AQE_SHIM" verify --policy "$POLICY" --format sarif "$spec" "$bad" >"$AQE_TMP/s.json" || :
	run python3 - "$AQE_TMP/j.xml" "$AQE_TMP/s.json" <<'P'
import json, sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
suites = root.findall("testsuite")
assert [len(s.findall("testcase")) for s in suites] == [26, 27], suites
for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
    assert int(root.get(name)) == len(root.findall(".//" + tag)), name
    for s in suites:
        assert int(s.get(name)) == len(s.findall(".//" + tag)), name
assert int(root.get("tests")) == len(root.findall(".//testcase"))
failed = {c.get("name") for c in suites[0] if c.find("failure") is not None}
results = json.load(open(sys.argv[2]))["runs"][0]["results"]
rules = {r["ruleId"] for r in results if "user-uid" in
         r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]}
assert failed == rules and failed, (failed, rules)
print("agree")
P
	assert_status 0
	assert_line agree
}
