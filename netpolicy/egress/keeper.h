/* SPDX-License-Identifier: MIT */
/* The keeper: holds the listening sockets, watches the container, writes the audit, starts worker
 * and dialer and starts them again when they end or hang, a few times. It reads nothing an agent
 * sends. */
#ifndef AQE_EGRESS_KEEPER_H
#define AQE_EGRESS_KEEPER_H

#include "netpolicy/egress/companion.h"
#include "netpolicy/egress/record.h"
#include "netpolicy/egress/service.h"
#include "netpolicy/egress/supervise.h"
#include "netpolicy/live.h"
#include "shim/core/buf.h"

/* What an operator's line asks for. */
enum netpol_control { NETPOL_CONTROL_NONE, NETPOL_CONTROL_RELOAD };
struct netpol_control_ops {
	bool (*peer_ok)(int fd);
	enum netpol_control (*read)(const char *line, size_t n);
	/* The answer: `e` is NULL when it worked. */
	void (*answer)(struct aqe_buf *ret, const char *digest, bool changed,
		       const struct aqe_err *e);
};

struct netpol_keeper_opts {
	const struct netpol_listen_fd *listen; /* owned from here on */
	size_t n_listen;
	int pidfd;                         /* the service ends when this process does; -1: none */
	struct netpol_live *live;          /* loaded; reloaded on SIGHUP */
	const char *agent_type, *agent_id; /* agent_id: or NULL */
	struct netpol_audit audit;         /* its close() is the caller's */
	struct netpol_supervise supervise;
	uid_t worker_id, dialer_id; /* 0: as we are */
	int state_dir;              /* where the limiter's state is kept; -1: nowhere */
	const char *state_name;     /* file in it */
	int ready_fd; /* gets one byte when the worker listens, then is closed; -1: none */
	/* Listening unix socket for operators, one line in, one out; -1: none. `control` judges the
	 * peer, answers `line` into `ret`, and says whether the policy is to be read anew first. */
	int control_fd;
	const struct netpol_control_ops *control;
	/* Programs beside the pair, by enum netpol_companion_role; `program` NULL: none of them. */
	const char *program;
	struct netpol_companion_each companions[NETPOL_COMPANION_COUNT];
	/* Called with what a person should see: an event or an error, one line. */
	void (*say)(void *self, const char *line);
	void *say_self;
};
enum netpol_keeper_end {
	NETPOL_ENDED_ASKED,     /* SIGTERM, SIGINT */
	NETPOL_ENDED_CONTAINER, /* the container's process ended */
	NETPOL_ENDED_CRASHED,   /* too many restarts: closed for good */
};
/* Runs until the end; the process must have no threads. Takes over SIGTERM, SIGINT, SIGHUP and
 * SIGCHLD. An error is one of starting. */
AQE_MUST_CHECK int netpol_keeper_run(const struct netpol_keeper_opts *o,
				     enum netpol_keeper_end *ret, struct aqe_err *e);

#endif
