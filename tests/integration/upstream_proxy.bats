#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The egress service behind an HTTP proxy: real ones (tinyproxy and squid, with a password), and one
# that behaves as it should not.

bats_require_minimum_version 1.5.0
setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	EGRESS=$(realpath "${AQE_EGRESS-$ROOT/build/release/aqe-egress}")
	export ROOT EGRESS
}

# in_lab FUNCTION: runs it in a new network, with the lab's functions; what it says is $output.
in_lab() {
	export LAB=$BATS_TEST_TMPDIR
	: >"$LAB/origin.jsonl"
	# shellcheck disable=SC2163 # the function whose name it holds
	export -f "$1" proxied real
	run timeout 120 unshare -n -m --fork --pid --mount-proc --kill-child bash -c '
		set -eu
		. "$ROOT/tests/integration/egress/lab.bash"
		export LAB_EGRESS=
		lab_network
		"$1"' - "$1" 3>&- 4>&-
	[ "$status" = 0 ] || {
		echo "$output"
		return 1
	}
}
has() {
	grep -qxF -- "$1" <<<"$output" || {
		echo "no such line: $1"
		echo "$output"
		return 1
	}
}

# proxied PROXY [MEMBERS]: the policy, PROXY is JSON
proxied() {
	lab_policy "${2-}"
	jq --argjson proxy "$1" '.network.upstreamProxy = $proxy' "$LAB/policy.json" >"$LAB/policy.new"
	mv "$LAB/policy.new" "$LAB/policy.json"
}

behind_tinyproxy() {
	cat >"$LAB/tinyproxy.conf" <<-C
		Port 8888
		Listen 10.66.0.4
		Timeout 60
		LogFile "$LAB/tinyproxy.log"
		LogLevel Connect
		BasicAuth agent secret-word
		ConnectPort 80
		ConnectPort 443
	C
	lab_in_origin tinyproxy -d -c "$LAB/tinyproxy.conf" >/dev/null 2>&1 &
	real "$LAB/tinyproxy.log"
}

behind_squid() {
	local d=/dev/shm/squid # its user's, and its segments go with the mount
	mount -t tmpfs -o mode=1777 shm /dev/shm
	install -d -o proxy "$d"
	printf 'agent:%s\n' "$(openssl passwd -apr1 secret-word)" >"$d/users"
	cat >"$LAB/squid.conf" <<-C
		http_port 10.66.0.4:8888
		auth_param basic program /usr/lib/squid/basic_ncsa_auth $d/users
		auth_param basic children 1
		acl known proxy_auth REQUIRED
		http_access allow known
		http_access deny all
		cache deny all
		cache_mem 8 MB
		pid_filename none
		access_log stdio:$d/log
		cache_log $d/cache.log
		coredump_dir $d
		visible_hostname upstream
		pinger_enable off
		max_filedescriptors 1024
	C
	lab_in_origin squid -N -f "$LAB/squid.conf" >"$LAB/squid.out" 2>&1 &
	real $d/log || { tail -n 20 $d/cache.log "$LAB/squid.out"; return 1; }
}

