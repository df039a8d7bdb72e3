/* SPDX-License-Identifier: MIT */
/* aqe policy match, aqe policy address: judging single names and addresses, or whole lists. */
#include <stdio.h>
#include <string.h>

#include "shim/aqe/policy_cmd.h"
#include "shim/aqe/tsv.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define LIST_ARENA_MAX ((size_t)16 << 20)
#define DOC_ARENA_MAX  ((size_t)1 << 20)

/* ---- match ---- */

static const struct aqe_cli_opt MATCH_OPTS[] = {
	{ "allow", 0, "LIST", "comma-separated entries: host, *.host, address, each with :port",
	  SHIM_POLICY_ALLOW },
	{ "no-wildcard-apex", 0, NULL, "*.x does not mean x itself", SHIM_POLICY_STRICT },
	{ "batch", 0, NULL,
	  "rows LIST TAB HOST on standard input, bytes of HOST as \\xNN; prints a line a row",
	  SHIM_POLICY_BATCH },
	SHIM_POLICY_OPT_FORMAT,
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd MATCH = {
	.name = "aqe policy match",
	.synopsis = "--allow LIST [--no-wildcard-apex] HOST\n       aqe policy match --batch",
	.about = "Tells whether the entries admit the host, by any port: allow, deny, or invalid "
		 "(the "
		 "host is none, or the list would not load), and the entry that decided.\n"
		 "Exit status: 0 allow, 1 deny or invalid, 2 usage.",
	.opts = MATCH_OPTS,
};

/* A list of entries as an agent type that has nothing else. */
static int type_of_list(struct aqe_arena *a, const char *list, size_t n, bool strict,
			struct netpol_type *ret, struct aqe_err *e)
{
	static const struct netpol_where where = { "--allow", 0 };

	memset(ret, 0, sizeof(*ret));
	ret->name = "match";
	ret->mode = NETPOL_MODE_ENFORCE;
	ret->wildcard_apex = !strict;
	ret->rules = netpol_rules_new(a);
	if (!ret->rules)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the list");
	return netpol_rules_add_list(ret->rules, list, n, where, e);
}

static void ask_name(const struct netpol_type *t, const char *host, size_t n,
		     struct netpol_answer *ret)
{
	const struct netpol_request rq = { NETPOL_PROTO_DNS, host, n, 0 };

	netpol_decide(t, NULL, 0, &rq, NETPOL_PEEK, ret);
}

static int match_row(struct shim_tsv *row, bool strict, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(LIST_ARENA_MAX);
	struct aqe_err why = AQE_ERR_INIT;
	struct netpol_answer answer;
	struct netpol_type t;
	int rc;

	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the list");
	rc = type_of_list(a, row->field[0], row->len[0], strict, &t, &why);
	if (rc == AQE_E_NOMEM) {
		*e = why;
		return rc;
	}
	if (rc || !shim_tsv_unescape(row, 1)) {
		(void)aqe_buf_puts(b, "invalid\t-\n");
		return AQE_OK;
	}
	ask_name(&t, shim_tsv_at(row, 1), row->n > 1 ? row->len[1] : 0, &answer);
	(void)aqe_buf_addf(b, "%s\t%s\n", shim_policy_verdict(answer.verdict),
			   answer.rule && answer.verdict == NETPOL_ALLOW ? answer.rule->text : "-");
	return AQE_OK;
}

/* One function a row of standard input; its lines go out as they are made. */
typedef int row_fn(struct shim_tsv *row, bool strict, struct aqe_buf *b, struct aqe_err *e);

static bool is_header(const struct shim_tsv *row, const char *const names[2])
{
	return strcmp(shim_tsv_at(row, 0), names[0]) == 0 &&
	       strcmp(shim_tsv_at(row, 1), names[1]) == 0;
}

static int batch(const struct aqe_cli_cmd *cmd, const char *const header[2], row_fn *fn,
		 bool strict)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_POLICY_OUT);
	struct shim_tsv row = SHIM_TSV_INIT(stdin);
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	while ((rc = shim_tsv_next(&row, &e)) == 1) {
		if (is_header(&row, header))
			continue;
		rc = fn(&row, strict, &b, &e);
		if (rc || fwrite(aqe_buf_str(&b), 1, b.len, stdout) != b.len)
			break;
		aqe_buf_clear(&b);
	}
	shim_tsv_done(&row);
	if (rc < 0)
		return shim_policy_fail(cmd, SHIM_EXIT_UNDECIDED, &e);
	return rc || fflush(stdout) != 0 ? SHIM_EXIT_UNDECIDED : SHIM_EXIT_OK;
}

