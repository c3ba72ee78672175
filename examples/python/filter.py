#!/usr/bin/env python3
"""A scheduler's filter: which hosts can take a request, and why the others cannot.

Reads {"hosts": {NAME: STATE}, "request": REQUEST} on standard input, prints {"pass": [NAME], "refused": {NAME: [WHY]}}.
Hosts that pass come in their order; the state is a `slicewise/v1` document of that host alone.
"""

import json
import sys

from slicewise import Engine


def reason(entry):
    """One gate in one line."""
    text = entry["code"]
    if entry.get("subject"):
        text += " " + entry["subject"]
    if "needed" in entry:
        text += ": needs {}".format(entry["needed"])
    if "largest_free" in entry:
        text += ", most in one place {}".format(entry["largest_free"])
    return text


def filter_hosts(hosts, request):
    """Splits hosts into those that can take the request and those that cannot, with the reasons."""
    passed, refused = [], {}
    for name, state in hosts.items():
        decision = Engine(state).decide(request)
        if decision["verdict"] == "admit":
            passed.append(name)
        else:
            refused[name] = [reason(entry) for entry in decision["reasons"]]
    return passed, refused


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    passed, refused = filter_hosts(asked["hosts"], asked["request"])
    json.dump({"pass": passed, "refused": refused}, sys.stdout, indent=2)
    print()
