#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The egress service inside containers of every engine: what a container started through aqe-shim
# reaches, and what not. Origins are in a network namespace of their own, behind a veth pair.

bats_require_minimum_version 1.5.0
load env

TLS="--cacert /etc/ssl/certs/ca-certificates.crt"

# The host's own programs as an image: they come in as read-only mounts of the policy.
clients_image() {
	local root=$AQE_TMP/clients id
	if [ ! -e "$AQE_TMP/clients.tar" ]; then
		mkdir -p "$root"/{usr/lib,usr/share,etc/ssl/certs,proc,sys,dev,tmp,run,home,opt}
		for d in bin lib lib64; do ln -s "usr/$d" "$root/$d"; done
		printf 'root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/tmp:/bin/sh\n' >"$root/etc/passwd"
		printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
		echo "127.0.0.1 localhost" >"$root/etc/hosts"
		cp -a /etc/alternatives "$root/etc/" 2>/dev/null || :
		cat "$AQE_TMP/cert" >"$root/etc/ssl/certs/ca-certificates.crt"
		cp /etc/ssl/openssl.cnf "$root/etc/ssl/" 2>/dev/null || :
		cp -a /etc/java-17-openjdk "$root/etc/" 2>/dev/null || :
		mkdir "$root/opt/clients"
		cp "$BATS_TEST_DIRNAME"/egress/{clients.*,outside.py} "$root/opt/clients/"
		javac --release 17 -d "$root/opt/clients" "$BATS_TEST_DIRNAME/egress/Get.java"
		keytool -importcert -noprompt -alias test -file "$AQE_TMP/cert" -keystore "$root/opt/clients/trust.p12" -storepass changeit 2>/dev/null
		tar -C "$root" --owner=0 --group=0 -cf "$AQE_TMP/clients.tar" .
	fi
	[ -e "$AQE_TMP/clients-of-$AQE_ENGINE" ] || {
		engine import "$AQE_TMP/clients.tar" localhost/clients >/dev/null 2>&1
		id=$(engine image inspect --format '{{.Id}}' localhost/clients)
		echo "sha256:${id#sha256:}" >>"$AQE_TMP/pinned"
		touch "$AQE_TMP/clients-of-$AQE_ENGINE"
	}
}

# Podman copies the host's names into the container, where they would hide the stub's.
own_hosts() { [[ $AQE_ENGINE != podman* ]] || echo --no-hosts; }

origin_start() {
	[ -e "$AQE_TMP/cert" ] || openssl req -x509 -newkey rsa:2048 -nodes -keyout "$AQE_TMP/key" -out "$AQE_TMP/cert" -days 2 -subj /CN=allowed.test \
		-addext 'subjectAltName=DNS:allowed.test,DNS:evil.test,DNS:x.wild.test' 2>/dev/null
	chmod 644 "$AQE_TMP/key" "$AQE_TMP/cert"
	unshare -n sleep 36000 3>&- 4>&- &
	local pid=$!
	echo $pid >"$AQE_TMP/origin.pid"
	wait_for test "$(readlink /proc/self/ns/net)" != "$(readlink /proc/$pid/ns/net)"
	sleep 0.2
	ip link add egv0 type veth peer name egv1 netns $pid
	ip addr add 10.66.0.1/24 dev egv0
	ip link set egv0 up
	nsenter -t $pid -n sh -c 'ip link set lo up; for i in 2 3; do ip addr add 10.66.0.$i/24 dev egv1; done; ip link set egv1 up'
	nsenter -t $pid -n python3 "$BATS_TEST_DIRNAME/egress/origin.py" "$AQE_TMP/origin.jsonl" \
		10.66.0.2 80 http 10.66.0.3 80 http 10.66.0.2 443 "tls:$AQE_TMP/cert:$AQE_TMP/key" \
		10.66.0.3 443 "tls:$AQE_TMP/cert:$AQE_TMP/key" 3>&- 4>&- >/dev/null 2>&1 &
	echo $! >>"$AQE_TMP/origin.pid"
	grep -q allowed.test /etc/hosts || printf '10.66.0.2 allowed.test x.wild.test\n10.66.0.3 evil.test\n' >>/etc/hosts
	wait_for origin_listens $pid
}
origin_listens() { nsenter -t "$1" -n ss -Hltn | grep -qF 10.66.0.3:443; }
origin_stop() {
	local pid
	while read -r pid; do kill "$pid" 2>/dev/null; done <"$AQE_TMP/origin.pid"
	wait_for test ! -e /sys/class/net/egv0
}

