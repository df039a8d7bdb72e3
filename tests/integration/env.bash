# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2119,SC2120,SC2009
# Shared by the bats files: real engines inside tests/setup/sandbox.sh, with aqe-shim registered as
# engines.md says. One sandbox runs several files, so everything here is set up once and reused.
#
# Axes, chosen by run_integration.sh through the environment:
#   AQE_ENGINE  podman-root podman-user docker docker-remap
#   AQE_LOW     crun runc
# AQE_SHIM is the binary under test.

[ -n "${AQE_SANDBOX-}" ] || {
	echo "run these through tests/run_integration.sh: they need tests/setup/sandbox.sh" >&2
	exit 1
}

readonly AQE_USER=aqetest AQE_UID=4201
readonly IMG=localhost/aqe-bb IMG_OTHER=localhost/aqe-unpinned
readonly POLICY=/etc/aqe-shim/policy.json
: "${AQE_ENGINE:=podman-root}" "${AQE_LOW:=crun}"
export CONTAINERS_CONF=$AQE_TMP/containers.conf DOCKER_HOST=unix:///run/docker-$AQE_ENGINE.sock
DOCKER=/usr/bin/docker
[ -x "$DOCKER" ] || DOCKER=$(command -v docker)

low_path() {
	case ${1:-$AQE_LOW} in
	crun) echo /usr/bin/crun ;;
	runc) echo /usr/sbin/runc ;;
	esac
}

# --- waiting and asserting ---------------------------------------------------------------------

# Polls a command until it succeeds, at most WAIT_S (60) seconds.
wait_for() {
	local end=$((SECONDS + ${WAIT_S-60}))
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "gave up waiting for: $*" >&2
			return 1
		fi
		sleep 0.05
	done
}

show_output() {
	echo "exit status $status, output:"
	echo "$output"
}

assert_status() {
	[ "$status" = "$1" ] || {
		echo "wanted exit status $1"
		show_output
		return 1
	}
}

assert_has() {
	[[ $output == *"$1"* ]] || {
		echo "not in the output: $1"
		show_output
		return 1
	}
}

refute_has() {
	[[ $output != *"$1"* ]] || {
		echo "must not be in the output: $1"
		show_output
		return 1
	}
}

assert_line() {
	grep -qxF -- "$1" <<<"$output" || {
		echo "no such line in the output: $1"
		show_output
		return 1
	}
}

assert_match() {
	grep -qE -- "$1" <<<"$output" || {
		echo "no line matches: $1"
		show_output
		return 1
	}
}

# The one-line refusal: property, place, found, wanted, fix; short enough for every engine, and
# without the phrases that make an engine relabel it (engines.md section 2).
assert_refusal_text() {
	assert_match "refused: ($1)( at /[^ ]*)?: found .*, wanted .*; fix: " || return 1
	local phrase
	for phrase in "permission denied" "operation not permitted" "no such file or directory" \
		"executable file not found" "not a directory" "no logs from conmon" "unable to retrieve OCI runtime error"; do
		if grep -qiF "$phrase" <<<"$output"; then
			echo "an engine's magic phrase in the refusal: $phrase"
			show_output
			return 1
		fi
	done
	[ "${#output}" -le 3000 ] || {
		echo "refusal too long: ${#output}"
		return 1
	}
}

# Exit status with which the engine shows a refused run, start, exec.
refused_status() {
	case $AQE_ENGINE:$1 in
	podman*:run) echo 126 ;;
	podman*:start) echo 125 ;;
	podman*:exec) echo 255 ;;
	docker*:run) echo 125 ;;
	docker*:start) echo 1 ;;
	docker*:exec) echo 126 ;;
	esac
}

# assert_refused run|start|exec PROPERTY-REGEX
assert_refused() {
	assert_status "$(refused_status "$1")" || return 1
	assert_refusal_text "$2" || return 1
	refute_has "ran-inside"
}

# A test this machine cannot run. In CI that is a failure.
cannot_run() {
	if [ "${AQE_TESTS_MUST_RUN-}" = 1 ]; then
		echo "cannot run here: $1"
		return 1
	fi
	skip "$1"
}

