/* SPDX-License-Identifier: MIT */
/* aqe supervise status, reset. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/aqe/sandbox_cmd.h"
#include "shim/aqe/supervise.h"
#include "shim/aqe/supervise_audit.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/supervisor/store.h"

#define SUFFIX ".json"

static const struct aqe_cli_opt STATUS_OPTS[] = { SHIM_SB_OPT_FORMAT, SHIM_SB_OPT_DATA,
						  SHIM_SB_OPT_END };
static const struct aqe_cli_cmd STATUS = {
	.name = "aqe supervise status",
	.synopsis = "[--format json] [ID...]",
	.about = "What is counted: failures in a row, and whether it is held. Sandboxes and "
		 "containers that an engine started too often are listed, too.",
	.opts = STATUS_OPTS,
};
static const struct aqe_cli_opt RESET_OPTS[] = { SHIM_SB_OPT_DATA, SHIM_SB_OPT_END };
static const struct aqe_cli_cmd RESET = {
	.name = "aqe supervise reset",
	.synopsis = "ID...",
	.about = "Forgets the failures of an id and lets go of a hold. One that is supervised "
		 "at the moment and waits is started at once.",
	.opts = RESET_OPTS,
};

static bool is_supervised(const struct shim_sb *sb, const char *id)
{
	AQE_AUTO_FD int fd = -1;

	return shim_store_lock(sb->place.supervisor_fd, id, &fd, NULL) == AQE_E_REFUSED;
}

static const char *word(const struct shim_sup_saved *s, bool supervised)
{
	if (s->hold == SHIM_SUP_HOLD_REFUSED)
		return "refused";
	if (s->hold)
		return "held";
	if (s->running)
		return supervised ? "running" : "unsupervised";
	return supervised ? "waiting" : "stopped";
}

/* ---- status ---- */

static bool show(struct shim_sb *sb, const char *id, bool first, struct aqe_buf *b)
{
	struct shim_sup_saved s = { 0, SHIM_SUP_HOLD_NONE, false, 0 };
	bool damaged = false, supervised = is_supervised(sb, id);

	if (shim_store_load(sb->place.supervisor_fd, id, &s, &damaged, NULL) < 0)
		return false;
	if (sb->json)
		aqe_buf_addf(b,
			     "%s{\"id\":\"%s\",\"state\":\"%s\",\"failures\":%u,\"attempts\":%u,"
			     "\"supervised\":%s,\"damaged\":%s}",
			     first ? "" : ",", id, word(&s, supervised), s.failures,
			     SHIM_SUP_CONFIG_DEFAULT.attempts, supervised ? "true" : "false",
			     damaged ? "true" : "false");
	else
		aqe_buf_addf(b, "%-12s %2u/%u  %s%s\n", word(&s, supervised), s.failures,
			     SHIM_SUP_CONFIG_DEFAULT.attempts, id,
			     damaged ? " (damaged record)" : "");
	return true;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_record(const struct dirent *ent)
{
	return ent->d_name[0] != '.' && aqe_ends(ent->d_name, SUFFIX);
}

/* All ids, sorted, in the arena. */
static int all_ids(struct shim_sb *sb, struct aqe_err *e)
{
	struct dirent **list = NULL;
	int n = scandirat(sb->place.supervisor_fd, ".", &list, is_record, by_name);
	char **words = aqe_arena_calloc(sb->arena, n > 0 ? (size_t)n : 1, sizeof(*words));

	sb->n_words = 0;
	for (int i = 0; i < n; i++) {
		size_t len = strlen(list[i]->d_name) - strlen(SUFFIX);
		char *id = words ? aqe_arena_ndup(sb->arena, list[i]->d_name, len) : NULL;

		if (id && shim_store_id_ok(id))
			words[sb->n_words++] = id;
		free(list[i]);
	}
	free(list);
	sb->words = words;
	return words ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

static int find(struct shim_sb *sb, struct aqe_err *e)
{
	for (size_t i = 0; i < sb->n_words; i++) {
		char id[SHIM_STORE_ID_MAX + 1];
		int rc = shim_store_find(sb->place.supervisor_fd, sb->words[i], id, e);

		if (rc < 0)
			return rc;
		sb->words[i] = aqe_arena_dup(sb->arena, id);
		if (!sb->words[i])
			return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	}
	return 0;
}

int shim_supervise_status(int argc, char **argv)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT((size_t)4 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, &STATUS, SHIM_SB_OPERANDS, 0, SHIM_STORE_IDS_MAX, argc, argv);
	bool first = true;

	if (rc >= 0)
		return rc;
	rc = sb.n_words > 0 ? find(&sb, &e) : all_ids(&sb, &e);
	if (rc == 0 && sb.json)
		(void)aqe_buf_puts(&out, "{\"version\":1,\"ids\":[");
	for (size_t i = 0; rc == 0 && i < sb.n_words; i++)
		first = !show(&sb, sb.words[i], first, &out) && first;
	if (rc == 0 && sb.json)
		(void)aqe_buf_puts(&out, "]}\n");
	if (rc < 0)
		rc = shim_sb_fail(&sb, &e);
	else
		rc = shim_sb_print(&out) ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
	shim_sb_done(&sb);
	return rc;
}

/* ---- reset ---- */

/* What the shim itself counted of an engine's container. */
static void reset_container(struct shim_sb *sb, const char *id)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_STORE_ID_MAX + 1);
	AQE_AUTO_FD int own = -1;
	const char *path =
		aqe_arena_fmt(sb->arena, SHIM_SUPERVISE_FOLDER "/%s/" SHIM_SUPERVISE_CONTAINER, id);

	if (path && aqe_fs_read_beneath(sb->place.fd, path, AQE_FS_TRUSTED, &b, NULL) == 0)
		(void)!shim_store_remove(shim_sb_counts(sb, &own), aqe_buf_str(&b), NULL);
}

