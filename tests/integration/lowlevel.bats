#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# aqe-shim on bundles, no engine: argv, refusal channels, hostile documents, every verb.
# The numbers U.. are the cases from public bug reports that the tests keep.

bats_require_minimum_version 1.5.0
load env
load bundle

setup_file() {
	low_setup
	export SHIM
}
teardown() {
	low_sweep
	low_policy
}

# --- the whole life ------------------------------------------------------------------------------

@test "create, start, delete: hardened inside, silent outside" {
	run low_cycle "$(make_bundle plain)" low-plain
	assert_status 0
	[ "${lines[0]}" = probe-begin ]
	[ "${lines[-1]}" = probe-end ]
	assert_line "CapEff: 0000000000000000"
	assert_line "CapBnd: 0000000000000000"
	assert_line "NoNewPrivs: 1"
	assert_line "Seccomp: 2"
	assert_line "uid=1000 gid=1000"
	assert_line "rootfs=readonly"
	assert_line "ifaces:lo "
	assert_low_clean
}

@test "run: the same in one verb, with the container's exit status" {
	run low run --bundle "$(make_bundle run '.process.args = ["sh", "-c", "grep CapEff /proc/self/status; exit 7"]')" low-run
	assert_status 7
	assert_has "0000000000000000"
	assert_low_clean
}

@test "state, list, ps, pause, resume, kill, events are the low-level runtime's own" {
	local dir
	dir=$(make_bundle verbs '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-verbs
	low start low-verbs
	run --separate-stderr low state low-verbs
	assert_status 0
	[ -z "$stderr" ]
	[ "$(jq -r .status <<<"$output")" = running ]
	run low list
	assert_status 0
	assert_has low-verbs
	run low ps low-verbs
	assert_status 0
	run low pause low-verbs
	assert_status 0
	[ "$(low state low-verbs | jq -r .status)" = paused ]
	run low resume low-verbs
	assert_status 0
	run low kill low-verbs KILL
	assert_status 0
	wait_for stopped low-verbs
	run low delete low-verbs
	assert_status 0
	# unknown containers: as the runtime answers
	run low_bare state nobody
	local want=$status text=$output
	run low state nobody
	assert_status "$want"
	[ "$output" = "$text" ]
	run low delete --force nobody
	assert_status 0
	run low_bare kill nobody 9
	want=$status text=$output
	run low kill nobody 9
	assert_status "$want"
	[ "$output" = "$text" ]
	assert_low_clean
}

# As an engine that ignores its children's ends.
low_ignoring() { python3 -c 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])' "$SHIM" --root "/run/low-$AQE_LOW" "$@"; }

