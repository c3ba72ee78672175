#!/usr/bin/env python3
"""Plans of `slicewise plan` against the natural integer program, solved by HiGHS.

The program here has one variable for every GPU, profile and start. It is built from the
catalog's data alone and shares nothing with the engine. For each instance it must hold that

  value of the plan  <=  optimum  <=  bound of the plan

and, where all members are admitted, the other way round for the GPUs that the plan opens.
The placements of the plan are checked by themselves, and small instances must be optimal.

Needs highspy. `SLICEWISE` names the command to run instead of building it.
"""

import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import highspy

ROOT = Path(__file__).resolve().parents[2]
CATALOG = {m["id"]: m for m in json.loads((ROOT / "core/data/mig.json").read_text())["models"]}
MODELS = ["a100-80gb", "a30-24gb"]
ENGINES = ["decoders", "encoders", "jpeg", "ofa"]
PER_NODE = 4

# GPUs, how full in a hundred, members asked for each ten GPUs, what is special.
INSTANCES = [
    (1, 0, 30, ""),
    (2, 0, 40, ""),
    (3, 40, 30, ""),
    (4, 50, 20, "values"),
    (6, 50, 10, ""),
    (6, 30, 50, "either"),
    (8, 0, 15, ""),
    (8, 50, 30, "values"),
    (10, 60, 30, ""),
    (12, 40, 8, ""),
    (12, 50, 40, "either values"),
    (16, 0, 12, ""),
    (16, 50, 30, ""),
    (20, 50, 26, "values"),
    (24, 50, 26, "either"),
    (24, 30, 7, ""),
    (32, 50, 26, ""),
    (40, 60, 26, "values"),
    (48, 50, 26, "either values"),
    (60, 50, 20, ""),
    (8, 40, 25, "gang"),
    (16, 50, 25, "gang values"),
]

# Up to here a plan of members that come one by one has to be the best there is.
EXACT_GPUS = 12


def engines(profile):
    return [profile.get(e) or 0 for e in ENGINES]


def starts(profile):
    return (profile.get("placements") or {}).get("starts", [])


def size(profile):
    return profile["placements"]["size"]


def profiles(model):
    """The profiles of a model by name."""
    return {p["name"]: p for p in CATALOG[model]["profiles"]}


def is_legal(model, placed):
    """Whether (profile name, start) pairs can be together on one GPU."""
    facts, rows = CATALOG[model], profiles(model)
    cells = [c for name, start in placed for c in range(start, start + size(rows[name]))]
    if len(cells) != len(set(cells)) or any(start not in starts(rows[name]) for name, start in placed):
        return False
    count = Counter(name for name, _ in placed)
    if any(n > rows[name].get("max_instances", n) for name, n in count.items()):
        return False
    if len(placed) > facts.get("max_gpu_instances", len(placed)):
        return False
    if sum(rows[name]["compute_slices"] for name, _ in placed) > facts["compute_slices"]:
        return False
    pool = [facts.get("engine_pool", {}).get(e) for e in ENGINES]
    need = [sum(engines(rows[name])[e] for name, _ in placed) for e in range(len(ENGINES))]
    return all(has is None or n <= has for has, n in zip(pool, need))


