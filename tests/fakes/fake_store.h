/* SPDX-License-Identifier: MIT */
/* A store for tests: keeps everything in a list, counts calls, fails on request. */
#ifndef AQE_FAKES_FAKE_STORE_H
#define AQE_FAKES_FAKE_STORE_H

#include "cache/store.h"

enum fake_store_call {
	FAKE_INIT,
	FAKE_GET,
	FAKE_HAS,
	FAKE_SET,
	FAKE_DEL,
	FAKE_CLEAR,
	FAKE_SIZE,
	FAKE_KEYS,
	FAKE_PRUNE,
	FAKE_HEALTHY,
	FAKE_CALLS
};
struct fake_store;

/* The store, and the handle to look into it; valid until cache_store_close(). */
struct fake_store *fake_store_new(struct cache_store *ret);
/* Calls so far, the failed ones too. */
unsigned fake_store_calls(const struct fake_store *f, enum fake_store_call call);
/* From now on every call fails with `code`; 0 = they work again. */
void fake_store_fail(struct fake_store *f, int code);
/* Only calls of this kind fail. */
void fake_store_fail_one(struct fake_store *f, enum fake_store_call call, int code);
/* Flips a bit of the stored bytes; false when the key is not there. */
bool fake_store_damage(struct fake_store *f, const struct cache_key *k, size_t offset);

#endif
