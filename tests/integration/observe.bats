#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# In observe mode the engines behave as with the bare runtime: same output, same exit status.

bats_require_minimum_version 1.5.0
load env

setup_file() {
	engine_start
	usual_policy mode=observe
}
teardown_file() { engine_clean; }
setup() { usual_policy mode=observe; }

# What legitimately differs between two containers.
normalise() {
	# the docker client races with the daemon for one of its own lines
	sed -E -e '/error waiting for container: context canceled/d' -e 's/[0-9a-f]{64}/ID/g' -e 's/\b[0-9a-f]{12}\b/ID/g' -e 's/(ns-[a-z]+=)[a-z]+:\[[0-9]+\]/\1NS/' \
		-e 's#(lowerdir|upperdir|workdir)=[^ ,]*#\1=DIR#g' -e 's/uid_map:.*/uid_map/' -e 's#/l/[A-Z0-9:/]+#L#g' \
		-e 's/Error: (crun|runc|aqe-shim): /Error: RUNTIME: /' -e 's/(uid|gid)=[0-9]{5,}/\1=N/g' -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[^ "]*/TIME/g' -e 's#vfs/dir/ID#DIR#g'
}

# same VERB ARGUMENT...: once with the bare runtime, once through the shim
same() {
	local a b ra=0 rb=0
	# each stream for itself: engines do not keep the order between the two
	a=$(bare "$@" 2>"$AQE_TMP/bare.err" </dev/null) || ra=$?
	b=$(shim "$@" 2>"$AQE_TMP/shim.err" </dev/null) || rb=$?
	a+=$'\n'$(cat "$AQE_TMP/bare.err") b+=$'\n'$(cat "$AQE_TMP/shim.err")
	if [ "$ra" != "$rb" ] || [ "$(normalise <<<"$a")" != "$(normalise <<<"$b")" ]; then
		echo "$*: bare exit status $ra, observed $rb"
		diff <(normalise <<<"$a") <(normalise <<<"$b")
		return 1
	fi
}

@test "a plain run" { same run --rm $IMG probe; }
@test "exit status, both streams" { same run --rm $IMG sh -c 'echo out; echo err >&2; exit 7'; }
@test "a wrong command" { same run --rm $IMG no-such-command; }
@test "an unpinned image" { same run --rm $IMG_OTHER probe; }
@test "the engine's hardening flags" { same run --rm --read-only --cap-drop ALL --security-opt no-new-privileges --network none $IMG probe; }
@test "what would be refused" {
	[[ $AQE_ENGINE != docker-remap ]] || return 0
	same run --rm --cap-add SYS_ADMIN $IMG probe
	same run --rm --privileged $IMG probe
	same run --rm -v /etc:/h:ro $IMG ls /h/passwd
	same run --rm --pid host $IMG sh -c 'ls -d /proc/1'
}

@test "a life: detached, exec, stop, start, logs, rm" {
	local out=()
	local r
	for r in bare shim; do
		out+=("$({
			$r run -d --name "life-$r" $IMG sh -c 'trap "exit 0" TERM; echo up; while :; do sleep 0.1; done'
			engine exec "life-$r" id
			engine exec --privileged "life-$r" grep CapEff /proc/self/status
			engine exec "life-$r" no-such-command
			echo "status $?"
			engine stop -t 5 "life-$r"
			engine inspect --format '{{.State.Status}} {{.State.ExitCode}}' "life-$r"
			engine start "life-$r"
			engine logs "life-$r"
			engine kill "life-$r"
			engine rm -f "life-$r"
		} 2>&1 | sed "s/life-$r/NAME/g" | normalise)")
	done
	[ "${out[0]}" = "${out[1]}" ] || {
		diff <(echo "${out[0]}") <(echo "${out[1]}")
		false
	}
	assert_no_leaks
}

@test "what would have happened is told somewhere, never on the container's streams" {
	run shim run --rm --cap-add SYS_ADMIN $IMG true
	assert_status 0
	[ -z "$output" ]
}
