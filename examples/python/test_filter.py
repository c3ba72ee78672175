#!/usr/bin/env python3
"""Tests of the filter: `python3 -m unittest discover examples/python`."""

import unittest

from filter import filter_hosts
from slicewise import Error


def host(*starts):
    instances = [{"profile": "1g.10gb", "start": start} for start in starts]
    gpu = {"model": "h100-sxm5-80gb", "mode": "mig", "instances": instances}
    return {"nodes": [{"name": "self", "gpus": [gpu]}]}


class Filter(unittest.TestCase):
    def test_splits_hosts_and_says_why_not(self):
        hosts = {"free": host(), "scattered": host(0, 1, 5), "full": host(0, 1, 2, 3, 4, 5, 6), "half": host(0, 1)}
        passed, refused = filter_hosts(hosts, {"name": "vm", "profile": "3g.40gb"})
        self.assertEqual(passed, ["free", "half"])
        self.assertEqual(list(refused), ["scattered", "full"])
        self.assertIn("fragmented", refused["scattered"][0])
        self.assertIn("insufficient_slices", refused["full"][0])

    def test_bad_input_is_an_error(self):
        with self.assertRaises(Error) as caught:
            filter_hosts({"a": host()}, {"name": "vm", "profile": "9g.90gb"})
        self.assertEqual(caught.exception.status, 902)


if __name__ == "__main__":
    unittest.main()
