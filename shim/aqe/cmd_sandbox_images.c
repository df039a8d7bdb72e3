/* SPDX-License-Identifier: MIT */
/* aqe sandbox images, rmi: the store of unpacked images. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_table.h"
#include "shim/aqe/audit_when.h"
#include "shim/aqe/sandbox_cmd.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/sandbox/image_store.h"
#include "shim/sandbox/size.h"

#define OUT_MAX ((size_t)4 << 20)

static const struct aqe_cli_opt LIST_OPTS[] = {
	{ "quiet", 'q', NULL, "ids only", SHIM_SB_QUIET },
	SHIM_SB_OPT_FORMAT,
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd LIST = {
	.name = "aqe sandbox images",
	.synopsis = "[-q] [--format text|json]",
	.about = "Images that were unpacked for sandboxes without an engine, and how many "
		 "sandboxes use them.",
	.opts = LIST_OPTS,
};
static const struct aqe_cli_opt REMOVE_OPTS[] = {
	{ "all", 'a', NULL, "every image that no sandbox uses", SHIM_SB_ALL },
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd REMOVE = {
	.name = "aqe sandbox rmi",
	.synopsis = "IMAGE... | --all",
	.about = "Removes unpacked images: the id, or its beginning. One that a sandbox uses, "
		 "running or not, is refused. What an interrupted unpacking left goes too.",
	.opts = REMOVE_OPTS,
};

/* ---- images ---- */

static const struct shim_column COLUMNS[] = {
	{ "IMAGE", false, false },
	{ "SIZE", true, false },
	{ "UNPACKED", false, false },
	{ "SANDBOXES", true, false },
};

static int text(struct shim_sb *sb, const struct shim_stored *list, size_t n, struct aqe_buf *out,
		struct aqe_err *e)
{
	const int64_t now_ns = (int64_t)time(NULL) * SHIM_NS_PER_S;
	struct shim_table *t = shim_table_new(sb->arena, COLUMNS, AQE_COUNT(COLUMNS),
					      shim_audit_width(), shim_audit_colour());
	int rc = t ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");

	for (size_t i = 0; i < n && rc == 0; i++) {
		char id[24], size[SHIM_SIZE_TEXT], when[SHIM_WHEN_TEXT], users[24];
		const struct shim_cell cells[] = { { id, SHIM_PAINT_NONE },
						   { size, SHIM_PAINT_NONE },
						   { when, SHIM_PAINT_NONE },
						   { users, SHIM_PAINT_NONE } };

		(void)snprintf(id, sizeof(id), "%.19s", list[i].id);
		shim_size_format(list[i].bytes, size);
		shim_when_relative(list[i].unpacked_s * SHIM_NS_PER_S, now_ns, when);
		(void)snprintf(users, sizeof(users), "%zu", list[i].n_users);
		rc = shim_table_row(t, cells, out, e);
	}
	return rc < 0 ? rc : shim_table_flush(t, out, e);
}

static void json(const struct shim_stored *list, size_t n, struct aqe_buf *out)
{
	(void)aqe_buf_puts(out, "{\"version\":1,\"images\":[");
	for (size_t i = 0; i < n; i++)
		aqe_buf_addf(out,
			     "%s{\"id\":\"%s\",\"bytes\":%llu,\"unpacked_s\":%lld,"
			     "\"sandboxes\":%zu}",
			     i ? "," : "", list[i].id, (unsigned long long)list[i].bytes,
			     (long long)list[i].unpacked_s, list[i].n_users);
	(void)aqe_buf_puts(out, "]}\n");
}

int shim_sandbox_images(int argc, char **argv)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(OUT_MAX);
	struct shim_stored *list = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	size_t n = 0;
	bool quiet;
	int rc = shim_sb_begin(&sb, &LIST, SHIM_SB_OPERANDS, 0, 0, argc, argv);

	if (rc >= 0)
		return rc;
	quiet = sb.value[SHIM_SB_QUIET] != NULL;
	rc = shim_images_list(sb.arena, &sb.place, !quiet, &list, &n, &e);
	for (size_t i = 0; i < n && quiet; i++)
		aqe_buf_addf(&out, "%s\n", list[i].id);
	if (rc == 0 && !quiet && sb.json)
		json(list, n, &out);
	else if (rc == 0 && !quiet)
		rc = text(&sb, list, n, &out, &e);
	if (rc < 0)
		rc = shim_sb_fail(&sb, &e);
	else
		rc = shim_sb_print(&out) ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
	shim_sb_done(&sb);
	return rc;
}

/* ---- rmi ---- */

static int remove_named(struct shim_sb *sb, const char *what)
{
	struct aqe_err e = AQE_ERR_INIT;
	char id[AQE_DIGEST_TEXT];

	if (shim_images_remove(sb->arena, &sb->place, what, id, &e) < 0)
		return shim_sb_fail(sb, &e);
	(void)printf("%s\n", id);
	return SHIM_EXIT_OK;
}

static int remove_unused(struct shim_sb *sb)
{
	struct shim_stored *list = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	int status = SHIM_EXIT_OK;
	size_t n = 0;

	if (shim_images_list(sb->arena, &sb->place, false, &list, &n, &e) < 0)
		return shim_sb_fail(sb, &e);
	for (size_t i = 0; i < n; i++) {
		int rc = list[i].n_users ? SHIM_EXIT_OK : remove_named(sb, list[i].id);

		status = rc == SHIM_EXIT_OK ? status : rc;
	}
	return status;
}

int shim_sandbox_rmi(int argc, char **argv)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	size_t swept = 0;
	bool all;
	int status = SHIM_EXIT_OK,
	    rc = shim_sb_begin(&sb, &REMOVE, SHIM_SB_OPERANDS, 0, SHIM_IMAGES_MAX, argc, argv);

	if (rc >= 0)
		return rc;
	all = sb.value[SHIM_SB_ALL] != NULL;
	if (all == (sb.n_words > 0)) {
		(void)aqe_err_set(&e, AQE_E_USAGE, 0, "either images or --all; see --help");
		rc = shim_sb_fail(&sb, &e);
		shim_sb_done(&sb);
		return rc;
	}
	for (size_t i = 0; i < sb.n_words; i++) {
		rc = remove_named(&sb, sb.words[i]);
		status = rc == SHIM_EXIT_OK ? status : rc;
	}
	if (all)
		status = remove_unused(&sb);
	if (shim_images_sweep(&sb.place, &swept, &e) < 0 && status == SHIM_EXIT_OK)
		status = shim_sb_fail(&sb, &e);
	shim_sb_done(&sb);
	return fflush(stdout) == 0 ? status : SHIM_EXIT_FAILED;
}
