#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What every engine must show, with every low-level runtime: AQE_ENGINE x AQE_LOW.

bats_require_minimum_version 1.5.0
load env

setup_file() { engine_start; }
teardown_file() { engine_clean; }
teardown() { usual_policy; }

# What the kernel must say inside any container of ours.
assert_hardened() {
	local set
	for set in CapInh CapPrm CapEff CapBnd CapAmb; do
		assert_line "$set: 0000000000000000" || return 1
	done
	assert_line "NoNewPrivs: 1" || return 1
	assert_line "Seccomp: 2" || return 1
	assert_line "ifaces:lo " || return 1
	assert_line "rootfs=readonly" || return 1
	assert_match '^uid=[1-9][0-9]* gid=[1-9][0-9]*$' || return 1
	assert_match '^mount / root (ro|.*,ro)(,|$)' || return 1
	assert_match '^mount /tmp tmpfs .*nosuid,nodev.*size=' || return 1
	assert_match '^mount /run tmpfs .*nosuid,nodev.*size=' || return 1
	assert_line "unshare=denied" || return 1
	assert_line "mount=denied" || return 1
	assert_line "mknod=denied" || return 1
	# the agent's uid is not the host's root
	refute_has "uid_map: 0 0 " || [ "$AQE_ENGINE" = docker ]
}

@test "a plain run is hardened, and silent about it" {
	run hard_run --rm $IMG probe
	assert_status 0
	[ "${lines[0]}" = probe-begin ]
	[ "${lines[-1]}" = probe-end ]
	assert_hardened
	assert_line "uid=1000 gid=1000"
	assert_line "tmp=writable"
}

@test "the engine's own hardening flags do not get in the way" {
	local ns=()
	[ "$AQE_ENGINE" != podman-root ] || ns=(--userns=auto)
	run shim run "${ns[@]}" --rm --read-only --cap-drop ALL --security-opt no-new-privileges --network none \
		--tmpfs /tmp --tmpfs /run $IMG probe
	assert_status 0
	assert_hardened
}

@test "an image's or user's own unprivileged uid is kept" {
	run hard_run --rm --user 1234:1234 $IMG probe
	assert_status 0
	assert_hardened
	assert_line "uid=1234 gid=1234"
}

@test "the container's exit status is the engine's" {
	run hard_run --rm $IMG sh -c 'echo out; echo err >&2; exit 7'
	assert_status 7
	assert_line out
	assert_line err
	run hard_run --rm $IMG sh -c 'kill -KILL $$'
	[ "$status" = 137 ] || [ "$status" = 0 ] # pid 1 cannot kill itself with every runtime
	run hard_run --rm $IMG true
	assert_status 0
	[ -z "$output" ]
}

@test "standard input reaches the container" {
	run bash -c 'source tests/integration/env.bash; echo from-outside | hard_run -i --rm $IMG cat'
	assert_status 0
	assert_line from-outside
}

@test "a wrong command fails as with the bare runtime" {
	local want=127
	# docker does not understand crun's words
	[[ $AQE_ENGINE:$AQE_LOW != docker*:crun ]] || want=125
	run "-$want" bare run --rm $IMG no-such-command
	run "-$want" hard_run --rm $IMG no-such-command
	assert_has no-such-command
	assert_no_leaks
}

@test "limits are in force in the cgroup" {
	[ "$AQE_ENGINE" != podman-user ] || return 0 # waived there, see the podman file
	hard_run -d --name limits $IMG sleep 1000
	local pid
	pid=$(pid_of limits)
	if is_cgroup_v2; then
		local dir
		dir=/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$pid/cgroup")
		[ "$(cat "$dir/memory.max")" = $((512 << 20)) ]
		[ "$(cat "$dir/memory.swap.max")" = 0 ]
		[ "$(cat "$dir/pids.max")" -le 512 ]
		[ "$(cat "$dir/cpu.max")" = "100000 100000" ]
	else
		[ "$(cgroup_value "$pid" memory memory.limit_in_bytes)" = $((512 << 20)) ]
		[ "$(cgroup_value "$pid" pids pids.max)" -le 512 ]
		[ "$(cgroup_value "$pid" cpu cpu.cfs_period_us)" = 100000 ]
		[ "$(cgroup_value "$pid" cpu cpu.cfs_quota_us)" = 100000 ]
	fi
	engine_clean
}