NETWORK='.network = {agents: {default: {access: "whitelisted", domains: ["allowed.test", "*.wild.test"],
	allowCidr: ["10.66.0.0/24"], rate: {perMinute: 1000, perHour: 10000, burst: 1000}}}}
'

# Folders of the host's programs that everybody may read: a rootless engine looks into all of them.
MOUNTS=$(for d in /usr/bin /usr/lib64 "/usr/lib/$(uname -m)-linux-gnu" /usr/lib/python3* /usr/lib/git-core /usr/lib/node_modules \
	/usr/lib/ssl /usr/share/nodejs /usr/share/python-wheels "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")"; do [ ! -d "$d" ] || echo "$d"; done |
	jq -Rn '[inputs | {source: ., destination: ., readonly: true}]')

egress_policy() { usual_policy "jq=.mounts = $MOUNTS | $NETWORK ${1:+| $1}"; }

setup_file() {
	engine_start
	install -m 755 "$(dirname "$AQE_SHIM")/aqe" "$AQE_TMP/bin/aqe"
	origin_start
	clients_image
	egress_policy
}
teardown_file() {
	engine_clean
	origin_stop
}

# shellcheck disable=SC2046 # none or one word
client() { hard_run --rm $(own_hosts) localhost/clients "$@"; }
cli() {
	if [ "$AQE_ENGINE" = podman-user ]; then as_user "$AQE_TMP/bin/aqe" "$@"; else "$AQE_TMP/bin/aqe" "$@"; fi
}
SERVICE='^(aqe-)?egress' # keeper, worker, dialer
services() { pgrep "$SERVICE" | wc -l; }

@test "curl, with the variables that the shim sets: allowed over HTTP and TLS, denied with the reason" {
	run client curl -s --max-time 10 http://allowed.test/
	assert_status 0
	assert_has "origin 10.66.0.2"
	run client curl -s --max-time 10 $TLS https://allowed.test/
	assert_status 0
	assert_has "tls 10.66.0.2"
	run client curl -s --max-time 10 http://evil.test/
	assert_has '"reason":"domain_not_allowed"'
	run client curl -sS --max-time 10 $TLS https://evil.test/
	assert_has "403"
	refute_has "tls 10.66.0.3"
	run grep -c 10.66.0.3 "$AQE_TMP/origin.jsonl"
	assert_line 0
}

@test "curl without the variables: by the stub and the transparent listeners" {
	run client env -i PATH=/usr/bin curl -s --max-time 10 $TLS https://allowed.test/ http://allowed.test/
	assert_has "tls 10.66.0.2"
	assert_has "origin 10.66.0.2"
	run client env -i PATH=/usr/bin curl -sS --max-time 10 $TLS https://evil.test/
	assert_has "Could not resolve host"
	run client env -i PATH=/usr/bin curl -sS --max-time 10 --resolve evil.test:443:127.66.0.1 $TLS https://evil.test/
	refute_has "tls 10.66.0.3"
}

@test "nothing else: raw connects, address literals, metadata, denied names asked by hand, vsock, sockets outside" {
	local out=$AQE_TMP/outside.sock listening
	# what an agent would like to reach: a path socket and an abstract one of the host
	python3 -c 'import socket, sys, time
for name in (sys.argv[1], "\0aqe-outside"):
	s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(); globals()[name] = s
time.sleep(600)' "$out" 3>&- 4>&- &
	listening=$!
	wait_for test -S "$out"
	: >"$AQE_TMP/origin.jsonl"
	run client python3 /opt/clients/outside.py "$out"
	kill "$listening"
	rm "$out"
	assert_status 0
	refute_has "reached"
	assert_line "connect 10.66.0.2:443: Network is unreachable"
	assert_line "connect 169.254.169.254:80: Network is unreachable"
	assert_line "connect 8.8.8.8:53: Network is unreachable"
	assert_line "proxy http://169.254.169.254/: 403 address_denied"
	assert_line "proxy http://10.66.0.2/: 403 ip_literal"
	assert_line "proxy http://127.0.0.1/: 403 loopback_not_proxied"
	assert_line "ask evil.test: no such name"
	assert_line "ask allowed.test: 127.66.0.1"
	assert_line "vsock: refused"
	assert_line "packet: refused"
	assert_line "unix path: No such file or directory"
	assert_line "unix abstract: Connection refused"
	[ ! -s "$AQE_TMP/origin.jsonl" ]
}

