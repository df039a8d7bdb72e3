/* SPDX-License-Identifier: MIT */
/* aqe policy simulate: the rate limiter fed with a table of requests. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netpolicy/limiter.h"
#include "shim/aqe/policy_cmd.h"
#include "shim/aqe/tsv.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define KEYS_MAX 4096
#define NAME_LEN 128
#define MS_NS    1000000
#define T_MS_MAX (INT64_MAX / MS_NS)

static const struct aqe_cli_opt OPTS[] = {
	{ "batch", 0, NULL, "rows on standard input; prints answer TAB wait a row",
	  SHIM_POLICY_BATCH },
	SHIM_POLICY_OPT_FORMAT,
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe policy simulate",
	.synopsis = "[--format text|json] FILE.tsv\n       aqe policy simulate --batch",
	.about =
		"Feeds rows SCENARIO TAB PER_MINUTE TAB PER_HOUR TAB BURST TAB T_MS TAB KEY TAB OP "
		"to the rate limiter, on a clock of their own; OP is consume, peek, reset or "
		"reconf:PER_MINUTE,PER_HOUR,BURST. A scenario's keys begin with full buckets. "
		"Columns EXPECTED and RETRY_AFTER_MS, when a row has them, are compared.\n"
		"Exit status: 0, 1 a row differs from what it expects, 2 usage, 3 a row is "
		"malformed.",
	.opts = OPTS,
};

enum column {
	COL_SCENARIO,
	COL_PER_MINUTE,
	COL_PER_HOUR,
	COL_BURST,
	COL_TIME,
	COL_KEY,
	COL_OP,
	COL_EXPECTED,
	COL_RETRY,
};

/* A key of a scenario. The rate in force for its keys stands in each. */
struct bucket {
	char scenario[NAME_LEN], key[NAME_LEN];
	struct netpol_limiter *limiter;
	struct netpol_rate rate;
};

struct sim {
	struct bucket *list;
	size_t n, rows, differ;
	struct shim_tsv in;
};

static void sim_done(struct sim *s)
{
	for (size_t i = 0; i < s->n; i++)
		netpol_limiter_free(s->list[i].limiter);
	free(s->list);
	shim_tsv_done(&s->in);
}

static int malformed(const struct sim *s, const char *what, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_MALFORMED, 0, "line %zu: %s", s->in.number, what);
}

/* ---- rows ---- */

static bool read_rate(const char *const text[3], struct netpol_rate *ret)
{
	uint64_t v[3] = { 0, 0, 0 };

	for (size_t i = 0; i < AQE_COUNT(v); i++) {
		if (!aqe_parse_u64(text[i], NETPOL_RATE_MAX, &v[i]))
			return false;
	}
	*ret = (struct netpol_rate){ (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2] };
	return netpol_rate_ok(ret);
}

/* "reconf:30,1000,60" */
static bool read_reconf(const char *op, struct netpol_rate *ret)
{
	char text[64];
	const char *part[3] = { text, NULL, NULL };
	size_t n = 1;

	if (!aqe_starts(op, "reconf:") || strlen(op) >= sizeof(text))
		return false;
	memcpy(text, op + strlen("reconf:"), strlen(op + strlen("reconf:")) + 1);
	for (char *c = text; *c; c++) {
		if (*c != ',')
			continue;
		if (n == AQE_COUNT(part))
			return false;
		*c = '\0';
		part[n++] = c + 1;
	}
	return n == AQE_COUNT(part) && read_rate(part, ret);
}

static struct bucket *find_bucket(const struct sim *s, const char *scenario, const char *key)
{
	/* rows of one key stand together: the newest first */
	for (size_t i = s->n; i; i--) {
		struct bucket *b = &s->list[i - 1];

		if (strcmp(b->scenario, scenario) == 0 && (!key || strcmp(b->key, key) == 0))
			return b;
	}
	return NULL;
}

