#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of tests/bench/egress.sh: egress.py ROWS RSS_KB PSS_KB. Exit 1 when a budget is missed."""
import collections
import statistics
import sys

TITLES = {"setups": ("tunnel set-ups", "/s", 1, "us", 1e6), "bulk:1": ("one tunnel, download", "GB/s", 1e9, "s/GB", 1e9),
          "bulk:8": ("eight tunnels", "GB/s", 1e9, "s/GB", 1e9), "http": ("plain HTTP requests", "/s", 1, "us", 1e6)}
# what, ratio to direct at least, CPU at most (in the unit above)
BUDGETS = {"setups": (0.5, 75), "bulk:1": (0.45, 0.3), "http": (None, 25)}
RSS_KB = 4096


def main():
    got = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in open(sys.argv[1], encoding="utf-8"):
        what, name, _, rate, cpu, p99 = line.split()
        got[what][name].append((float(rate), float(cpu), float(p99)))
    missed = []
    for what, (title, unit, scale, cpu_unit, cpu_scale) in TITLES.items():
        direct = [r[0] for r in got[what]["direct"]]
        if not any(direct):
            missed.append("%s: nothing was measured" % title)
            continue
        print("\n%-24s %12s %8s %10s %9s" % (title, unit, "ratio", "CPU " + cpu_unit, "p99 ms"))
        for name, rows in got[what].items():
            rate = statistics.median(r[0] for r in rows)
            ratio = statistics.median(r[0] / d for r, d in zip(rows, direct) if d > 0)
            cpu = statistics.median(r[1] for r in rows) * cpu_scale
            p99 = statistics.median(r[2] for r in rows)
            print("%-24s %12.2f %8.2f %10.2f %9.2f" % (name, rate / scale, ratio, cpu, p99))
            if name != "aqe" or what not in BUDGETS:
                continue
            least, most = BUDGETS[what]
            if least and ratio < least:
                missed.append("%s: ratio %.2f, wanted %.2f" % (title, ratio, least))
            if cpu > most:
                missed.append("%s: CPU %.2f %s, wanted %s" % (title, cpu, cpu_unit, most))
    rss, pss = int(sys.argv[2]), int(sys.argv[3])
    print("\nservice, idle: RSS %d kB in three processes (shared pages counted three times), PSS %d kB" % (rss, pss))
    if pss > RSS_KB:
        missed.append("memory: PSS %d kB, wanted %d" % (pss, RSS_KB))
    for m in missed:
        print("MISSED " + m)
    sys.exit(1 if missed else 0)


main()