# Asks for NAME.denied.test and, after all of that, for NAME.wild.test by every front end.
asker() {
	cat <<-'S'
		p=http://127.0.0.1:3128
		ask() { w=$1; shift; echo "$w $(curl -sk -m 60 -o /dev/null -w '%{http_code} %{http_connect}' "$@")"; }
		for d in denied wild; do
			ask $d-http -x $p http://http.$d.test/
			ask $d-connect -x $p https://connect.$d.test/
			ask $d-socks --socks5-hostname 127.0.0.1:1080 http://socks.$d.test/
			ask $d-sni --noproxy '*' --resolve sni.$d.test:443:127.66.0.1 https://sni.$d.test/
			ask $d-host --noproxy '*' --resolve host.$d.test:80:127.66.0.1 http://host.$d.test/
			echo "$d-stub $(getent ahostsv4 stub.$d.test | cut -d' ' -f1 | sort -u)"
		done
	S
}

@test "U35: denied names cause no DNS packet on any interface of the host, allowed ones do" {
	local pid=
	cp /etc/resolv.conf "$AQE_TMP/resolv.conf"
	# nobody answers there: a question is what counts
	printf 'nameserver 10.66.0.2\noptions timeout:1 attempts:1\n' >/etc/resolv.conf
	rm -f "$AQE_TMP/ready"
	python3 "$BATS_TEST_DIRNAME/egress/capture.py" "$AQE_TMP/dns" >"$AQE_TMP/ready" 3>&- 4>&- &
	pid=$!
	wait_for grep -q ready "$AQE_TMP/ready"
	run client sh -c "$(asker)"
	cat "$AQE_TMP/resolv.conf" >/etc/resolv.conf
	wait_for grep -q host.wild.test "$AQE_TMP/dns"
	kill "$pid"
	assert_status 0
	assert_line "denied-http 403 000"
	assert_line "denied-connect 000 403"
	assert_line "denied-host 403 000"
	assert_line "denied-stub "
	assert_line "wild-http 502 000"
	assert_line "wild-connect 000 502"
	assert_line "wild-stub 127.66.0.1"
	run cat "$AQE_TMP/dns"
	# the allowed ones were asked for, on their way to the name server: all but the stub's own answer
	for pid in http connect socks sni host; do
		assert_match "^egv0 out .*[.]${pid}[.]wild[.]test[.]"
	done
	refute_has stub
	refute_has denied
}

@test "U36: curl, wget, git, python, pip, npm, node, Go, Java: allowed and denied, with proxy variables and without" {
	: >"$AQE_TMP/origin.jsonl"
	run client sh /opt/clients/clients.sh /opt/clients/clients.tsv
	assert_status 0
	refute_has "not ok"
	run grep -c '^ok ' <<<"$output"
	assert_line "$(($(grep -vc '^#' "$BATS_TEST_DIRNAME/egress/clients.tsv") * 4))"
	run grep -c 10.66.0.3 "$AQE_TMP/origin.jsonl"
	assert_line 0
}

@test "the variables are ours, also in exec; the host's name servers are gone" {
	run shim run -d --name eg $(own_hosts) $(user_ns) -e HTTP_PROXY=http://evil.test:1 -e no_proxy='*' localhost/clients sleep 100
	assert_status 0
	run engine exec eg env
	assert_line "HTTP_PROXY=http://127.0.0.1:3128"
	assert_line "https_proxy=http://127.0.0.1:3128"
	assert_line "no_proxy=localhost,127.0.0.1,::1"
	assert_line "NODE_USE_ENV_PROXY=1"
	refute_has "evil"
	run engine exec eg curl -s --max-time 10 http://allowed.test/
	assert_has "origin 10.66.0.2"
	run engine exec eg cat /etc/resolv.conf
	refute_has "nameserver"
	engine_clean
}

@test "the service lives as long as the container, and no longer" {
	wait_for test "$(services)" = 0
	run shim run -d --name eg $(own_hosts) $(user_ns) localhost/clients sleep 100
	assert_status 0
	[ "$(services)" = 3 ]
	local pid space
	pid=$(pid_of eg)
	space=$(readlink "/proc/$pid/ns/net")
	kill -KILL "$pid"
	sleep 1
	[ "$(services)" = 0 ]
	run sh -c 'readlink /proc/[0-9]*/ns/net 2>/dev/null'
	refute_has "$space"
	engine_clean
	run cat /proc/self/mountinfo # where an engine pins namespaces
	refute_has "$space"
	assert_no_leaks
}

