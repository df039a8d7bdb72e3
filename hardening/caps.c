/* SPDX-License-Identifier: MIT */
#include "hardening/caps.h"

#include <ctype.h>
#include <stddef.h>
#include <sys/capability.h>

#include "shim/core/text.h"

#define PREFIX "CAP_"
/* "CAP_CHECKPOINT_RESTORE" is the longest today; the room above it is for kernels to come. */
#define NAME_MAX_LEN 63

/* Docker's fourteen (moby oci/caps/defaults.go). containerd grants the same set, Podman 4.3 a
 * subset of it (common pkg/config/default.go), so their union is this list. */
static const char *const DEFAULTS[] = {
	"CAP_AUDIT_WRITE", "CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_FOWNER",     "CAP_FSETID",
	"CAP_KILL",        "CAP_MKNOD",   "CAP_NET_BIND_SERVICE", "CAP_NET_RAW",    "CAP_SETFCAP",
	"CAP_SETGID",      "CAP_SETPCAP", "CAP_SETUID",           "CAP_SYS_CHROOT", NULL,
};

bool hard_cap_known(const char *name)
{
	/* libcap takes any letter case and bare numbers too; the runtime-spec and runc do not. */
	char lower[NAME_MAX_LEN + 1];
	cap_value_t value = 0;
	size_t n = 0;

	if (!name || !aqe_starts(name, PREFIX))
		return false;
	for (; name[n]; n++) {
		const unsigned char c = (unsigned char)name[n];

		if (n == NAME_MAX_LEN || (!isupper(c) && c != '_'))
			return false;
		lower[n] = (char)tolower(c);
	}
	lower[n] = '\0';
	return cap_from_name(lower, &value) == 0;
}

bool hard_cap_is_default(const char *name)
{
	return name && aqe_str_in(name, DEFAULTS);
}

int hard_cap_count(void)
{
	return (int)cap_max_bits();
}
