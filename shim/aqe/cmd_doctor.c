/* SPDX-License-Identifier: MIT */
/* aqe doctor: what will not work, and why, before it is tried. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "shim/aqe/cmds.h"
#include "shim/aqe/doctor.h"
#include "shim/aqe/policy_cmd.h"
#include "shim/core/cleanup.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/net_policy.h"

#define DOC_ARENA_MAX ((size_t)1 << 20)
#define PROGRAM       "aqe-egress"
#define SECTION       "network"

static const struct aqe_cli_opt OPTS[] = {
	{ "type", 0, "TYPE", "the agent type (default: default)", SHIM_POLICY_TYPE },
	{ "rootfs", 0, "DIR",
	  "look in this root folder for the clients; nothing in it is run, no link is followed",
	  SHIM_POLICY_ROOTFS },
	SHIM_POLICY_OPT_FILE,
	SHIM_POLICY_OPT_FORMAT,
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe doctor egress",
	.synopsis = "[--type TYPE] [--rootfs DIR] [OPTION...]",
	.about = "Tells whether the egress service can run on this host (run it as the user whose "
		 "containers they are), and for each client that is known by which road it gets "
		 "out of a container of the type, or why it does not.\n"
		 "Exit status: 0; 1 a line about the host fails, or with --rootfs a client that is "
		 "there; 2 usage; 4 internal.",
	.opts = OPTS,
};

struct doctor {
	struct aqe_arena *a;
	const struct shim_policy_args *args;
	struct hard_policy *policy;
	struct netpol_policy *net; /* NULL: it does not load */
	bool section;
	const char *type;
	int root_fd;
	struct shim_doctor_rows rows;
};

static bool has_section(const struct hard_policy *p)
{
	for (size_t i = 0; i < p->n_sections; i++) {
		if (aqe_str_eq(p->sections[i].key, SECTION))
			return true;
	}
	return false;
}

static void look_policy(struct doctor *d)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc = shim_policy_read(d->args, &d->policy, &e);

	if (rc == 0)
		rc = shim_net_policy_build(d->policy, &d->net, &e);
	if (rc < 0) {
		shim_doctor_add(&d->rows, SHIM_DOCTOR_FAIL, "policy",
				"mend it: no container starts until it loads", "%s", e.text);
		return;
	}
	d->section = has_section(d->policy);
	if (d->section)
		shim_doctor_add(&d->rows, SHIM_DOCTOR_OK, "policy", NULL, "%s",
				d->policy->files ? d->policy->files : "loads");
	else
		shim_doctor_add(&d->rows, SHIM_DOCTOR_WARN, "policy",
				"a section network, if containers are to have a way out",
				"no section network: every container has only lo");
}

/* ---- one client ---- */

static const char *presence_word(const struct shim_doctor_seen *s)
{
	static const char *const words[] = { [SHIM_DOCTOR_UNKNOWN] = "cannot be told from a root",
					     [SHIM_DOCTOR_ABSENT] = "not in this root",
					     [SHIM_DOCTOR_PRESENT] = "present" };

	return words[s->presence];
}

struct client {
	const struct shim_doctor_client *c;
	struct shim_doctor_seen seen;
	struct shim_doctor_verdict v;
};

static void judge_client(const struct doctor *d, size_t i, struct client *ret)
{
	*ret = (struct client){ .c = &SHIM_DOCTOR_CLIENTS[i] };
	if (d->root_fd >= 0)
		shim_doctor_look(d->root_fd, ret->c, &ret->seen);
	shim_doctor_judge(netpol_policy_type(d->net, d->type), d->section, ret->c, &ret->seen,
			  &ret->v);
}

/* Without a root folder nobody knows which clients there are: then none counts. */
static bool counts(const struct client *k)
{
	return k->seen.presence == SHIM_DOCTOR_PRESENT && k->v.state == SHIM_DOCTOR_FAIL;
}

/* ---- text ---- */