@test "lower limits are kept" {
	[ "$AQE_ENGINE" != podman-user ] || return 0
	hard_run -d --name lower --memory 64m --pids-limit 33 --cpus 0.5 $IMG sleep 1000
	local pid
	pid=$(pid_of lower)
	if ! is_cgroup_v2; then
		[ "$(cgroup_value "$pid" memory memory.limit_in_bytes)" = $((64 << 20)) ]
		[ "$(cgroup_value "$pid" pids pids.max)" = 33 ]
		[ $(($(cgroup_value "$pid" cpu cpu.cfs_quota_us) * 2)) = "$(cgroup_value "$pid" cpu cpu.cfs_period_us)" ]
	fi
	engine_clean
}

@test "run -d, stop, start, restart, logs, rm: the whole life, and nothing is left" {
	# shellcheck disable=SC2016 # expanded inside
	run hard_run -d --name life $IMG sh -c 'trap "exit 0" TERM; echo up; while :; do sleep 0.1; done'
	assert_status 0
	wait_for bash -c 'source tests/integration/env.bash; engine logs life | grep -q up'
	run engine stop -t 5 life
	assert_status 0
	run engine inspect --format '{{.State.Status}}' life
	assert_match '^exited$'
	run engine start life
	[ "$status" = 0 ]
	run engine restart -t 1 life
	assert_status 0
	run engine inspect --format '{{.State.Running}}' life
	assert_line true
	run engine exec life cat /proc/1/status
	assert_has "CapEff:	0000000000000000"
	assert_has "NoNewPrivs:	1"
	run engine rm -f life
	assert_status 0
	assert_no_leaks
}

@test "exec is held to the same rules" {
	hard_run -d --name ex $IMG sleep 1000
	run engine exec ex probe
	assert_status 0
	assert_hardened
	assert_line "uid=1000 gid=1000"
	run engine exec --user 0 ex probe
	[ "$status" != 0 ] || assert_hardened
	run engine exec ex sh -c 'exit 9'
	assert_status 9
	run engine exec --privileged ex echo ran-inside
	assert_refused exec 'privileged|capabilities'
	run engine exec ex no-such-command
	[ "$status" = 127 ] || [ "$status" = 126 ]
	run engine exec ex true
	assert_status 0
	engine_clean
}

@test "exec on a terminal, and its refusal there" {
	hard_run -d --name ext $IMG sleep 1000
	# conmon may lose what a terminal shows right before its last process ends: so not right before
	run on_tty engine exec -it ext sh -c 'tty; sleep 1'
	assert_status 0
	assert_match '/dev/(pts/[0-9]+|console)'
	run on_tty engine exec -it --privileged ext echo ran-inside
	assert_status "$(refused_status exec)"
	assert_match 'refused: (privileged|capabilities) at /'
	refute_has readObjectStart
	engine_clean
}

@test "run -it gives a terminal" {
	# shellcheck disable=SC2046
	run on_tty shim run $(user_ns) --rm -it $IMG sh -c 'tty; grep NoNewPrivs /proc/self/status; sleep 1; exit 5'
	assert_status 5
	assert_match '/dev/(pts/[0-9]+|console)'
	assert_match 'NoNewPrivs:.1'
}

@test "pause and unpause" {
	if [ "$AQE_ENGINE" = podman-user ] && ! is_cgroup_v2; then
		return 0 # no freezer group without root on cgroup v1
	fi
	hard_run -d --name pz $IMG sleep 1000
	run engine pause pz
	assert_status 0
	run engine inspect --format '{{.State.Status}}' pz
	assert_line paused
	run engine unpause pz
	assert_status 0
	run engine exec pz true
	assert_status 0
	engine_clean
}

