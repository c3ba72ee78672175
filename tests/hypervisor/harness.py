"""What the tests of the libvirt hook share."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/python"))

NAMESPACE = "https://slicewise.dev/domain/1"


def gpu(**asked):
    """Our element, with attributes such as profile="3g.40gb"."""
    attributes = "".join(' {}="{}"'.format(key.replace("_", "-"), value) for key, value in asked.items())
    return '<s:gpu xmlns:s="{}"{}/>'.format(NAMESPACE, attributes)


def domain(name, metadata):
    """A domain without disk or kernel, which QEMU emulates."""
    return """<domain type='qemu'><name>{}</name><memory unit='MiB'>32</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os><metadata>{}</metadata>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices></domain>""".format(name, metadata)


class State:
    """A state file of MIG GPUs that the hook works on."""

    def __init__(self, gpus, node="n1"):
        self.directory = Path(tempfile.mkdtemp(prefix="slicewise-"))
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        self.path = self.directory / "state.json"
        gpus = [{"model": "a100-80gb", "mode": "mig"}] * gpus
        self.path.write_text(json.dumps({"schema": "slicewise/v1", "nodes": [{"name": node, "gpus": gpus}]}))
        self.environment = dict(os.environ, SLICEWISE_STATE=str(self.path), SLICEWISE_NODE=node)

    def leases(self):
        """Names of the leases. Fails if the file is not a legal state: the engine refuses overlaps."""
        from slicewise import Engine

        state = Engine(json.loads(self.path.read_text())).snapshot()
        return sorted(lease["name"] for lease in state.get("leases", []))


class Hook:
    """The hook, called as libvirt calls it."""

    def __init__(self, program, state):
        self.program, self.environment = program, state.environment

    def start(self, name, operation, part, xml):
        """Begins a call and does not wait for it."""
        arguments = [self.program, name, operation, part, "-"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment, text=True)
        process.stdin.write(xml)
        process.stdin.close()
        process.stdin = None
        return process

    def call(self, name, operation, part, xml=None):
        """Exit code and what was said."""
        process = self.start(name, operation, part, xml if xml is not None else domain(name, ""))
        _, said = process.communicate()
        return process.returncode, said

    def prepare(self, name, **asked):
        return self.call(name, "prepare", "begin", domain(name, gpu(**asked)))

    def release(self, name):
        return self.call(name, "release", "end")
