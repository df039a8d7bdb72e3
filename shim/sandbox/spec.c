/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define DEFAULT_ID   1000
#define PASSWD_MAX   ((size_t)1 << 20)
#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the container's document");
}

/* ---- user ---- */

/* A file of the image; absent is empty. */
static int read_in_root(int root_fd, const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				.resolve =
					RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	AQE_AUTO_FD int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	int rc;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open the image's '/%s'", path);
	rc = aqe_fs_check(fd, AQE_FS_REGULAR, PASSWD_MAX, path, NULL, e);
	return rc < 0 ? rc : aqe_fs_read_fd(fd, b, e);
}

/* Field `n` (from 0) of a line of fields between colons, as a number. */
static bool field(const char *line, unsigned n, uint64_t *ret)
{
	char digits[16];
	size_t len;

	for (; n > 0; n--) {
		line = strpbrk(line, ":\n");
		if (!line || *line == '\n')
			return false;
		line++;
	}
	len = strcspn(line, ":\n");
	if (len >= sizeof(digits))
		return false;
	memcpy(digits, line, len);
	digits[len] = '\0';
	return aqe_parse_u64(digits, UINT32_MAX - 1, ret);
}

/* The line of passwd or group that begins with `name`, or whose third field is `id`. */
static const char *find_line(const char *text, const char *name, const uint64_t *id)
{
	size_t len = name ? strlen(name) : 0;

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		uint64_t found;

		if (name && strncmp(p, name, len) == 0 && p[len] == ':')
			return p;
		if (id && field(p, 2, &found) && found == *id)
			return p;
	}
	return NULL;
}

static int absent(const char *kind, const char *name, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_ABSENT, 0, "the image has no %s '%.64s'", kind, name);
}

static int resolve_group(int root_fd, const char *group, uint64_t *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(PASSWD_MAX);
	const char *line;
	int rc;

	if (aqe_parse_u64(group, UINT32_MAX - 1, ret))
		return 0;
	rc = read_in_root(root_fd, "etc/group", &b, e);
	if (rc < 0)
		return rc;
	line = find_line(aqe_buf_str(&b), group, NULL);
	return line && field(line, 2, ret) ? 0 : absent("group", group, e);
}

/* Name or number, without the group; the group is passwd's, else the same number. */
static int resolve_user(const char *passwd, const char *name, uint64_t *uid, uint64_t *gid,
			struct aqe_err *e)
{
	bool number = aqe_parse_u64(name, UINT32_MAX - 1, uid);
	const char *line = find_line(passwd, number ? NULL : name, number ? uid : NULL);

	if (!number && (!line || !field(line, 2, uid)))
		return absent("user", name, e);
	if (!line || !field(line, 3, gid))
		*gid = *uid;
	return 0;
}

int shim_spec_user(int root_fd, const char *user, struct shim_spec_user *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(PASSWD_MAX);
	char name[80];
	uint64_t uid = DEFAULT_ID, gid = DEFAULT_ID;
	const char *colon = user ? strchr(user, ':') : NULL;
	size_t len = user ? strcspn(user, ":") : 0;
	int rc = read_in_root(root_fd, "etc/passwd", &b, e);

	if (rc < 0)
		return rc;
	if (len >= sizeof(name))
		return absent("user", user, e);
	memcpy(name, user ? user : "", len);
	name[len] = '\0';
	if (len > 0)
		rc = resolve_user(aqe_buf_str(&b), name, &uid, &gid, e);
	else if (find_line(aqe_buf_str(&b), "node", NULL))
		rc = resolve_user(aqe_buf_str(&b), "node", &uid, &gid, e);
	if (rc == 0 && colon && colon[1])
		rc = resolve_group(root_fd, colon + 1, &gid, e);
	if (rc == 0)
		*ret = (struct shim_spec_user){ (uint32_t)uid, (uint32_t)gid };
	return rc;
}

/* ---- words ---- */

int shim_spec_args(struct aqe_arena *a, const struct shim_plan *p, const struct shim_image *img,
		   struct shim_strs *ret, struct aqe_err *e)
{
	const struct shim_strs *rest = p->args.n ? &p->args : &img->cmd;
	size_t n = img->entrypoint.n + rest->n, at = 0;
	const char **v = aqe_arena_calloc(a, n + 1, sizeof(*v));

	if (!v)
		return nomem(e);
	for (size_t i = 0; i < img->entrypoint.n; i++)
		v[at++] = img->entrypoint.v[i];
	for (size_t i = 0; i < rest->n; i++)
		v[at++] = rest->v[i];
	if (n == 0 || v[0][0] == '\0')
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "no command: the image names none and none was given");
	*ret = (struct shim_strs){ v, n };
	return 0;
}

/* Puts NAME=value, in place of an earlier one of that name. */
static void put_env(const char **v, size_t *n, const char *entry)
{
	size_t len = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < *n; i++) {
		if (strncmp(v[i], entry, len) == 0) {
			v[i] = entry;
			return;
		}
	}
	v[(*n)++] = entry;
}

int shim_spec_env(struct aqe_arena *a, const struct shim_plan *p, const struct shim_image *img,
		  struct shim_strs *ret, struct aqe_err *e)
{
	const char **v = aqe_arena_calloc(a, img->env.n + p->env.n + 4, sizeof(*v));
	const char *id = aqe_arena_fmt(a, "AGENT_ID=%s", p->agent_id);
	const char *type = aqe_arena_fmt(a, "AGENT_TYPE=%s", p->agent_type);
	size_t n = 0;