@test "delete: what the runtime refuses keeps its record, also where SIGCHLD is ignored" {
	local how dir want text
	dir=$(make_bundle delete '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-delete
	low start low-delete
	run low_bare delete low-delete
	[ "$status" -ne 0 ]
	want=$status text=$output
	for how in low low_ignoring; do
		run "$how" delete low-delete
		assert_status "$want"
		[ "${output//[0-9]/}" = "${text//[0-9]/}" ]
		[ -e "$(echo /run/aqe-shim/low-delete@*)/record.json" ]
	done
	run low_ignoring delete --force low-delete
	assert_status 0
	assert_low_clean
}

@test "delete: two at once forget the container once, whichever of them the runtime lets win" {
	local dir n p q want
	dir=$(make_bundle twice '.process.args = ["sleep", "1000"]')
	for n in 1 2 3 4 5 6; do
		low_create "$dir" low-twice
		low delete --force low-twice >"$AQE_TMP/low/one" 2>&1 &
		p=$!
		low delete low-twice >"$AQE_TMP/low/two" 2>&1 &
		q=$!
		want=1
		wait "$p" && want=0
		wait "$q" && want=0
		[ "$want" = 0 ]
		# the loser held the lock of the record: nothing was forgotten
		assert_low_clean
	done
}

@test "delete: an id that leads out of the state folder never gets to the runtime" {
	local id option
	low_create "$(make_bundle outside '.process.args = ["sleep", "1000"]')" low-outside
	for id in .. . '' low-outside/ ../low-outside; do
		for option in --force -f --forc; do
			run low delete "$option" "$id"
			assert_status 1
			assert_has "bad container id"
		done
	done
	[ -d "/run/low-$AQE_LOW/low-outside" ]
	low delete --force low-outside
	assert_low_clean
}

@test "closed streams: exec goes on, an error does not get into a file of ours" {
	low_create "$(make_bundle streams '.process.args = ["sleep", "1000"]')" low-closed
	low start low-closed
	run low exec low-closed true 0<&- 3>&-
	assert_status 0
	run sh -c '"$1" --root "$2" exec low-closed true 0<&- 1>&- 2>&-' - "$SHIM" "/run/low-$AQE_LOW"
	assert_status 0
	low delete --force low-closed
	assert_low_clean
}

traced() {
	command -v strace >/dev/null || cannot_run "no strace"
	strace -f -y -o "$AQE_TMP/low/trace" "$SHIM" --root "/run/low-$AQE_LOW" "$@" || :
	sed -i 's/^[0-9]* *//' "$AQE_TMP/low/trace"
}
# Line of the first call that matches, 0 when there is none.
at_line() { awk -v r="$1" '$0 ~ r { print NR; n = 1; exit } END { if (!n) print 0 }' "$AQE_TMP/low/trace"; }

@test "delete: the runtime works while libc gets ready" {
	[ "$(uname -m)" = x86_64 ] || return 0
	low_create "$(make_bundle early '.process.args = ["sleep", "1000"]')" low-early
	traced delete --force low-early
	[ "$(at_line '^vfork')" -gt 0 ]
	[ "$(at_line '^execveat\(.*delete')" -gt "$(at_line '^vfork')" ]
	[ "$(at_line '^arch_prctl\(ARCH_SET_FS')" -gt "$(at_line '^vfork')" ]
	assert_low_clean
}

@test "create, run, exec: the wait for a cgroup begins at once, in a helper that holds nothing" {
	local verb own
	[ "$(uname -m)" = x86_64 ] || return 0
	own=$(sed -nE '1{s/^[0-9]+:(name=)?([^:]*):/\/sys\/fs\/cgroup\/\2/p}' /proc/self/cgroup)
	own=$(realpath "$own")/cgroup.procs
	[ -e "$own" ]
	for verb in create run exec; do
		traced "$verb" low-nobody
		[ "$(at_line '^clone\(.*flags=CLONE_VM[ )]')" -gt 0 ]
		[ "$(at_line '^close_range\(0, 4294967295, 0')" -gt "$(at_line '^clone\(')" ]
		[ "$(at_line "^write\\([0-9]+<$own>, \"0\", 1")" -gt "$(at_line '^close_range\(0,')" ]
	done
	traced state low-nobody
	[ "$(at_line '^clone\(.*flags=CLONE_VM[ )]')" = 0 ]
	assert_low_clean
}

@test "--version and features answer on stdout, in the shape engines parse" {
	run --separate-stderr low --version
	assert_status 0
	[ -z "$stderr" ]
	assert_match 'version [0-9]'
	run low features
	[ "$AQE_LOW" = crun ] || jq . <<<"$output"
}

@test "nothing inherited leaks into the container: descriptors, environment (U20)" {
	local dir
	dir=$(make_bundle fds '.process.args = ["sh", "-c", "ls /proc/self/fd | wc -l; env"]')
	exec 17<"$AQE_TMP/rootfs/etc/passwd"
	LD_PRELOAD='' LD_LIBRARY_PATH=/opt/containerd/lib: NOTIFY_SOCKET=/run/x RUN_OCI_SECCOMP_RECEIVER=/run/y \
		run low_cycle "$dir" low-fds
	exec 17<&-
	assert_status 0
	assert_line 4 # 0 1 2 and the directory itself
	refute_has NOTIFY_SOCKET
	refute_has LD_LIBRARY_PATH
}

# --- refusals: how they are told (U01, U02, U04) ----------------------------------------------------

@test "a directory of the host as a standard stream is refused: from it .. leads out" {
	local dir
	dir=$(make_bundle stream '.process.args = ["ls", "/proc/self/fd/0/"]')
	run low run --bundle "$dir" low-stream </etc
	assert_status 1
	assert_has "descriptor 0 leads to a directory of the host"
	refute_has hostname
	dir=$(make_bundle streams '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-streams
	low start low-streams
	run low exec low-streams ls /proc/self/fd/0/ </etc
	assert_status 1
	assert_has "descriptor 0 leads to a directory of the host"
	low delete --force low-streams
	assert_low_clean
}

@test "U01: the reason is on stderr and in --log, one JSON object, any stale text gone" {
	local dir log=$AQE_TMP/low/log.json
	dir=$(make_bundle u01 '.process.capabilities.bounding += ["CAP_SYS_ADMIN"]')
	echo '{"level":"error","msg":"stale","time":"2020-01-01T00:00:00Z"} and more' >"$log"
	run to_file low --log "$log" --log-format json create --bundle "$dir" low-u01
	assert_status 1
	assert_match 'refused: capabilities at /process/capabilities'
	[ "$(wc -l <"$log")" = 1 ]
	[ "$(jq -r .level <"$log")" = error ]
	jq -r .msg <"$log" | grep -q 'refused: capabilities at /process/capabilities'
	date -d "$(jq -r .time <"$log")" >/dev/null
	[ "$(jq -r .msg <"$log" | wc -c)" -le 2001 ]
	assert_low_clean
}

@test "U01: a log that cannot be written does not hide the reason, and starts nothing" {
	run to_file low --log /proc/nowhere/log.json --log-format json create --bundle "$(make_bundle u01b '.root.readonly = true | .process.capabilities.bounding += ["CAP_SYS_ADMIN"]')" low-u01b
	assert_status 1
	assert_match 'refused: capabilities'
	assert_low_clean
}

@test "U02: no refusal contains a phrase that engines relabel" {
	local f text
	for f in '.process.capabilities.bounding += ["CAP_SYS_ADMIN"]' '.linux.namespaces |= map(select(.type != "pid"))' \
		'.mounts += [{destination: "/x", type: "bind", source: "/nonexistent", options: ["bind"]}]' \
		'.hooks = {prestart: [{path: "/bin/nothing"}]}' '.process.cwd = "/proc/self/fd/9"' \
		'.root.path = "/nonexistent"' '.surprise = 1' 'del(.process)'; do
		run to_file low create --bundle "$(make_bundle u02 "$f")" low-u02
		assert_status 1
		[ -n "$output" ]
		for text in "permission denied" "operation not permitted" "no such file or directory" \
			"executable file not found" "not a directory" "is a directory"; do
			if grep -qi "$text" <<<"$output"; then
				echo "$f: $output"
				return 1
			fi
		done
	done
	rm "$POLICY"
	run to_file low create --bundle "$(make_bundle u02)" low-u02
	assert_status 1
	assert_has "$POLICY"
	run ! grep -iE 'no such file|permission denied' <<<"$output"
	assert_low_clean
}

@test "U04: every spelling of the options, last one wins, without PATH" {
	local dir log=$AQE_TMP/low/u04.json
	dir=$(make_bundle u04)
	run to_file env -i "$SHIM" --root "/run/low-$AQE_LOW" --log /tmp/unused --log="$log" --log-format=json create \
		--bundle="$dir" --pid-file="$dir/pid" low-u04
	assert_status 0
	[ -s "$dir/pid" ]
	run env -i XDG_RUNTIME_DIR= "$SHIM" --root="/run/low-$AQE_LOW" delete -f low-u04
	assert_status 0
	(cd "$dir" && low create low-u04 <"$AQE_TMP/low/stdin" >"$dir/out" 2>&1) # the bundle is the working directory
	run low delete --force low-u04
	assert_status 0
	run to_file low create -b "$dir" low-u04
	assert_status 0
	run low delete --force low-u04
	assert_status 0
	# "--log X" as one word, as a runtimeArgs of one string gives
	run to_file "$SHIM" "--log $log" --root "/run/low-$AQE_LOW" create --bundle "$dir" low-u04
	[ "$status" != 0 ]
	[ -n "$output" ]
	run to_file low --no-such-option create --bundle "$dir" low-u04
	[ "$status" != 0 ]
	assert_has no-such-option
	run to_file low create --no-such-option --bundle "$dir" low-u04
	[ "$status" != 0 ]
	assert_has no-such-option
	run to_file low create -f "$dir/config.json" low-u04
	[ "$status" != 0 ]
	run low no-such-verb low-u04
	[ "$status" != 0 ]
	assert_has no-such-verb
	assert_low_clean
}

@test "ids that are paths or options are refused" {
	local id dir
	dir=$(make_bundle ids)
	for id in ../x a/b .. . "" -x "$(printf 'a%.0s' {1..2000})"; do
		run to_file low create --bundle "$dir" -- "$id"
		[ "$status" != 0 ] || {
			echo "accepted '$id'"
			return 1
		}
	done
	assert_low_clean
}

# --- documents ---------------------------------------------------------------------------------------

@test "U08: duplicate and case-variant keys never start" {
	local dir
	dir=$(make_bundle u08)
	sed -i 's/"noNewPrivileges": true/"noNewPrivileges": true, "noNewPrivileges": false/' "$dir/config.json"
	run to_file low create --bundle "$dir" low-u08
	assert_status 1
	assert_has noNewPrivileges
	dir=$(make_bundle u08)
	sed -i 's/"noNewPrivileges": true/"noNewPrivileges": true, "NoNewPrivileges": false/' "$dir/config.json"
	run to_file low create --bundle "$dir" low-u08
	assert_status 1
	assert_has NoNewPrivileges
	assert_low_clean
}

@test "U09: not quite JSON never starts, and the place is told" {
	local dir case n=0
	while IFS= read -r case; do
		dir=$(make_bundle u09)
		n=$((n + 1))
		case $case in
		bom) sed -i '1s/^/\xef\xbb\xbf/' "$dir/config.json" ;;
		trailing) echo '{}' >>"$dir/config.json" ;;
		comment) sed -i '1s/^/\/* x *\/ /' "$dir/config.json" ;;
		nul) sed -i 's/"ociVersion"/"oci\\u0000Version"/' "$dir/config.json" ;;
		byte) sed -i 's/"hostname": "/"hostname": "\xff/' "$dir/config.json" ;;
		deep) printf '{"a":%s%s}' "$(printf '[%.0s' {1..2000})" "$(printf ']%.0s' {1..2000})" >"$dir/config.json" ;;
		number) sed -i 's/"uid": 0/"uid": 9223372036854775808/' "$dir/config.json" ;;
		real) sed -i 's/"uid": 0/"uid": 0.0/' "$dir/config.json" ;;
		empty) : >"$dir/config.json" ;;
		surrogate) sed -i 's/"hostname": "/"hostname": "\\ud800/' "$dir/config.json" ;;
		esac
		run to_file low create --bundle "$dir" low-u09
		[ "$status" = 1 ] && [ -n "$output" ] || {
			echo "$case: exit status $status: $output"
			return 1
		}
		grep -qE '(line [0-9]+|config\.json:[0-9]+|/process/user/uid)' <<<"$output" || {
			echo "$case: no place in: $output"
			return 1
		}
	done <<-'C'
		bom
		trailing
		comment
		nul
		byte
		deep
		number
		real
		empty
		surrogate
	C
	[ "$n" = 10 ]
	assert_low_clean
}