/* A key seen for the first time has the rate its scenario has by now. NULL with `e` filled. */
static struct bucket *add_bucket(struct sim *s, const char *scenario, const char *key,
				 struct aqe_err *e)
{
	const char *const rate[3] = { shim_tsv_at(&s->in, COL_PER_MINUTE),
				      shim_tsv_at(&s->in, COL_PER_HOUR),
				      shim_tsv_at(&s->in, COL_BURST) };
	const struct bucket *other = find_bucket(s, scenario, NULL);
	struct bucket *b = &s->list[s->n];

	if (s->n == KEYS_MAX || strlen(scenario) >= NAME_LEN || strlen(key) >= NAME_LEN) {
		(void)malformed(s, "more than 4096 keys, or a name over 127 bytes", e);
		return NULL;
	}
	if (other) {
		b->rate = other->rate;
	} else if (!read_rate(rate, &b->rate)) {
		(void)malformed(s, "per minute, per hour and burst must be 1 to 1000000 each", e);
		return NULL;
	}
	memcpy(b->scenario, scenario, strlen(scenario) + 1);
	memcpy(b->key, key, strlen(key) + 1);
	if (netpol_limiter_new(&b->rate, &b->limiter, e))
		return NULL;
	s->n++;
	return b;
}

static int reconf(struct sim *s, const char *scenario, int64_t now, const struct netpol_rate *rate,
		  struct aqe_err *e)
{
	int rc = AQE_OK;

	for (size_t i = 0; !rc && i < s->n; i++) {
		struct bucket *b = &s->list[i];

		if (strcmp(b->scenario, scenario) != 0)
			continue;
		b->rate = *rate;
		rc = netpol_limiter_reconf(b->limiter, now, rate, e);
	}
	return rc;
}

/* What a row's op answers: "allow" or "limit" with the wait, "-" for a change. */
struct outcome {
	const char *word;
	char retry[24];
};

static int run_op(struct sim *s, struct bucket *b, int64_t now, struct outcome *ret,
		  struct aqe_err *e)
{
	const char *op = shim_tsv_at(&s->in, COL_OP);
	struct netpol_limit limit = { false, 0 };
	struct netpol_rate rate;

	ret->word = "-";
	ret->retry[0] = '\0';
	if (strcmp(op, "reset") == 0) {
		netpol_limiter_reset(b->limiter);
		return AQE_OK;
	}
	if (read_reconf(op, &rate))
		return reconf(s, b->scenario, now, &rate, e);
	if (strcmp(op, "consume") == 0)
		netpol_limiter_consume(b->limiter, now, &limit);
	else if (strcmp(op, "peek") == 0)
		netpol_limiter_peek(b->limiter, now, &limit);
	else
		return malformed(s, "op is not consume, peek, reset or reconf:N,N,N", e);
	ret->word = limit.allowed ? "allow" : "limit";
	if (!limit.allowed)
		(void)snprintf(ret->retry, sizeof(ret->retry), "%llu",
			       (unsigned long long)limit.retry_ms);
	return AQE_OK;
}

static int run_row(struct sim *s, struct outcome *ret, struct aqe_err *e)
{
	const char *scenario = shim_tsv_at(&s->in, COL_SCENARIO);
	const char *key = shim_tsv_at(&s->in, COL_KEY);
	struct bucket *b = find_bucket(s, scenario, key);
	uint64_t t_ms = 0;

	if (!aqe_parse_u64(shim_tsv_at(&s->in, COL_TIME), T_MS_MAX, &t_ms))
		return malformed(s, "time is no number of milliseconds", e);
	if (!b)
		b = add_bucket(s, scenario, key, e);
	return b ? run_op(s, b, (int64_t)t_ms * MS_NS, ret, e) : (int)e->code;
}

/* True when the row says what it expects and got something else. */
static bool differs(const struct sim *s, const struct outcome *o)
{
	const char *want = shim_tsv_at(&s->in, COL_EXPECTED);
	const char *retry = shim_tsv_at(&s->in, COL_RETRY);

	return *want && (strcmp(want, o->word) != 0 || strcmp(retry, o->retry) != 0);
}

/* ---- output ---- */

