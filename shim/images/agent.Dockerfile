# SPDX-License-Identifier: MIT
# An agent's image: nothing but the base, a user that is not root, a place to work.
# buildah bud --build-arg BASE=localhost/base -t localhost/aqe-agent -f shim/images/agent.Dockerfile .
ARG BASE
FROM ${BASE}
USER 0
# no package manager is left; the root works read-only: /tmp and /run are tmpfs there
RUN mkdir -p /app /tmp /run && \
	(grep -q '^node:' /etc/passwd || echo 'node:x:1001:1001::/app:/bin/sh' >>/etc/passwd) && \
	(grep -q '^node:' /etc/group || echo 'node:x:1001:' >>/etc/group) && \
	rm -rf /usr/bin/apt* /usr/bin/dpkg* /sbin/apk /usr/bin/dnf /usr/bin/yum /usr/bin/rpm \
		/var/lib/apt /var/lib/dpkg /var/cache/apt
USER 1001:1001
WORKDIR /app
HEALTHCHECK --interval=30s --timeout=10s --retries=3 --start-period=5s CMD true
