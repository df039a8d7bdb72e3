/* SPDX-License-Identifier: MIT */
#include "shim/supervisor/supervisor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/supervisor/store.h"

/* Events that wait while a step is under way: a driver may answer from inside its call. More than
 * these are dropped, as a hung driver's are: the deadline of the call finds out. */
#define QUEUE_MAX 16

struct queued {
	enum shim_sup_event event;
	uint64_t token;
};

struct shim_supervisor {
	struct shim_supervisor_opts o;
	char id[SHIM_STORE_ID_MAX + 1];
	int lock_fd;
	struct shim_sup_driver driver;
	struct shim_sup m;
	struct shim_loop_timer timer;
	struct queued queue[QUEUE_MAX];
	size_t n_queued;
	bool busy;
	bool unsaved; /* the count could not be written: no start */
	struct aqe_err last;
};

static uint64_t kernel_random(void *arg)
{
	uint64_t r = 0;

	(void)arg;
	/* small and from the initialised pool: it neither blocks nor fails; 0 would only mean no
	 * delay in a window that is bounded anyway */
	(void)!getrandom(&r, sizeof(r), 0);
	return r;
}

/* ---- actions ---- */

static void push(struct shim_supervisor *s, enum shim_sup_event event, uint64_t token)
{
	if (s->n_queued < QUEUE_MAX)
		s->queue[s->n_queued++] = (struct queued){ event, token };
}

static void save(struct shim_supervisor *s)
{
	struct shim_sup_saved saved;

	s->unsaved = false;
	if (s->o.store_fd < 0)
		return;
	shim_sup_save(&s->m, &saved);
	s->unsaved = shim_store_save(s->o.store_fd, s->id, &saved, &s->last) < 0;
}

static void do_start(struct shim_supervisor *s, uint64_t token)
{
	int rc;

	/* an attempt that is not on disk could be made for ever */
	if (s->unsaved) {
		push(s, SHIM_SUP_START_FAILED, token);
		return;
	}
	s->last = (struct aqe_err)AQE_ERR_INIT;
	rc = s->driver.ops->start(s->driver.self, token, &s->last);
	if (rc < 0)
		push(s, rc == AQE_E_REFUSED ? SHIM_SUP_START_REFUSED : SHIM_SUP_START_FAILED,
		     token);
}

static void do_action(struct shim_supervisor *s, const struct shim_sup_action *a)
{
	const struct shim_sup_driver *d = &s->driver;

	switch (a->kind) {
	case SHIM_SUP_DO_SAVE:
		save(s);
		return;
	case SHIM_SUP_DO_START:
		do_start(s, a->token);
		return;
	case SHIM_SUP_DO_ALIVE:
		if (d->ops->alive(d->self, a->token, &s->last) < 0)
			push(s, SHIM_SUP_PROBE_FAILED, a->token);
		return;
	case SHIM_SUP_DO_STOP:
		if (d->ops->stop(d->self, a->token, &s->last) < 0)
			push(s, SHIM_SUP_STOP_FAILED, a->token);
		return;
	case SHIM_SUP_DO_CANCEL:
		d->ops->cancel(d->self, a->token);
		return;
	case SHIM_SUP_DO_ARM:
		shim_loop_arm(s->o.loop, &s->timer, a->delay_ms);
		return;
	case SHIM_SUP_DO_DISARM:
		shim_loop_disarm(s->o.loop, &s->timer);
		return;
	case SHIM_SUP_DO_REPORT:
		if (s->o.tell)
			s->o.tell(s->o.arg, a, s->last.text);
		return;
	}
}

static void step(struct shim_supervisor *s, const struct queued *q)
{
	struct shim_sup_out out;
	struct shim_sup_in in = { .event = q->event,
				  .token = q->token,
				  .now_ms = shim_loop_now_ms(s->o.loop),
				  .random = s->o.random(s->o.arg) };

	shim_sup_step(&s->m, &in, &out);
	for (size_t i = 0; i < out.n; i++)
		do_action(s, &out.a[i]);
}

/* Takes one event, and those that come of it. */
static void take(struct shim_supervisor *s, enum shim_sup_event event, uint64_t token)
{
	push(s, event, token);
	if (s->busy)
		return;
	s->busy = true;
	while (s->n_queued > 0) {
		struct queued q = s->queue[0];

		s->n_queued--;
		memmove(s->queue, s->queue + 1, s->n_queued * sizeof(q));
		step(s, &q);
	}
	s->busy = false;
}

static void on_driver(void *arg, enum shim_sup_event event, uint64_t token)
{
	take(arg, event, token);
}

static void on_timer(void *arg)
{
	take(arg, SHIM_SUP_TIMER, 0);
}

/* ---- public ---- */

static int open_store(struct shim_supervisor *s, const char *id, struct shim_sup_saved *saved,
		      struct aqe_err *e)
{
	int rc;

	if (s->o.store_fd < 0)
		return AQE_OK;
	if (!id || !shim_store_id_ok(id))
		return aqe_err_set(e, AQE_E_USAGE, 0, "bad id '%.140s'", id ? id : "");
	(void)snprintf(s->id, sizeof(s->id), "%s", id);
	rc = shim_store_lock(s->o.store_fd, id, &s->lock_fd, e);
	return rc < 0 ? rc : shim_store_load(s->o.store_fd, id, saved, NULL, e);
}

int shim_supervisor_new(const struct shim_supervisor_opts *o, struct shim_sup_driver driver,
			struct shim_supervisor **ret, struct aqe_err *e)
{
	static const struct shim_sup_sink EMPTY_SINK = { on_driver, NULL };
	struct shim_sup_sink sink = EMPTY_SINK;
	struct shim_sup_saved saved = { 0, SHIM_SUP_HOLD_NONE, false, 0 };
	struct shim_supervisor *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		driver.ops->close(driver.self);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a supervisor");
	}
	s->o = *o;
	s->driver = driver;
	s->lock_fd = -1;
	s->timer = (struct shim_loop_timer){ .fn = on_timer, .arg = s };
	if (!s->o.random)
		s->o.random = kernel_random;
	rc = open_store(s, o->id, &saved, e);
	if (rc < 0) {
		shim_supervisor_free(s);
		return rc;
	}
	shim_sup_init(&s->m, o->cfg ? o->cfg : &SHIM_SUP_CONFIG_DEFAULT, &saved,
		      shim_loop_now_ms(o->loop));
	sink.arg = s;
	driver.ops->attach(driver.self, &sink);
	*ret = s;
	return AQE_OK;
}

void shim_supervisor_free(struct shim_supervisor *s)
{
	if (!s)
		return;
	shim_loop_disarm(s->o.loop, &s->timer);
	s->driver.ops->close(s->driver.self);
	aqe_cleanup_fd(&s->lock_fd);
	free(s);
}

void shim_supervisor_want(struct shim_supervisor *s, enum shim_sup_event wish)
{
	take(s, wish, 0);
}

const struct shim_sup *shim_supervisor_machine(const struct shim_supervisor *s)
{
	return &s->m;
}