@test "U09: config.json as a FIFO, a link, somebody else's or a giant is refused at once" {
	local dir
	dir=$(make_bundle u09b)
	mv "$dir/config.json" "$dir/real.json"
	ln -s real.json "$dir/config.json"
	run to_file low create --bundle "$dir" low-u09b
	assert_status 1
	rm "$dir/config.json"
	mkfifo "$dir/config.json"
	run to_file timeout 5 "$SHIM" --root "/run/low-$AQE_LOW" create --bundle "$dir" low-u09b
	assert_status 1
	rm "$dir/config.json"
	cp "$dir/real.json" "$dir/config.json"
	chmod 666 "$dir/config.json"
	run to_file low create --bundle "$dir" low-u09b
	assert_status 1
	chmod 644 "$dir/config.json"
	truncate -s 64M "$dir/config.json"
	run to_file low create --bundle "$dir" low-u09b
	assert_status 1
	rm "$dir/config.json"
	run to_file low create --bundle "$dir" low-u09b
	assert_status 1
	assert_low_clean
}

@test "U10: null, empty and absent give the frozen value or a refusal" {
	local f
	while IFS= read -r f; do
		run low_cycle "$(make_bundle u10 "$f")" low-u10
		if [ "$status" = 0 ]; then
			assert_line "CapEff: 0000000000000000" || { echo "$f"; return 1; }
			assert_line "CapBnd: 0000000000000000"
			assert_line "NoNewPrivs: 1"
			assert_line "Seccomp: 2"
			assert_line "ifaces:lo "
		else
			[ -n "$output" ]
			refute_has probe-begin
		fi
	done <<-'F'
		.process.capabilities = null
		.process.capabilities = {}
		del(.process.capabilities)
		.linux.seccomp = null
		.linux.maskedPaths = null
		del(.linux.maskedPaths)
		.linux.resources = null
		.mounts = null
		.process = null
		.root = null
		del(.linux)
		.process.args = []
		.linux.namespaces += [{type: "pid"}]
		del(.process.noNewPrivileges)
	F
	assert_low_clean
}

