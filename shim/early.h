/* SPDX-License-Identifier: MIT */
/* Calls that are passed on before libc has started. An engine asks for a container's state and
 * signals it far more often than it starts one, and what the C library does at its own start
 * (relocations, CPUID, which leaves a virtual machine each time) costs more than all that has to be
 * done here. So entry.c, where the executable begins, passes on what it understands completely and
 * leaves the rest to main(), which comes to the same result.
 *
 * early.c is pure and, like entry.c, may use nothing of libc, no thread-local data and no table
 * with pointers in it: none of them is there yet. */
#ifndef AQE_SHIM_EARLY_H
#define AQE_SHIM_EARLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An entry "NAME=value" that a low-level runtime may see (pitfall 25, R34). */
bool shim_early_env_ok(const char *entry);
/* Length of the name in "NAME=value"; 0 when there is none. */
size_t shim_early_env_name(const char *entry);

/* Tells the runtimes' state directories apart in the names of our own folders: FNV-1a of --root
 * (may be NULL) without slashes at its end, because an engine writes it with or without. */
uint64_t shim_early_root_hash(const char *root);
#define SHIM_EARLY_HASH_HEX 16 /* digits of it in a name */

/* A call that is passed on as it came. */
struct shim_early {
	const char *id, *root; /* root: the option's value or NULL */
	bool ends;             /* `kill` that asks for the container's end */
	bool deletes;          /* `delete`: main() has work to do when the runtime has ended */
};
#define SHIM_EARLY_ID_MAX 200 /* bytes of an id that is a file name as it is */

/* True when the words of main() are a plain `state`, `kill`, `pause`, `resume` or `delete` of one
 * container. Whatever is unusual is left to shim_argv_parse(). */
bool shim_early_plan(char *const *argv, struct shim_early *ret);
/* True for a signal, as `kill` is given it, that asks a process to end; NULL is TERM. */
bool shim_early_is_end(const char *signal);
/* A file of this name in the container's folder: somebody wanted its end (runtime_restart.c). */
#define SHIM_EARLY_KILLED "killed"
/* The name of the container's folder, "<id>@<hash>"; `size` at least SHIM_EARLY_NAME. */
#define SHIM_EARLY_NAME (SHIM_EARLY_ID_MAX + 1 + SHIM_EARLY_HASH_HEX + 1)
void shim_early_name(const struct shim_early *call, char *ret);

/* True for a verb with which a process is put into a cgroup: `create`, `run`, `exec`. Only a hint.
 */
bool shim_early_joins(char *const *argv);
/* The member list of the group in the first line of /proc/PID/cgroup, at its usual place. False for
 * a line that is no such line, a group outside the namespace, and a name that is too long. */
#define SHIM_EARLY_CGROUPS "/sys/fs/cgroup"
#define SHIM_EARLY_PROCS   1024
bool shim_early_procs(const char *cgroup, char ret[SHIM_EARLY_PROCS]);

/* The low-level `delete` that entry.c has started, a child of ours with the words that main() has,
 * and that main() must wait for; 0 when it has started none. */
int shim_early_child(void);

#endif
