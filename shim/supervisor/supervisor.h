/* SPDX-License-Identifier: MIT */
/* The machine bound to a loop, a driver, a file and the kernel's random numbers: one of these
 * supervises one thing. */
#ifndef AQE_SUPERVISOR_SUPERVISOR_H
#define AQE_SUPERVISOR_SUPERVISOR_H

#include <stdint.h>

#include "shim/supervisor/driver.h"
#include "shim/supervisor/loop.h"
#include "shim/supervisor/machine.h"

struct shim_supervisor;

struct shim_supervisor_opts {
	struct shim_loop *loop;
	const struct shim_sup_config *cfg; /* NULL: SHIM_SUP_CONFIG_DEFAULT */
	int store_fd;                      /* folder of the counts; -1: they do not survive us */
	const char *id;                    /* in the store; NULL with store_fd -1 */
	/* Every report, after the state changed; may be NULL. `text` is the last error, or "". It
	 * may call shim_supervisor_want() but not free the supervisor. */
	void (*tell)(void *arg, const struct shim_sup_action *report, const char *text);
	void *arg;
	uint64_t (*random)(void *arg); /* NULL: the kernel's */
};
#define SHIM_SUPERVISOR_OPTS_INIT                      \
	{                                              \
		NULL, NULL, -1, NULL, NULL, NULL, NULL \
	}

/* Takes the driver, also on failure. With a store: locks the id (AQE_E_REFUSED when another process
 * supervises it) and loads its count. Nothing starts before SHIM_SUP_WANT_UP. */
AQE_MUST_CHECK int shim_supervisor_new(const struct shim_supervisor_opts *o,
				       struct shim_sup_driver driver, struct shim_supervisor **ret,
				       struct aqe_err *e);
/* Closes the driver; what runs keeps running. NULL is accepted. */
void shim_supervisor_free(struct shim_supervisor *s);
/* WANT_UP, WANT_DOWN or RESET. */
void shim_supervisor_want(struct shim_supervisor *s, enum shim_sup_event wish);
const struct shim_sup *shim_supervisor_machine(const struct shim_supervisor *s);

#endif
