/* SPDX-License-Identifier: MIT */
/* The rewrite on real documents of engines and on the corpus. */
#include <dirent.h>
#include <stdlib.h>

#include "tests/unit/rewrite_util.h"

#define SAMPLES "tests/samples/"
#define SPECS   "tests/corpus/spec/"

/* What a start of each sample is refused for. `as_is`: a root engine as far as anybody knows, and
 * the samples' image has a VOLUME. `rootless`: the engine's info says rootless, and the image has
 * no VOLUME; "" is accepted. Reviewed by hand. */
static const struct {
	const char *file, *as_is, *rootless;
} SAMPLE[] = {
	/* buildah's files belong to a build directory, not to a container */
	{ "buildah-run.json", "rootless mounts", "mounts" },
	/* CRI keeps its files among containerd's sockets; its images are not identified yet */
	{ "containerd-cri-privileged-container.json", "privileged rootless engine_socket devices",
	  "privileged engine_socket devices" },
	{ "containerd-cri-privileged-sandbox.json",
	  "rootless network mounts engine_socket namespaces",
	  "network mounts engine_socket namespaces" },
	{ "containerd-ctr-nethost.json", "rootless network mounts", "network mounts" },
	{ "containerd-ctr-priv.json", "privileged rootless devices", "privileged devices" },
	/* its id, c1, and its bundle are on the command line only: see ctr__starts_with_its_id */
	{ "containerd-ctr-run.json", "rootless",
	  "readonly_rootfs pids_limit memory_limit cpu_limit" },
	{ "docker-bind.json", "rootless mounts", "mounts" }, /* /ws2 */
	{ "docker-bridge.json", "rootless mounts", "" },
	{ "docker-capadd.json", "rootless capabilities mounts", "capabilities" },
	{ "docker-crun-default.json", "rootless mounts", "" },
	{ "docker-dockersock.json", "rootless mounts engine_socket", "engine_socket" },
	{ "docker-hardened-digest.json", "rootless mounts", "" },
	{ "docker-health.json", "rootless mounts", "" },
	{ "docker-hostnet.json", "rootless network mounts", "network" },
	{ "docker-init.json", "rootless mounts", "" },
	{ "docker-namedvol.json", "rootless mounts", "" },
	/* the other container's /etc/hosts comes along */
	{ "docker-netcontainer.json", "rootless mounts", "mounts" },
	{ "docker-netnone.json", "rootless mounts", "" },
	{ "docker-privileged.json", "privileged rootless mounts devices", "privileged devices" },
	{ "docker-restart.json", "rootless mounts", "" },
	{ "docker-sysctl.json", "rootless mounts", "" },
	{ "docker-tmpfsopt.json", "rootless mounts", "" },
	{ "docker-tty.json", "rootless", "" },
	{ "docker-user.json", "rootless mounts", "" },
	/* only a "hooks" object: no document of a container */
	{ "hooks-in-config-podman.json", "unknown_field missing_field",
	  "unknown_field missing_field" },
	{ "podman-bind.json", "rootless mounts", "mounts" },
	{ "podman-default.json", "rootless mounts", "" },
	{ "podman-device.json", "rootless mounts devices", "devices" },
	{ "podman-hardened-digest.json", "rootless mounts", "" },
	{ "podman-hardened-user.json", "rootless mounts", "" },
	{ "podman-hardened.json", "rootless mounts", "" },
	{ "podman-imagemount.json", "rootless mounts", "mounts" },
	/* run.oci.keep_original_groups */
	{ "podman-labels.json", "rootless mounts annotations", "annotations" },
	{ "podman-netcontainer.json", "rootless mounts", "" },
	{ "podman-nomounts.json", "rootless mounts", "" },
	{ "podman-pidcontainer.json", "rootless mounts", "" },
	{ "podman-pod.json", "rootless mounts", "" },
	{ "podman-podinfra.json", "rootless", "" },
	{ "podman-podmansock.json", "rootless mounts engine_socket", "engine_socket" },
	{ "podman-privileged.json", "privileged rootless mounts devices annotations",
	  "privileged devices annotations" },
	{ "podman-restart.json", "rootless mounts", "" },
	{ "podman-rootless-bridge.json", "rootless mounts", "" },
	{ "podman-rootless-default.json", "rootless mounts", "" },
	/* rootless devices are binds with slave propagation */
	{ "podman-rootless-device.json", "rootless mounts propagation", "mounts propagation" },
	{ "podman-rootless-hardened.json", "rootless mounts", "" },
	{ "podman-rootless-hostnet.json", "rootless network mounts", "network mounts" },
	{ "podman-rootless-keepid-none.json", "mounts", "" },
	{ "podman-rootless-keepid-slirp.json", "mounts", "" },
	{ "podman-rootless-netcontainer.json", "rootless mounts", "" },
	{ "podman-rootless-pod1.json", "rootless mounts", "" },
	{ "podman-rootless-privileged.json", "privileged rootless mounts propagation annotations",
	  "privileged mounts propagation annotations" },
	{ "podman-rootless-slirp.json", "rootless mounts", "" },
	{ "podman-rootless-slirphost.json", "rootless mounts", "" },
	{ "podman-rootless-sock.json", "rootless mounts engine_socket", "engine_socket" },
	{ "podman-runc-default.json", "rootless mounts", "" },
	{ "podman-runc-hardened.json", "rootless mounts", "" },
	/* the asked filter does not matter: ours replaces it */
	{ "podman-seccomp-unconfined.json", "rootless mounts", "" },
	{ "podman-secret.json", "rootless mounts", "" },
	{ "podman-sysctl.json", "rootless mounts", "" },
	{ "podman-tmpfsopt.json", "rootless mounts", "" },
	{ "podman-tty.json", "rootless", "" },
	{ "podman-user.json", "rootless mounts", "" },
	{ "podman-userns-bridge.json", "mounts", "" },
	{ "podman-userns.json", "mounts", "" },
};

