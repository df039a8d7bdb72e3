/* SPDX-License-Identifier: MIT */
/* aqe cache serve: the gateway without a container. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/aqe/cache_cmd.h"
#include "shim/aqe/cache_serve.h"
#include "shim/aqe/unix_socket.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define USUAL   "127.0.0.1:3130"
#define BACKLOG 128

static struct shim_cache_service *running; /* for the signal handler */

static void on_signal(int sig)
{
	(void)sig;
	shim_cache_service_stop(running);
}

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >>
			       24 ==
		       127;
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static int listen_at(const struct addrinfo *a, const char *where, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int yes = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
	    bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "listen on '%.120s'", where);
	if (!is_loopback(a->ai_addr))
		(void)fprintf(stderr,
			      "aqe cache: %s is not a loopback address: whoever can reach it can "
			      "spend the upstream's credential\n",
			      where);
	*ret_fd = AQE_TAKE_FD(fd);
	return 0;
}

/* "ADDRESS:PORT", "[ADDRESS]:PORT", or "unix:PATH". Names are not looked up. */
static int listen_on(struct aqe_arena *arena, const char *where, int *ret_fd, struct aqe_err *e)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
					.ai_socktype = SOCK_STREAM };
	char *host = aqe_arena_dup(arena, where), *colon = host ? strrchr(host, ':') : NULL;
	struct addrinfo *list = NULL;
	uint64_t port;
	int rc;

	if (aqe_starts(where, "unix:"))
		return shim_unix_listen(where + 5, BACKLOG, ret_fd, e);
	/* getaddrinfo() takes the low 16 bits of any number */
	if (!colon || colon == host || !aqe_parse_u64(colon + 1, UINT16_MAX, &port))
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "--listen: '%.120s': wanted ADDRESS:PORT or unix:PATH", where);
	*colon = '\0';
	if (*host == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		host++;
	}
	rc = getaddrinfo(host, colon + 1, &hints, &list);
	if (rc || !list)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--listen: '%.120s' is no address: %s", where,
				   gai_strerror(rc));
	rc = listen_at(list, where, ret_fd, e);
	freeaddrinfo(list);
	return rc;
}

/* Where it listens really: a port of 0 is the kernel's to choose. */
static void tell(int fd, const char *where)
{
	struct sockaddr_in a = { .sin_family = AF_UNSPEC };
	socklen_t n = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &n) == 0 && a.sin_family == AF_INET)
		(void)fprintf(stderr, "aqe cache: listening on %s:%u\n", inet_ntoa(a.sin_addr),
			      ntohs(a.sin_port));
	else
		(void)fprintf(stderr, "aqe cache: listening on %s\n", where);
}

static int serve(struct shim_cache_cmd *c, struct aqe_err *e)
{
	/* the second signal ends the process at once, whatever is being served */
	const struct sigaction end = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
	const char *where = c->listen ? c->listen : USUAL;
	int fd = -1, rc = shim_cache_cmd_config(c, e);

	if (!rc)
		rc = listen_on(c->arena, where, &fd, e);
	if (rc)
		return rc;
	rc = shim_cache_service_new(&c->cfg, fd, (unsigned)c->threads, &running, e);
	if (rc)
		return rc;
	(void)sigaction(SIGTERM, &end, NULL); /* cannot fail for these signals */
	(void)sigaction(SIGINT, &end, NULL);
	tell(fd, where);
	return shim_cache_service_run(running, e);
}

int shim_cache_serve(int argc, char **argv)
{
	static const struct aqe_cli_opt OPTS[] = {
		{ "listen", 'l', "ADDR", "ADDRESS:PORT or unix:PATH (default: " USUAL ")",
		  SHIM_CACHE_LISTEN },
		{ "threads", 0, "N", "requests served at once (default 8)", SHIM_CACHE_THREADS },
		SHIM_CACHE_OPT_SCOPE,
		SHIM_CACHE_OPTS_UPSTREAM,
		SHIM_CACHE_OPTS_STORE,
		SHIM_CACHE_OPTS_END,
	};
	static const struct aqe_cli_cmd CMD = {
		.name = "serve",
		.synopsis = "[--listen ADDR] [--upstream-kind KIND --upstream-url URL] "
			    "[--path FILE | --redis-url URL | --config FILE]",
		.about =
			"Answers POST /api/embed, /api/embeddings, GET /api/tags (Ollama), POST "
			"/v1/embeddings, GET /v1/models (OpenAI) and GET /aqe/cache/stats from the "
			"cache; what is missing is fetched from the upstream once. SIGTERM ends "
			"it.",
		.opts = OPTS,
	};
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	int rc = shim_cache_cmd_read(&c, &CMD, argc, argv, NULL);

	if (rc >= 0) {
		shim_cache_cmd_done(&c);
		return rc;
	}
	rc = serve(&c, &e);
	rc = rc ? shim_cache_cmd_fail(&e) : SHIM_EXIT_OK;
	shim_cache_service_free(running);
	shim_cache_cmd_done(&c);
	return rc;
}
