#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs a command as root in a place of its own: sandbox.sh COMMAND [ARGUMENT...]
#
# Mount, pid, network, ipc, uts and (cgroup v1) cgroup namespaces are private, so container
# engines can run beside the host's own and beside other sandboxes: /run is an empty tmpfs, /etc a
# copy, /dev has nodes of its own (crun may change the owner of /dev/null), and every
# process ends with the command. Nothing of the host is written.
# Inside, AQE_TMP=/run/aqe-test is scratch space and the user aqetest (4201, with subordinate ids)
# exists. On the hybrid cgroup layout a nested group also hides the controllers left on the v2
# hierarchy, which crun refuses.
set -euo pipefail

readonly user=aqetest uid=4201 first_sub=300000
group_name=aqe-sandbox-$$

die() {
	echo "sandbox.sh: $*" >&2
	exit 1
}

# --- outside ---------------------------------------------------------------------------------

# Every v1 hierarchy and the hybrid's v2 one: "mountpoint own-path".
hierarchies() {
	local _ dev mnt type opts ctl path
	while read -r dev mnt type opts _; do
		case $type in
		cgroup) ;;
		cgroup2)
			dev=v2
			;;
		*) continue ;;
		esac
		while IFS=: read -r _ ctl path; do
			if { [ "$dev" = v2 ] && [ -z "$ctl" ]; } || { [ "$dev" != v2 ] && [ -n "$ctl" ] &&
				[[ ",$opts," == *",$ctl,"* ]]; }; then
				echo "$mnt $path"
			fi
		done </proc/self/cgroup
	done </proc/mounts
}

is_v1() { grep -q ' cgroup rw' /proc/mounts; }

make_groups() {
	local mnt path f
	hierarchies | while read -r mnt path; do
		[ -d "$mnt$path" ] || path=
		mkdir "$mnt$path/$group_name"
		for f in cpuset.mems cpuset.cpus; do
			[ ! -e "$mnt$path/$f" ] || cat "$mnt$path/$f" >"$mnt$path/$group_name/$f"
		done
		echo "$mnt$path/$group_name"
	done
}

# The members die with the pid namespace; the kernel may need a moment to let go of them.
# shellcheck disable=SC2317 # called by a trap
remove_groups() {
	local g tries=0
	while [ "$tries" -lt 200 ]; do
		for g in "$@"; do
			[ ! -d "$g" ] || find "$g" -depth -type d -exec rmdir {} + 2>/dev/null || :
		done
		g=$(ls -d "$@" 2>/dev/null || :)
		[ -n "$g" ] || return 0
		tries=$((tries + 1))
		sleep 0.05
	done
	echo "sandbox.sh: left behind: $g" >&2
}

outside() {
	local groups=() rc=0 cgroup_ns=()
	[ "$(id -u)" = 0 ] || die "needs root"
	if is_v1; then
		mapfile -t groups < <(make_groups)
		cgroup_ns=(--cgroup)
	fi
	trap 'remove_groups "${groups[@]}"' EXIT
	# a subshell of its own enters the groups, so that this one can remove them afterwards
	(
		trap - EXIT
		for g in "${groups[@]}"; do
			echo "$BASHPID" >"$g/cgroup.procs"
		done
		exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc --net --ipc \
			--uts "${cgroup_ns[@]}" "$0" --inside "$@"
	) <&0 &
	# unshare blocks SIGTERM; when it dies the kernel ends everything in the pid namespace
	trap 'kill -KILL "$!" 2>/dev/null' INT TERM HUP
	wait $! || rc=$?
	exit "$rc"
}

# --- inside ----------------------------------------------------------------------------------

