#!/usr/bin/python3
"""Bindings to CPUs that this machine does not have, on a kernel that has them (emulated_node.py).

    emulated_node_test.py PATH_OF_HPCLAUNCH PATH_OF_RANK_RECORD CACHE [unittest arguments]

Each shape is booted once. In there real ranks are started by hpclaunch and every rank's own report, its mask as the
kernel shows it included, is compared with the plan; nothing of the masks is computed here.
"""
import json
import os
import shlex
import sys
import unittest

import emulated_node
import engines
from engines import cpu_list, differences, support

# An srun that binds as it is told: one mask per local rank, by the kernel's own call. Anything else it refuses.
SRUN = r"""#!/bin/sh
if [ "$1" = --version ]; then echo "slurm 23.11.1"; exit 0; fi
masks= ranks=
while [ $# -gt 0 ]; do
  case $1 in
    --cpu-bind=mask_cpu:*) masks=${1#--cpu-bind=mask_cpu:} ;;
    --ntasks=*) ranks=${1#*=} ;;
    --nodes=1 | --ntasks-per-node=* | --gpus-per-node=* | --distribution=block | --gpu-bind=none | --export=ALL | --kill-on-bad-exit=1 | --wait=0 | --nodelist=*) ;;
    --) shift; break ;;
    *) echo "srun: no option $1" >&2; exit 1 ;;
  esac
  shift
done
rank=0
for mask in $(echo "$masks" | tr , ' '); do
  [ "$rank" -lt "$ranks" ] || { echo "srun: more masks than ranks" >&2; exit 1; }
  SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_NTASKS=$ranks taskset "$mask" "$@" &
  rank=$((rank + 1))
done
[ "$rank" = "$ranks" ] || { echo "srun: $rank masks for $ranks ranks" >&2; exit 1; }
wait
"""
SLURM = "SLURM_JOB_ID=1 SLURM_JOB_NODELIST=emulated SLURM_NNODES=1 SLURM_JOB_NUM_NODES=1 SLURM_TASKS_PER_NODE=128"
PBS = "PBS_JOBID=1.emulated PBS_NODEFILE=/out/nodes"
CACHE = None


class Shape(support.Test):
    """Each subclass boots its node once, with all of its cases."""

    shape = None
    cases = {}  # name -> (environment, options)

    def boot(self):
        tool, record = shlex.quote(support.HPCLAUNCH), shlex.quote(engines.RECORD)
        lines = ["PATH=/out/bin:$PATH", "mkdir -p /out/bin", "echo emulated >/out/nodes", "cp /out/srun /out/bin/srun; chmod +x /out/bin/srun",
                 "grep Cpus_allowed_list /proc/self/status", "nproc"]
        lines = ["cat >/out/srun <<'EOS'\n%sEOS" % SRUN] + lines + [tool + " topo --json >/out/topo"]
        for number, (environment, options) in enumerate(self.cases.values()):
            folder = "/out/ranks-%d" % number
            words = "%s -- %s %s" % (options, record, folder)
            lines += ["mkdir " + folder, "env %s %s plan --json %s >/out/plan-%d 2>/out/plan-err-%d" % (environment, tool, words, number, number),
                      "env %s %s run --verify strict %s >/out/run-out-%d 2>/out/run-err-%d; echo $? >/out/run-status-%d"
                      % (environment, tool, words, number, number, number)]
        status, output, took = emulated_node.run(os.path.join(CACHE), self.shape, "\n".join(lines))
        self.assertEqual(status, 0, output)
        print("\n%s: %d cases, the node ran for %.0f s" % (self.shape, len(self.cases), took), file=sys.stderr)
        return output

    def text(self, name):
        with open(os.path.join(CACHE, "out-" + self.shape, name), errors="replace") as file:
            return file.read()

    def held(self, everywhere):
        """Judges all cases; the plans, by name."""
        output = self.boot()
        self.assertIn("Cpus_allowed_list:\t0-%d" % everywhere, output)
        plans = {}
        for number, name in enumerate(self.cases):
            with self.subTest(name):
                said = "%s\n%s\n%s" % (self.text("plan-err-%d" % number), self.text("run-out-%d" % number), self.text("run-err-%d" % number))
                self.assertEqual(self.text("run-status-%d" % number).strip(), "0", said)
                plan = plans[name] = json.loads(self.text("plan-%d" % number))
                folder = os.path.join(CACHE, "out-" + self.shape, "ranks-%d" % number)
                self.assertEqual(differences(plan, folder, everywhere=set(range(everywhere + 1)), skip=["MASTER_PORT"]), [], said)
                self.assertNotIn("hpclaunch: rank", said)
        return plans

    def devices(self, plan):
        return [rank["device"] for rank in plan["classes"][0]["ranks"]]

    def found(self):
        """NUMA nodes of the GPUs and of the interfaces that the live probe found, the latter by name."""
        node = json.loads(self.text("topo"))
        for number, nic in enumerate(node["nics"]):
            self.assertEqual([nic["name"], nic["state"], nic["addresses"]], ["hsn%d" % number, "up", ["10.88.%d.1" % number]])
        shape = emulated_node.SHAPES[self.shape]
        self.assertEqual([device["numa"] for device in node["devices"]], list(shape["gpus"]))
        self.assertEqual([nic["numa"] for nic in node["nics"]], list(shape["nics"]))

    def cpus(self, plan):
        return [rank["cpus"] for rank in plan["classes"][0]["ranks"]]


