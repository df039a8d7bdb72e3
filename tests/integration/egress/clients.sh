#!/bin/sh
# SPDX-License-Identifier: MIT
# Inside a container: clients.sh TABLE. Every client of the table asks for an allowed and for a denied origin,
# with the environment as the shim made it and with none of its variables. Prints "ok NAME HOST WITH" or
# "not ok ..." and what the client said.
tab=$(printf '\t')
cas="HOME=/tmp NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
	REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt
	GIT_SSL_CAINFO=/etc/ssl/certs/ca-certificates.crt LC_ALL=C.UTF-8"

check() { # NAME HOST WITH WANTED COMMAND
	rm -rf /tmp/pip
	# shellcheck disable=SC2086 # a list of assignments
	if [ "$3" = with ]; then
		out=$(env $cas U="https://$2/" sh -c "$5" 2>&1)
	else
		out=$(env -i PATH=/usr/bin $cas U="https://$2/" sh -c "$5" 2>&1)
	fi
	case $out in
	*"tls 10.66.0.3"*) echo "not ok $1 $2 $3: reached the denied origin" ;;
	*"$4"*) echo "ok $1 $2 $3" ;;
	*) echo "not ok $1 $2 $3: wanted '$4': $out" ;;
	esac
}

grep -v '^#' "$1" | while IFS=$tab read -r name command allowed with without; do
	check "$name" allowed.test with "$allowed" "$command"
	check "$name" evil.test with "$with" "$command"
	check "$name" allowed.test without "$allowed" "$command"
	check "$name" evil.test without "$without" "$command"
done
