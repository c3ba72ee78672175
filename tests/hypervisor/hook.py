#!/usr/bin/env python3
"""The libvirt hook without libvirt: `hook.py PROGRAM`, with SLICEWISE_LIBRARY set. A failure prints the seed."""

import os
import random
import sys
import time
import unittest

from harness import Hook, State, domain, gpu

PROGRAM = sys.argv.pop(1)
SEED = int(os.environ.get("SEED", "20261130"))


class Admission(unittest.TestCase):
    def setUp(self):
        self.state = State(gpus=1)
        self.hook = Hook(PROGRAM, self.state)

    def test_admits_refuses_and_admits_after_a_release(self):
        self.assertEqual(self.hook.prepare("a", profile="3g.40gb", tenant="acme"), (0, ""))
        self.assertEqual(self.hook.prepare("b", profile="3g.40gb"), (0, ""))
        code, said = self.hook.prepare("c", profile="3g.40gb")
        self.assertEqual(code, 1)
        self.assertIn("domain `c` is refused", said)
        self.assertIn("insufficient_slices (120)", said)
        self.assertEqual(self.hook.release("c"), (0, ""))
        self.assertEqual(self.state.leases(), ["n1/a", "n1/b"])
        self.assertEqual(self.hook.release("a"), (0, ""))
        self.assertEqual(self.hook.prepare("c", profile="3g.40gb"), (0, ""))
        self.assertEqual(self.state.leases(), ["n1/b", "n1/c"])

    def test_the_same_domain_is_admitted_once(self):
        for _ in range(3):
            self.assertEqual(self.hook.prepare("a", profile="4g.40gb"), (0, ""))
            before = self.state.path.read_text()
        self.assertEqual(self.hook.call("a", "reconnect", "begin", domain("a", gpu(profile="4g.40gb"))), (0, ""))
        self.assertEqual(self.state.path.read_text(), before)
        self.assertEqual(self.hook.prepare("a", profile="7g.80gb"), (0, ""), "another request is decided anew")
        self.assertEqual(self.state.leases(), ["n1/a"])
        self.assertEqual(self.hook.release("a"), (0, ""))
        self.assertEqual(self.hook.release("a"), (0, ""))
        self.assertEqual(self.state.leases(), [])

    def test_a_restarted_daemon_kills_no_domain(self):
        self.assertEqual(self.hook.prepare("a", profile="7g.80gb"), (0, ""))
        code, said = self.hook.call("b", "reconnect", "begin", domain("b", gpu(profile="7g.80gb")))
        self.assertEqual(code, 0)
        self.assertIn("refused", said)

    def test_domains_without_our_metadata_are_let_through(self):
        self.hook.environment = dict(self.hook.environment, SLICEWISE_STATE="/nonexistent")
        foreign = domain("x", '<gpu xmlns="https://example.org/" profile="3g.40gb"/><gpu profile="3g.40gb"/>')
        self.assertEqual(self.hook.call("x", "prepare", "begin", foreign), (0, ""))
        for operation, part in [("start", "begin"), ("started", "begin"), ("stopped", "end"), ("migrate", "begin")]:
            self.assertEqual(self.hook.call("x", operation, part, domain("x", gpu(profile="nonsense"))), (0, ""))
        code, said = self.hook.prepare("x", profile="3g.40gb")
        self.assertEqual(code, 1)
        self.assertIn("/nonexistent: No such file or directory", said)

    def test_slips_in_the_metadata_refuse_the_start(self):
        slips = {
            "expected one of": [gpu(), gpu(profile="1g.10gb", milli=5), gpu(count=2)],
            "unknown attribute `profil`": [gpu(profil="1g.10gb")],
            "is empty": [gpu(profile="")],
            "expected a whole number": [gpu(milli=0), gpu(milli=-1), gpu(milli="5x"), gpu(milli=2**32), gpu(milli="")],
            "more than one element": [2 * gpu(profile="1g.10gb")],
            "unknown element `cpu`": [gpu(profile="1g.10gb").replace("s:gpu", "s:cpu")],
            "has no elements": [gpu(profile="1g.10gb").replace("/>", "><b/></s:gpu>")],
            "not well-formed": ["<", gpu(profile="&undefined;")],
            "unknown profile `9g.90gb`": [gpu(profile="9g.90gb")],
        }
        for expected, all_metadata in slips.items():
            for metadata in all_metadata:
                code, said = self.hook.call("x", "prepare", "begin", domain("x", metadata))
                self.assertEqual(code, 1, metadata)
                self.assertIn(expected, said)
        self.assertEqual(self.state.leases(), [])

    def test_a_broken_state_is_left_alone(self):
        for text in ["", "{", '{"nodes": [{"name": "n1", "gpus": [{"model": "?"}]}]}']:
            self.state.path.write_text(text)
            code, said = self.hook.prepare("a", profile="1g.10gb")
            self.assertEqual(code, 1)
            self.assertIn(str(self.state.path), said)
            self.assertEqual(self.state.path.read_text(), text)


class Concurrency(unittest.TestCase):
    def test_twenty_starts_at_once_never_overbook(self):
        state = State(gpus=4)
        hook = Hook(PROGRAM, state)
        xml = {name: domain(name, gpu(profile="3g.40gb")) for name in ["vm{}".format(i) for i in range(20)]}
        running = {name: hook.start(name, "prepare", "begin", text) for name, text in xml.items()}
        codes = {name: (process.communicate(), process.returncode)[1] for name, process in running.items()}
        admitted = sorted("n1/" + name for name, code in codes.items() if code == 0)
        self.assertEqual(len(admitted), 8, "two on each GPU")
        self.assertEqual(state.leases(), admitted)
        for name in xml:
            self.assertEqual(hook.release(name)[0], 0)
        self.assertEqual(state.leases(), [])

    def test_kills_lose_nothing_and_corrupt_nothing(self):
        dice = random.Random(SEED)
        state = State(gpus=2)
        hook = Hook(PROGRAM, state)
        # The delay before a kill follows the calls: it falls whenever one ends first, so that on a machine
        # of any speed kills go on, and at every stage of a call.
        span = 0.05
        held, kills, ended = set(), 0, 0
        while kills < 30 or ended < 30:
            name = "vm{}".format((kills + ended) % 12)
            ends = "n1/" + name in held and dice.random() < 0.5
            operation, part = ("release", "end") if ends else ("prepare", "begin")
            process = hook.start(name, operation, part, domain(name, gpu(profile="2g.20gb")))
            hunted = kills < 30 and dice.random() < 0.7
            if hunted:
                time.sleep(dice.random() * span)
                process.kill()
            process.communicate()
            killed, leases = process.returncode == -9, set(state.leases())
            span *= (1.1 if killed else 0.8) if hunted else 1
            kills, ended = kills + killed, ended + (not killed)
            maybe = {"n1/" + name} if killed else set()
            told = "seed {}, after {} kills and {} ends".format(SEED, kills, ended)
            after = held - maybe if killed else self.after(held, name, process.returncode, ends)
            self.assertEqual(leases - maybe, after, told)
            held = leases
        print("{} calls killed, {} ended, {} leases at the end".format(kills, ended, len(held)))
        for lease in held:
            self.assertEqual(hook.release(lease.split("/")[1])[0], 0)
        self.assertEqual(state.leases(), [])

    @staticmethod
    def after(held, name, code, ends):
        """The leases after a call that ran to its end."""
        if ends:
            return held - {"n1/" + name}
        return held | {"n1/" + name} if code == 0 else held


if __name__ == "__main__":
    unittest.main()