# --- policy --------------------------------------------------------------------------------------

# write_policy [mode=M] [low=crun|runc] [waive=PROPERTY]... [drop-images] [jq=FILTER]
# Pins every image that setup registered; what the engine of this run cannot do is waived by name.
write_policy() {
	local mode=enforce low=$AQE_LOW waived=() filter=. images=1 a
	for a in "$@"; do
		case $a in
		mode=*) mode=${a#mode=} ;;
		low=*) low=${a#low=} ;;
		waive=*) waived+=("${a#waive=}") ;;
		drop-images) images=0 ;;
		jq=*) filter=${a#jq=} ;;
		*)
			echo "write_policy: $a" >&2
			return 1
			;;
		esac
	done
	mkdir -p /etc/aqe-shim
	touch "$AQE_TMP/pinned"
	jq -n --arg mode "$mode" --arg low "$(low_path "$low")" --arg images "$images" \
		--rawfile pinned "$AQE_TMP/pinned" '{
			version: 1, mode: $mode, runtime: {path: $low},
			images: (if $images == "1" then
				[$pinned | split("\n") | unique[] | select(. != "") | {name: "localhost/aqe-bb", imageId: .}]
				else [] end),
			waivers: [$ARGS.positional[] | {property: ., agentType: "default", reason: "test",
				owner: "tests@example.org", expires: "2099-12-31"}]
		}' --args "${waived[@]}" | jq "$filter" >"$POLICY.new"
	mv "$POLICY.new" "$POLICY"
}

# What the engine of this run needs waived to start anything at all.
engine_waivers() {
	case $AQE_ENGINE in
	podman-user) is_cgroup_v2 || echo "waive=pids_limit waive=memory_limit waive=cpu_limit" ;;
	docker) echo "waive=rootless" ;;
	esac
}

# shellcheck disable=SC2046 # a list of words
usual_policy() { write_policy $(engine_waivers) "$@"; }

is_cgroup_v2() { [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; }

# --- images ------------------------------------------------------------------------------------

# Prints, from inside, what the kernel says about the process and its place.
write_probe() {
	cat >"$1" <<'P'
#!/bin/sh
echo probe-begin
grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp|Groups):' /proc/self/status | tr -s '\t ' ' '
echo "uid=$(id -u) gid=$(id -g)"
echo "umask=$(umask)"
echo "uid_map:$(tr -s ' ' </proc/self/uid_map | tr '\n' ';')"
echo "ifaces:$(sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | tr '\n' ' ')"
if touch /probe-was-here 2>/dev/null; then echo rootfs=writable; else echo rootfs=readonly; fi
if echo x >/tmp/probe; then echo tmp=writable; fi
grep -E ' (/|/tmp|/run|/dev|/proc|/sys) ' /proc/mounts | while read -r _ dst type opts _; do
	[ "$dst" = / ] && type=root
	echo "mount $dst $type $opts"
done | sort # podman's order of mounts is random
echo "nofile=$(ulimit -n) core=$(ulimit -c)"
for n in pid net ipc uts mnt user; do echo "ns-$n=$(readlink /proc/self/ns/$n)"; done
if unshare -U true 2>/dev/null; then echo unshare=allowed; else echo unshare=denied; fi
if mount -t tmpfs none /tmp 2>/dev/null; then echo mount=allowed; else echo mount=denied; fi
if mknod /tmp/dev-null-copy c 1 3 2>/dev/null; then echo mknod=allowed; else echo mknod=denied; fi
echo probe-end
P
	chmod 755 "$1"
}

make_rootfs() {
	local root=$1 a
	mkdir -p "$root"/{bin,etc,proc,sys,dev,tmp,run,root,home}
	cp /bin/busybox "$root/bin/busybox"
	/bin/busybox --list | while read -r a; do
		[ -e "$root/bin/$a" ] || ln -s busybox "$root/bin/$a"
	done
	printf 'root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nagent:x:1000:\n' >"$root/etc/group"
	write_probe "$root/bin/probe"
}

