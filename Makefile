# SPDX-License-Identifier: MIT
# aqe-shim. `make` builds build/release/aqe-shim; `make help` lists the rest.
# One non-recursive makefile; output only below build/<mode>/.

MODE    ?= release
B       := build/$(MODE)
CC      := gcc
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
DESTDIR ?=
WERROR  ?= 0
FUZZ_TIME ?= 30

MODULES := shim/core oci hardening netpolicy cache audit hooks
LIB_SRC := $(sort $(foreach m,$(MODULES),$(wildcard $(m)/*.c)) $(filter-out shim/main_%.c,$(wildcard shim/*.c)))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
MAINS   := $(sort $(patsubst shim/main_%.c,%,$(wildcard shim/main_*.c)))
BINS    := $(foreach m,$(MAINS),$(B)/$(if $(filter aqe,$(m)),aqe,aqe-$(m)))
UNIT    := $(sort $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c)))
FUZZERS := $(sort $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c)))

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
SHIM_LIBS := -lyajl_s -lseccomp -lcap -lmd
DYN_LIBS  := -lyajl -lseccomp -lcap -lmd

san_flags := -O1 -fno-omit-frame-pointer
ifeq ($(MODE),release)
MODE_CFLAGS := $(HARDEN)
SHIM_LINK   := -static-pie $(SECURE_LINK)
TEST_LINK   := -pie $(SECURE_LINK)
else ifeq ($(MODE),debug)
MODE_CFLAGS := -O0 -fPIE
SHIM_LINK   := -pie
TEST_LINK   := -pie
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
CC          := clang
is_clang    := clang
MODE_CFLAGS := $(san_flags) -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined
SHIM_LINK   := -fsanitize=address,undefined
TEST_LINK   := $(SHIM_LINK)
SHIM_LIBS   := $(DYN_LIBS)
else
$(error unknown MODE '$(MODE)': release debug asan cov fuzz)
endif

ALL_CFLAGS = $(BASE) $(WARN) $(MODE_CFLAGS) $(CPPFLAGS) $(CFLAGS)

.PHONY: all help check check-asan check-valgrind fuzz fuzz-replay bench lint analyze coverage install uninstall clean demo test FORCE
all: $(BINS)

help:
	@sed -n 's/^## //p' Makefile

# A change of compiler or flags rebuilds.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(ALL_CFLAGS) $(SHIM_LINK) $(LDFLAGS)' | cmp -s - $@ || \
		printf '%s\n' '$(CC) $(ALL_CFLAGS) $(SHIM_LINK) $(LDFLAGS)' > $@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/libaqe.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcsD $@ $(LIB_OBJ)

$(B)/aqe-shim: $(B)/shim/main_shim.o $(B)/libaqe.a
	$(CC) $(ALL_CFLAGS) $(SHIM_LINK) -o $@ $^ $(SHIM_LIBS) $(LDFLAGS)

$(B)/unit/%: $(B)/tests/unit/%.o $(B)/libaqe.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(TEST_LINK) -o $@ $^ -lcheck -lsubunit -lm -lrt -lpthread $(DYN_LIBS) $(LDFLAGS)

$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/libaqe.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $^ $(DYN_LIBS) $(LDFLAGS)

## unit tests:                make check  (MODE=asan for sanitizers)
.SECONDARY: $(UNIT:%=$(B)/tests/unit/%.o) $(FUZZERS:%=$(B)/tests/fuzz/%.o)
check: $(UNIT:%=$(B)/unit/%)
	@set -e; for t in $^; do echo "== $$t"; $$t; done

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
