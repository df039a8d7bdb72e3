/* SPDX-License-Identifier: MIT */
/* Inside the policy reader: files as trees, their check against HARD_POLICY_KEYS, and decoding. */
#ifndef AQE_HARDENING_POLICY_FILE_H
#define AQE_HARDENING_POLICY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "hardening/policy.h"

/* policy.json and this many drop-ins below policy.d/ of one directory. */
#define HARD_POLICY_DROPINS_MAX 256
/* Images, mounts, waivers and agents of all files of a tier together, each. */
#define HARD_POLICY_LIST_MAX 4096
/* Everything one policy may take: its trees and what is made of them. */
#define HARD_POLICY_ARENA_MAX ((size_t)64 << 20)

/* Sane absolute ceilings of an agent's override: above the largest machines an agent shares. */
#define HARD_POLICY_CPUS_MILLI_MIN 10 /* the kernel's smallest quota, 1 ms in 100 ms */
#define HARD_POLICY_CPUS_MILLI_MAX 256000
#define HARD_POLICY_MEMORY_MIN     (6ULL << 20) /* below it runtimes cannot start a process */
#define HARD_POLICY_MEMORY_MAX     (1ULL << 40)
#define HARD_POLICY_DISK_MIN       (1ULL << 20)
#define HARD_POLICY_DISK_MAX       (1ULL << 40)
#define HARD_POLICY_PIDS_MAX       32768 /* the kernel's default pid_max for the whole host */
/* More unsigned rows than that nobody wants to lose to who can write the file. */
#define HARD_POLICY_SIGN_EVERY_MAX 1000000

struct hard_policy_file {
	const char *path;
	const struct aqe_json *root; /* an object that passed hard_policy_file_check() */
	char digest[AQE_DIGEST_TEXT];
};

/* The files of one directory, or one file; all memory in `arena`. */
struct hard_policy_files {
	struct aqe_arena *arena;
	struct hard_policy_file *file;
	size_t n, max;
	int64_t changed_s; /* the youngest file's modification time */
};

/* Reads one file named by the user; owner and mode are not judged. */
AQE_MUST_CHECK int hard_policy_files_one(struct hard_policy_files *fs, const char *path,
					 struct aqe_err *e);
/* Reads policy.json and policy.d/ *.json of a directory. What is absent adds nothing. */
AQE_MUST_CHECK int hard_policy_files_dir(struct hard_policy_files *fs, const char *dir,
					 struct aqe_err *e);

/* Compares a tree with HARD_POLICY_KEYS: no unknown member, right types, required members. */
AQE_MUST_CHECK int hard_policy_file_check(const struct hard_policy_file *f, struct aqe_err *e);

/* Fills `e` with "FILE:LINE: 'POINTER' TEXT"; returns AQE_E_MALFORMED. */
int hard_policy_fault(const struct hard_policy_file *f, const struct aqe_json *at,
		      struct aqe_err *e, const char *fmt, ...) AQE_PRINTF(4, 5);

/* The same for a scalar with a wrong value: "... is 'VALUE', WANTED". */
int hard_policy_fault_value(const struct hard_policy_file *f, const struct aqe_json *v,
			    const char *wanted, struct aqe_err *e);

/* Decodes the files of one tier into `p` (made by hard_policy_empty()). */
AQE_MUST_CHECK int hard_policy_decode(struct hard_policy *p, const struct hard_policy_files *fs,
				      struct aqe_err *e);
/* Lets the user's files tighten a decoded policy of the system. */
AQE_MUST_CHECK int hard_policy_tighten(struct hard_policy *p, const struct hard_policy_files *fs,
				       struct aqe_err *e);
/* Keeps the members that other folders read. */
AQE_MUST_CHECK int hard_policy_keep_sections(struct hard_policy *p,
					     const struct hard_policy_files *fs, bool user,
					     struct aqe_err *e);
/* Refuses a member that two files of a tier set. */
AQE_MUST_CHECK int hard_policy_twice(const struct hard_policy_files *fs, struct aqe_err *e);

/* Value readers that both tiers use. */
AQE_MUST_CHECK int hard_policy_read_version(const struct hard_policy_file *f,
					    const struct aqe_json *v, struct aqe_err *e);
AQE_MUST_CHECK int hard_policy_read_mode(const struct hard_policy_file *f, const struct aqe_json *v,
					 enum hard_mode *ret, struct aqe_err *e);
AQE_MUST_CHECK int hard_policy_read_unmarked(const struct hard_policy_file *f,
					     const struct aqe_json *v, bool *ret_refuse,
					     struct aqe_err *e);
/* Puts the members of an audit object into *io. */
AQE_MUST_CHECK int hard_policy_read_audit(const struct hard_policy_file *f,
					  const struct aqe_json *obj, struct hard_audit *io,
					  struct aqe_err *e);
/* An absolute path in canonical spelling, and not "/". */
AQE_MUST_CHECK int hard_policy_read_path(const struct hard_policy_file *f, const struct aqe_json *v,
					 const char **ret, struct aqe_err *e);
/* Puts the members of one agent's object into *io. */
AQE_MUST_CHECK int hard_policy_read_limits(const struct hard_policy_file *f,
					   const struct aqe_json *obj, struct hard_agent *io,
					   struct aqe_err *e);

#endif