static const char *path_of(const char *dir, const char *file)
{
	return aqe_arena_fmt(arena, "%s%s", dir, file);
}

static void drop_volumes(struct aqe_json *doc)
{
	struct aqe_json *mounts = aqe_json_get(doc, "mounts");

	for (struct aqe_json *m = mounts ? mounts->first : NULL, *next; m; m = next) {
		const char *source = aqe_json_str(aqe_json_get(m, "source"));

		next = m->next;
		if (source && aqe_ends(source, "/_data"))
			aqe_json_detach(m);
	}
}

static void check_sample(const char *file, const struct aqe_json *doc, const char *want)
{
	struct aqe_json *result = NULL;

	hard_report_init(&report, arena);
	ck_assert_ok(hard_rewrite(&ctx, arena, doc, &report, &result, &err), err);
	ck_assert_msg(aqe_str_eq(rw_failed(&report), want), "%s: refused for '%s', want '%s'", file,
		      rw_failed(&report), want);
	ck_assert_msg((result != NULL) == (*want == '\0'), "%s: result and report disagree", file);
	if (result)
		rw_check_result(file, result);
}

START_TEST(rewrite__gives_each_sample_its_reviewed_verdict)
{
	const char *file = SAMPLE[_i].file;
	struct aqe_json *doc = rw_parse_file(path_of(SAMPLES, file));

	check_sample(file, doc, SAMPLE[_i].as_is);
	ctx.info_rootless = true;
	drop_volumes(doc);
	check_sample(file, doc, SAMPLE[_i].rootless);
}
END_TEST

START_TEST(samples__are_all_in_the_table)
{
	DIR *d = opendir(SAMPLES);
	size_t n = 0;

	ck_assert_ptr_nonnull(d);
	for (const struct dirent *entry = readdir(d); entry; entry = readdir(d))
		n += aqe_ends(entry->d_name, ".json");
	(void)closedir(d);
	ck_assert_uint_eq(n, AQE_COUNT(SAMPLE));
}
END_TEST

/* What ctr says on the command line makes the document whole. */
START_TEST(ctr__starts_with_its_id)
{
	struct aqe_json *doc = rw_parse_file(SAMPLES "containerd-ctr-run.json");

	ctx.info_rootless = true;
	ctx.container_id = "c1";
	ctx.bundle = "/run/containerd/io.containerd.runtime.v2.task/default/c1";
	check_sample("containerd-ctr-run.json", doc, "");
}
END_TEST

/* ---- the corpus ---- */

/* Every file of the corpus: what conforms is accepted, and what is accepted verifies. A refusal
 * names something. */
START_TEST(rewrite__holds_its_promise_on_the_corpus)
{
	DIR *d = opendir(SPECS);
	size_t accepted = 0, refused = 0;

	ck_assert_ptr_nonnull(d);
	for (const struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
		const char *name = entry->d_name;
		struct aqe_json *result = NULL;

		if (!aqe_ends(name, ".json"))
			continue;
		hard_report_init(&report, arena);
		ck_assert_ok(hard_rewrite(&ctx, arena, rw_parse_file(path_of(SPECS, name)), &report,
					  &result, &err),
			     err);
		ck_assert_msg(result || hard_report_worst(&report), "%s: refused in silence", name);
		ck_assert_msg(result || !aqe_starts(name, "ok-"), "%s: refused for %s", name,
			      rw_failed(&report));
		if (result) {
			rw_check_result(name, result);
			accepted++;
		} else {
			refused++;
		}
		aqe_arena_free(arena);
		arena = aqe_arena_new(RW_ARENA_MAX);
	}
	(void)closedir(d);
	ck_assert_uint_ge(accepted, 100);
	ck_assert_uint_ge(refused, 150);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_rewrite_samples");
	TCase *t = tcase_create("samples");

	tcase_add_checked_fixture(t, rw_setup, rw_teardown);
	tcase_set_timeout(t, 60); /* whole folders, also under sanitizers */
	tcase_add_loop_test(t, rewrite__gives_each_sample_its_reviewed_verdict, 0,
			    (int)AQE_COUNT(SAMPLE));
	tcase_add_test(t, samples__are_all_in_the_table);
	tcase_add_test(t, ctr__starts_with_its_id);
	tcase_add_test(t, rewrite__holds_its_promise_on_the_corpus);
	suite_add_tcase(s, t);
	return unit_run(s);
}