@test "update: above the limit is refused, below is applied" {
	if [ "$AQE_ENGINE" = podman-user ] && ! is_cgroup_v2; then
		return 0
	fi
	hard_run -d --name up $IMG sleep 1000
	local pid
	pid=$(pid_of up)
	run engine update --memory 2g --memory-swap 2g up
	[ "$status" != 0 ]
	assert_match 'refused: memory_limit at /'
	run engine update --cpus 2 up
	[ "$status" != 0 ]
	assert_match 'refused: cpu_limit at /'
	if engine update --help | grep -q -e --pids-limit; then # podman 4.3 does not have it
		run engine update --pids-limit -1 up
		[ "$status" != 0 ]
		assert_match 'refused: pids_limit at /'
	fi
	if ! is_cgroup_v2; then
		[ "$(cgroup_value "$pid" memory memory.limit_in_bytes)" = $((512 << 20)) ]
		[ "$(cgroup_value "$pid" cpu cpu.cfs_quota_us)" = 100000 ]
		[ "$(cgroup_value "$pid" pids pids.max)" -le 512 ]
	fi
	run engine update --memory 128m --memory-swap 128m up
	assert_status 0
	is_cgroup_v2 || [ "$(cgroup_value "$pid" memory memory.limit_in_bytes)" = $((128 << 20)) ]
	engine_clean
}

# --- refusals ------------------------------------------------------------------------------------

# refuse PROPERTIES OPTION...: the run is refused for one of them and nothing ran
refuse() {
	local prop=$1
	shift
	# shellcheck disable=SC2046
	run shim run --rm "$@" $IMG echo ran-inside
	assert_refused run "$prop"
}

@test "refused: --privileged" {
	refuse 'privileged' --privileged $(own_userns)
	assert_no_leaks
}

@test "refused: --cap-add" {
	refuse 'capabilities' $(user_ns) --cap-add SYS_ADMIN
	refuse 'capabilities|privileged' $(user_ns) --cap-add ALL
}

@test "refused: host namespaces" {
	refuse 'namespaces' $(own_userns) --pid host
	refuse 'namespaces' $(own_userns) --ipc host
	refuse 'namespaces' $(own_userns) --uts host
	refuse 'network|namespaces' $(own_userns) --network host
}

@test "refused: no user namespace under a rootful engine, with three ways out" {
	[ "$AQE_ENGINE" != podman-user ] || return 0
	write_policy
	case $AQE_ENGINE in
	podman-root | docker) run shim run --rm $IMG echo ran-inside ;;
	docker-remap) run shim run --rm --userns=host $IMG echo ran-inside ;;
	esac
	assert_refused run rootless
	assert_has "rootless engine"
	assert_match '(--userns|userns-remap)'
	assert_has waiver
}

@test "refused: limits that cannot be enforced" {
	if [ "$AQE_ENGINE" != podman-user ] || is_cgroup_v2; then
		return 0
	fi
	write_policy
	run shim run --rm $IMG echo ran-inside
	assert_refused run '(pids|memory|cpu)_limit'
	write_policy waive=pids_limit waive=memory_limit
	run shim run --rm $IMG echo ran-inside
	assert_refused run cpu_limit
}

@test "refused: an engine socket by any road" {
	local sock=$AQE_TMP/engine/docker.sock dir=$AQE_TMP/engine
	mkdir -p "$dir/elsewhere"
	chmod 755 "$dir" "$dir/elsewhere"
	if [ ! -S "$sock" ]; then
		python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])' "$sock"
		ln "$sock" "$dir/elsewhere/notes.txt"
		ln -s "$sock" "$dir/link"
	fi
	refuse 'engine_socket|mounts' $(user_ns) -v "$sock:/x"
	refuse 'engine_socket|mounts' $(user_ns) -v "$sock:/x:ro"
	refuse 'engine_socket|mounts' $(user_ns) -v "$dir:/x:ro"
	refuse 'engine_socket|mounts' $(user_ns) -v "$dir/elsewhere/notes.txt:/x:ro"
	refuse 'engine_socket|mounts' $(user_ns) -v "$dir/link:/x:ro"
}