mount_groups() {
	local _ ctl where
	is_v1 || return 0
	umount -R "$1"
	mount -t tmpfs -o mode=755 cgroup "$1"
	while IFS=: read -r _ ctl _; do
		where=$1/${ctl:-unified}
		mkdir "${where/name=/}"
		case $ctl in
		'') mount -t cgroup2 cgroup2 "$where" ;;
		name=*) mount -t cgroup -o "none,$ctl" cgroup "${where/name=/}" ;;
		*) mount -t cgroup -o "$ctl" cgroup "$where" ;;
		esac
	done </proc/self/cgroup
}

private_etc() {
	local copy=/run/etc-copy
	mkdir "$copy"
	mount -t tmpfs -o mode=755 etc "$copy"
	cp -a /etc/. "$copy/"
	mount --move "$copy" /etc
	rmdir "$copy"
	rm -rf /etc/aqe-shim /etc/cni/net.d /etc/docker
	sed -i -E "/^($user|containers):/d" /etc/passwd /etc/group /etc/subuid /etc/subgid 2>/dev/null || :
	echo "$user:x:$uid:$uid:aqe-shim tests:/run/aqe-test/home:/bin/bash" >>/etc/passwd
	echo "$user:x:$uid:" >>/etc/group
	# containers: where podman --userns=auto takes its ranges from
	printf '%s\n' "$user:$first_sub:65536" "containers:1000000:1048576" >>/etc/subuid
	printf '%s\n' "$user:$first_sub:65536" "containers:1000000:1048576" >>/etc/subgid
}

# A /dev of our own, for the reason above; null, tun and fuse are open to users also where no udev
# made them so.
private_dev() {
	local dev=/run/dev node
	mkdir "$dev"
	mount -t tmpfs -o mode=755 dev "$dev"
	find /dev -mindepth 1 -maxdepth 1 \( -type c -o -type l \) -exec cp -a {} "$dev/" \;
	mkdir "$dev"/{pts,shm,mqueue,net}
	[ ! -e /dev/net/tun ] || cp -a /dev/net/tun "$dev/net/"
	for node in null net/tun fuse; do
		[ ! -e "$dev/$node" ] || chmod 666 "$dev/$node"
	done
	mount --bind /dev/pts "$dev/pts"
	mount -t tmpfs -o mode=1777 shm "$dev/shm"
	mount -t mqueue mqueue "$dev/mqueue"
	umount -l /dev/pts /dev/shm
	mount --move "$dev" /dev
	rmdir "$dev"
}

# What is written below /var/lib (the audit log, an engine's state) stays here.
private_var() {
	mkdir -p /run/var-lib/upper /run/var-lib/work
	mount -t overlay -o lowerdir=/var/lib,upperdir=/run/var-lib/upper,workdir=/run/var-lib/work var-lib /var/lib
	rm -rf /var/lib/aqe-shim
}

inside() {
	local rc=0
	mount --make-rprivate /
	mount -t tmpfs -o mode=755 run /run
	mkdir -m 755 /run/aqe-test /run/lock /run/user
	mkdir -m 1777 /run/aqe-test/tmp
	install -d -m 700 -o "$uid" -g "$uid" "/run/user/$uid" /run/aqe-test/home
	private_etc
	private_dev
	private_var
	[ ! -d /var/lib/containers ] || mount -t tmpfs -o mode=755 containers /var/lib/containers
	mount_groups /sys/fs/cgroup
	# as on a host: the user's engine wants a shared root
	mount --make-rshared /
	ip link set lo up 2>/dev/null || :
	hostname aqe-sandbox
	export AQE_SANDBOX=1 AQE_TMP=/run/aqe-test TMPDIR=/run/aqe-test/tmp XDG_RUNTIME_DIR=
	unset XDG_CONFIG_HOME XDG_DATA_HOME DBUS_SESSION_BUS_ADDRESS
	# bash stays as pid 1 and reaps what the engines leave to it
	"$@" </dev/null &
	wait $! || rc=$?
	exit "$rc"
}

case ${1-} in
--inside)
	shift
	inside "$@"
	;;
'') die "usage: sandbox.sh COMMAND [ARGUMENT...]" ;;
*) outside "$@" ;;
esac