@test "U12: annotations that act on the low-level runtime do not reach it" {
	local a=(run.oci.seccomp_bpf_data=BgAAAAAA/38= run.oci.handler=wasm run.oci.hooks.stdout=/run/aqe-test/pwned
		run.oci.keep_original_groups=1 org.criu.config=/x io.kubernetes.cri.container-type=sandbox) x
	for x in "${a[@]}"; do
		run low_cycle "$(make_bundle u12 ".annotations = {\"${x%%=*}\": \"${x#*=}\"}")" low-u12
		if [ "$status" = 0 ]; then
			assert_line "Seccomp: 2"
			assert_line "unshare=denied"
		else
			assert_match 'refused: annotations'
		fi
	done
	[ ! -e /run/aqe-test/pwned ]
	assert_low_clean
}

@test "U17: an engine's cgroup path, systemd's form too, is kept as it is; the group is found by /proc/PID/cgroup" {
	local path dir pid group id=low-u17
	is_cgroup_v2 && return 0
	for path in "system.slice:aqe:$id" "user.slice:docker:$id" "kubepods-burstable-pod1_2.slice:cri-containerd:$id" "/docker/$id"; do
		dir=$(make_bundle u17 ".process.args = [\"sleep\", \"1000\"] | .linux.cgroupsPath = \"$path\"")
		low_create "$dir" "$id"
		pid=$(cat "$dir/pid")
		[ "$(jq -r .linux.cgroupsPath "/run/aqe-shim/$id"*/config.json)" = "$path" ]
		# start reads the limits back, wherever the runtime put the group
		low start "$id"
		group=$(sed -nE 's/^[0-9]+:([^:]*,)?pids(,[^:]*)?://p' "/proc/$pid/cgroup")
		[[ $group == *"$path" ]]
		[ "$(cat "/sys/fs/cgroup/pids$group/pids.max")" = 512 ]
		low delete --force "$id"
	done
	assert_low_clean
}

