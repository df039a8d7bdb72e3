/* SPDX-License-Identifier: MIT */
/* Any words parse or are refused; what is passed on holds nothing that is refused. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "shim/argv.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_words(char **words)
{
	static const char *const never[] = { "--no-pivot",     "--no-new-keyring", "--config",
					     "--preserve-fds", "--cgroup",         "--bundle",
					     "--cap" };

	for (size_t i = 1; words && words[i] && words[i + 1]; i++) {
		for (size_t k = 0; k < AQE_COUNT(never); k++)
			assert(!aqe_str_eq(words[i], never[k]));
	}
}

/* Words are separated by NUL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[1024], *argv[66] = { text };
	const char *path, *format;
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_argv v;
	int argc = 0;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t at = 0; at < size && argc < 64; at += strlen(text + at) + 1)
		argv[argc++] = text + at;
	argv[argc] = NULL;
	shim_argv_find_log(argc, argv, &path, &format);
	if (shim_argv_parse(a, argc, argv, &v, &e) < 0) {
		assert(e.code == AQE_E_USAGE || e.code == AQE_E_REFUSED);
		return 0;
	}
	assert(v.verb < SHIM_VERB_COUNT);
	if (SHIM_VERBS[v.verb].strict && !v.help)
		check_words(shim_argv_canonical(a, &v, "P", NULL));
	return 0;
}
