#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of tests/bench/egress.sh: egress.py ROWS RSS_KB PSS_KB. Exit 1 when a budget is missed.

The budgets of CPU are microseconds of the machine that they were set on, for a proxy that hands its
audit rows to somebody else. haproxy's own figures there say how much slower this machine is now: a
budget is so many times what haproxy takes in this run. What makes the audit log durable is counted
for itself."""
import collections
import statistics
import sys

TITLES = {"setups": ("tunnel set-ups", "/s", 1, "us", 1e6), "bulk:1": ("one tunnel, download", "GB/s", 1e9, "s/GB", 1e9),
          "bulk:8": ("eight tunnels", "GB/s", 1e9, "s/GB", 1e9), "http": ("plain HTTP requests", "/s", 1, "us", 1e6)}
# what: ratio to direct at least; CPU at most, and haproxy's, on the machine of the budgets (in the unit above)
BUDGETS = {"setups": (0.5, 75, 49), "bulk:1": (0.45, 0.3, 0.60), "http": (None, 25, 13)}
RSS_KB = 4096


def load(path):
    got = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in open(path, encoding="utf-8"):
        what, name, _, *numbers = line.split()
        got[what][name].append([float(n) for n in numbers])
    return got


def table(what, rows_of):
    """Prints one; gives {variant: (ratio, CPU without the audit's)}."""
    title, unit, scale, cpu_unit, cpu_scale = TITLES[what]
    direct = [r[0] for r in rows_of["direct"]]
    out = {}
    print("\n%-24s %12s %8s %10s %10s %9s" % (title, unit, "ratio", "CPU " + cpu_unit, "and audit", "p99 ms"))
    for name, rows in rows_of.items():
        median = [statistics.median(column) for column in zip(*rows)]
        ratio = statistics.median(r[0] / d for r, d in zip(rows, direct) if d > 0)
        audit = median[3] * cpu_scale
        cpu = statistics.median(r[1] - r[3] for r in rows) * cpu_scale
        print("%-24s %12.2f %8.2f %10.2f %10s %9.2f" % (name, median[0] / scale, ratio, cpu, "%.2f" % audit if audit else "", median[2]))
        out[name] = (ratio, cpu)
    return out


def judge(what, measured):
    least, most, their_haproxy = BUDGETS[what]
    title, _, _, unit, _ = TITLES[what]
    ratio, cpu = measured["aqe"]
    haproxy = measured["haproxy"][1]
    allowed = most / their_haproxy
    print("  %.2f times haproxy's CPU, allowed %.2f (%s %s where haproxy takes %s, here %.2f)" %
          (cpu / haproxy, allowed, most, unit, their_haproxy, allowed * haproxy))
    if least and ratio < least:
        yield "%s: ratio %.2f, wanted %.2f" % (title, ratio, least)
    if cpu > allowed * haproxy:
        yield "%s: CPU %.2f times haproxy's, wanted %.2f" % (title, cpu / haproxy, allowed)


def main():
    got = load(sys.argv[1])
    missed = []
    for what, (title, *_) in TITLES.items():
        if not any(r[0] for r in got[what]["direct"]):
            missed.append("%s: nothing was measured" % title)
            continue
        measured = table(what, got[what])
        if what in BUDGETS:
            missed += judge(what, measured)
    rss, pss = int(sys.argv[2]), int(sys.argv[3])
    print("\nservice, idle: RSS %d kB in three processes (shared pages counted three times), PSS %d kB" % (rss, pss))
    if pss > RSS_KB:
        missed.append("memory: PSS %d kB, wanted %d" % (pss, RSS_KB))
    for m in missed:
        print("MISSED " + m)
    sys.exit(1 if missed else 0)


main()
