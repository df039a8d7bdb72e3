/* SPDX-License-Identifier: MIT */
/* The export reader takes anything; what verifies has a header, its rows and a trailer. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "audit/verify.h"
#include "shim/core/fs.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct audit_verdict v;
	int fd = memfd_create("export", MFD_CLOEXEC);

	if (fd < 0 || aqe_fs_write_all(fd, data, size, &e) != 0 || lseek(fd, 0, SEEK_SET) != 0 ||
	    audit_verify_export(fd, NULL, &v, &e) != 0)
		abort();
	(void)close(fd);
	if ((v.fault == AUDIT_FAULT_NONE) != (v.text[0] == '\0') || v.first_bad < 0)
		abort();
	if (v.fault == AUDIT_FAULT_NONE && (size < 200 || v.last_seq - v.first_seq < 0))
		abort();
	return 0;
}