# Emulated nodes have the places of a site's devices, and neither their addresses nor the memory.
class OnePackage(Shape):
    shape = "1x64"
    cases = {
        "no profile, local": ("", "-n 8 --profile none"),
        "no profile, 3 ranks": ("", "-n 3 --profile none"),
        "no profile, srun binds": (SLURM, "-n 8 --profile none --launcher slurm --bind-via launcher"),
        "frontier, local": (SLURM, "-n 8 --profile frontier --on-drift warn --launcher local --gpu-view own"),
        "frontier, srun binds": (SLURM, "-n 8 --profile frontier --on-drift warn --launcher slurm --gpu-view own --bind-via launcher"),
    }

    def test(self):
        plans = self.held(127)
        self.found()
        # From the places of PCI functions alone: no driver, no library (docs/sites/frontier.md has the order).
        self.assertEqual(self.devices(plans["no profile, local"]), [4, 5, 2, 3, 6, 7, 0, 1])
        # One L3 each, both threads of its cores: siblings are c and c + 64 there.
        self.assertEqual(self.cpus(plans["no profile, local"]), ["%d-%d,%d-%d" % (8 * i, 8 * i + 7, 8 * i + 64, 8 * i + 71) for i in range(8)])
        # The first core of each L3 is the system's (docs/sites/frontier.md).
        self.assertEqual(self.cpus(plans["frontier, local"]), ["%d-%d" % (8 * i + 1, 8 * i + 7) for i in range(8)])
        self.assertEqual(self.cpus(plans["frontier, srun binds"]), self.cpus(plans["frontier, local"]))


class TwoPackages(Shape):
    shape = "2x52"
    cases = {
        "no profile, local": ("", "-n 4 --profile none"),
        "no profile, 6 ranks": ("", "-n 6 --profile none"),
        "no profile, 12 ranks": ("", "-n 12 --profile none"),
        "aurora, local": (PBS, "-n 12 --profile aurora --on-drift warn --launcher local"),
    }

    def test(self):
        plans = self.held(207)
        self.found()
        self.assertEqual(self.devices(plans["no profile, 6 ranks"]), list(range(6)))
        self.assertEqual(self.cpus(plans["no profile, local"])[0], "0-25,104-129")
        aurora = [cpu_list(cpus) for cpus in self.cpus(plans["aurora, local"])]
        self.assertEqual(sum(len(cpus) for cpus in aurora), len(set().union(*aurora)))
        self.assertFalse(set().union(*aurora) & {0, 52, 104, 156})  # cores 0 and 52 are the system's


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    CACHE = os.path.abspath(sys.argv.pop(3))
    engines.main()