make_archives() {
	[ ! -e "$AQE_TMP/bb.tar" ] || return 0
	make_rootfs "$AQE_TMP/rootfs"
	tar -C "$AQE_TMP/rootfs" --owner=0 --group=0 -cf "$AQE_TMP/bb.tar.new" .
	echo other >"$AQE_TMP/rootfs/etc/issue"
	tar -C "$AQE_TMP/rootfs" --owner=0 --group=0 -cf "$AQE_TMP/other.tar" .
	rm "$AQE_TMP/rootfs/etc/issue"
	mv "$AQE_TMP/bb.tar.new" "$AQE_TMP/bb.tar"
}

# Imports both images into this engine's store, pins the first: once a store.
import_images() {
	local mark=$AQE_TMP/images-of-$AQE_ENGINE${1-} id
	[ ! -e "$mark" ] || return 0
	engine import "$AQE_TMP/bb.tar" $IMG >/dev/null 2>&1
	engine import "$AQE_TMP/other.tar" $IMG_OTHER >/dev/null 2>&1
	id=$(engine image inspect --format '{{.Id}}' $IMG)
	echo "sha256:${id#sha256:}" >>"$AQE_TMP/pinned"
	touch "$mark"
}

image_id() {
	local id
	id=$(engine image inspect --format '{{.Id}}' "$1")
	echo "sha256:${id#sha256:}"
}

# --- engines -----------------------------------------------------------------------------------

write_containers_conf() {
	[ ! -e "$CONTAINERS_CONF" ] || return 0
	cat >"$CONTAINERS_CONF" <<C
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
runtime_supports_json = ["crun", "runc", "aqe-shim"]
[engine.runtimes]
crun = ["/usr/bin/crun"]
runc = ["/usr/sbin/runc"]
aqe-shim = ["$AQE_TMP/bin/aqe-shim"]
C
	cat >"$AQE_TMP/storage.conf" <<C
[storage]
driver = "overlay"
graphroot = "$AQE_TMP/podman"
runroot = "/run/podman-root"
C
	chmod 644 "$CONTAINERS_CONF" "$AQE_TMP/storage.conf"
}

as_user() {
	(cd / && exec setpriv --reuid "$AQE_USER" --regid "$AQE_USER" --init-groups env -i PATH="$PATH" \
		HOME="$AQE_TMP/home" XDG_RUNTIME_DIR="/run/user/$AQE_UID" CONTAINERS_CONF="$CONTAINERS_CONF" \
		LC_ALL=C TERM=xterm DISABLE_HC_SYSTEMD=true "$@")
}

podman_root() {
	CONTAINERS_STORAGE_CONF=$AQE_TMP/storage.conf DISABLE_HC_SYSTEMD=true timeout --foreground -k 5 90 podman "$@"
}
podman_user() { as_user timeout --foreground -k 5 90 podman "$@"; }
docker_cmd() { timeout --foreground -k 5 90 "$DOCKER" "$@"; }

# The engine of this run, with the runtime it would use by itself.
engine() {
	case $AQE_ENGINE in
	podman-root) podman_root "$@" ;;
	podman-user) podman_user "$@" ;;
	docker*) docker_cmd "$@" ;;
	esac
}

# The engine with aqe-shim as its runtime. For podman that is a global option, for docker one of
# run and create.
shim() { with_runtime aqe-shim "$@"; }
# The engine with the bare low-level runtime.
bare() {
	local rc=0
	with_runtime "$AQE_LOW" "$@" || rc=$?
	# crun with a user namespace may have given our null device away (engines.md pitfall 37)
	chown 0:0 /dev/null
	return "$rc"
}

with_runtime() {
	local rt=$1 verb=$2
	shift 2
	case $AQE_ENGINE:$verb in
	podman*) engine --runtime "$rt" "$verb" "$@" ;;
	docker*:run | docker*:create) engine "$verb" --runtime "$rt" "$@" ;;
	*) engine "$verb" "$@" ;;
	esac
}