@test "U17: a cgroup path that is not the container's own is refused, with systemd's driver too" {
	local path driver dir
	for path in :aqe:123 a-b-c.slice:aqe:123 system.slice:aqe:123 a-b.slice:docker:low-u17 /low-u17/.. system.slice:aqe:../low-u17; do
		for driver in "" --systemd-cgroup; do
			dir=$(make_bundle u17 ".linux.cgroupsPath = \"$path\"")
			run to_file low ${driver:+"$driver"} create --bundle "$dir" --pid-file "$dir/pid" low-u17
			assert_status 1
			assert_refusal_text pids_limit
			assert_has "at /linux/cgroupsPath"
		done
	done
	assert_low_clean
}

@test "U18: an engine socket in a mount, by name, parent, link and inode" {
	local s=$AQE_TMP/low/sock f
	mkdir -p "$s/deep"
	[ -S "$s/docker.sock" ] || {
		python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])' "$s/docker.sock"
		ln "$s/docker.sock" "$s/deep/readme.txt"
	}
	for f in "$s/docker.sock" "$s" "$s/deep" "$s/deep/readme.txt" /run / /var/run; do
		run to_file low create --bundle "$(make_bundle u18 ".mounts += [{destination: \"/x\", type: \"bind\", source: \"$f\", options: [\"rbind\", \"ro\"]}]")" low-u18
		assert_status 1
		assert_match 'refused: (engine_socket|mounts)'
	done
	# a mount the policy admits is still searched
	low_policy jq=".mounts = [{source: \"$s\", destination: \"/x\"}]"
	run to_file low create --bundle "$(make_bundle u18)" low-u18
	assert_status 1
	assert_match 'refused: engine_socket'
	assert_low_clean
}