	if (!v || !id || !type)
		return nomem(e);
	put_env(v, &n, DEFAULT_PATH);
	for (size_t i = 0; i < img->env.n; i++) {
		if (strchr(img->env.v[i], '='))
			put_env(v, &n, img->env.v[i]);
	}
	for (size_t i = 0; i < p->env.n; i++)
		put_env(v, &n, p->env.v[i]);
	put_env(v, &n, id);
	put_env(v, &n, type);
	*ret = (struct shim_strs){ v, n };
	return 0;
}

/* ---- the document ---- */

#define PERIOD_US 100000ULL /* the original's, and what the shim writes */

/* Text with %s and %llu only; the words come from checked names and numbers or are quoted. */
static void add_strs(struct aqe_buf *b, const struct shim_strs *list)
{
	(void)aqe_buf_putc(b, '[');
	for (size_t i = 0; i < list->n; i++) {
		(void)aqe_buf_puts(b, i ? "," : "");
		aqe_json_emit_str(b, list->v[i]);
	}
	(void)aqe_buf_putc(b, ']');
}

static void add_process(struct aqe_buf *b, const struct shim_strs *args,
			const struct shim_strs *env, const struct shim_spec_user *user,
			const char *cwd)
{
	aqe_buf_addf(b,
		     "\"process\":{\"terminal\":false,\"user\":{\"uid\":%u,\"gid\":%u},\"args\":",
		     user->uid, user->gid);
	add_strs(b, args);
	(void)aqe_buf_puts(b, ",\"env\":");
	add_strs(b, env);
	(void)aqe_buf_puts(b, ",\"cwd\":");
	aqe_json_emit_str(b, cwd);
	(void)aqe_buf_puts(b,
			   ",\"capabilities\":{\"bounding\":[],\"effective\":[],\"permitted\":[],"
			   "\"inheritable\":[],\"ambient\":[]},\"noNewPrivileges\":true},");
}

static void add_mounts(struct aqe_buf *b, uint64_t disk)
{
	static const char TMPFS[] =
		",{\"destination\":\"%s\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
		"\"options\":[\"nosuid\",\"nodev\",\"noexec\",\"size=%lluk\"]}";

	(void)aqe_buf_puts(
		b, "\"mounts\":["
		   "{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
		   "{\"destination\":\"/sys\",\"type\":\"sysfs\",\"source\":\"sysfs\",\"options\":"
		   "[\"ro\",\"nosuid\",\"nodev\",\"noexec\"]},"
		   "{\"destination\":\"/sys/fs/cgroup\",\"type\":\"cgroup\",\"source\":\"cgroup\","
		   "\"options\":[\"ro\",\"nosuid\",\"nodev\",\"noexec\"]}");
	/* the shim's own shares of the disk limit: seven eighths and one */
	aqe_buf_addf(b, TMPFS, "/tmp", (unsigned long long)(disk / 8 * 7 / 1024));
	aqe_buf_addf(b, TMPFS, "/run", (unsigned long long)(disk / 8 / 1024));
	(void)aqe_buf_puts(b, "],");
}

static void add_linux(struct aqe_buf *b, const struct shim_plan *p)
{
	static const char MAP[] = "[{\"containerID\":0,\"hostID\":%u,\"size\":%u}]";

	(void)aqe_buf_puts(b, "\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"ipc\"},"
			      "{\"type\":\"uts\"},{\"type\":\"mount\"},{\"type\":\"network\"},"
			      "{\"type\":\"user\"}],\"uidMappings\":");
	aqe_buf_addf(b, MAP, SHIM_ID_SHIFT, SHIM_ID_SIZE);
	(void)aqe_buf_puts(b, ",\"gidMappings\":");
	aqe_buf_addf(b, MAP, SHIM_ID_SHIFT, SHIM_ID_SIZE);
	aqe_buf_addf(b, ",\"cgroupsPath\":\"/aqe-sandbox/%s\"", p->name);
	aqe_buf_addf(b,
		     ",\"resources\":{\"memory\":{\"limit\":%llu,\"swap\":%llu},\"cpu\":{\"quota\":"
		     "%llu,\"period\":%llu},\"pids\":{\"limit\":%u}}}",
		     (unsigned long long)p->memory, (unsigned long long)p->memory,
		     (unsigned long long)p->cpus_milli * PERIOD_US / 1000, PERIOD_US, p->pids);
}

static void add_annotations(struct aqe_buf *b, const struct shim_plan *p)
{
	(void)aqe_buf_puts(b, "\"annotations\":{\"io.aqe.agent-id\":");
	aqe_json_emit_str(b, p->agent_id);
	(void)aqe_buf_puts(b, ",\"io.aqe.agent-type\":");
	aqe_json_emit_str(b, p->agent_type);
	(void)aqe_buf_puts(b, "},");
}

int shim_spec_make(const struct shim_plan *p, const struct shim_strs *args,
		   const struct shim_strs *env, const struct shim_spec_user *user,
		   struct aqe_buf *b, struct aqe_err *e)
{
	aqe_buf_addf(b, "{\"ociVersion\":\"1.0.2\",\"hostname\":\"%.63s\",", p->name);
	add_process(b, args, env, user, p->workdir ? p->workdir : "/");
	(void)aqe_buf_puts(b, "\"root\":{\"readonly\":true,\"path\":");
	aqe_json_emit_str(b, p->rootfs);
	(void)aqe_buf_puts(b, "},");
	add_mounts(b, p->disk);
	add_annotations(b, p);
	add_linux(b, p);
	(void)aqe_buf_putc(b, '}');
	return aqe_buf_ok(b, e);
}