# Options every container of this engine needs to satisfy the profile without a waiver. Into a
# container with a user namespace podman moves its interface between create and start, and could
# with `network connect` at any time later; --network none is what keeps it out.
user_ns() {
	case $AQE_ENGINE in
	podman-root) echo --userns=auto --network none ;;
	esac
}

# Those of user_ns for options that podman does not take together with --network none, or docker
# only outside its user namespace.
own_userns() {
	case $AQE_ENGINE in
	docker-remap) echo --userns=host ;;
	podman-root) echo --userns=auto ;;
	esac
}

# shim run/create with the options of user_ns.
# shellcheck disable=SC2046 # none or one word
hard_run() { shim run $(user_ns) "$@"; }

# The same on a terminal of its own; what the terminal shows is the output. Its input never ends:
# at an end `script` would type ^D, which podman may take for the end of the session.
on_tty() {
	local cmd
	[ -p "$AQE_TMP/keyboard" ] || mkfifo "$AQE_TMP/keyboard"
	export -f engine podman_root podman_user docker_cmd as_user shim with_runtime
	export AQE_ENGINE DOCKER AQE_USER AQE_UID
	printf -v cmd '%q ' "$@"
	SHELL=/bin/bash timeout --foreground -k 5 60 script -qefc "$cmd" /dev/null <>"$AQE_TMP/keyboard" | tr -d '\r'
	return "${PIPESTATUS[0]}"
}

# Host pid of a running container's first process.
pid_of() { engine inspect --format '{{.State.Pid}}' "$1"; }

# cgroup_value PID CONTROLLER FILE
cgroup_value() {
	local path
	path=$(awk -F: -v c="$2" '("," $2 ",") ~ ("," c ",") { print $3 }' "/proc/$1/cgroup")
	cat "/sys/fs/cgroup/$2$path/$3"
}

# dockerd of our own, kept for the whole sandbox.
docker_start() {
	local sock=/run/docker-$AQE_ENGINE.sock dir=$AQE_TMP/docker-$AQE_ENGINE args=()
	if [ -S "$sock" ] && docker_cmd version >/dev/null 2>&1; then
		return 0
	fi
	[ "$AQE_ENGINE" != docker-remap ] || args=(--userns-remap="$AQE_USER")
	mkdir -p "$dir"
	ip link show docker0 >/dev/null 2>&1 && args+=(--bip "172.30.$((RANDOM % 250)).1/24")
	setsid dockerd --data-root "$dir/data" --exec-root "/run/docker-$AQE_ENGINE" -H "unix://$sock" \
		-p "/run/docker-$AQE_ENGINE.pid" --default-ulimit nofile=20000:20000 \
		--add-runtime "aqe-shim=$AQE_TMP/bin/aqe-shim" --add-runtime crun=/usr/bin/crun "${args[@]}" \
		>"$dir/log" 2>&1 3>&- 4>&- </dev/null &
	wait_for docker_cmd version || {
		tail -n 30 "$dir/log" >&2
		return 1
	}
}

docker_stop() {
	local pidfile=/run/docker-$AQE_ENGINE.pid pid
	[ -e "$pidfile" ] || return 0
	pid=$(cat "$pidfile")
	kill "$pid"
	wait_for test ! -e "/proc/$pid"
}

engine_start() {
	mkdir -p "$AQE_TMP/bin"
	# a file without an engine may have put the shim there alone
	[[ $AQE_TMP/bin/aqe-shim -nt $AQE_SHIM && -x $AQE_TMP/bin/aqe-egress ]] ||
		install -m 755 "$AQE_SHIM" "$(dirname "$AQE_SHIM")/aqe-egress" "$AQE_TMP/bin/"
	write_containers_conf
	make_archives
	[[ $AQE_ENGINE != docker* ]] || docker_start
	import_images
	usual_policy
}

# Removes every container of this engine.
engine_clean() {
	local ids
	mapfile -t ids < <(engine ps -aq)
	[ "${#ids[@]}" = 0 ] || case $AQE_ENGINE in
	podman*) engine rm -f -t 0 "${ids[@]}" >/dev/null 2>&1 || : ;;
	docker*) engine rm -f "${ids[@]}" >/dev/null 2>&1 || : ;;
	esac
	[[ $AQE_ENGINE != podman* ]] || engine pod rm -f -a >/dev/null 2>&1 || :
}

