#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What only docker has: its health checks, restart policies, default runtime, labels, zeros in update.

bats_require_minimum_version 1.5.0
load env

setup_file() { engine_start; }
teardown_file() { engine_clean; }
teardown() { usual_policy; }

@test "the daemon accepts and lists the runtime" {
	run engine info --format '{{range $n, $r := .Runtimes}}{{$n}}={{$r.Path}} {{end}}'
	assert_status 0
	assert_has "aqe-shim=$AQE_TMP/bin/aqe-shim"
}

@test "health check becomes healthy, inside the rules" {
	hard_run -d --name hc --health-interval 1s --health-timeout 10s \
		--health-cmd 'grep -q "CapEff:.0000000000000000" /proc/self/status && grep -q "NoNewPrivs:.1" /proc/self/status' \
		$IMG sleep 1000
	healthy() { [ "$(engine inspect --format '{{.State.Health.Status}}' hc)" = healthy ]; }
	wait_for healthy || {
		engine inspect --format '{{json .State.Health}}' hc
		false
	}
	engine_clean
}

@test "a restart policy restarts, a refusal does not loop" {
	hard_run -d --name rs --restart on-failure:2 $IMG sh -c 'exit 3'
	twice() { [ "$(engine inspect --format '{{.RestartCount}}' rs)" = 2 ]; }
	wait_for twice
	engine rm -f rs
	run shim run -d --name rl --restart always --cap-add SYS_ADMIN $IMG echo ran-inside
	assert_refused run capabilities
	run engine inspect --format '{{.RestartCount}} {{.State.Status}} {{.State.ExitCode}}' rl
	assert_line "0 created 128"
	run engine inspect --format '{{.State.Error}}' rl
	assert_match 'refused: capabilities(:| at /)'
	engine_clean
}

@test "update of the restart policy alone, with docker's zeros, is no change of limits" {
	hard_run -d --name uz $IMG sleep 1000
	local pid before
	pid=$(pid_of uz)
	before=$(cgroup_value "$pid" memory memory.limit_in_bytes)
	run engine update --restart no uz
	assert_status 0
	[ "$(cgroup_value "$pid" memory memory.limit_in_bytes)" = "$before" ]
	engine_clean
}

@test "top, stats, cp, commit work on a hardened container" {
	hard_run -d --name misc $IMG sleep 1000
	run engine top misc
	assert_status 0
	assert_has "sleep 1000"
	run engine stats --no-stream misc
	assert_status 0
	run engine cp misc:/etc/passwd -
	assert_status 0
	run engine commit misc aqe-committed
	assert_status 0
	engine_clean
	# a commit is another image: not pinned
	run hard_run --rm aqe-committed echo ran-inside
	assert_refused run digest
	engine image rm aqe-committed
}

@test "a bridge network is replaced by an empty one" {
	engine network create aqe-net >/dev/null
	run hard_run --rm --network aqe-net $IMG probe
	assert_status 0
	assert_line "ifaces:lo "
	engine network rm aqe-net >/dev/null
}

@test "another container's namespaces are refused or replaced by new ones" {
	hard_run -d --name netowner $IMG sleep 1000
	run hard_run --rm --network container:netowner $IMG probe
	if [ "$status" = 0 ]; then
		assert_line "ifaces:lo "
	else
		assert_refused run 'network|namespaces|mounts|rootless'
	fi
	# in the other container's namespace it would not be the first process
	run hard_run --rm --pid container:netowner $IMG sh -c 'echo pid=$$'
	if [ "$status" = 0 ]; then
		assert_line "pid=1"
	else
		assert_refused run 'namespaces|rootless'
	fi
	engine_clean
}

@test "--init works" {
	run hard_run --rm --init $IMG sh -c 'echo ran with init'
	assert_status 0
	assert_line "ran with init"
}

@test "a label asks for an agent type" {
	usual_policy jq='.images[].types = ["default", "qe-coverage-analyzer"] |
		.waivers += [.waivers[] | .agentType = "qe-coverage-analyzer"]'
	hard_run -d --name lab --label io.aqe.agent-type=qe-coverage-analyzer $IMG sleep 1000
	is_cgroup_v2 || [ "$(cgroup_value "$(pid_of lab)" memory memory.limit_in_bytes)" = $((1 << 30)) ]
	engine_clean
}

@test "a volume nobody pinned is refused" {
	engine volume create aqe-vol >/dev/null
	run shim run --rm -v aqe-vol:/data $IMG echo ran-inside
	assert_refused run mounts
	engine volume rm aqe-vol >/dev/null
}

@test "nothing is left of all this" {
	engine_clean
	assert_no_leaks
}

@test "--init: the program may be a link of the distribution" {
	[ -e /usr/bin/docker-init ] || cannot_run "no docker-init"
	run hard_run --rm --init $IMG sh -c 'cat /proc/1/comm; grep -c sbin/docker-init /proc/mounts'
	assert_status 0
	assert_match '^(docker-init|tini)'
	assert_line 1
}
