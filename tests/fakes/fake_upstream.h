/* SPDX-License-Identifier: MIT */
/* An upstream of the gateway in this process: answers Ollama's and OpenAI's API with numbers that
 * are made from the text, counts, fails and is slow on request. */
#ifndef AQE_FAKES_FAKE_UPSTREAM_H
#define AQE_FAKES_FAKE_UPSTREAM_H

#include <pthread.h>

#include "cache/upstream.h"

#define FAKE_UPSTREAM_LOG 64

struct fake_upstream {
	struct cache_upstream port;
	struct cache_gate gate;
	pthread_mutex_t lock;
	unsigned dim;
	unsigned delay_ms;
	const char *digest; /* of the model "m" in /api/tags; NULL: there is none */
	/* what the next requests get instead: a status, or a negative code; 0 ends the list */
	int plan[FAKE_UPSTREAM_LOG];
	unsigned planned;
	int64_t retry_after_s;
	const char *body; /* instead of the right answer; NULL = the right one */
	/* what happened */
	unsigned calls, tags, texts; /* questions, lists of models, texts in all questions */
	unsigned batch[FAKE_UPSTREAM_LOG];
	char last_path[32];
	/* the policy */
	int refuse_status; /* 0: may fetch */
	const char *refuse_words;
	unsigned asked, told;
	int told_status;
};

void fake_upstream_init(struct fake_upstream *u, unsigned dim);
/* The i-th number that it makes of a text. */
float fake_upstream_number(const char *text, size_t i);

#endif
