/* SPDX-License-Identifier: MIT */
/* Running containers: what the engine says, and what the container really is when the shim knows
 * it. That decides. */
#include <stdio.h>
#include <stdlib.h>

#include "shim/core/cleanup.h"
#include "shim/verify_engine.h"
#include "shim/verify_judge.h"
#include "shim/verify_record.h"

/* What an engine said about one container; `error` when it could not be had. */
struct answer {
	const char *word;
	struct shim_doc doc;
	struct shim_info info;
	struct aqe_err error;
};

static enum shim_exit fail(const struct aqe_err *e)
{
	(void)fprintf(stderr, "aqe-shim: %s\n", e->text);
	return SHIM_EXIT_UNDECIDED;
}

static int ask(struct answer *w, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf inspect = AQE_BUF_INIT(SHIM_DOC_MAX);
	AQE_AUTO_BUF struct aqe_buf info = AQE_BUF_INIT(SHIM_DOC_MAX);
	struct shim_doc *d = &w->doc;
	int rc;

	if (!d->arena)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	rc = shim_engine_ask(w->word, &inspect, &info, e);
	if (rc == 0)
		rc = shim_engine_info(aqe_buf_str(&info), info.len, &w->info, e);
	if (rc == 0)
		rc = shim_doc_parse(d, &inspect, e);
	if (rc < 0)
		return rc;
	if (d->shape.code != AQE_OK ||
	    (d->kind != OCI_INSPECT_PODMAN_CONTAINER && d->kind != OCI_INSPECT_DOCKER_CONTAINER))
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "the engine did not write one container");
	return 0;
}

static int judge(const struct shim_gate *gate, struct answer *w, struct shim_judged *j,
		 struct hard_report *reports)
{
	struct shim_gate g = *gate;
	struct shim_effective eff = { false, NULL };
	const struct aqe_json *root = w->doc.root, *object;
	int64_t pid = 0;
	int rc;

	g.info = &w->info;
	object = root->type == AQE_JSON_ARRAY ? root->first : root;
	rc = shim_doc_judge(&g, &w->doc, object, j, &reports[0]);
	if (rc < 0)
		return rc;
	if (aqe_json_get_i64(aqe_json_get(object, "State"), "Pid", 0, INT32_MAX, &pid, &j->error) <
	    0)
		return j->error.code;
	shim_gate_info(&g.ctx, g.info, oci_inspect_is_podman(w->doc.kind));
	rc = shim_effective_judge(w->doc.arena, &g.ctx, aqe_json_str(aqe_json_get(object, "Id")),
				  (pid_t)pid, &reports[1], &eff, &j->error);
	if (eff.found) {
		j->kind = "container";
		j->report = &reports[1];
		j->inspect = &reports[0];
		j->kernel = eff.kernel;
	}
	return rc;
}

static enum shim_exit report(const struct shim_gate *g, struct answer *w)
{
	struct hard_report reports[2];
	struct shim_judged j = { .file = w->word,
				 .kind = "inspect",
				 .report = &reports[0],
				 .error = w->error,
				 .now_s = g->ctx.now_s };
	struct aqe_err e = AQE_ERR_INIT;
	int rc = (int)w->error.code;

	hard_report_init(&reports[0], w->doc.arena);
	hard_report_init(&reports[1], w->doc.arena);
	if (rc == 0)
		rc = judge(g, w, &j, reports);
	if (rc < 0) {
		hard_report_init(&reports[0], w->doc.arena); /* nothing half-judged is shown */
		j.report = &reports[0];
		j.inspect = NULL;
		j.verdict = shim_gate_verdict_of_error(rc);
	} else {
		j.verdict = shim_gate_verdict(j.report);
	}
	return shim_out_add(g->out, &j, &e) < 0 ? fail(&e) : shim_verdict_exit(j.verdict);
}

enum shim_exit shim_gate_containers(const struct shim_gate *g, const char *const *words, size_t n)
{
	AQE_AUTO_FREE struct answer *list = calloc(n ? n : 1, sizeof(*list));
	struct aqe_err e = AQE_ERR_INIT;
	int worst = SHIM_EXIT_OK;

	if (!list) {
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return fail(&e);
	}
	for (size_t i = 0; i < n; i++) {
		list[i].word = words[i];
		list[i].doc = (struct shim_doc)SHIM_DOC_INIT(aqe_arena_new(SHIM_DOC_ARENA_MAX));
		if (ask(&list[i], &list[i].error) < 0 && list[i].error.code == AQE_OK)
			(void)aqe_err_set(&list[i].error, AQE_E_INTERNAL, 0, "no reason");
	}
	for (size_t i = 0; i < n; i++) {
		const int status = (int)report(g, &list[i]);

		worst = status > worst ? status : worst;
		aqe_arena_free(list[i].doc.arena);
	}
	return (enum shim_exit)worst;
}