@test "U19: tmpfs on /run keeps what is mounted below it, in whatever order it came" {
	run low_cycle "$(make_bundle u19 '.process.args = ["sh", "-c", "echo x >/run/a && cat /run/a; grep -c \" /run \" /proc/mounts"] |
		.mounts = [.mounts[] | select(.destination == "/dev/pts")] + [.mounts[] | select(.destination != "/dev/pts")]')" low-u19
	if [ "$status" = 0 ]; then
		assert_line x
		assert_line 1
	else
		assert_match 'refused: mounts'
	fi
	assert_low_clean
}

@test "U20: exec's own options are held to the rules" {
	local dir
	dir=$(make_bundle u20 '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-u20
	low start low-u20
	run low exec low-u20 /bin/probe
	assert_status 0
	assert_line "CapEff: 0000000000000000"
	assert_line "NoNewPrivs: 1"
	assert_line "uid=1000 gid=1000"
	run low exec --cap CAP_SYS_ADMIN low-u20 /bin/probe
	assert_status 1
	assert_match 'refused: (capabilities|privileged)'
	run low exec --user 0 low-u20 /bin/probe
	[ "$status" != 0 ] || assert_line "uid=1000 gid=1000"
	jq -n '{args: ["/bin/probe"], cwd: "/", env: ["PATH=/bin"], user: {uid: 0, gid: 0},
		capabilities: {bounding: ["CAP_SYS_ADMIN"], effective: ["CAP_SYS_ADMIN"], permitted: ["CAP_SYS_ADMIN"]}}' >"$dir/p.json"
	run low exec --process "$dir/p.json" low-u20
	assert_status 1
	assert_match 'refused: (capabilities|privileged)'
	jq '.capabilities = {bounding: ["CAP_CHOWN"]} | .noNewPrivileges = false' "$dir/p.json" >"$dir/q.json"
	run low exec --process "$dir/q.json" low-u20
	assert_status 0
	assert_line "CapBnd: 0000000000000000"
	assert_line "NoNewPrivs: 1"
	assert_line "uid=1000 gid=1000"
	jq '.capabilities = {} | .cwd = "/proc/self/fd/7"' "$dir/p.json" >"$dir/r.json"
	run low exec --process "$dir/r.json" low-u20
	assert_status 1
	assert_has /proc/self/fd/7
	low delete --force low-u20
	assert_low_clean
}

