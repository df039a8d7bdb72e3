# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A network of its own for one egress test: lab.bash is sourced inside `unshare -n -m --kill-child`.
# Proxy and client live in this namespace (10.66.0.1), origins behind a veth pair: 10.66.0.2 has
# the allowed names, 10.66.0.3 evil.test, 10.66.0.4 more allowed ones.

LAB=${LAB:?a folder for the lab}
EGRESS=${EGRESS:?the program}
HERE=$(dirname "${BASH_SOURCE[0]}")

lab_network() {
	mount --make-rprivate /
	cat >"$LAB/hosts" <<-'H'
		127.0.0.1 localhost
		10.66.0.2 allowed.test x.wild.test a.b.wild.test wild.test
		10.66.0.3 evil.test
		10.66.0.4 other.test
		127.0.0.1 inside.wild.test
		169.254.169.254 meta.wild.test
		10.66.0.1 self.wild.test
		192.168.7.7 private.wild.test
	H
	echo "127.0.0.1 localhost inside.only" >"$LAB/inside.hosts"
	echo "nameserver 10.66.0.5" >"$LAB/resolv.conf"
	mount --bind "$LAB/hosts" /etc/hosts
	mount --bind "$LAB/resolv.conf" /etc/resolv.conf
	ip link set lo up
	unshare -n sleep 3600 &
	LAB_ORIGIN=$!
	lab_wait '[ "$(readlink /proc/$LAB_ORIGIN/ns/net)" != "$(readlink /proc/self/ns/net)" ]'
	ip link add v0 type veth peer name v1 netns "$LAB_ORIGIN"
	ip addr add 10.66.0.1/24 dev v0
	ip link set v0 up
	lab_in_origin sh -c 'ip link set lo up; for i in 2 3 4 5; do ip addr add 10.66.0.$i/24 dev v1; done; ip link set v1 up'
}

lab_in_origin() { nsenter -t "$LAB_ORIGIN" -n "$@"; }

lab_wait() {
	local _
	for _ in $(seq 400); do
		if eval "$1"; then return 0; fi
		sleep 0.05
	done
	echo "lab: waited in vain for $1" >&2
	return 1
}

# lab_origin ADDRESS PORT MODE...
lab_origin() {
	lab_in_origin python3 "$HERE/origin.py" "$LAB/origin.jsonl" "$@" &
	lab_wait "lab_in_origin ss -Hltn | grep -qF '${*: -3:1}:${*: -2:1} '"
}

# lab_policy JSON: members of the type qe-lab
lab_policy() {
	cat >"$LAB/policy.json" <<-P
		{"version":1,"network":{"agents":{"qe-lab":{"access":"whitelisted","domains":["allowed.test","*.wild.test"],
		"allowCidr":["10.66.0.0/24"],"rate":{"perMinute":100000,"perHour":1000000,"burst":100000}${1:+,$1}}}}}
	P
}

# lab_container: a process in a network of its own with nothing but lo, and what a container gets from
# the shim: a resolv.conf that names the stub. lab_inside COMMAND... runs in it.
lab_container() {
	echo "nameserver 127.0.0.1" >"$LAB/inside.conf"
	unshare -n -m sh -c "mount --bind '$LAB/inside.conf' /etc/resolv.conf; mount --bind '$LAB/inside.hosts' /etc/hosts; exec sleep 3600" &
	LAB_CONTAINER=$!
	lab_wait 'nsenter -t $LAB_CONTAINER -m cat /etc/hosts | grep -q inside.only'
}
lab_inside() { nsenter -t "$LAB_CONTAINER" -n -m "$@"; }

# lab_serve OPTION...: as aqe-shim starts it
lab_serve() {
	rm -f "$LAB/ready"
	mkfifo "$LAB/ready"
	"$EGRESS" --type qe-lab --policy "$LAB/policy.json" --netns "$LAB_CONTAINER" --container lab --audit-lines "$LAB/audit.jsonl" \
		--ready-fd 7 "$@" 7<>"$LAB/ready" 2>>"$LAB/egress.err" &
	LAB_EGRESS=$!
	read -r -n 1 -t 10 <"$LAB/ready"
}

# lab_egress OPTION...
lab_egress() {
	rm -f "$LAB/ready"
	mkfifo "$LAB/ready"
	"$EGRESS" --type qe-lab --policy "$LAB/policy.json" --listen 127.0.0.1:3128 --audit-lines "$LAB/audit.jsonl" \
		--ready-fd 7 "$@" 7<>"$LAB/ready" 2>>"$LAB/egress.err" &
	LAB_EGRESS=$!
	read -r -n 1 -t 10 <"$LAB/ready"
}

lab_end() {
	[ -z "${LAB_EGRESS-}" ] || kill "$LAB_EGRESS" 2>/dev/null
	[ -z "${LAB_EGRESS-}" ] || wait "$LAB_EGRESS"
}
