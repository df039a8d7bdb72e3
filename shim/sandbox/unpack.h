/* SPDX-License-Identifier: MIT */
/* Where the entries of an archive may go: below one directory, whatever their names and links say.
 * Every parent is opened with openat2(2) as if that directory were the root, every last component
 * without following a link, so that a link of an earlier entry leads nowhere else. */
#ifndef AQE_SANDBOX_UNPACK_H
#define AQE_SANDBOX_UNPACK_H

#include <stdint.h>

#include "shim/core/err.h"

#define SHIM_UNPACK_ENTRIES_MAX 1000000ULL
#define SHIM_UNPACK_BYTES_MAX   (32ULL << 30)
#define SHIM_UNPACK_DEPTH_MAX   128  /* components of a name */
#define SHIM_UNPACK_PATH_MAX    4095 /* bytes of a name */

struct shim_unpack {
	int root_fd;        /* directory that stands for "/" */
	uint32_t id_shift;  /* added to owners: the container's root is this user outside */
	uint32_t id_size;   /* owners from here on become the overflow id 65534 */
	uint64_t bytes_max; /* 0: SHIM_UNPACK_BYTES_MAX */
	uint64_t n_entries; /* made so far */
	uint64_t n_special; /* devices and pipes left out: a container has its own /dev */
};

/* One layer, `tar_fd` an uncompressed or compressed tar file. Whiteouts first, then the entries:
 * a whiteout never hides what its own layer brings. Set-id bits and extended attributes are
 * dropped (no_new_privs makes them void). AQE_E_MALFORMED for a name with "..", a hard link to
 * nothing, a component that is no directory; what was written before stays. */
AQE_MUST_CHECK int shim_unpack_layer(struct shim_unpack *u, int tar_fd, struct aqe_err *e);
/* The files of a docker or OCI archive: plain files, directories and links between them, with no
 * owner or mode of theirs. */
AQE_MUST_CHECK int shim_unpack_files(struct shim_unpack *u, int tar_fd, struct aqe_err *e);

#endif