static int reset(struct shim_sb *sb, const char *what, struct aqe_err *e)
{
	AQE_AUTO_FD int lock = -1;
	AQE_AUTO_FD int mark = -1;
	char id[SHIM_STORE_ID_MAX + 1], name[SHIM_STORE_ID_MAX + 16];
	struct shim_sup_saved s;
	int rc = shim_store_find(sb->place.supervisor_fd, what, id, e);

	if (rc < 0)
		return rc;
	reset_container(sb, id);
	rc = shim_store_lock(sb->place.supervisor_fd, id, &lock, e);
	if (rc == AQE_E_REFUSED) { /* its supervisor does it */
		(void)snprintf(name, sizeof(name), "%s" SHIM_SUPERVISE_RESET, id);
		return aqe_fs_open_beneath(sb->place.supervisor_fd, name, O_WRONLY | O_CREAT, 0600,
					   &mark, e);
	}
	if (rc == 0)
		rc = shim_store_load(sb->place.supervisor_fd, id, &s, NULL, e);
	if (rc < 0)
		return rc;
	s.failures = 0;
	s.hold = SHIM_SUP_HOLD_NONE;
	rc = shim_store_save(sb->place.supervisor_fd, id, &s, e);
	return rc < 0 ? rc : shim_supervise_record_reset(id, e);
}

int shim_supervise_reset(int argc, char **argv)
{
	struct shim_sb sb;
	int status = SHIM_EXIT_OK;
	int rc = shim_sb_begin(&sb, &RESET, SHIM_SB_OPERANDS, 1, SHIM_STORE_IDS_MAX, argc, argv);

	if (rc >= 0)
		return rc;
	for (size_t i = 0; i < sb.n_words; i++) {
		struct aqe_err e = AQE_ERR_INIT;

		if (reset(&sb, sb.words[i], &e) < 0)
			status = shim_sb_fail(&sb, &e);
	}
	shim_sb_done(&sb);
	return status;
}
