/* SPDX-License-Identifier: MIT */
/* A driver of the supervisor that does as it is told: outcomes are scripted a call, calls are
 * recorded. */
#ifndef AQE_FAKES_FAKE_DRIVER_H
#define AQE_FAKES_FAKE_DRIVER_H

#include <string.h>

#include "shim/supervisor/driver.h"
#include "shim/supervisor/loop.h"

#define FAKE_CALLS_MAX 256

enum fake_verb { FAKE_START, FAKE_ALIVE, FAKE_STOP, FAKE_CANCEL, FAKE_CLOSE };

/* How a call ends: the answer after `after_ms` (-1: never), or `fault` (an aqe_code) at once. */
struct fake_outcome {
	enum shim_sup_event answer;
	int after_ms;
	int fault;
};
struct fake_call {
	enum fake_verb verb;
	uint64_t token;
	int64_t at_ms;
};

struct fake_driver {
	struct shim_loop *loop;
	struct shim_sup_sink sink;
	/* A script a verb; the last entry is repeated. */
	const struct fake_outcome *script[FAKE_CANCEL];
	size_t len[FAKE_CANCEL], pos[FAKE_CANCEL];
	struct fake_call calls[FAKE_CALLS_MAX];
	size_t n_calls;
	struct shim_loop_timer timer;
	enum shim_sup_event pending;
	uint64_t pending_token;
	uint64_t instance; /* token of the latest start */
};

static inline void fake_record(struct fake_driver *f, enum fake_verb verb, uint64_t token)
{
	if (f->n_calls < FAKE_CALLS_MAX)
		f->calls[f->n_calls++] =
			(struct fake_call){ verb, token, shim_loop_now_ms(f->loop) };
}

static inline size_t fake_count(const struct fake_driver *f, enum fake_verb verb)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_calls; i++)
		n += f->calls[i].verb == verb;
	return n;
}

static inline void fake_answer(void *arg)
{
	struct fake_driver *f = arg;

	f->sink.tell(f->sink.arg, f->pending, f->pending_token);
}

static inline int fake_do(struct fake_driver *f, enum fake_verb verb, uint64_t token,
			  struct aqe_err *e)
{
	const struct fake_outcome *o = &f->script[verb][f->pos[verb]];

	fake_record(f, verb, token);
	if (f->pos[verb] + 1 < f->len[verb])
		f->pos[verb]++;
	if (o->fault)
		return aqe_err_set(e, (enum aqe_code)o->fault, 0, "scripted");
	if (o->after_ms < 0)
		return AQE_OK;
	f->pending = o->answer;
	f->pending_token = token;
	if (o->after_ms == 0)
		fake_answer(f);
	else
		shim_loop_arm(f->loop, &f->timer, (uint32_t)o->after_ms);
	return AQE_OK;
}

static inline void fake_attach(void *self, const struct shim_sup_sink *sink)
{
	struct fake_driver *f = self;

	f->sink = *sink;
	f->timer = (struct shim_loop_timer){ .fn = fake_answer, .arg = f };
}
static inline int fake_start(void *self, uint64_t token, struct aqe_err *e)
{
	struct fake_driver *f = self;

	f->instance = token;
	return fake_do(f, FAKE_START, token, e);
}
static inline int fake_alive(void *self, uint64_t token, struct aqe_err *e)
{
	return fake_do(self, FAKE_ALIVE, token, e);
}
static inline int fake_stop(void *self, uint64_t token, struct aqe_err *e)
{
	return fake_do(self, FAKE_STOP, token, e);
}
static inline void fake_cancel(void *self, uint64_t token)
{
	fake_record(self, FAKE_CANCEL, token); /* the answer comes nevertheless: late */
}
static inline void fake_close(void *self)
{
	struct fake_driver *f = self;

	fake_record(f, FAKE_CLOSE, 0);
	shim_loop_disarm(f->loop, &f->timer);
}

static const struct shim_sup_driver_ops FAKE_OPS = {
	.name = "fake",
	.attach = fake_attach,
	.start = fake_start,
	.alive = fake_alive,
	.stop = fake_stop,
	.cancel = fake_cancel,
	.close = fake_close,
};

#endif
