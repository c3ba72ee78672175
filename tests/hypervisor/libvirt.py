#!/usr/bin/env python3
"""The libvirt hook under libvirtd and QEMU: `libvirt.py PROGRAM`, as root, with SLICEWISE_LIBRARY set.

Needs a machine of its own: it configures libvirtd for emulated domains without cgroups, starts it, and puts back what
it found. Domains have neither disk nor kernel, so they start at once.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from harness import State, domain, gpu

PROGRAM = os.path.abspath(sys.argv.pop(1))
CONFIG, HOOK = Path("/etc/libvirt/qemu.conf"), Path("/etc/libvirt/hooks/qemu")
SETTINGS = 'user = "root"\ngroup = "root"\nsecurity_driver = "none"\ncgroup_controllers = [ ]\nnamespaces = []\n'
DAEMONS = {"virtlogd": "/run/virtlogd.pid", "libvirtd": "/run/libvirtd.pid"}


def virsh(*arguments, begin=False):
    """Exit code and everything that was printed; with `begin` the process."""
    command = ["virsh", "--connect", "qemu:///system", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if begin:
        return process
    printed = process.communicate()[0].strip()
    return process.returncode, printed


def pid(daemon):
    try:
        return int(Path(DAEMONS[daemon]).read_text())
    except (OSError, ValueError):
        return None


def is_alive(number):
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path("/proc/{}/stat".format(number)).read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def start_libvirtd():
    subprocess.run(["libvirtd", "-d"], check=True)
    for _ in range(300):
        if virsh("version")[0] == 0:
            return
        time.sleep(0.1)
    raise RuntimeError("libvirtd does not answer")


def stop(daemon):
    number = pid(daemon)
    if number is not None and is_alive(number):
        os.kill(number, signal.SIGTERM)
        for _ in range(300):
            if not is_alive(number):
                return
            time.sleep(0.1)


class Libvirt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        running = [daemon for daemon in DAEMONS if pid(daemon) is not None and is_alive(pid(daemon))]
        if running:
            raise unittest.SkipTest("{} runs already: this test needs a machine of its own".format(running))
        cls.kept = {path: path.read_bytes() if path.exists() else None for path in (CONFIG, HOOK)}
        cls.addClassCleanup(cls.put_back)
        cls.state = State(gpus=1)
        cls.kill_after = cls.state.directory / "kill-after"
        CONFIG.write_text(SETTINGS)
        HOOK.parent.mkdir(exist_ok=True)
        # libvirt passes its own environment on, and the test kills the hook by its own clock.
        HOOK.write_text(
            "#!/bin/sh\nexport SLICEWISE_STATE={0} SLICEWISE_NODE=n1\nif [ -f {1} ] && [ $2 = prepare ]; then\n"
            "  exec timeout -s KILL $(cat {1}) {2} \"$@\"\nfi\nexec {2} \"$@\"\n".format(
                cls.state.path, cls.kill_after, PROGRAM))
        HOOK.chmod(0o755)
        subprocess.run(["virtlogd", "-d"], check=True)
        start_libvirtd()

    @classmethod
    def put_back(cls):
        for daemon in reversed(DAEMONS):
            stop(daemon)
        for path, content in cls.kept.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)

    def setUp(self):
        self.addCleanup(self.destroy_all)

    def destroy_all(self):
        self.kill_after.unlink(missing_ok=True)
        for name in self.running():
            virsh("destroy", name)

    def file(self, name, metadata=gpu(profile="3g.40gb", tenant="acme")):
        path = self.state.directory / (name + ".xml")
        path.write_text(domain(name, metadata))
        return str(path)

    def create(self, name, **more):
        return virsh("create", self.file(name, **more))

    def running(self):
        return sorted(virsh("list", "--name")[1].split())

    def assert_leases_are_the_running(self):
        self.assertEqual(self.state.leases(), ["n1/" + name for name in self.running()])

    def test_two_start_the_third_is_refused_and_starts_when_one_has_stopped(self):
        for name in ["vm1", "vm2"]:
            self.assertEqual(self.create(name)[0], 0)
        code, printed = self.create("vm3")
        print("\nvirsh create vm3.xml:\n" + printed)
        self.assertEqual(code, 1)
        self.assertIn("domain `vm3` is refused", printed)
        self.assertIn("insufficient_slices (120)", printed)
        self.assertEqual(self.running(), ["vm1", "vm2"])
        self.assert_leases_are_the_running()
        self.assertEqual(self.create("plain", metadata="")[0], 0)
        self.assertEqual(virsh("destroy", "plain")[0], 0)
        self.assertEqual(virsh("destroy", "vm1")[0], 0)
        self.assertEqual(self.create("vm3")[0], 0)
        self.assertEqual(self.running(), ["vm2", "vm3"])
        self.assert_leases_are_the_running()

    def test_domains_keep_what_they_have_when_the_daemon_restarts(self):
        self.assertEqual(self.create("vm1")[0], 0)
        before = self.state.path.read_text()
        stop("libvirtd")
        start_libvirtd()
        self.assertEqual(self.running(), ["vm1"])
        self.assertEqual(self.state.path.read_text(), before)
        self.assertEqual(virsh("destroy", "vm1")[0], 0)
        self.assertEqual(self.state.leases(), [])

    def test_starts_at_once_never_overbook(self):
        begun = [virsh("create", self.file("vm{}".format(i)), begin=True) for i in range(20)]
        codes = [(process.communicate(), process.returncode)[1] for process in begun]
        self.assertEqual(codes.count(0), 2)
        self.assertEqual(len(self.running()), 2)
        self.assert_leases_are_the_running()
        self.destroy_all()
        self.assertEqual(self.state.leases(), [])

    def test_a_killed_hook_leaves_what_runs_and_nothing_else(self):
        refused = 0
        for i, after in enumerate(["0.005", "0.02", "0.05", "0.1", "0.2", "0.4"]):
            self.kill_after.write_text(after)
            refused += self.create("vm{}".format(i))[0]
            self.assert_leases_are_the_running()
            self.destroy_all()
        print("\n{} of 6 starts failed because the hook was killed".format(refused))
        self.assertGreater(refused, 0)
        self.assertEqual(self.state.leases(), [])


if __name__ == "__main__":
    if shutil.which("libvirtd") is None or os.geteuid() != 0:
        sys.exit("needs root, libvirtd and QEMU: cargo xtask hypervisor --install")
    unittest.main(verbosity=2)
