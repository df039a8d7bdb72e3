/* SPDX-License-Identifier: MIT */
/* The documents of an image: index, manifest and config, as an OCI layout or a docker archive. The
 * input is up to three documents with a line "--" between them; "@1" and "@2" in one stand for the
 * digests of the second and third. What is accepted hangs together, and its parts lie inside. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/image.h"
#include "shim/sandbox/layout.h"

#define DOCS     3
#define TEXT_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static char top[] = "/tmp/aqe-fuzz-layout-XXXXXX"; /* top/image, top/store, top/victim */
static int top_fd = -1;

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void remove_top(void)
{
	(void)unlinkat(top_fd, "victim", 0);
	(void)rmdir(top);
}

static void put(int dir, const char *name, const void *p, size_t n)
{
	AQE_AUTO_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd >= 0 && aqe_fs_write_all(fd, p, n, NULL) == 0);
}

static void begin(void)
{
	if (top_fd >= 0)
		return;
	must(mkdtemp(top) != NULL);
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top_fd >= 0 && atexit(remove_top) == 0);
	put(top_fd, "victim", "outside", 7);
}

/* One document, with the digests of those behind it. */
static void fill(struct aqe_buf *b, const char *p, size_t n, char digests[DOCS][AQE_DIGEST_TEXT])
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '@' && i + 1 < n && (p[i + 1] == '1' || p[i + 1] == '2'))
			(void)aqe_buf_puts(b, digests[p[++i] - '0']);
		else
			(void)aqe_buf_putc(b, p[i]);
	}
}

/* Writes the documents into a layout; true when the first is docker's. */
static bool lay_out(int dir, const char *text, size_t size, char digests[DOCS][AQE_DIGEST_TEXT])
{
	const char *doc[DOCS] = { text, "", "" }, *at;
	size_t len[DOCS] = { size, 0, 0 };
	char name[96];

	for (size_t i = 0; i + 1 < DOCS && (at = memmem(doc[i], len[i], "\n--\n", 4)); i++) {
		doc[i + 1] = at + 4;
		len[i + 1] = len[i] - (size_t)(at + 4 - doc[i]);
		len[i] = (size_t)(at - doc[i]);
	}
	for (size_t i = DOCS; i-- > 0;) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(TEXT_MAX);

		fill(&b, doc[i], len[i], digests);
		aqe_sha256_text(aqe_buf_str(&b), b.len, digests[i]);
		(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digests[i] + 7);
		put(dir, name, aqe_buf_str(&b), b.len);
		if (i == 0)
			put(dir, *text == '[' ? "manifest.json" : "index.json", aqe_buf_str(&b),
			    b.len);
	}
	if (*text != '[')
		put(dir, "oci-layout", "{}", 2);
	must(symlinkat("../victim", dir, "out") == 0 && symlinkat("blobs", dir, "in") == 0);
	put(dir, "config.json", doc[2], len[2]);
	return *text == '[';
}

/* A part that can be opened is a file of the folder. */
static void check_part(int dir, const char *path)
{
	AQE_AUTO_FD int fd = -1;
	AQE_AUTO_BUF struct aqe_buf real = AQE_BUF_INIT(8192), folder = AQE_BUF_INIT(8192);

	if (shim_layout_open(dir, path, &fd, NULL) != 0)
		return;
	must(aqe_fs_fd_path(fd, &real, NULL) == 0 && aqe_fs_fd_path(dir, &folder, NULL) == 0);
	must(aqe_starts(real.p, folder.p) && real.p[folder.len] == '/');
}

static void check_image(struct aqe_arena *a, const char *config, size_t n, const char *id)
{
	struct shim_place place = SHIM_PLACE_INIT;
	struct shim_image img;
	char name[128];

	place.path = top;
	must(mkdirat(top_fd, "store", 0700) == 0);
	place.store_fd = openat(top_fd, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(name, sizeof(name), "%s", id + 7);
	must(mkdirat(place.store_fd, name, 0700) == 0);
	(void)snprintf(name, sizeof(name), "%s/config.json", id + 7);
	put(place.store_fd, name, config, n);
	if (shim_image_open(a, &place, id, &img, NULL) == 0)
		must(aqe_str_eq(img.id, id) && img.health_retries <= 1000 &&
		     img.health_interval_ms >= 0);
	(void)close(place.store_fd);
	must(aqe_fs_remove_tree(top_fd, "store", NULL) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)64 << 20);
	char digests[DOCS][AQE_DIGEST_TEXT] = { "", "", "" };
	struct aqe_err e = AQE_ERR_INIT;
	AQE_AUTO_FD int dir = -1;
	struct shim_layout l;
	bool docker;
	int rc;

	if (size == 0 || size > TEXT_MAX / 128)
		return 0;
	begin();
	must(mkdirat(top_fd, "image", 0700) == 0);
	dir = openat(top_fd, "image", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dir >= 0 && mkdirat(dir, "blobs", 0700) == 0 &&
	     mkdirat(dir, "blobs/sha256", 0700) == 0);
	docker = lay_out(dir, (const char *)data, size, digests);
	rc = shim_layout_read(a, dir, NULL, &l, &e);
	must(rc == 0 || (rc < 0 && rc == (int)e.code && e.text[0]));
	for (size_t i = 0; rc == 0 && i < l.n_layers; i++) {
		must(l.layers[i].path && l.layers[i].diff_id && (docker || l.layers[i].digest));
		check_part(dir, l.layers[i].path);
	}
	if (rc == 0) {
		must(l.n_layers <= SHIM_LAYERS_MAX && aqe_is_sha256_digest(l.id));
		check_image(a, l.config, l.config_len, l.id);
	}
	must(aqe_fs_remove_tree(top_fd, "image", NULL) == 0);
	return 0;
}
