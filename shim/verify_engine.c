/* SPDX-License-Identifier: MIT */
#include "shim/verify_engine.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"

#define TIMEOUT_MS   30000
#define ERR_MAX      2000
#define ERR_SHOWN    300
#define NAME_LEN_MAX 253

static const struct engine {
	const char *prefix, *path;
	const char *inspect[6], *info[6]; /* words; NULL in `inspect` is the name's place */
	size_t n_inspect;                 /* words before the name */
} ENGINES[] = {
	{ "podman:",
	  "/usr/bin/podman",
	  { "podman", "container", "inspect", "--" },
	  { "podman", "info", "--format", "json" },
	  4 },
	{ "docker:",
	  "/usr/bin/docker",
	  { "docker", "container", "inspect", "--" },
	  { "docker", "info", "--format", "{{json .}}" },
	  4 },
};

static const struct engine *engine_of(const char *word)
{
	for (size_t i = 0; i < AQE_COUNT(ENGINES); i++) {
		if (aqe_starts(word, ENGINES[i].prefix))
			return &ENGINES[i];
	}
	return NULL;
}

int shim_engine_check(const char *word, struct aqe_err *e)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.-";
	const struct engine *g = engine_of(word);
	const char *name = g ? word + strlen(g->prefix) : "";

	if (!*name || strlen(name) > NAME_LEN_MAX || name[strspn(name, plain)] ||
	    strchr("_.-", name[0]))
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "verify: --container wants podman:NAME or docker:NAME, not "
				   "'%.64s'",
				   word);
	return 0;
}

/* The first line of what a program said, for a message. */
static void first_line(struct aqe_buf *said, struct aqe_buf *shown)
{
	const char *s = aqe_buf_str(said);

	if (said->len)
		said->p[strcspn(s, "\n")] = '\0';
	aqe_buf_quote(shown, s, ERR_SHOWN);
}

/* The engine is what the caller would run by hand, so it gets the caller's environment. */
static int ask(const struct engine *g, const char *const *words, struct aqe_buf *out,
	       struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf said = AQE_BUF_INIT(ERR_MAX);
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(ERR_MAX);
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	int status = 0, rc;

	o.path = g->path;
	o.argv = (char *const *)(const void *)words;
	o.envp = environ;
	o.in_fd = AQE_PROC_NULL;
	o.out = out;
	o.err = &said;
	o.timeout_ms = TIMEOUT_MS;
	rc = aqe_proc_run(&o, &status, e);
	if (rc < 0)
		return aqe_err_wrap(e, "%s %s", g->path, words[1]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		first_line(&said, &shown);
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "%s %s failed: %s", g->path, words[1],
				   aqe_buf_str(&shown));
	}
	return 0;
}

int shim_engine_ask(const char *word, struct aqe_buf *inspect, struct aqe_buf *info,
		    struct aqe_err *e)
{
	const struct engine *g = engine_of(word);
	const char *words[8] = { NULL };
	int rc;

	if (!g)
		return shim_engine_check(word, e);
	for (size_t i = 0; i < g->n_inspect; i++)
		words[i] = g->inspect[i];
	words[g->n_inspect] = word + strlen(g->prefix);
	rc = ask(g, words, inspect, e);
	return rc < 0 ? rc : ask(g, g->info, info, e);
}