static int match_one(const struct shim_policy_args *args, const struct netpol_type *t,
		     struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(DOC_ARENA_MAX);
	struct aqe_json *o = a ? aqe_json_new_object(a) : NULL;
	struct netpol_answer answer;

	ask_name(t, args->operand[0], strlen(args->operand[0]), &answer);
	if (!args->json) {
		(void)aqe_buf_addf(b, "%s\t%s\t%s%s%s\n", shim_policy_verdict(answer.verdict),
				   answer.rule ? answer.rule->text : "-",
				   netpol_reason_name(answer.reason), answer.why ? ": " : "",
				   answer.why ? answer.why : "");
		return answer.verdict == NETPOL_ALLOW ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
	}
	if (!o || aqe_json_set(a, o, "version", aqe_json_new_u64(a, 1)) ||
	    !shim_policy_answer_json(a, o, &answer) || aqe_json_emit(o, AQE_JSON_COMPACT, b, e)) {
		(void)aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the answer");
		return SHIM_EXIT_UNDECIDED;
	}
	(void)aqe_buf_putc(b, '\n');
	return answer.verdict == NETPOL_ALLOW ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
}

int shim_policy_match(int argc, char **argv)
{
	static const char *const header[2] = { "allowlist", "host" };
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(LIST_ARENA_MAX);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_POLICY_OUT);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_policy_args args;
	struct netpol_type t;
	int status = shim_policy_args(&MATCH, argc, argv, 1, 1, &args);

	if (status >= 0)
		return status;
	if (args.batch)
		return batch(&MATCH, header, match_row, args.strict);
	if (!args.allow) {
		(void)aqe_err_set(&e, AQE_E_USAGE, 0, "--allow is missing");
		return shim_policy_fail(&MATCH, SHIM_EXIT_USAGE, &e);
	}
	if (!a || type_of_list(a, args.allow, strlen(args.allow), args.strict, &t, &e)) {
		(void)shim_policy_fail(&MATCH, SHIM_EXIT_FAILED, &e);
		(void)aqe_buf_addf(&b, args.json ? "{\"version\":1,\"verdict\":\"invalid\","
						   "\"reason\":\"list_invalid\"}\n"
						 : "invalid\t-\tlist_invalid\n");
		return shim_policy_print(&b, SHIM_EXIT_FAILED);
	}
	status = match_one(&args, &t, &b, &e);
	if (status == SHIM_EXIT_UNDECIDED)
		return shim_policy_fail(&MATCH, status, &e);
	return shim_policy_print(&b, status);
}

/* ---- address ---- */

static const struct aqe_cli_opt ADDRESS_OPTS[] = {
	{ "allow-cidr", 0, "PREFIX", "a private network that is open; may be repeated",
	  SHIM_POLICY_CIDR },
	{ "batch", 0, NULL,
	  "rows ADDRESS on standard input, bytes as \\xNN; prints decision TAB class a row",
	  SHIM_POLICY_BATCH },
	SHIM_POLICY_OPT_FORMAT,
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd ADDRESS = {
	.name = "aqe policy address",
	.synopsis = "[--allow-cidr PREFIX]... ADDRESS\n       aqe policy address --batch",
	.about = "Tells what kind of address it is and whether it may be dialled. This is the last "
		 "stage of a decision: a literal needs an entry in the list besides.\n"
		 "Exit status: 0 allow, 1 deny, 2 usage.",
	.opts = ADDRESS_OPTS,
};

static bool judge_address(const char *p, size_t n, const struct netpol_vet *vet,
			  enum netpol_class *ret)
{
	struct netpol_addr a;

	*ret = NETPOL_CLASS_INVALID;
	return netpol_addr_parse(p, n, &a) && netpol_addr_allowed(vet, &a, ret);
}

static int address_row(struct shim_tsv *row, bool strict, struct aqe_buf *b, struct aqe_err *e)
{
	const struct netpol_vet vet = { NULL, 0, NULL, 0 };
	enum netpol_class class = NETPOL_CLASS_INVALID;
	bool allowed = false;

	(void)strict;
	(void)e;
	if (shim_tsv_unescape(row, 0))
		allowed = judge_address(row->field[0], row->len[0], &vet, &class);
	(void)aqe_buf_addf(b, "%s\t%s\n", allowed ? "allow" : "deny", netpol_class_name(class));
	return AQE_OK;
}

int shim_policy_address(int argc, char **argv)
{
	static const char *const header[2] = { "address", "class" };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_POLICY_OUT);
	struct netpol_cidr cidrs[SHIM_POLICY_OPERANDS];
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_policy_args args;
	struct netpol_vet vet = { cidrs, 0, NULL, 0 };
	enum netpol_class class;
	bool allowed;
	int status = shim_policy_args(&ADDRESS, argc, argv, 1, 1, &args);

	if (status >= 0)
		return status;
	if (args.batch)
		return batch(&ADDRESS, header, address_row, false);
	for (; vet.n_allow < args.n_cidr; vet.n_allow++) {
		if (netpol_cidr_parse(args.cidr[vet.n_allow], &cidrs[vet.n_allow], &e))
			return shim_policy_fail(&ADDRESS, SHIM_EXIT_USAGE, &e);
	}
	allowed = judge_address(args.operand[0], strlen(args.operand[0]), &vet, &class);
	(void)aqe_buf_addf(&b,
			   args.json ? "{\"version\":1,\"verdict\":\"%s\",\"class\":\"%s\"}\n"
				     : "%s\t%s\n",
			   allowed ? "allow" : "deny", netpol_class_name(class));
	return shim_policy_print(&b, allowed ? SHIM_EXIT_OK : SHIM_EXIT_FAILED);
}
