#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make demo: the main job, shown with the low-level runtime alone (no container engine). Runs in a
# sandbox of its own (tests/setup/sandbox.sh): nothing of the host is changed.
set -euo pipefail

cd "$(dirname "$0")/../.."
SHIM=${AQE_SHIM:-$PWD/build/release/aqe-shim}
AQE=$(dirname "$SHIM")/aqe
export SHIM
[ -n "${AQE_SANDBOX-}" ] || exec tests/setup/sandbox.sh "$PWD/tests/demo/demo.sh"

DIR=$AQE_TMP/demo
mkdir -p "$DIR/workspace" /etc/aqe-shim
chmod 755 "$DIR"
chown 101000:101000 "$DIR/workspace" # the agent, 1000 inside the container

say() { printf '\n== %s\n' "$*"; }
# show STATUS COMMAND...: shows a command as a user would type it, runs it, wants that exit status.
show() {
	local rc=0 want=$1
	shift
	local line=${*//$SHIM/aqe-shim}
	echo "\$ ${line//$AQE/aqe}" | sed "s|$DIR/||g"
	"$@" 2>&1 || rc=$?
	echo "(exit status $rc)"
	[ "$rc" = "$want" ] || {
		echo "demo: wanted exit status $want" >&2
		exit 1
	}
}

# What the container runs: it looks at itself.
cat >"$DIR/look.sh" <<'E'
row() { printf '  %-22s %s\n' "$1" "$2"; }
field() { sed -n "s/^$1:[[:space:]]*//p" /proc/self/status; }
limit() { cat /sys/fs/cgroup/$1/$2 2>/dev/null || cat /sys/fs/cgroup/$3 2>/dev/null || echo "?"; }
row "user" "$(id -u):$(id -g), on the host $(awk 'NR == 1 { print $2 + 1000 }' /proc/self/uid_map)"
row "capabilities" "effective $(field CapEff), bounding $(field CapBnd)"
row "no_new_privs" "$(field NoNewPrivs)"
row "seccomp" "mode $(field Seccomp); unshare -r: $(unshare -r true 2>&1 | head -n 1)"
row "write to /" "$(touch /planted 2>&1 || :)"
row "write to /tmp" "$(touch /tmp/note && echo ok), $(grep ' /tmp ' /proc/mounts | cut -d' ' -f4 | cut -d, -f1-4)"
row "write to /workspace" "$(touch /workspace/note && echo ok)"
row "pids limit" "$(limit pids pids.max pids.max)"
row "memory limit" "$(limit memory memory.limit_in_bytes memory.max)"
row "cpu quota / period" "$(limit cpu cpu.cfs_quota_us cpu.max) / $(limit cpu cpu.cfs_period_us cpu.max)"
row "network devices" "$(sed -n 's/^ *\([^:]*\):.*/\1/p' /proc/net/dev | xargs)"
E

make_rootfs() {
	mkdir -p "$DIR/rootfs"/{bin,dev,etc,proc,sys,tmp,run,workspace}
	cp /bin/busybox "$DIR/rootfs/bin/"
	for a in sh cat id sed awk grep cut head touch unshare printf xargs true sleep; do
		ln -s busybox "$DIR/rootfs/bin/$a"
	done
	cp "$DIR/look.sh" "$DIR/rootfs/look.sh"
	# the root of the container's user namespace must own what it mounts on
	chown -R 100000:100000 "$DIR/rootfs"
}

# What an engine with default settings would ask for: root, fourteen capabilities, a writable root,
# no seccomp filter, no limits; only the user namespace is there.
spec() {
	cat <<E
{ "ociVersion": "1.0.2", "hostname": "agent",
  "process": { "user": { "uid": 0, "gid": 0 }, "cwd": "/", "args": ["sh", "/look.sh"],
    "env": ["PATH=/bin"],
    "capabilities": { "bounding": $1, "effective": $1, "permitted": $1 } },
  "root": { "path": "rootfs", "readonly": false },
  "mounts": [ { "destination": "/proc", "type": "proc", "source": "proc" },
    { "destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"] },
    { "destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["ro"] }$2 ],
  "linux": { "cgroupsPath": "/aqe-demo/$3",
    "namespaces": [ { "type": "pid" }, { "type": "ipc" }, { "type": "uts" }, { "type": "mount" },
      $4 { "type": "user" } ],
    "uidMappings": [ { "containerID": 0, "hostID": 100000, "size": 65536 } ],
    "gidMappings": [ { "containerID": 0, "hostID": 100000, "size": 65536 } ] } }
E
}
bundle() {
	mkdir -p "$DIR/$1/rootfs"
	mount --bind "$DIR/rootfs" "$DIR/$1/rootfs"
	spec "$2" "$3" "$1" "$4" >"$DIR/$1/config.json"
}

usual='["CAP_CHOWN", "CAP_KILL", "CAP_SETUID", "CAP_SETGID", "CAP_NET_BIND_SERVICE"]'
all='["CAP_CHOWN", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_NET_ADMIN"]'
netns='{ "type": "network" },'
socket=', { "destination": "/run/s", "type": "bind", "source": "/run/docker.sock", "options": ["rbind"] }'

make_rootfs
bundle agent "$usual" "" "$netns"
bundle admin "$all" "" "$netns"
bundle hostnet "$usual" "" ""
bundle socket "$usual" "$socket" "$netns"
: >/run/docker.sock
cat >/etc/aqe-shim/policy.json <<E
{ "version": 1,
  "runtime": { "path": "/usr/bin/crun" },
  "mounts": [ { "source": "$DIR/workspace", "destination": "/workspace" } ],
  "waivers": [ { "property": "digest", "agentType": "default", "owner": "demo",
      "reason": "a bundle made by hand has no image", "expires": "2099-01-01" } ] }
E

say "1. verify: a conforming document (tests/corpus/spec/ok-base.json)"
show 0 "$SHIM" verify --policy tests/corpus/policy.json tests/corpus/spec/ok-base.json

say "2. verify: the same document with one property off, and one that two parsers read differently"
show 1 "$SHIM" verify --policy tests/corpus/policy.json tests/corpus/spec/pids-513.json
show 3 "$SHIM" verify --policy tests/corpus/policy.json tests/corpus/malformed/dup-nnp.json

"$AQE" audit key generate >/dev/null # once, at install
"$AQE" audit key public >"$DIR/key.pub"

say "3. run: root, capabilities, a writable root, no filter and no limits are asked for; inside is:"
show 0 "$SHIM" run --bundle "$DIR/agent" agent </dev/null

say "4. refusals: SYS_ADMIN among the capabilities, the host's network, an engine's socket"
for b in admin hostnet socket; do
	show 1 "$SHIM" run --bundle "$DIR/$b" "$b" </dev/null
done
if [ -n "$(ls /run/aqe-shim)" ]; then
	echo "demo: something was left in /run/aqe-shim" >&2
	exit 1
fi
say "5. evidence: every decision is a row; the export is checked elsewhere, then one word of it is changed"
show 0 "$AQE" audit list
"$AQE" audit export -o "$DIR/evidence.jsonl" 2>/dev/null
show 0 "$AQE" audit verify --export "$DIR/evidence.jsonl" --public-key "$DIR/key.pub"
sed -i 's/admin/other/' "$DIR/evidence.jsonl"
show 1 "$AQE" audit verify --export "$DIR/evidence.jsonl" --public-key "$DIR/key.pub"
say "nothing was left behind"
