# SPDX-License-Identifier: MIT
# aqe-shim. `make` builds build/release/aqe-shim and aqe; `make help` lists the rest.
# One non-recursive makefile; output only below build/<mode>/.

MODE    ?= release
B       := build/$(MODE)
CC      := gcc
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
DESTDIR ?=
WERROR  ?= 0
FUZZ_TIME ?= 30
JOBS    ?= $(shell nproc)

MODULES := shim/core oci hardening netpolicy netpolicy/egress cache audit hooks shim/aqe shim/supervisor shim/sandbox
LIB_SRC := $(sort $(foreach m,$(MODULES),$(wildcard $(m)/*.c)) $(filter-out shim/main_%.c,$(wildcard shim/*.c)))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
MAINS   := $(sort $(patsubst shim/main_%.c,%,$(wildcard shim/main_*.c)))
BINS    := $(foreach m,$(MAINS),$(B)/$(if $(filter aqe,$(m)),aqe,aqe-$(m)))
UNIT    := $(sort $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c)))
FUZZERS := $(sort $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c)))
BENCHES := $(sort $(patsubst tests/bench/%.c,%,$(wildcard tests/bench/bench_*.c)))

ifeq ($(MODE),fuzz)
CC := clang
endif
is_clang := $(findstring clang,$(CC))

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wwrite-strings -Wundef -Wcast-qual -Wpointer-arith -Wvla -Wconversion \
	-Wsign-conversion -Wswitch-enum -Wnull-dereference -Wdouble-promotion -Wdate-time \
	-Wredundant-decls -Wframe-larger-than=16384
ifeq ($(is_clang),)
WARN += -Wformat-signedness -Wformat-truncation=1 -Wformat-overflow=2 -Wlogical-op -Wduplicated-cond \
	-Wduplicated-branches -Wimplicit-fallthrough=5 -Wcast-align=strict -Wjump-misses-init \
	-Wbidi-chars=any -Wuse-after-free=3
else
WARN += -Wno-gnu-statement-expression
endif
ifeq ($(WERROR),1)
WARN += -Werror
endif

BASE   := -std=gnu11 -D_GNU_SOURCE -I. -g
HARDEN := -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection \
	-fPIE -fno-common -fvisibility=hidden -fno-strict-aliasing -fno-strict-overflow \
	-fno-delete-null-pointer-checks
ifeq ($(shell uname -m),x86_64)
HARDEN += -fcf-protection=full
endif
ifeq ($(is_clang),)
HARDEN += -ftrivial-auto-var-init=zero -fzero-call-used-regs=used-gpr
endif
SECURE_LINK := -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code -Wl,--as-needed,--no-undefined,--fatal-warnings

# The runtime is linked statically: an engine's LD_LIBRARY_PATH or working directory cannot change
# what it loads, and a start does not pay for the dynamic linker.
SHIM_LIBS := -lyajl_s -lseccomp -lcap -lmd -lsodium -lsqlite3 -lm -lpthread
DYN_LIBS  := -lyajl -lseccomp -lcap -lmd -lsodium -lsqlite3 -lm -lpthread
# aqe, and the tests of its parts; the linker leaves out what a program does not use. libcurl,
# libarchive and libssl are loaded by need (shim/core/lazy.h).
AQE_LIBS  := $(DYN_LIBS) -lhiredis
# Tests make archives.
TEST_LIBS := $(AQE_LIBS) -larchive

san_flags := -O1 -fno-omit-frame-pointer
ifeq ($(MODE),release)
MODE_CFLAGS := $(HARDEN)
SHIM_LINK   := -static-pie $(SECURE_LINK) -Wl,-z,pack-relative-relocs
ifeq ($(shell uname -m),x86_64)
ENTRY_LINK  := -Wl,-u,shim_entry,-e,shim_entry
# Runs before libc has started (shim/early.h): the compiler may rely on nothing of it.
EARLY       := -ffreestanding -fno-stack-protector -U_FORTIFY_SOURCE -mgeneral-regs-only -fno-jump-tables
ifeq ($(is_clang),)
EARLY += -fno-tree-loop-distribute-patterns -ftrivial-auto-var-init=uninitialized
endif
endif
# shim/no_dl.h: nothing is loaded into the runtime, whatever a library would like to.
NO_DL       := $(foreach f,dlopen dlsym dlclose dlerror,-Wl,--wrap=$(f) -Wl,--defsym=__wrap_$(f)=shim_no_$(f))
TEST_LINK   := -pie $(SECURE_LINK)
else ifeq ($(MODE),debug)
MODE_CFLAGS := -O0 -fPIE
SHIM_LINK   := -pie
TEST_LINK   := -pie
SHIM_LIBS   := $(DYN_LIBS)
else ifeq ($(MODE),valgrind)
MODE_CFLAGS := -O1 -fPIE
SHIM_LINK   := -pie
TEST_LINK   := -pie -Wl,--wrap=syscall
SHIM_LIBS   := $(DYN_LIBS)
else ifeq ($(MODE),asan)
MODE_CFLAGS := $(san_flags) -fsanitize=address,undefined -fno-sanitize-recover=undefined
SHIM_LINK   := -fsanitize=address,undefined
TEST_LINK   := $(SHIM_LINK)
SHIM_LIBS   := $(DYN_LIBS)
else ifeq ($(MODE),cov)
MODE_CFLAGS := -O0 --coverage
SHIM_LINK   := --coverage
TEST_LINK   := --coverage
SHIM_LIBS   := $(DYN_LIBS)
else ifeq ($(MODE),fuzz)
MODE_CFLAGS := $(san_flags) -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined
SHIM_LINK   := -fsanitize=address,undefined
TEST_LINK   := $(SHIM_LINK)
SHIM_LIBS   := $(DYN_LIBS)
else
$(error unknown MODE '$(MODE)': release debug asan valgrind cov fuzz)
endif

ALL_CFLAGS = $(BASE) $(WARN) $(MODE_CFLAGS) $(CPPFLAGS) $(CFLAGS)

.PHONY: all help check check-asan check-valgrind fuzz fuzz-replay bench lint analyze coverage compdb \
	golden install uninstall clean demo test setup unit-programs fuzz-programs bench-programs FORCE
## all (default):             build/release/aqe-shim, build/release/aqe
all: $(BINS)

help:
	@sed -n 's/^## //p' Makefile

## demo:                      install what is missing, build, show the main job (as root)
demo:
	@tests/setup/install.sh --for demo
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@tests/demo/demo.sh

## test:                      install what is missing, build, run everything (as root)
test:
	@tests/run.sh

setup:
	@tests/setup/install.sh

# A change of compiler or flags rebuilds; turning warnings into errors does not.
stamp = $(CC) $(filter-out -Werror,$(ALL_CFLAGS)) $(SHIM_LINK) $(LDFLAGS)
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(stamp)' | cmp -s - $@ || printf '%s\n' '$(stamp)' > $@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/libaqe.a: $(LIB_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcsD $@ $(LIB_OBJ)

$(B)/shim/early.o $(B)/shim/entry.o: private MODE_CFLAGS += $(EARLY)

$(B)/aqe-shim: $(B)/shim/main_shim.o $(B)/libaqe.a
	$(CC) $(ALL_CFLAGS) $(SHIM_LINK) $(ENTRY_LINK) $(NO_DL) -o $@ $^ $(SHIM_LIBS) $(LDFLAGS)

$(B)/unit/%: $(B)/tests/unit/%.o $(B)/libaqe.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LINK) $(TEST_WRAP) -o $@ $^ -lcheck -lsubunit -lm -lrt -lpthread $(TEST_LIBS) $(LDFLAGS)

$(B)/aqe: $(B)/shim/main_aqe.o $(B)/libaqe.a
	$(CC) $(ALL_CFLAGS) $(TEST_LINK) -o $@ $^ $(AQE_LIBS) $(LDFLAGS)

# Stays for a container's whole life.
$(B)/aqe-egress: $(B)/shim/main_egress.o $(B)/libaqe.a
	$(CC) $(ALL_CFLAGS) $(TEST_LINK) -o $@ $^ $(DYN_LIBS) -l:libhiredis.a $(LDFLAGS)

# A unit test that includes this header can make the n-th allocation fail.
FAULT_TESTS := $(patsubst tests/unit/%.c,$(B)/unit/%,$(shell grep -sl 'tests/fakes/fake_alloc\.h' tests/unit/*.c))
$(FAULT_TESTS): $(B)/tests/fakes/fake_alloc.o
$(FAULT_TESTS): private TEST_WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

# This one switches the processor's own SHA-256 off.
$(B)/unit/test_core_sha256: private TEST_WRAP := -Wl,--wrap=aqe_sha256_ni_usable

ifeq ($(MODE),valgrind)
$(UNIT:%=$(B)/unit/%): $(B)/tests/fakes/valgrind_openat2.o
endif

# Events of this one do not go to the machine's audit log.
$(B)/unit/test_sandbox_monitor: private TEST_WRAP := -Wl,--wrap=shim_audit_at,--wrap=malloc,--wrap=calloc,--wrap=realloc

# One that includes the header of a fake gets the fake.
uses = $(patsubst tests/unit/%.c,$(B)/unit/%,$(shell grep -sl 'tests/fakes/$(1)\.h' tests/unit/*.c))
$(call uses,fake_peer): $(B)/tests/fakes/fake_peer.o
$(call uses,fake_store): $(B)/tests/fakes/fake_store.o
$(call uses,real_redis): $(B)/tests/fakes/real_redis.o
$(call uses,fake_upstream): $(B)/tests/fakes/fake_upstream.o

$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/libaqe.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $^ $(TEST_LIBS) $(LDFLAGS)

# Programs that tests run inside containers: linked as the runtime is, so that they need nothing there.
$(B)/tools/%: $(B)/tests/tools/%.o $(B)/libaqe.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(SHIM_LINK) -o $@ $^ $(SHIM_LIBS) $(LDFLAGS)

# These run beside aqe, not in a container.
$(B)/tools/audit_add $(B)/tools/audit_crash: private SHIM_LINK := $(TEST_LINK)
$(B)/tools/audit_add $(B)/tools/audit_crash: private SHIM_LIBS := $(AQE_LIBS)

$(B)/bench/%: $(B)/tests/bench/%.o $(B)/libaqe.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LINK) -o $@ $^ $(AQE_LIBS) $(LDFLAGS)

$(B)/bench/bench_cache: $(B)/tests/fakes/real_redis.o $(B)/tests/fakes/fake_upstream.o

.SECONDARY: $(UNIT:%=$(B)/tests/unit/%.o) $(FUZZERS:%=$(B)/tests/fuzz/%.o) $(BENCHES:%=$(B)/tests/bench/%.o)
unit-programs: $(UNIT:%=$(B)/unit/%)
fuzz-programs: $(FUZZERS:%=$(B)/fuzz/%)
bench-programs: $(BENCHES:%=$(B)/bench/%)

## check:                     unit tests (MODE=asan for sanitizers)
check: $(UNIT:%=$(B)/unit/%)
	@tests/run_unit.sh $^

## golden:                    write tests/golden anew after a wanted change of a format
golden: $(B)/unit/test_shim_cmd_verify $(B)/unit/test_shim_audit_formats
	@for t in $^; do AQE_GOLDEN_UPDATE=1 $$t; done

## check-asan:                unit tests under address and undefined-behaviour sanitizers
check-asan:
	@$(MAKE) --no-print-directory MODE=asan check

## check-valgrind:            unit tests under valgrind
check-valgrind:
	@$(MAKE) --no-print-directory MODE=valgrind unit-programs
	@tests/run_unit.sh --valgrind $(UNIT:%=build/valgrind/unit/%)

## fuzz:                      explore with every fuzz target, FUZZ_TIME=30 seconds each
fuzz:
	@$(MAKE) --no-print-directory -s MODE=fuzz fuzz-programs
	@tests/run_fuzz.sh --time $(FUZZ_TIME) $(FUZZERS:%=build/fuzz/fuzz/%)

## fuzz-replay:               run every fuzz target over its stored corpus
fuzz-replay:
	@$(MAKE) --no-print-directory -s MODE=fuzz fuzz-programs
	@tests/run_fuzz.sh $(FUZZERS:%=build/fuzz/fuzz/%)

## bench:                     aqe-shim paired with bare crun and runc, against the budgets (as root)
bench: all bench-programs
	@tests/bench/run.sh

## lint:                      layers, headers, symbols, banned functions, sizes, format, spelling, shell
lint: $(B)/libaqe.a
	@tests/lint/lint.sh $(B)

## analyze:                   gcc -fanalyzer, clang-tidy, cppcheck
analyze:
	@tests/lint/analyze.sh

## coverage:                  unit test coverage, a line a file
coverage:
	@$(MAKE) --no-print-directory -s MODE=cov unit-programs
	@tests/run_coverage.sh

## compdb:                    compile_commands.json for editors and clang-tidy
compdb:
	@{ printf '[\n'; sep=; for f in $(LIB_SRC) $(wildcard shim/main_*.c tests/unit/*.c tests/fuzz/*.c tests/bench/*.c); do \
		printf '%s{"directory":"%s","file":"%s","command":"%s"}' "$$sep" '$(CURDIR)' "$$f" \
			'$(CC) $(ALL_CFLAGS) -c '"$$f"; sep=$$(printf ',\n.'); sep=$${sep%.}; \
	done; printf '\n]\n'; } > compile_commands.json

## install, uninstall:        PREFIX=/usr/local DESTDIR= ; uninstall stops if containers need it, unless FORCE=1
install: all
	install -d '$(DESTDIR)$(BINDIR)'
	install -m 755 $(BINS) '$(DESTDIR)$(BINDIR)'

uninstall:
	@$(if $(filter 1,$(FORCE)),,$(if $(DESTDIR),,shim/dist/dependents.sh '$(BINDIR)/aqe-shim'))
	rm -f $(foreach b,$(notdir $(BINS)),'$(DESTDIR)$(BINDIR)/$(b)')

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