none_left() { [ "$(services)" = 0 ]; }
# reasons: those of the service's own events since, one a line
reasons() { cli audit list --since all --kind system --format jsonl | tail -n +$(($1 + 1)) | jq -r .reason; }
recorded() { [ "$(reasons "$1" | grep -cx "$2")" = "$3" ]; }

@test "a worker killed four times comes back and tunnels work; the fifth time closes, and the audit has it" {
	local i before worker
	export WAIT_S=60
	before=$(reasons 0 | wc -l)
	run shim run -d --name eg $(own_hosts) $(user_ns) localhost/clients sleep 400
	assert_status 0
	for i in 1 2 3 4; do
		wait_for engine exec eg curl -sf --max-time 20 $TLS https://allowed.test/
		worker=$(pgrep -x egress-worker)
		kill -KILL "$worker"
		wait_for recorded "$before" worker_ended "$i"
		wait_for recorded "$before" worker_restarted "$i"
	done
	run engine exec eg curl -sf --max-time 20 $TLS https://allowed.test/
	assert_has "tls 10.66.0.2"
	recorded "$before" closed_after_crashes 0
	kill -KILL "$(pgrep -x egress-worker)"
	wait_for none_left
	wait_for recorded "$before" closed_after_crashes 1
	run cli audit list --since all --kind system --reverse --limit 2 # then: stopped
	assert_match "system +refused .*closed_after_crashes"
	run engine exec eg curl -sS --max-time 20 http://allowed.test/
	assert_has "Failed to connect to 127.0.0.1 port 3128"
	run engine exec eg curl -sS --max-time 20 --noproxy '*' http://allowed.test/
	assert_has "Could not resolve host"
	engine_clean
}

asked() { engine exec "$1" curl -s --max-time 20 -o /dev/null -w '%{http_code}' http://allowed.test/; }

@test "a container that is stopped and started again has no fresh rate; another one has its own" {
	local rates=/run/aqe-shim/.rates
	[ "$AQE_ENGINE" != podman-user ] || rates=/run/user/$AQE_UID/aqe-shim/.rates
	egress_policy '.network.agents.default.rate = {perMinute: 2, perHour: 2, burst: 2}'
	run shim run -d --name eg $(own_hosts) $(user_ns) localhost/clients sleep 400
	assert_status 0
	run sh -c "echo $(asked eg) $(asked eg) $(asked eg)"
	assert_line "200 200 429"
	touch -d "2 hours ago" "$rates/long-gone" "$rates/.half-written"
	engine stop -t 0 eg >/dev/null
	wait_for none_left
	engine start eg >/dev/null
	[ "$(asked eg)" = 429 ]
	run shim run -d --name eh $(own_hosts) $(user_ns) localhost/clients sleep 400
	assert_status 0
	[ "$(asked eh)" = 200 ]
	egress_policy
	engine_clean
	# what is older than an hour limits nothing any more, and goes
	run find "$rates" -type f -mmin +60
	[ -z "$output" ]
	[ "$(find "$rates" -type f | wc -l)" -ge 2 ]
}

@test "what cannot be started is refused" {
	mv "$AQE_TMP/bin/aqe-egress" "$AQE_TMP/bin/away"
	run client true
	mv "$AQE_TMP/bin/away" "$AQE_TMP/bin/aqe-egress"
	assert_status "$(refused_status run)"
	assert_has "egress service did not start"
	egress_policy '.network.agents.default.domains = ["*"]'
	run client true
	refute_has "ran-inside"
	[ "$status" != 0 ]
	egress_policy
	assert_no_leaks
}

@test "U35: without a section network a container is isolated, and a look-up fails at once" {
	egress_policy "del(.network)"
	# shellcheck disable=SC2016 # for the shell inside
	run client sh -c 'env | grep -i proxy; curl -sS --max-time 3 http://allowed.test/
		s=$(date +%s); getent hosts allowed.test; echo "status $? after $(($(date +%s) - s)) s"'
	egress_policy
	assert_match "^status 2 after [0-3] s"
	refute_has "127.0.0.1:3128"
	refute_has "origin"
}
