/* SPDX-License-Identifier: MIT */
#include "cache/key.h"

#include "tests/unit/unit.h"

static struct cache_key make(const char *provider, const char *model, const char *revision,
			     const char *content)
{
	const struct cache_key_parts p = { .provider = provider,
					   .model = model,
					   .revision = revision,
					   .content = content,
					   .len = strlen(content) };
	struct cache_key k;

	cache_key_make(&p, &k);
	return k;
}

/* Pairs that careless ways of joining, cutting or folding the parts take for one. */
static const struct {
	const char *a[4], *b[4];
} PAIRS[] = {
	{ { "p", "ab", "", "cd" }, { "p", "ab-cd", "", "" } },
	{ { "p", "ab", "", "c" }, { "p", "a", "", "bc" } },
	{ { "p", "abc", "", "d" }, { "p", "ab", "", "cd" } },
	{ { "p", "m", "r", "c" }, { "p", "m", "", "rc" } },
	{ { "p", "m", "", "c" }, { "", "pm", "", "c" } },
	{ { "p", "m:c", "", "" }, { "p", "m", "", "c" } },
	{ { "p", "m", "", ":c" }, { "p", "m:", "", "c" } },
	{ { "p", "m", "1", "c" }, { "p", "m", "2", "c" } },
	{ { "p", "m", "", "c" }, { "q", "m", "", "c" } },
	{ { "p", "m", "", "msg-4246" }, { "p", "m", "", "msg-268273" } }, /* one 32-bit hash */
	{ { "p", "m", "", "c" }, { "p", "m", "", "c " } },
	{ { "p", "m", "", "c" }, { "p", "m", "", "C" } },
	{ { "p", "m", "", "c\n" }, { "p", "m", "", "c" } },
	{ { "p", "m", "", "\xc3\xa9" }, { "p", "m", "", "e\xcc\x81" } }, /* NFC, NFD */
	{ { "p", "m", "", "\xff\xfe" }, { "p", "m", "", "\xef\xbf\xbd" } },
	{ { "p", "m", "", "\xff" }, { "p", "m", "", "\xfe" } },
};

/* U44 */
START_TEST(key__is_injective)
{
	const char *const *a = PAIRS[_i].a, *const *b = PAIRS[_i].b;
	const struct cache_key x = make(a[0], a[1], a[2], a[3]), y = make(b[0], b[1], b[2], b[3]),
			       again = make(a[0], a[1], a[2], a[3]);

	ck_assert(!cache_key_equal(&x, &y));
	ck_assert(cache_key_equal(&x, &again));
}
END_TEST

START_TEST(key__counts_every_part)
{
	const struct cache_key_parts base = { NULL, "p", "m", "r", 768, true, "a\0b", 3 };
	struct cache_key_parts other[8] = { base, base, base, base, base, base, base, base };
	struct cache_key k, x, y;

	other[0].dimension = 0;
	other[1].dimension = 1536;
	other[2].normalised = false;
	other[3].content = "a\0c";
	other[4].len = 1; /* the bytes after a NUL count */
	other[5].revision = NULL;
	other[6].scope = "type:a"; /* the same text of another agent type */
	other[7].scope = "type:b";
	cache_key_make(&base, &k);
	for (size_t i = 0; i < 8; i++) {
		cache_key_make(&other[i], &x);
		ck_assert(!cache_key_equal(&k, &x));
		for (size_t j = 0; j < i; j++) {
			cache_key_make(&other[j], &y);
			ck_assert(!cache_key_equal(&x, &y));
		}
	}
}
END_TEST

START_TEST(key__takes_a_megabyte)
{
	char *text = malloc(1 << 20);
	struct cache_key_parts p = { .content = text, .len = 1 << 20 };
	struct cache_key a, b;

	memset(text, 'x', 1 << 20);
	cache_key_make(&p, &a);
	text[(1 << 20) - 1] = 'y';
	cache_key_make(&p, &b);
	ck_assert(!cache_key_equal(&a, &b));
	free(text);
}
END_TEST

/* Keys are on disk: this value must never change. Computed with Python's hashlib and struct. */
START_TEST(key__is_stable)
{
	struct cache_key_parts p = { NULL, "ollama", "nomic-embed-text", "r1", 768, true, "hi", 2 };
	struct cache_key k, back;
	char text[CACHE_KEY_TEXT];

	cache_key_make(&p, &k);
	cache_key_format(&k, text);
	ck_assert_str_eq(text, "5ca0e6265671273944f5aae4ce3e890da05fd757d4477e1e1d171c5925bcb839");
	ck_assert(cache_key_parse(text, &back) && cache_key_equal(&k, &back));
	p.scope = "type:a";
	cache_key_make(&p, &k);
	cache_key_format(&k, text);
	ck_assert_str_eq(text, "bafe41833f9e7e66424f2c6e8fc75961a4b16be9a198ff66ebbd104c4f7e3652");
}
END_TEST

START_TEST(key_parse__is_strict)
{
	static const char GOOD[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	struct cache_key k;
	char text[80];

	ck_assert(cache_key_parse(GOOD, &k));
	ck_assert(k.b[0] == 0x01 && k.b[31] == 0xef);
	ck_assert(!cache_key_parse(NULL, &k) && !cache_key_parse("", &k));
	ck_assert(!cache_key_parse(GOOD + 1, &k));
	memcpy(text, GOOD, sizeof(GOOD));
	text[10] = 'A';
	ck_assert(!cache_key_parse(text, &k));
	memcpy(text, GOOD, sizeof(GOOD));
	text[64] = '0';
	text[65] = '\0';
	ck_assert(!cache_key_parse(text, &k));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("key");
	TCase *t = tcase_create("key");

	tcase_add_loop_test(t, key__is_injective, 0, sizeof(PAIRS) / sizeof(PAIRS[0]));
	tcase_add_test(t, key__counts_every_part);
	tcase_add_test(t, key__takes_a_megabyte);
	tcase_add_test(t, key__is_stable);
	tcase_add_test(t, key_parse__is_strict);
	suite_add_tcase(s, t);
	return unit_run(s);
}
