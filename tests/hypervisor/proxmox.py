#!/usr/bin/env python3
"""The Proxmox hook script with a `qm` that answers from files: `proxmox.py PROGRAM`, with SLICEWISE_LIBRARY set."""

import os
import subprocess
import sys
import unittest

from harness import ROOT, State

PROGRAM = os.path.abspath(sys.argv.pop(1))
SCRIPT = str(ROOT / "examples/proxmox/slicewise-hook.sh")


class Proxmox(unittest.TestCase):
    def setUp(self):
        self.state = State(gpus=1)
        qm = self.state.directory / "qm"
        qm.write_text('#!/bin/sh\n[ "$1" = config ] && cat {}/"$2".conf\n'.format(self.state.directory))
        qm.chmod(0o755)
        path = "{}:{}".format(self.state.directory, os.environ["PATH"])
        self.environment = dict(self.state.environment, PATH=path, SLICEWISE_HOOK=PROGRAM)

    def call(self, vmid, phase, description=None):
        """Exit code and what was said."""
        text = "cores: 1\n" + ("description: {}\n".format(description) if description is not None else "")
        (self.state.directory / (vmid + ".conf")).write_text(text)
        done = subprocess.run([SCRIPT, vmid, phase], env=self.environment, capture_output=True, text=True)
        return done.returncode, done.stderr

    def test_starts_are_admitted_refused_and_ended(self):
        asks = "web server%0Aslicewise%3A profile%3D4g.40gb tenant%3Dacme%0A"
        self.assertEqual(self.call("100", "pre-start", asks), (0, ""))
        self.assertEqual(self.call("100", "post-start", asks), (0, ""))
        code, said = self.call("101", "pre-start", asks)
        self.assertEqual(code, 1)
        self.assertIn("domain `101` is refused", said)
        self.assertEqual(self.call("101", "post-stop", asks), (0, ""))
        self.assertEqual(self.call("102", "pre-start", "no request"), (0, ""))
        self.assertEqual(self.call("103", "pre-start"), (0, ""))
        self.assertEqual(self.state.leases(), ["n1/100"])
        self.assertEqual(self.call("100", "post-stop"), (0, ""))
        self.assertEqual(self.state.leases(), [])

    def test_slips_refuse_the_start(self):
        for slip in ["profile", "profile=", "profile=a=b", 'profile="x"', "profil=1g.10gb"]:
            self.assertEqual(self.call("100", "pre-start", "slicewise: " + slip)[0], 1, slip)
        self.assertEqual(self.state.leases(), [])


if __name__ == "__main__":
    unittest.main()