static void text_row(const struct sim *s, const struct outcome *o)
{
	(void)printf("%-20s %12s ms  %-8s %-24s %-6s%s%s%s\n", shim_tsv_at(&s->in, COL_SCENARIO),
		     shim_tsv_at(&s->in, COL_TIME), shim_tsv_at(&s->in, COL_KEY),
		     shim_tsv_at(&s->in, COL_OP), o->word, o->retry[0] ? " retry after " : "",
		     o->retry, differs(s, o) ? "   <-- differs" : "");
}

static void json_row(const struct sim *s, const struct outcome *o)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_TSV_LINE * 8);
	static const struct {
		const char *name;
		enum column column;
	} texts[] = { { "scenario", COL_SCENARIO }, { "key", COL_KEY }, { "op", COL_OP } };

	(void)aqe_buf_puts(&b, "{\"version\":1");
	for (size_t i = 0; i < AQE_COUNT(texts); i++) {
		(void)aqe_buf_addf(&b, ",\"%s\":", texts[i].name);
		aqe_json_emit_str(&b, shim_tsv_at(&s->in, texts[i].column));
	}
	(void)aqe_buf_addf(&b, ",\"tMs\":%s,\"answer\":\"%s\"", shim_tsv_at(&s->in, COL_TIME),
			   o->word);
	if (o->retry[0])
		(void)aqe_buf_addf(&b, ",\"retryAfterMs\":%s", o->retry);
	(void)printf("%s,\"differs\":%s}\n", aqe_buf_str(&b), differs(s, o) ? "true" : "false");
}

static void print_row(const struct shim_policy_args *args, const struct sim *s,
		      const struct outcome *o)
{
	if (args->batch)
		(void)printf("%s\t%s\n", o->word, o->retry);
	else if (args->json)
		json_row(s, o);
	else
		text_row(s, o);
}

static bool is_row(const struct sim *s)
{
	const bool header = strcmp(shim_tsv_at(&s->in, COL_SCENARIO), "scenario") == 0 &&
			    strcmp(shim_tsv_at(&s->in, COL_PER_MINUTE), "rpm") == 0;
	const bool empty = s->in.n == 1 && s->in.len[0] == 0;

	return !header && !empty;
}

static int run(const struct shim_policy_args *args, struct sim *s, struct aqe_err *e)
{
	struct outcome o = { .word = "-" };
	int rc;

	s->list = calloc(KEYS_MAX, sizeof(*s->list));
	if (!s->list)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the keys");
	while ((rc = shim_tsv_next(&s->in, e)) == 1) {
		if (!is_row(s))
			continue;
		rc = run_row(s, &o, e);
		if (rc == AQE_E_MALFORMED && args->batch) /* a line a row, whatever it holds */
			o = (struct outcome){ .word = "invalid" };
		else if (rc)
			return rc;
		s->rows++;
		s->differ += differs(s, &o);
		print_row(args, s, &o);
	}
	return rc;
}

int shim_policy_simulate(int argc, char **argv)
{
	AQE_AUTO_FILE FILE *file = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_policy_args args;
	struct sim s = { .in = SHIM_TSV_INIT(stdin) };
	int rc, status = shim_policy_args(&CMD, argc, argv, 1, 1, &args);

	if (status >= 0)
		return status;
	if (!args.batch && strcmp(args.operand[0], "-") != 0) {
		s.in.in = file = fopen(args.operand[0], "re");
		if (!file) {
			(void)aqe_err_set(&e, AQE_E_SYS, errno, "open '%s'", args.operand[0]);
			return shim_policy_fail(&CMD, SHIM_EXIT_UNDECIDED, &e);
		}
	}
	rc = run(&args, &s, &e);
	status = s.differ && !args.batch ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;
	if (!rc && !args.batch && !args.json)
		(void)printf("%zu rows, %zu differ from what they expect\n", s.rows, s.differ);
	sim_done(&s);
	if (fflush(stdout) != 0)
		return SHIM_EXIT_UNDECIDED;
	if (rc)
		return shim_policy_fail(&CMD,
					rc == AQE_E_MALFORMED ? SHIM_EXIT_MALFORMED
							      : SHIM_EXIT_UNDECIDED,
					&e);
	return status;
}