static void text_host(const struct doctor *d, struct aqe_buf *b)
{
	(void)aqe_buf_puts(b, "host\n");
	for (size_t i = 0; i < d->rows.n; i++) {
		const struct shim_doctor_row *r = &d->rows.row[i];

		(void)aqe_buf_addf(b, "  %-4s %s: %s%s%s\n", shim_doctor_state_name(r->state),
				   r->what, r->found, r->fix ? "; fix: " : "",
				   r->fix ? r->fix : "");
	}
}

static void text_client(const struct doctor *d, const struct client *k, struct aqe_buf *b)
{
	(void)aqe_buf_addf(b, "  %-4s %s: ", shim_doctor_state_name(k->v.state), k->c->name);
	if (k->v.road)
		(void)aqe_buf_addf(b, "by %s%s", k->v.road, k->v.why ? "; " : "");
	(void)aqe_buf_puts(b, k->v.why ? k->v.why : "");
	if (k->v.fix)
		(void)aqe_buf_addf(b, "; fix: %s", k->v.fix);
	if (d->root_fd >= 0)
		(void)aqe_buf_addf(b, "; %s", presence_word(&k->seen));
	if (k->seen.major)
		(void)aqe_buf_addf(b, " (version %u.%u)", k->seen.major, k->seen.minor);
	(void)aqe_buf_addf(b, " [%s %s: %s]\n", shim_doctor_basis_name(k->c->basis), k->c->date,
			   k->c->source);
}

/* ---- JSON ---- */

static bool set_text(struct aqe_arena *a, struct aqe_json *o, const char *key, const char *text)
{
	return !text || aqe_json_set(a, o, key, aqe_json_new_str(a, text)) == 0;
}

static struct aqe_json *json_row(struct aqe_arena *a, const struct shim_doctor_row *r)
{
	struct aqe_json *o = aqe_json_new_object(a);

	return o && set_text(a, o, "state", shim_doctor_state_name(r->state)) &&
			       set_text(a, o, "what", r->what) &&
			       set_text(a, o, "found", r->found) && set_text(a, o, "fix", r->fix)
		       ? o
		       : NULL;
}

static struct aqe_json *json_client(const struct doctor *d, const struct client *k)
{
	struct aqe_arena *a = d->a;
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || !set_text(a, o, "client", k->c->name) ||
	    !set_text(a, o, "state", shim_doctor_state_name(k->v.state)) ||
	    !set_text(a, o, "road", k->v.road) || !set_text(a, o, "why", k->v.why) ||
	    !set_text(a, o, "fix", k->v.fix) ||
	    !set_text(a, o, "basis", shim_doctor_basis_name(k->c->basis)) ||
	    !set_text(a, o, "source", k->c->source) || !set_text(a, o, "date", k->c->date))
		return NULL;
	if (d->root_fd >= 0 && k->seen.presence != SHIM_DOCTOR_UNKNOWN &&
	    aqe_json_set(a, o, "present",
			 aqe_json_new_bool(a, k->seen.presence == SHIM_DOCTOR_PRESENT)))
		return NULL;
	if (k->seen.major &&
	    !set_text(a, o, "version", aqe_arena_fmt(a, "%u.%u", k->seen.major, k->seen.minor)))
		return NULL;
	return o;
}

static int json_all(const struct doctor *d, bool failed, struct aqe_buf *b, struct aqe_err *e)
{
	struct aqe_arena *a = d->a;
	struct aqe_json *o = aqe_json_new_object(a), *host = aqe_json_new_array(a),
			*clients = aqe_json_new_array(a);
	int rc = !o || !host || !clients;

	for (size_t i = 0; rc == 0 && i < d->rows.n; i++)
		rc = aqe_json_append(host, json_row(a, &d->rows.row[i]));
	for (size_t i = 0; rc == 0 && d->net && i < SHIM_DOCTOR_CLIENTS_COUNT; i++) {
		struct client k;

		judge_client(d, i, &k);
		rc = aqe_json_append(clients, json_client(d, &k));
	}
	if (rc || aqe_json_set(a, o, "version", aqe_json_new_u64(a, 1)) ||
	    aqe_json_set(a, o, "fails", aqe_json_new_bool(a, failed)) ||
	    !set_text(a, o, "type", d->type) || aqe_json_set(a, o, "host", host) ||
	    aqe_json_set(a, o, "clients", clients) || aqe_json_emit(o, AQE_JSON_COMPACT, b, e))
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the answer");
	(void)aqe_buf_putc(b, '\n');
	return 0;
}