@test "update: by options, by file, by stdin" {
	local dir pid
	dir=$(make_bundle up '.process.args = ["sleep", "1000"]')
	low_create "$dir" low-up
	low start low-up
	pid=$(cat "$dir/pid")
	run low update --memory 2147483648 low-up
	assert_status 1
	assert_match 'refused: memory_limit at /'
	run low update --pids-limit 9999 low-up
	assert_status 1
	assert_match 'refused: pids_limit at /'
	run bash -c "echo '{\"memory\":{\"limit\":2147483648}}' | '$SHIM' --root /run/low-$AQE_LOW update --resources - low-up"
	assert_status 1
	assert_match 'refused: memory_limit at /'
	echo '{"pids":{"limit":-1}}' >"$dir/u.json"
	run low update --resources="$dir/u.json" low-up
	assert_status 1
	assert_match 'refused: pids_limit at /'
	run bash -c "echo '{\"memory\":{\"limit\":134217728}}' | '$SHIM' --root /run/low-$AQE_LOW update --resources - low-up"
	assert_status 0
	is_cgroup_v2 || [ "$(cgroup_value "$pid" memory memory.limit_in_bytes)" = 134217728 ]
	low delete --force low-up
	assert_low_clean
}

@test "restore and checkpoint cannot be a way around" {
	run low restore --bundle "$(make_bundle rs)" --image-path "$AQE_TMP/low" low-rs
	assert_status 1
	[ -n "$output" ]
	assert_low_clean
}

@test "U23: a large environment starts or is refused by name, and nothing hangs" {
	local n big
	for n in 131000 131071 200000; do
		big=$AQE_TMP/low/big
		printf "%${n}s" | tr ' ' x >"$big"
		jq --rawfile big "$big" '.process.env += ["BIG=" + $big] | .process.args = ["true"]' "$(make_bundle u23)/config.json" >"$AQE_TMP/low/u23.json"
		mv "$AQE_TMP/low/u23.json" "$AQE_TMP/low/u23/config.json"
		run low_cycle "$AQE_TMP/low/u23" low-u23
		[ "$status" = 0 ] || [[ $output == *BIG* ]] || [[ $output == *env* ]] || {
			echo "$n: exit status $status: ${output:0:500}"
			return 1
		}
		[ "${#output}" -le 3000 ]
	done
	jq '.process.env += [range(5000) | "V\(.)=" + ("y" * 400)] | .process.args = ["true"]' "$(make_bundle u23)/config.json" >"$AQE_TMP/low/u23.json"
	mv "$AQE_TMP/low/u23.json" "$AQE_TMP/low/u23/config.json"
	run low_cycle "$AQE_TMP/low/u23" low-u23
	[ "$status" = 0 ] || assert_match '(config.json:|/process/env).*'
	assert_low_clean
}

@test "U25: hooks in a document are refused, the one that docker adds is dropped" {
	run to_file low create --bundle "$(make_bundle u25 '.hooks = {createRuntime: [{path: "/bin/touch", args: ["touch", "/run/aqe-test/hooked"]}]}')" low-u25
	assert_status 1
	assert_match 'refused: hooks at /hooks'
	[ ! -e /run/aqe-test/hooked ]
	run to_file low create --bundle "$(make_bundle u25 '.hooks = {poststop: [{path: "/bin/true"}], startContainer: [{path: "/bin/true"}]}')" low-u25
	assert_status 1
	assert_match 'refused: hooks at /hooks'
	run low_cycle "$(make_bundle u25 '.hooks = {}')" low-u25
	assert_status 0
	assert_low_clean
}

