#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# SIGKILL at any moment of create and start: afterwards the engine's clean-up (delete --force)
# leaves no process, mount, cgroup or state, and the same id starts again.

bats_require_minimum_version 1.5.0
load env
load bundle

setup_file() {
	low_setup
	export SHIM
}
teardown() {
	low_bare delete --force low-kill >/dev/null 2>&1 || :
	rm -rf /run/aqe-shim/low-kill*
}

# Sends SIGKILL to a process so many microseconds after it started.
killed_after() {
	local us=$1 pid
	shift
	"$@" >"$AQE_TMP/low/output" 2>&1 <"$AQE_TMP/low/stdin" &
	pid=$!
	python3 -c 'import sys, time; time.sleep(int(sys.argv[1]) / 1e6)' "$us"
	kill -KILL "$pid" 2>/dev/null || :
	wait "$pid" 2>/dev/null || :
}

same_id_again() {
	run low delete --force low-kill
	assert_status 0
	run low_cycle "$1" low-kill
	assert_status 0 || return 1
	assert_line "CapEff: 0000000000000000"
	assert_low_clean
}

# Delays that cover a whole create on this machine, whatever its speed.
delays() {
	local dir=$1 t0 t1
	t0=$(date +%s%N)
	low_create "$dir" low-kill
	t1=$(date +%s%N)
	low delete --force low-kill
	seq 0 $(((t1 - t0) / 1000 / 16)) $(((t1 - t0) / 1000))
}

@test "killed during create" {
	local dir us n=0
	dir=$(make_bundle kill)
	for us in $(delays "$dir"); do
		killed_after "$us" "$SHIM" --root "/run/low-$AQE_LOW" create --bundle "$dir" --pid-file "$dir/pid" low-kill
		same_id_again "$dir" || {
			echo "killed after $us us"
			return 1
		}
		n=$((n + 1))
	done
	[ "$n" -ge 10 ]
}

@test "killed during start" {
	local dir us n=0
	dir=$(make_bundle kill)
	for us in 0 300 1000 2000 3000 5000 8000 12000 20000 40000; do
		low_create "$dir" low-kill
		killed_after "$us" "$SHIM" --root "/run/low-$AQE_LOW" start low-kill
		same_id_again "$dir" || {
			echo "killed after $us us"
			return 1
		}
		n=$((n + 1))
	done
	[ "$n" = 10 ]
}

@test "killed without any clean-up: the next create with the same id works" {
	local dir us
	dir=$(make_bundle kill)
	for us in 0 1000 3000 6000; do
		killed_after "$us" "$SHIM" --root "/run/low-$AQE_LOW" create --bundle "$dir" --pid-file "$dir/pid" low-kill
		# what the runtime may have finished is the runtime's to refuse; ours must not stand in the way
		low_bare delete --force low-kill >/dev/null 2>&1 || :
		run low_cycle "$dir" low-kill
		assert_status 0 || {
			echo "killed after $us us"
			return 1
		}
	done
	assert_low_clean
}

@test "the container dies before its start" {
	local dir
	dir=$(make_bundle kill)
	low_create "$dir" low-kill
	kill -KILL "$(cat "$dir/pid")"
	wait_for stopped low-kill
	run low start low-kill
	[ "$status" != 0 ]
	same_id_again "$dir"
}

@test "the shim is stopped by SIGTERM in the middle: as with SIGKILL" {
	local dir pid
	dir=$(make_bundle kill)
	"$SHIM" --root "/run/low-$AQE_LOW" create --bundle "$dir" --pid-file "$dir/pid" low-kill \
		>"$AQE_TMP/low/output" 2>&1 <"$AQE_TMP/low/stdin" &
	pid=$!
	kill -TERM "$pid" 2>/dev/null || :
	wait "$pid" || :
	same_id_again "$dir"
}

@test "kill: a signal that ends is noted before libc has started and after, another one is not" {
	local dir mark
	dir=$(make_bundle kill '.process.args = ["/bin/sleep", "1000"]')
	low_create "$dir" low-kill
	mark=$(echo /run/aqe-shim/low-kill@*)/killed
	[ -d "${mark%/*}" ]
	low kill low-kill 0
	low kill low-kill WINCH
	[ ! -e "$mark" ]
	low kill low-kill KILL
	[ "$(stat -c '%u %a %s' "$mark")" = "0 600 0" ]
	wait_for stopped low-kill
	# "--" is a word that only main() understands
	rm "$mark"
	"$SHIM" --root "/run/low-$AQE_LOW" kill -- low-kill TERM || :
	[ "$(stat -c '%u %a %s' "$mark")" = "0 600 0" ]
	run low delete low-kill
	assert_status 0
	[ ! -e "${mark%/*}" ]
}
