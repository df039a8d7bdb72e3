# SPDX-License-Identifier: MIT
# An agent's image: the base, without package managers and set-id programs, a user that is not
# root, a place to work, a health check. The base needs a shell and the usual small tools.
#   buildah bud --build-arg BASE=localhost/base -t localhost/aqe-agent -f agent.Dockerfile shim/images
ARG BASE
FROM ${BASE} AS whole
USER 0
COPY agent-health /usr/local/bin/agent-health
# Tools that install something, wherever the base has them; busybox offers some as well.
RUN set -eu; \
	for dir in /bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin; do \
		for name in apk apt apt-cache apt-get apt-key apt-mark aptitude conda dnf dpkg dpkg-deb easy_install gem \
			microdnf npm npx opkg pacman pip pip3 pnpm rpm rpm2cpio snap yarn yum zypper; do \
			rm -f "$dir/$name"; \
		done; \
	done; \
	rm -rf /etc/apk /etc/apt /lib/apk /usr/lib/apt /usr/lib/dpkg /usr/lib/node_modules/npm /usr/lib/rpm \
		/usr/local/lib/node_modules/npm /usr/share/dpkg /var/cache/apk /var/cache/apt /var/lib/apt /var/lib/dpkg \
		/var/lib/rpm; \
	find / -xdev -type f \( -perm -4000 -o -perm -2000 \) -exec chmod ug-s {} +; \
	mkdir -p /app /etc /run /tmp /workspace; \
	grep -q '^[^:]*:[^:]*:1001:' /etc/passwd || echo 'agent:x:1001:1001::/app:/bin/sh' >>/etc/passwd; \
	grep -q '^[^:]*:[^:]*:1001:' /etc/group || echo 'agent:x:1001:' >>/etc/group; \
	chmod 755 /app /workspace /usr/local/bin/agent-health; \
	chmod 1777 /tmp

# One layer: what was removed above is in none.
FROM scratch
COPY --from=whole / /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/app
USER 1001:1001
WORKDIR /app
HEALTHCHECK --interval=30s --timeout=10s --retries=3 --start-period=5s CMD agent-health
CMD ["sleep", "infinity"]