@test "refused: /run, / and other host directories" {
	refuse 'engine_socket|mounts' $(user_ns) -v /run:/h:ro
	refuse 'engine_socket|mounts' $(user_ns) -v /:/h:ro
	refuse 'mounts' $(user_ns) -v /etc:/h:ro
}

@test "refused: a device" {
	[ "$AQE_ENGINE" != podman-user ] || {
		refuse 'devices|mounts' --device /dev/zero:/dev/extra
		return
	}
	refuse 'devices|mounts' $(user_ns) --device /dev/zero:/dev/extra
}

@test "refused: seccomp switched off" {
	# the frozen filter replaces the engine's; without one the container is not what was asked for,
	# and either answer is safe
	run hard_run --rm --security-opt seccomp=unconfined $IMG probe
	if [ "$status" = 0 ]; then
		assert_hardened
	else
		assert_refused run seccomp
	fi
}

@test "refused: an image that is not pinned, with the line that would admit it" {
	local id
	id=$(image_id $IMG_OTHER)
	# shellcheck disable=SC2046
	run shim run $(user_ns) --rm $IMG_OTHER echo ran-inside
	assert_refused run digest
	assert_has "$id"
	# the message's line, put into the policy, admits it
	usual_policy jq=".images += [{name: \"other\", imageId: \"$id\"}]"
	run hard_run --rm $IMG_OTHER echo ran-inside
	assert_status 0
	assert_line ran-inside
}

@test "a refused container can be removed, started again, and is refused again with today's reason" {
	# shellcheck disable=SC2046
	run shim create $(user_ns) --name again $IMG_OTHER echo ran-inside
	if [ "$status" = 0 ]; then
		run engine start -a again
		[ "$status" != 0 ]
		assert_match 'refused: digest(:| at /)'
		write_policy drop-images
		rm "$POLICY"
		run engine start -a again
		[ "$status" != 0 ]
		refute_has 'refused: digest'
		assert_has "$POLICY"
	fi
	run engine rm -f again
	assert_status 0
	assert_no_leaks
}

@test "agent type: a container asking for a type its image may not run as" {
	# shellcheck disable=SC2046
	run shim run $(user_ns) --rm -e AQE_AGENT_TYPE=qe-test-generator $IMG echo ran-inside
	assert_status "$(refused_status run)"
	assert_has qe-test-generator
	assert_has "$POLICY"
	refute_has ran-inside
}

@test "agent type: a pinned type gets its own ceiling" {
	[ "$AQE_ENGINE" != podman-user ] || return 0
	usual_policy jq='.images[].types = ["qe-coverage-analyzer"] | .waivers[].agentType = "qe-coverage-analyzer"'
	hard_run -d --name typed $IMG sleep 1000
	local pid
	pid=$(pid_of typed)
	is_cgroup_v2 || [ "$(cgroup_value "$pid" memory memory.limit_in_bytes)" = $((1 << 30)) ]
	engine_clean
}

@test "a policy mount is there, with the right options" {
	mkdir -p "$AQE_TMP/workspace"
	echo from-the-host >"$AQE_TMP/workspace/file"
	usual_policy jq=".mounts = [{source: \"$AQE_TMP/workspace\", destination: \"/workspace\"}]"
	run hard_run --rm $IMG sh -c 'cat /workspace/file; grep " /workspace " /proc/mounts'
	assert_status 0
	assert_line from-the-host
	assert_match '^[^ ]+ /workspace .*nosuid,nodev'
	rm -r "$AQE_TMP/workspace"
}

@test "nothing is left of all this" {
	engine_clean
	assert_no_leaks
	[ "$(stat -c '%U:%G %a' /dev/null)" = "root:root 666" ] || {
		# crun with a user namespace did it to the sandbox's own node (engines.md pitfall 37);
		# the shim must not let it
		stat -c '%U:%G %a' /dev/null
		return 1
	}
}