def make(seed, gpus, full, tenths, special):
    """A fleet and requests."""
    dice = random.Random(seed)
    nodes = []
    for i in range(gpus):
        if i % PER_NODE == 0:
            nodes.append({"name": f"n{i // PER_NODE}", "gpus": []})
        model = dice.choice(MODELS)
        cells, rows, placed = CATALOG[model]["memory_slices"], profiles(model), []
        # Some GPUs stay empty, so that there are some to open.
        wanted = 0 if dice.random() < 0.25 else cells * full * 4 // 300
        for _ in range(12):
            name = dice.choice(list(rows))
            new = (name, dice.choice(starts(rows[name])))
            used = sum(size(rows[n]) for n, _ in placed + [new])
            if used <= wanted and is_legal(model, placed + [new]):
                placed.append(new)
        instances = [
            {"profile": n, "start": s, "usage": dice.choice(["busy", "busy", "busy", "idle"])} for n, s in sorted(placed)
        ]
        nodes[-1]["gpus"].append({"model": model, "mode": "mig", "instances": instances})
    offered = sorted({name for node in nodes for gpu in node["gpus"] for name in profiles(gpu["model"])})
    left, requests = max(1, gpus * tenths // 10), []
    while left > 0:
        count = min(left, dice.randint(1, 2 + gpus // 4))
        left -= count
        request = {"name": f"r{len(requests)}", "count": count}
        names = dice.sample(offered, min(len(offered), 2 if "either" in special else 1))
        if len(names) == 1:
            request["profile"] = names[0]
        else:
            request["any_of"] = [{"profile": name} for name in names]
        if "values" in special:
            request["value"] = dice.randint(1, 20)
        if "gang" in special and count > 1 and dice.random() < 0.5:
            request["gang"] = True
        requests.append(request)
    return {"schema": "slicewise/v1", "nodes": nodes}, {"schema": "slicewise/v1", "requests": requests}


def asked(request):
    return [request["profile"]] if "profile" in request else [a["profile"] for a in request["any_of"]]


def value_of(request, models):
    """What a member is worth: as written, else the fewest cells of its first alternative."""
    if "value" in request:
        return request["value"]
    first = asked(request)[0]
    return min(size(profiles(m)[first]) for m in models if first in profiles(m))


class Natural:
    """One variable for every GPU, profile and start that is free. Idle instances are."""

    def __init__(self, fleet, requests):
        self.highs = highspy.Highs()
        self.highs.silent()
        self.highs.setOptionValue("mip_rel_gap", 0.0)
        self.requests = requests
        self.models = {gpu["model"] for node in fleet["nodes"] for gpu in node["gpus"]}
        self.by_profile, self.opened = {}, []
        for node in fleet["nodes"]:
            for gpu in node["gpus"]:
                self.add_gpu(gpu)
        # How many members of a request get which alternative.
        self.members, self.gangs = [], []
        for request in requests:
            each = {name: self.integer(request["count"]) for name in asked(request)}
            total = self.highs.qsum(each.values())
            if request.get("gang"):
                whole = self.integer(1)
                self.highs.addConstr(total == request["count"] * whole)
            else:
                self.highs.addConstr(total <= request["count"])
            self.members.append(each)
        for name in {name for request in requests for name in asked(request)}:
            given = self.highs.qsum(self.by_profile.get(name, []))
            taken = self.highs.qsum(each[name] for each in self.members if name in each)
            self.highs.addConstr(taken <= given)

    def integer(self, most):
        return self.highs.addIntegral(lb=0, ub=most)

    def add_gpu(self, gpu):
        model, rows = CATALOG[gpu["model"]], profiles(gpu["model"])
        busy = [(i["profile"], i["start"]) for i in gpu["instances"] if i["usage"] == "busy"]
        wanted = {name for request in self.requests for name in asked(request)}
        places = [(name, start) for name in rows if name in wanted for start in starts(rows[name])]
        free = [place for place in places if is_legal(gpu["model"], busy + [place])]
        picked = {place: self.integer(1) for place in free}
        for (name, _), variable in picked.items():
            self.by_profile.setdefault(name, []).append(variable)

        def limit(most, weight):
            """The weights of what is there and what is added stay within a limit."""
            if most is None:
                return
            there = sum(weight(name, start) for name, start in busy)
            terms = [weight(name, start) * v for (name, start), v in picked.items() if weight(name, start)]
            if terms:
                self.highs.addConstr(self.highs.qsum(terms) <= most - there)

        for cell in range(model["memory_slices"]):
            limit(1, lambda name, start, cell=cell: int(start <= cell < start + size(rows[name])))
        limit(model["compute_slices"], lambda name, _: rows[name]["compute_slices"])
        limit(model.get("max_gpu_instances"), lambda *_: 1)
        for name in rows:
            limit(rows[name].get("max_instances"), lambda other, _, name=name: int(other == name))
        for e, engine in enumerate(ENGINES):
            limit(model.get("engine_pool", {}).get(engine), lambda name, _, e=e: engines(rows[name])[e])
        if not busy:
            opens = self.integer(1)
            for variable in picked.values():
                self.highs.addConstr(variable <= opens)
            self.opened.append(opens)

    def optimum(self, expression, is_max):
        solve = self.highs.maximize if is_max else self.highs.minimize
        solve(expression)
        status = self.highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS says {status}")
        return round(self.highs.getObjectiveValue())

    def most_value(self):
        worth = [(value_of(r, self.models), each) for r, each in zip(self.requests, self.members)]
        return self.optimum(self.highs.qsum(v * t for v, each in worth for t in each.values()), True)

    def fewest_gpus(self):
        """GPUs to open so that all are admitted."""
        if not self.opened:
            return 0
        for request, each in zip(self.requests, self.members):
            self.highs.addConstr(self.highs.qsum(each.values()) == request["count"])
        return self.optimum(self.highs.qsum(self.opened), False)


def run(command, fleet, requests):
    """The plan that the command makes."""
    with tempfile.TemporaryDirectory() as into:
        paths = []
        for name, document in (("fleet", fleet), ("requests", requests)):
            paths.append(Path(into) / f"{name}.json")
            paths[-1].write_text(json.dumps(document))
        arguments = ["plan", "--fleet", str(paths[0]), "--requests", str(paths[1]), "--json"]
        done = subprocess.run(command + arguments, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def check_leases(fleet, requests, plan):
    """The value of the plan, from its placements; all of them must be legal."""
    by_name = {r["name"]: r for r in requests}
    nodes = {node["name"]: node["gpus"] for node in fleet["nodes"]}
    models = {gpu["model"] for gpus in nodes.values() for gpu in gpus}
    added, value = {}, 0
    for lease in plan["leases"]:
        request = by_name[lease["name"]]
        members = [p["member"] for p in lease["placements"]]
        assert len(members) == len(set(members)) <= request["count"], f"members of {lease['name']}"
        assert not request.get("gang") or len(members) == request["count"], f"gang {lease['name']} in part"
        for p in lease["placements"]:
            assert p["profile"] == asked(request)[p.get("alternative", 0)], f"alternative of {lease['name']}"
            added.setdefault((p["node"], p["gpu"]), []).append((p["profile"], p["start"]))
        value += value_of(request, models) * len(members)
    for (node, index), placed in added.items():
        gpu = nodes[node][index]
        busy = [(i["profile"], i["start"]) for i in gpu["instances"] if i["usage"] == "busy"]
        assert is_legal(gpu["model"], busy + placed), f"GPU {index} of {node}: {busy} and {placed}"
    return value


def check(number, command):
    """A line about one instance; an AssertionError if something does not hold."""
    gpus, full, tenths, special = INSTANCES[number]
    fleet, document = make(number, gpus, full, tenths, special)
    requests = document["requests"]
    plan = run(command, fleet, document)
    value = check_leases(fleet, requests, plan)
    assert value == plan["value"], f"the plan says {plan['value']}, its placements are worth {value}"
    assert plan["verified"], "the plan is not verified"
    optimum = Natural(fleet, requests).most_value()
    text = f"value {value} of {optimum}"
    assert value <= optimum, f"value {value} is above the optimum {optimum}"
    exact = gpus <= EXACT_GPUS and "gang" not in special
    assert value == optimum or not exact, f"value {value} misses the optimum {optimum}"
    assert value * 100 >= optimum * 99 or "gang" in special, f"value {value} is far from the optimum {optimum}"
    if plan["bound_of"] == "value":
        assert optimum <= plan["bound"], f"the optimum {optimum} is above the bound {plan['bound']}"
        return f"{text}, bound {plan['bound']}"
    fewest = Natural(fleet, requests).fewest_gpus()
    opened, bound = plan["gpus_opened"], plan["bound"]
    assert bound <= fewest <= opened, f"bound {bound}, fewest {fewest}, opened {opened}"
    assert opened == fewest or not exact, f"opens {opened}, the fewest are {fewest}"
    return f"{text}; opens {opened} of at least {fewest}, bound {bound}"


def main():
    default = "cargo run -q --release --bin slicewise --"
    command = shlex.split(os.environ.get("SLICEWISE", default))
    failed = 0
    for number, (gpus, full, tenths, special) in enumerate(INSTANCES):
        name = f"{number:2}: {gpus} GPUs, {full} % full, {tenths / 10} members each {special}".rstrip()
        try:
            print(f"ok    {name}: {check(number, command)}", flush=True)
        except (AssertionError, RuntimeError, OSError) as error:
            failed += 1
            print(f"FAIL  {name}: {error}", flush=True)
    print(f"{len(INSTANCES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
