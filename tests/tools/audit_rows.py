#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rows of a made-up fortnight for tests/tools/audit_add.c: audit_rows.py ROWS [SEED [END_NS]]

The same arguments give the same rows. Names are reserved ones (RFC 2606) and public services that
agents talk to; the values are skewed as real ones are."""
import random
import sys

S = 1_000_000_000
DAY = 86400 * S
TYPES = ["coder", "tester", "reviewer", "researcher", "documentation-writer"]
TYPE_WEIGHT = [50, 22, 14, 9, 5]
ALLOWED = [
    ("api.anthropic.com", "/v1/messages", 46),
    ("registry.npmjs.org", "/left-pad", 16),
    ("pypi.org", "/simple/requests/", 12),
    ("github.com", None, 12),
    ("files.pythonhosted.org", "/packages/requests.whl", 6),
    ("crates.io", "/api/v1/crates", 4),
    ("docs.example.org", "/guide", 4),
]
BLOCKED = [
    ("telemetry.example.net", "domain_not_allowed", 40),
    ("169.254.169.254", "address_not_public", 16),
    ("paste.example.com", "domain_not_allowed", 18),
    ("localhost", "address_not_public", 8),
    ("updates.example.net", "port_not_allowed", 10),
    ("xn--pple-43d.example", "domain_not_allowed", 8),
]
REFUSALS = [
    ("engine_socket", "/run/docker.sock is mounted at /var/run/docker.sock", 24),
    ("privileged", "all capabilities are granted", 18),
    ("mounts", "/ of the host is mounted at /host", 16),
    ("image_digest", "image is not pinned by a digest", 22),
    ("seccomp", "no filter: unconfined", 9),
    ("pid", "the host's pid namespace is shared", 6),
    ("limits", "no memory limit", 5),
]
WAIVERS = ["docs-preview-2026", "legacy-builder"]


def pick(rng, rows):
    return rng.choices(rows, weights=[r[-1] for r in rows])[0]


def main():
    n = int(sys.argv[1])
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    end = int(sys.argv[3]) if len(sys.argv) > 3 else 1769904000 * S
    policy = "sha256:" + rng.randbytes(32).hex()
    images = ["sha256:" + rng.randbytes(32).hex() for _ in range(4)]
    running = []
    times = []
    while len(times) < n:  # busy by day, quiet at night and at weekends
        t = end - rng.randrange(14 * DAY)
        hour = t // S // 3600 % 24
        weekend = (t // DAY + 4) % 7 in (0, 6)
        if rng.random() < (1.0 if 8 <= hour < 18 else 0.25) * (0.3 if weekend else 1.0):
            times.append(t)
    times.sort()
    for i, t in enumerate(times):
        row = {"time_ns": t, "boot_ns": t - end + 15 * DAY}
        roll = rng.random()
        burst = times[0] + 9 * DAY < t < times[0] + 9 * DAY + 5 * 3600 * S
        if i == 0:
            row.update(kind="policy", action="allowed", policy=policy, reason="loaded",
                       meta='{"files":"/etc/aqe-shim/policy.json"}')
        elif roll < 0.02 or not running:
            c = rng.randbytes(32).hex()
            kind = rng.choices(TYPES, weights=TYPE_WEIGHT)[0]
            agent = f"{kind}-{rng.randrange(1, 9)}"
            image = rng.choice(images)
            row.update(container=c, agent_id=agent, agent_type=kind, image=image, policy=policy)
            if rng.random() < 0.22:
                rule, why, _ = pick(rng, REFUSALS)
                row.update(kind="refusal", action="refused", rule=rule, reason=why)
            else:
                row.update(kind="start", action=rng.choice(["changed", "changed", "allowed"]),
                           duration_ns=rng.randrange(9_000_000, 60_000_000))
                running.append((c, agent, kind, image))
                running = running[-12:]
        elif roll < 0.035:
            c, agent, kind, image = rng.choice(running)
            row.update(kind="exec", action="changed", container=c, agent_id=agent,
                       agent_type=kind, image=image, policy=policy)
        elif roll < 0.045:
            c, agent, kind, image = rng.choice(running)
            row.update(kind="stop", action="allowed", container=c, agent_id=agent,
                       agent_type=kind, image=image, status=rng.choice([0, 0, 0, 1, 137]))
        elif roll < 0.0475:
            c, agent, kind, image = rng.choice(running)
            row.update(kind="waiver", action="allowed", container=c, agent_id=agent,
                       agent_type=kind, waiver=rng.choice(WAIVERS), rule="readonly_rootfs",
                       policy=policy, reason="owner docs-team, expires 2026-06-30")
        elif roll < 0.048:
            row.update(kind="policy", action="changed", policy=policy, reason="reloaded")
        elif i == n * 2 // 3:
            row.update(kind="system", action="refused", reason="gap",
                       meta='{"lost":3,"why":"disk full"}')
        else:
            c, agent, kind, image = rng.choice(running)
            row.update(kind="request", container=c, agent_id=agent, agent_type=kind, image=image,
                       port=443, policy=policy)
            roll = rng.random()
            if roll < (0.45 if burst else 0.045):
                domain, why, _ = pick(rng, BLOCKED)
                row.update(action="blocked", domain=domain, reason=why, rule="default",
                           method="CONNECT", port=22 if why == "port_not_allowed" else 443)
            elif roll < (0.5 if burst else 0.065):
                row.update(action="rate_limited", domain="api.anthropic.com",
                           reason="Rate limit exceeded", method="CONNECT", rule="120 a minute")
            else:
                domain, path, _ = pick(rng, ALLOWED)
                row.update(action="allowed", domain=domain, rule=domain,
                           method="GET" if path else "CONNECT",
                           status=rng.choices([200, 204, 304, 404, 500],
                                              weights=[90, 3, 3, 3, 1])[0],
                           response_ns=int(rng.lognormvariate(18.2, 0.9)),
                           bytes_in=int(rng.lognormvariate(9, 2)),
                           bytes_out=int(rng.lognormvariate(7, 1.2)))
                if path:
                    row["path"] = path
                row["duration_ns"] = row["response_ns"] + rng.randrange(50_000_000)
        print("\t".join(f"{k}={v}" for k, v in row.items()))


main()