# --- REST -----------------------------------------------------------------------------------

ENG=${AQE_ENGINE%%-*} # as aqe names it

# The engine's REST API: Podman's own service, with aqe-shim as its runtime; dockerd runs already.
service_start() {
	local dir=$AQE_TMP who=env
	[ "$ENG" = podman ] || return 0
	[ "$AQE_ENGINE" != podman-user ] || dir=/run/user/$AQE_UID who=as_user
	SOCK=$dir/service.sock
	# shellcheck disable=SC2016 # the inner shell's
	CONTAINERS_STORAGE_CONF=$AQE_TMP/storage.conf DISABLE_HC_SYSTEMD=true $who sh -c 'cd "$(dirname "$0")" && echo $$ >"$0" && exec "$@"' \
		"$dir/service.pid" podman --runtime aqe-shim system service -t 0 "unix://$SOCK" \
		>"$AQE_TMP/service.log" 2>&1 3>&- 4>&- </dev/null &
	wait_for test -S "$SOCK"
}
service_stop() {
	local pid
	[ "$ENG" = podman ] || return 0
	pid=$(cat "$(dirname "$SOCK")/service.pid")
	kill "$pid"
	wait_for test ! -e "/proc/$pid"
	# after an exec through the service its conmon stays for five minutes
	pgrep -x conmon | while read -r pid; do kill "$pid"; done
	no_conmon() { ! pgrep -x conmon; }
	wait_for no_conmon
}

# --- terminals ---------------------------------------------------------------------------------

term() { TMUX_TMPDIR=$AQE_TMP tmux -L aqe "$@" 3>&- 4>&-; }
screen() { term capture-pane -p; }
# Of the longest line; a wide character is one.
columns() { screen | LC_ALL=C.UTF-8 wc -L; }
# Waits until a line of the screen matches.
shows() {
	on_screen() { screen | grep -qE -- "$1"; }
	wait_for on_screen "$1" || {
		screen
		return 1
	}
}

# --- leaks -------------------------------------------------------------------------------------

state_dir() {
	case $AQE_ENGINE in
	podman-user) echo "/run/user/$AQE_UID/aqe-shim" ;;
	*) echo /run/aqe-shim ;;
	esac
}

# Names what a finished test must not leave: containers' processes, runtime state, our own state,
# container cgroups, mounts of bundles. Silent when there is nothing.
leaks() {
	local d
	for d in /run/crun /run/runc "/run/user/$AQE_UID/crun" "/run/user/$AQE_UID/runc" \
		/run/docker-*/runtime-runc/moby; do
		[ ! -d "$d" ] || find "$d" -mindepth 1 -maxdepth 1 ! -name '.*' | sed 's/^/runtime state: /'
	done
	for d in /run/aqe-shim "/run/user/$AQE_UID/aqe-shim"; do
		[ ! -d "$d" ] || find "$d" -mindepth 1 -maxdepth 1 -type d ! -name '.*' | sed 's/^/shim state: /'
	done
	find /sys/fs/cgroup -mindepth 2 -type d \( -name 'libpod-*' -o -path '*/docker/*' -o -name 'aqe-test-*' \) \
		2>/dev/null | sed 's/^/cgroup: /'
	ps -eo pid=,comm=,args= | awk '$2 ~ /^(conmon|crun|runc|containerd-shim|aqe-shim|aqe-egress|egress-)/ { print "process: " $0 }'
	awk '$5 ~ /\/(aqe-shim|crun|runc)\// || $5 ~ /libpod|overlay2\/.*\/merged|\/merged$/ { print "mount: " $5 }' /proc/self/mountinfo
}

no_leaks() { [ -z "$(leaks)" ]; }

assert_no_leaks() {
	wait_for no_leaks || {
		echo "left behind:"
		leaks
		return 1
	}
}