@test "no user namespace: refused with three ways out; a waiver admits it" {
	local f='del(.linux.uidMappings, .linux.gidMappings) | .linux.namespaces |= map(select(.type != "user"))'
	run to_file low create --bundle "$(make_bundle nouser "$f")" low-nouser
	assert_status 1
	assert_match 'refused: rootless at /'
	assert_has waiver
	low_policy waive=rootless
	run low_cycle "$(make_bundle nouser "$f")" low-nouser
	assert_status 0
	assert_line "uid=1000 gid=1000"
	assert_line "CapEff: 0000000000000000"
	assert_low_clean
}

@test "the shim as its own low-level runtime, a link, a script, a wrong digest: refused" {
	local dir
	dir=$(make_bundle self)
	low_policy jq=".runtime.path = \"$SHIM\""
	run to_file low create --bundle "$dir" low-self
	assert_status 1
	[ -n "$output" ]
	low_policy jq='.runtime.path = "/usr/bin/no-such-runtime"'
	run to_file low create --bundle "$dir" low-self
	assert_status 1
	assert_has no-such-runtime
	low_policy jq='.runtime.path = "crun"'
	run to_file low create --bundle "$dir" low-self
	assert_status 1
	low_policy jq='.runtime.digest = "sha256:'"$(printf '0%.0s' {1..64})"'"'
	run to_file low create --bundle "$dir" low-self
	assert_status 1
	assert_has digest
	low_policy jq='.runtime.digest = "sha256:'"$(sha256sum "$(low_path)" | cut -d' ' -f1)"'"'
	run low_cycle "$dir" low-self
	assert_status 0
	assert_low_clean
}

@test "documents of the corpus that conform load in crun and in runc" {
	# The corpus names paths of its own; only what the runtime must parse is put in place of them.
	local f dir=$AQE_TMP/low/corpus out
	mkdir -p "$dir"
	while IFS=$'\t' read -r f _; do
		jq --arg root "$AQE_TMP/rootfs" '.root.path = $root | .process.args = ["true"] | .process.terminal = false |
			.mounts |= map(select(.type != "bind")) | .linux.cgroupsPath = "/low-corpus" |
			.process.cwd = "/" | del(.process.rlimits) |
			.linux.uidMappings = [{containerID: 0, hostID: 300000, size: 65536}] | .linux.gidMappings = .linux.uidMappings |
			(if any(.linux.namespaces[]; .type == "user") then . else .linux.namespaces += [{type: "user"}] end)' \
			"tests/corpus/spec/$f" >"$dir/config.json"
		out=$(low_bare run --bundle "$dir" low-corpus 2>&1 <"$AQE_TMP/low/stdin") || {
			# known limits of Debian 12's runtimes, not of the documents
			grep -qE 'seccomp flags|flags are not yet supported|unknown version specified|ociVersion' <<<"$out" || {
				echo "$f: $out"
				return 1
			}
		}
	done < <(awk -F'\t' '$2 == "conform"' tests/corpus/spec/index.tsv)
	chown 0:0 /dev/null
}

@test "nothing is left of all this" {
	assert_low_clean
	[ "$(stat -c '%u:%g %a' /dev/null)" = "0:0 666" ]
}

@test "every call the proof denies is denied in the kernel, inside a container" {
	local dir
	make -s build/release/tools/denied_calls
	dir=$(make_bundle denied '.process.args = ["/bin/denied_calls"]')
	install -m 755 build/release/tools/denied_calls "$dir/rootfs/bin/denied_calls"
	run low_cycle "$dir" denied
	assert_match 'denied [0-9]{3,}, mismatches 0'
}