# real LOG: what passes a proxy at 10.66.0.4:8888 that wants agent:secret-word and writes LOG
real() {
	ask() { curl -sS --max-time 30 -x http://127.0.0.1:3128 -o "$LAB/got" -w "$1 %{http_code}\n" "$2" 2>&1 || :; }
	lab_origin 10.66.0.2 80 http 10.66.0.3 80 http 10.66.0.2 443 echo
	lab_wait 'lab_in_origin ss -Hltn | grep -qF 10.66.0.4:8888'
	echo agent:secret-word >"$LAB/key"
	chmod 600 "$LAB/key"
	proxied "{\"address\":\"10.66.0.4:8888\",\"credentialFile\":\"$LAB/key\"}" '"sni":"off"'
	lab_egress
	ask allowed http://allowed.test/x
	cat "$LAB/got"
	ask denied http://evil.test/x
	ask literal http://169.254.169.254/x
	python3 -c 'import socket
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
f = s.makefile("rb")
status = f.readline()
f.readline()
print("tunnel", status, f.read(7))'
	lab_end
	# without the password the proxy says no
	proxied '"10.66.0.4:8888"'
	lab_egress
	ask nobody http://allowed.test/x
	lab_end
	# the credential is no more careless than a gateway's
	chmod 644 "$LAB/key"
	proxied "{\"address\":\"10.66.0.4:8888\",\"credentialFile\":\"$LAB/key\"}"
	"$EGRESS" --type qe-lab --policy "$LAB/policy.json" --listen 127.0.0.1:3128 --audit-lines "$LAB/audit.jsonl" 2>&1 || :
	jq -r 'select(.phase == "close") | "row \(.host) \(.address) \(.reason)"' "$LAB/audit.jsonl"
	grep -c allowed.test "$1" | sed 's/^[1-9].*/logged/'
	! grep -E 'evil|169\.254' "$1" || echo "asked of the proxy"
	! grep -r secret-word "$LAB/audit.jsonl" "$LAB/egress.err" || echo "seen"
}

decisions_stay_ours() {
	has "logged"
	has "allowed 200"
	has "origin 10.66.0.2"
	has "denied 403"
	has "literal 403"
	has "tunnel b'HTTP/1.1 200 connection established\r\n' b'ORIGIN:'"
	has "nobody 502"
	# the address in the audit is the proxy's
	has "row allowed.test 10.66.0.4 ended"
	has "row allowed.test 10.66.0.4 upstream_proxy_failed"
	grep -q "others may read it" <<<"$output"
	run grep -cx -e seen -e "asked of the proxy" <<<"$output"
	[ "$output" = 0 ]
}

@test "through tinyproxy with a password: decisions stay ours" {
	in_lab behind_tinyproxy
	decisions_stay_ours
}

@test "through squid with a password: decisions stay ours" {
	in_lab behind_squid
	decisions_stay_ours
}

odd() {
	local name
	lab_in_origin python3 "$HERE/fake_proxy.py" "$LAB/proxy.jsonl" 10.66.0.4 8888 &
	lab_wait 'lab_in_origin ss -Hltn | grep -qF 10.66.0.4:8888'
	proxied '"10.66.0.4:8888"' '"addDomains":["*.odd.test:99"],"limits":{"connectMs":3000}'
	lab_egress
	python3 - <<-'P'
		import socket
		for name in ("hang", "close", "auth", "deny", "garbage", "long", "pieces", "framed", "first"):
		    s = socket.create_connection(("127.0.0.1", 3128))
		    s.sendall(b"CONNECT %s.odd.test:99 HTTP/1.1\r\nHost: x\r\n\r\n" % name.encode())
		    f = s.makefile("rwb")
		    status = f.readline().decode().strip()
		    if " 200 " not in status:
		        print(name, status)
		        continue
		    while f.readline() != b"\r\n":
		        pass
		    f.write(b"ping\n")
		    f.flush()
		    print(name, b"".join(f.readline() for _ in range(2 + (name == "first"))))
	P
	lab_end
	jq -rs '[.[] | split(" ")[1]] | unique | length' "$LAB/proxy.jsonl" | sed 's/^/asked /'
	proxied '"10.66.0.4:8889"' '"addDomains":["*.odd.test:99"]' # nobody there
	lab_egress
	curl -s --max-time 30 -x http://127.0.0.1:3128 -o /dev/null -w 'none %{http_code}\n' http://none.odd.test:99/
	lab_end
	# a gateway's address is judged before the proxy is asked
	proxied '"10.66.0.4:8888"'
	jq '.network.gateways = {inner: {upstream: "https://192.168.7.7"}, near: {upstream: "https://10.66.0.9"}}' "$LAB/policy.json" >"$LAB/policy.new"
	mv "$LAB/policy.new" "$LAB/policy.json"
	lab_egress --gateway 127.0.0.1:3129
	curl -s --max-time 30 -o "$LAB/got" -w 'inner %{http_code}\n' http://127.0.0.1:3129/inner/x
	grep -o address_denied "$LAB/got" | sort -u
	curl -s --max-time 30 -o /dev/null -w 'near %{http_code}\n' http://127.0.0.1:3129/near/x
	jq -r 'split(" ")[1]' "$LAB/proxy.jsonl" | grep -E '^(192|10)\.' | sed 's/^/asked for /'
}

@test "a proxy that refuses, hangs, or says something else" {
	in_lab odd
	local name
	has "hang HTTP/1.1 504 connect_timeout"
	for name in close auth deny garbage long; do has "$name HTTP/1.1 502 upstream_proxy_failed"; done
	has "pieces b'TUNNEL\nping\n'"
	has "framed b'TUNNEL\nping\n'"
	has "first b'hello\nTUNNEL\nping\n'"
	has "asked 9"
	has "none 502"
	has "inner 403"
	has "address_denied"
	has "near 502"
	has "asked for 10.66.0.9:443"
	! grep -F "asked for 192" <<<"$output" || return 1
}
