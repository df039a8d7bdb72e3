/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"

static int load(int dir, const char *name, struct netpol_shared *s, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(NETPOL_SHARED_STATE);
	int rc;

	if (dir < 0)
		return 0;
	rc = aqe_fs_read_beneath(dir, name, AQE_FS_REGULAR | AQE_FS_OWNER | AQE_FS_NO_WRITE, &b, e);
	if (rc == AQE_E_ABSENT)
		return 0;
	if (rc < 0)
		return rc;
	memcpy(s->place[0].state, aqe_buf_str(&b), b.len);
	s->place[0].len = (uint32_t)b.len;
	s->turn = 1;
	return 0;
}

int netpol_state_map(int dir, const char *name, struct netpol_shared **ret, struct aqe_err *e)
{
	void *p = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return aqe_err_set(e, AQE_E_SYS, errno, "mmap");
	*ret = p;
	return load(dir, name, p, e);
}

int netpol_state_save(int dir, const char *name, const struct netpol_shared *s,
		      const struct netpol_shared_place **io_saved, struct aqe_err *e)
{
	uint32_t len = 0, n_log = 0;
	const struct netpol_shared_place *p = netpol_shared_get(s, &len, &n_log);

	if (dir < 0 || !p || (p == *io_saved && n_log == 0))
		return 0;
	*io_saved = n_log == 0 ? p : NULL;
	/* Whatever is in it: restoring checks it, and a damaged one drains the limiters. */
	return aqe_fs_write_file(dir, name, 0600, p->state, len, e);
}