/* ---- the whole ---- */

static bool any_fails(const struct doctor *d)
{
	bool failed = false;

	for (size_t i = 0; i < d->rows.n; i++)
		failed |= d->rows.row[i].state == SHIM_DOCTOR_FAIL;
	for (size_t i = 0; d->net && i < SHIM_DOCTOR_CLIENTS_COUNT; i++) {
		struct client k;

		judge_client(d, i, &k);
		failed |= counts(&k);
	}
	return failed;
}

static int report(const struct doctor *d)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_POLICY_OUT);
	const bool failed = any_fails(d);
	struct aqe_err e = AQE_ERR_INIT;

	if (d->args->json) {
		if (json_all(d, failed, &b, &e))
			return shim_policy_fail(&CMD, SHIM_EXIT_UNDECIDED, &e);
		return shim_policy_print(&b, failed ? SHIM_EXIT_FAILED : SHIM_EXIT_OK);
	}
	text_host(d, &b);
	if (d->net)
		(void)aqe_buf_addf(&b, "clients of type %s\n", d->type);
	for (size_t i = 0; d->net && i < SHIM_DOCTOR_CLIENTS_COUNT; i++) {
		struct client k;

		judge_client(d, i, &k);
		text_client(d, &k, &b);
	}
	return shim_policy_print(&b, failed ? SHIM_EXIT_FAILED : SHIM_EXIT_OK);
}

static int examine(struct doctor *d, struct aqe_err *e)
{
	char path[PATH_MAX] = "";
	struct shim_doctor_host h = { path, "/proc", NULL, d->type };
	int rc = aqe_proc_beside(PROGRAM, path, sizeof(path), e);

	if (rc < 0)
		return shim_policy_fail(&CMD, SHIM_EXIT_UNDECIDED, e);
	look_policy(d);
	h.net = d->net;
	shim_doctor_host(&h, &d->rows);
	rc = report(d);
	netpol_policy_unref(d->net);
	hard_policy_free(d->policy);
	return rc;
}

static int doctor_egress(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(DOC_ARENA_MAX);
	AQE_AUTO_FD int root_fd = -1;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_policy_args args;
	int status = shim_policy_args(&CMD, argc, argv, 0, 0, &args);
	struct doctor d = { .a = a, .args = &args, .rows = { .a = a } };

	if (status >= 0)
		return status;
	if (!a)
		return SHIM_EXIT_UNDECIDED;
	if (args.rootfs)
		root_fd = open(args.rootfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (args.rootfs && root_fd < 0) {
		(void)aqe_err_set(&e, AQE_E_USAGE, errno, "--rootfs '%.200s'", args.rootfs);
		return shim_policy_fail(&CMD, SHIM_EXIT_USAGE, &e);
	}
	d.root_fd = root_fd;
	d.type = args.type ? args.type : "default";
	return examine(&d, &e);
}

int shim_cmd_doctor(int argc, char **argv)
{
	static const char usage[] = "usage: aqe doctor egress [OPTION...]\n\n"
				    "Tells what will not work, and why; see aqe doctor egress "
				    "--help.";

	if (argc >= 2 && strcmp(argv[1], "egress") == 0)
		return doctor_egress(argc - 1, argv + 1);
	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return puts(usage) < 0 || fflush(stdout) != 0 ? SHIM_EXIT_UNDECIDED : SHIM_EXIT_OK;
	if (argc < 2)
		(void)fputs("aqe doctor: missing command; see aqe doctor --help\n", stderr);
	else
		(void)fprintf(stderr,
			      "aqe doctor: no such command '%.64s'; see aqe doctor --help\n",
			      argv[1]);
	return SHIM_EXIT_USAGE;
}
