/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/via.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "netpolicy/egress/secrets.h"
#include "netpolicy/http1.h"
#include "shim/core/base64.h"
#include "shim/core/cleanup.h"

void netpol_via_read(const char *text, struct netpol_via *ret)
{
	const char *port = NULL;
	size_t host_n = 0, port_n = 0;

	memset(ret, 0, sizeof(*ret));
	if (!text)
		return;
	netpol_authority_split(text, strlen(text), &host_n, &port, &port_n);
	/* The policy's reader judged it; should it not be one, nothing is dialled at all. */
	ret->used = true;
	if (!port || !netpol_host_parse(text, host_n, &ret->host, NULL) ||
	    !netpol_port_parse(port, port_n, &ret->port))
		ret->port = 0;
}

int netpol_via_auth(const char *path, char ret[NETPOL_VIA_VALUE], struct aqe_err *e)
{
	AQE_AUTO_SECRET struct aqe_buf plain = AQE_BUF_INIT(NETPOL_CREDENTIAL_MAX);
	AQE_AUTO_SECRET struct aqe_buf value = AQE_BUF_INIT(NETPOL_VIA_VALUE - 1);
	int rc = netpol_credential_read(path, &plain, e);

	if (rc == 0 && (plain.len > NETPOL_VIA_AUTH_MAX || !memchr(plain.p, ':', plain.len)))
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "'%.200s': wanted user:password", path);
	if (rc < 0)
		return rc;
	(void)aqe_buf_puts(&value, "Basic ");
	aqe_base64_encode(&value, plain.p, plain.len);
	rc = aqe_buf_ok(&value, e);
	if (rc == 0)
		memcpy(ret, aqe_buf_str(&value), value.len + 1);
	return rc;
}

bool netpol_via_ask(int fd, const struct netpol_host *host, uint16_t port, const char *auth)
{
	char text[NETPOL_VIA_VALUE + 2 * NETPOL_HOST_MAX + 128];
	bool some = auth && *auth;
	int n = snprintf(text, sizeof(text), "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n",
			 host->text, port, host->text, port, some ? "Proxy-Authorization: " : "",
			 some ? auth : "", some ? "\r\n" : "");
	bool sent = n > 0 && (size_t)n < sizeof(text) &&
		    send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n;

	explicit_bzero(text, sizeof(text));
	return sent;
}

/* A head that is whole: 2xx opens. Whatever framing it claims does not count (RFC 9110 9.3.6). */
static enum netpol_via_step judge(int fd, const char *p, const struct netpol_h1_head *h)
{
	char taken[NETPOL_VIA_ANSWER_MAX];

	if (p[h->word[1].at] != '2')
		return NETPOL_VIA_REFUSED;
	return recv(fd, taken, h->at, MSG_DONTWAIT) == (ssize_t)h->at ? NETPOL_VIA_OPEN
								      : NETPOL_VIA_REFUSED;
}

enum netpol_via_step netpol_via_answer(int fd)
{
	char p[NETPOL_VIA_ANSWER_MAX];
	struct netpol_h1_head h;
	ssize_t n;

	do
		n = recv(fd, p, sizeof(p), MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return NETPOL_VIA_MORE;
	if (n <= 0)
		return NETPOL_VIA_REFUSED;
	netpol_h1_head_init(&h, true);
	switch (netpol_h1_head_scan(&h, p, (size_t)n)) {
	case NETPOL_H1_DONE:
		return judge(fd, p, &h);
	case NETPOL_H1_MORE:
		return n < (ssize_t)sizeof(p) ? NETPOL_VIA_MORE : NETPOL_VIA_REFUSED;
	case NETPOL_H1_BAD:
		break;
	}
	return NETPOL_VIA_REFUSED;
}
