/* SPDX-License-Identifier: MIT */
/* aqe policy reload: check first, then tell whoever runs. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/aqe/control.h"
#include "shim/aqe/policy_cmd.h"
#include "shim/aqe/unix_socket.h"
#include "shim/core/cleanup.h"
#include "shim/exit.h"
#include "shim/record.h"

#define ARENA_MAX    ((size_t)16 << 20)
#define SERVICES_MAX 65536
#define TIMEOUT_MS   5000
#define ANSWER_MAX   ((size_t)64 << 10)

static const struct aqe_cli_opt OPTS[] = {
	SHIM_POLICY_OPT_FORMAT,
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe policy reload",
	.synopsis = "[--format text|json] [SOCKET...]",
	.about = "Reads the policy files; when they are good, has every running egress service of "
		 "this user read them too, and the given sockets of `aqe policy serve`. A service "
		 "whose policy does not load keeps the old one and says so.\n"
		 "Exit status: 0 all have it, 1 a service did not take it, 2 usage, 4 the files do "
		 "not load: nobody was told.",
	.opts = OPTS,
};

struct tally {
	struct aqe_arena *a;
	struct aqe_json *list; /* of the JSON answer */
	struct aqe_buf text;
	size_t told, failed;
};

/* ---- one service ---- */

/* The answer's "ok", "changed" and "digest" or "error" under `name`. */
static int note(struct tally *t, const char *name, const struct aqe_json *answer, const char *fault)
{
	struct aqe_json *o = aqe_json_new_object(t->a);
	const struct aqe_json *ok = aqe_json_get(answer, "ok");
	const char *digest = aqe_json_str(aqe_json_get(answer, "digest"));
	const char *error = fault ? fault : aqe_json_str(aqe_json_get(answer, "error"));
	const bool good = ok && ok->type == AQE_JSON_BOOL && ok->boolean;

	t->told++;
	t->failed += !good;
	if (!good && !error)
		error = "an answer that is none";
	(void)aqe_buf_addf(&t->text, "%s: %s\n", name,
			   good ? (digest ? digest : "reloaded") : error);
	if (!o || aqe_json_set(t->a, o, "service", aqe_json_new_str(t->a, name)) ||
	    aqe_json_set(t->a, o, "ok", aqe_json_new_bool(t->a, good)) ||
	    (good && digest && aqe_json_set(t->a, o, "digest", aqe_json_new_str(t->a, digest))) ||
	    (!good && aqe_json_set(t->a, o, "error", aqe_json_new_str(t->a, error))) ||
	    aqe_json_append(t->list, o))
		return AQE_E_NOMEM;
	return AQE_OK;
}

static int tell(struct tally *t, const char *path, const char *name)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(ANSWER_MAX);
	struct aqe_err why = AQE_ERR_INIT;
	struct aqe_json *answer = NULL;
	int rc = shim_unix_ask(path, "{\"op\":\"reload\"}\n", TIMEOUT_MS, &b, &why);

	if (!rc)
		rc = aqe_json_parse(t->a, aqe_buf_str(&b), b.len, &AQE_JSON_LIMITS_DEFAULT, &answer,
				    &why);
	return note(t, name, answer, rc ? why.text : NULL);
}

/* ---- all services ---- */

/* A container's directory with a service's socket in it. */
static int tell_container(struct tally *t, const struct shim_state *s, const char *name)
{
	const char *path = aqe_arena_fmt(t->a, "%s/%s/" SHIM_CONTROL_SOCKET, s->path, name);
	struct stat st;

	if (!path)
		return AQE_E_NOMEM;
	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return AQE_OK; /* isolated, or not started yet: it reads the new files itself */
	return tell(t, path, name);
}

static int tell_containers(struct tally *t, const struct shim_state *s, struct aqe_err *e)
{
	DIR *d = opendir(s->path);
	int rc = AQE_OK;

	if (!d)
		return aqe_err_set(e, AQE_E_SYS, errno, "read directory '%s'", s->path);
	for (size_t seen = 0; !rc && seen < SERVICES_MAX; seen++) {
		/* cppcheck-suppress readdirCalled; one thread, one stream */
		const struct dirent *de = readdir(d);

		if (!de)
			break;
		/* containers are "<id>@<hash>" */
		if (strchr(de->d_name, '@'))
			rc = tell_container(t, s, de->d_name);
	}
	(void)closedir(d);
	return rc ? aqe_err_set(e, AQE_E_NOMEM, 0, "no memory") : AQE_OK;
}

static int tell_all(struct tally *t, const struct shim_policy_args *args, struct aqe_err *e)
{
	struct shim_state s = SHIM_STATE_INIT;
	int rc = shim_state_open(t->a, environ, false, &s, e);

	/* no folder, or no place for one: no container was ever started here */
	if (rc == AQE_E_ABSENT || rc == AQE_E_UNKNOWN)
		rc = AQE_OK;
	else if (!rc)
		rc = tell_containers(t, &s, e);
	shim_state_done(&s);
	for (size_t i = 0; !rc && i < args->n; i++)
		rc = tell(t, args->operand[i], args->operand[i]);
	return rc;
}

static int print(struct tally *t, const struct shim_policy_args *args, const char *digest)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_POLICY_OUT);
	struct aqe_json *o = aqe_json_new_object(t->a);
	const int status = t->failed ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;

	if (!args->json) {
		(void)aqe_buf_addf(&b, "policy %s\n%s%zu services, %zu keep the old policy\n",
				   digest, aqe_buf_str(&t->text), t->told, t->failed);
		return shim_policy_print(&b, status);
	}
	if (!o || aqe_json_set(t->a, o, "version", aqe_json_new_u64(t->a, 1)) ||
	    aqe_json_set(t->a, o, "digest", aqe_json_new_str(t->a, digest)) ||
	    aqe_json_set(t->a, o, "services", t->list) ||
	    aqe_json_emit(o, AQE_JSON_COMPACT, &b, NULL))
		return SHIM_EXIT_UNDECIDED;
	(void)aqe_buf_putc(&b, '\n');
	return shim_policy_print(&b, status);
}

int shim_policy_reload(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct tally t = { .a = a, .text = AQE_BUF_INIT(SHIM_POLICY_OUT) };
	struct aqe_err e = AQE_ERR_INIT;
	struct netpol_policy *p = NULL;
	struct shim_policy_args args;
	int rc, status = shim_policy_args(&CMD, argc, argv, 0, SHIM_POLICY_OPERANDS, &args);

	if (status >= 0)
		return status;
	t.list = a ? aqe_json_new_array(a) : NULL;
	rc = t.list ? shim_policy_load(&args, &p, &e)
		    : aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
	if (!rc)
		rc = tell_all(&t, &args, &e);
	status = rc ? shim_policy_fail(&CMD, SHIM_EXIT_UNDECIDED, &e) : print(&t, &args, p->digest);
	netpol_policy_unref(p);
	aqe_buf_done(&t.text);
	return status;
}
