#!/usr/bin/env python3
"""Each script of examples/jobs (hpclaunch script wrote it), run by bash in a made-up job of its site, with what its own directives ask for.

`hpclaunch run` becomes a look at the plan, then `run --dry-run`, then the script that this prints, with a stand-in
for the launcher: so the examples are shown to need nothing that they do not say.
"""
import json
import os
import re
import shlex
import sys

import support
from site_jobs import AURORA_LIST, PALS, SiteTest, Started
from support import ROOT, execute, need

JOBS = os.path.join(ROOT, "examples", "jobs")
FLUX_MAP = "map:0-23,96-119;24-47,120-143;48-71,144-167;72-95,168-191"
CLOSEST = [4, 5, 2, 3, 6, 7, 0, 1]

# What the script's launch line begins with.
LINES = {
    "aurora": "mpiexec --np 24 --ppn 12 --cpu-bind %s %s --pmi=pmix" % (AURORA_LIST, PALS),
    "sunspot": "mpiexec --np 24 --ppn 12 --cpu-bind %s %s --pmi=pmix" % (AURORA_LIST, PALS),
    "polaris": "mpiexec --np 8 --ppn 4 --cpu-bind list:0-7,32-39:8-15,40-47:16-23,48-55:24-31,56-63 %s" % PALS,
    "frontier": "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block --export=ALL --kill-on-bad-exit=1 --wait=0 "
                "-c7 --gpus-per-task=1 --gpu-bind=closest",
    "lumi-g": "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block --cpu-bind=mask_cpu:0xfe000000000000",
    "perlmutter": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block --cpu-bind=mask_cpu:0xffff000000000000ffff000000000000",
    "daint": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block --cpu-bind=mask_cpu:0xffffffffffffffffff,",
    "clariden": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block --cpu-bind=mask_cpu:0xffffffffffffffffff,",
    "narval": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block",
    "fir": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block",
    "nibi": "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block",
    "rorqual": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block",
    "trillium": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block",
    "jupiter": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block --cpu-bind=mask_cpu:0xffffffffffffffffff,",
    "leonardo": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block --cpu-bind=mask_cpu:0xf000f,0xf000f0,0xf000f00,0xf000f000",
    "marenostrum5": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block",
    "jean-zay": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block",
    "aws-efa": "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block",
    "azure-nd": "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block --cpu-bind=mask_cpu:0xfff,0xfff000,",
    "gcp-a3": "srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --distribution=block",
    "el-capitan": "flux run -N 2 -n 8 -o cpu-affinity=" + FLUX_MAP,
    "tuolumne": "flux run -N 2 -n 8 -o cpu-affinity=" + FLUX_MAP,
}
# Signals of each site, and the form of its host names.
PBS = {"aurora": ("aurora-pbs-0001.hostmgmt.cm.aurora.alcf.anl.gov", "x4407c6s%db0n0.hostmgmt2407.cm.aurora.alcf.anl.gov"),
       "sunspot": ("sunspot-pbs-0001.head.cm.sunspot.alcf.anl.gov", "x1921c%ds0b0n0"),
       "polaris": ("polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov", "x3001c0s1b%dn0")}
SLURM = {"frontier": ("frontier0000%d", {"LMOD_SYSTEM_NAME": "frontier"}), "lumi-g": ("nid00500%d", {"SLURM_CLUSTER_NAME": "lumi"}),
         "perlmutter": ("nid00100%d", {"NERSC_HOST": "perlmutter"}), "daint": ("nid00500%d", {"CLUSTER_NAME": "daint"}),
         "clariden": ("nid00600%d", {"CLUSTER_NAME": "clariden"}), "jupiter": ("jpbo-001-0%d", {"SYSTEMNAME": "jupiter"}),
         "leonardo": ("lrdn000%d", {"HPC_SYSTEM": "leonardo"}), "marenostrum5": ("as01r1b0%d", {"BSC_MACHINE": "mn5"}),
         "jean-zay": ("jean-zay-iam0%d", {"SLURM_SUBMIT_HOST": "jean-zay1", "SLURM_JOB_PARTITION": "gpu_p6"})}
FLUX = {"el-capitan": "elcap[1001-100%d]", "tuolumne": "tuolumne[1001-100%d]"}

# What a login shell has: modules, conda, and the hpclaunch under test, whose run starts nothing by itself.
SHELL = """
module() {
  [ "$1" = load ] || return 0
  shift
  for one; do LOADEDMODULES=${LOADEDMODULES:+$LOADEDMODULES:}$one; done
  export LOADEDMODULES
}
conda() { :; }
source() { :; }
hpclaunch() {
  [ "$1" = run ] || exit 99
  shift
  %(hpclaunch)s plan --json "$@" > plan.json
  echo "$?" > plan.status
  %(hpclaunch)s run --dry-run "$@" > dry.sh
}
"""


def directives(text):
    """The words after #PBS, #SBATCH and # flux:, options and values as they stand."""
    words = []
    for line in text.splitlines():
        found = re.match(r"#PBS (.*)|#SBATCH (.*)|# flux: (.*)", line)
        if found:
            words += shlex.split(next(group for group in found.groups() if group))
    return words


def asked(words, *names):
    """The value of the last of these directives; long ones are written --name=value, short ones -n value."""
    value = None
    for at, word in enumerate(words):
        name, equals, behind = word.partition("=")
        if name in names and equals:
            value = behind
        elif word in names and at + 1 < len(words):
            value = words[at + 1]
    return value


class Examples(SiteTest):
    def job(self, site, words):
        """The job that these directives make."""
        if site in PBS:
            nodes = int(re.search(r"select=(\d+)", " ".join(words)).group(1))
            server, host = PBS[site]
            return self.pbs(server, [host % node for node in range(nodes)], "login1")
        nodes = int(asked(words, "-N", "--nodes"))
        if site in FLUX:
            return self.flux(FLUX[site] % nodes)
        env = {"SLURM_CLUSTER_NAME": site, "CC_CLUSTER": site} if site not in SLURM else dict(SLURM[site][1])
        host = SLURM[site][0] if site in SLURM else "node%d"
        hosts = ",".join(host % (node + 1) for node in range(nodes))
        for name, option in (("SLURM_NETWORK", "--network"), ("SLURM_CPUS_PER_TASK", "-c")):
            if asked(words, option):
                env[name] = asked(words, option)
        per_node = asked(words, "--ntasks-per-node")
        if per_node:
            env.update(SLURM_NTASKS_PER_NODE=per_node, SLURM_NTASKS=str(nodes * int(per_node)),
                       SLURM_TASKS_PER_NODE="%s(x%d)" % (per_node, nodes) if nodes > 1 else per_node)
        return self.slurm(hosts, nodes, CLOSEST, **env)

    def text(self, site):
        with open(os.path.join(JOBS, site + ".sh"), encoding="utf-8") as file:
            return file.read()

    def expected_findings(self, site, job):
        """All that hpclaunch may remark in an example's job."""
        # Leonardo's GPUs are all beside half of the cores; Google's network needs a file that only its nodes have.
        remarks = {"leonardo": {"far-from-device"}, "gcp-a3": {"tcpxo-missing"}}.get(site, set())
        if "SLURM_CPUS_PER_TASK" in job.env:
            remarks.add("export-overruled")  # srun gets -c from the plan and not from sbatch
        return remarks

    def check(self, site):
        text = self.text(site)
        words = directives(text)
        job = self.job(site, words)
        programs = os.path.dirname(job.program)
        for name in ("python3", "singularity"):
            os.symlink(job.program, os.path.join(programs, name))
        job.env.update(PATH=job.env["PATH"] + ":" + programs, PBS_O_WORKDIR=job.folder, SLURM_SUBMIT_DIR=job.folder)
        job.env["BASH_ENV"] = self.file("shell-%s.sh" % site, SHELL % {"hpclaunch": shlex.quote(support.HPCLAUNCH)})
        ran = self.ok(execute([need("bash"), os.path.join(JOBS, site + ".sh")], job.env, cwd=job.folder))

        with open(os.path.join(job.folder, "plan.json")) as file:
            plan = json.load(file)
        found = {finding["id"]: finding for finding in plan["diagnostics"]}
        self.assertLessEqual(set(found), self.expected_findings(site, job), ran.err)
        self.assertNotIn("error", [finding["severity"] for finding in found.values()])
        self.assertEqual([one for one in plan["batch"] if not set(one.split()) <= set(words)], [], "not asked for in the script")

        line = LINES[site].split()
        got = [os.path.basename(plan["argv"][0]), *plan["argv"][1:]]
        self.assertEqual(" ".join(got)[:len(LINES[site])], LINES[site])
        self.assertEqual(line[0], got[0])

        dry = os.path.join(job.folder, "dry.sh")
        with open(dry) as file:
            printed = file.read()
        self.assertIn("train_ddp.py", printed)
        job.env.pop("BASH_ENV")
        started = Started(self.ok(execute([need("sh"), dry], job.env, cwd=job.folder)), job.record)
        self.assertEqual(started.argv, plan["argv"][1:])
        ranks = plan["world_size"]
        self.assertEqual(sorted(started.ranks), list(range(ranks)), str(started))
        self.assertEqual({env["WORLD_SIZE"] for env in started.ranks.values()}, {str(ranks)})

    def test_every_site_has_a_page_a_script_and_a_test(self):
        """CONTRIBUTING.md, "A site"."""
        sites = set()
        for name in os.listdir(os.path.join(ROOT, "profiles", "site")):
            with open(os.path.join(ROOT, "profiles", "site", name), encoding="utf-8") as file:
                if '"retired"' not in file.read():
                    sites.add(name[:-len(".json")])
        pages = {name[:-3] for name in os.listdir(os.path.join(ROOT, "docs", "sites"))} - {"README"}
        self.assertEqual(pages, sites, "docs/sites: expected a page for each profile in service; run scripts/site-pages")
        scripts = {name[:-3] for name in os.listdir(JOBS) if name.endswith(".sh")}
        self.assertEqual(scripts, sites, "examples/jobs: expected a script for each profile in service; run scripts/job-scripts")
        with open(os.path.join(JOBS, "README.md"), encoding="utf-8") as file:
            named = set(re.findall(r"\]\(([a-z0-9-]+)\.sh\)", file.read()))
        self.assertEqual(named, sites, "examples/jobs/README.md: expected a link to each script, in a row of the table")
        self.assertEqual(set(LINES), sites, "tests/cli/examples_test.py: expected the launch line of each site in LINES")

    def test_scripts_are_tidy(self):
        scripts = [os.path.join(JOBS, site + ".sh") for site in sorted(LINES)]
        for script in scripts:
            self.assertTrue(os.access(script, os.X_OK), script)
            for shell in ("sh", "bash"):
                self.ok(execute([need(shell), "-n", script]))
        self.ok(execute([need("shellcheck"), "--severity=warning", *scripts]))

    def test_accounts_are_placeholders(self):
        for site in LINES:
            words = directives(self.text(site))
            account = asked(words, "-A")
            self.assertIn(account, ("PROJECT", "PROJECT@GPU", "def-PROJECT", "project_PROJECT", None), site)


def add_one_test_for_each():
    for site in LINES:
        setattr(Examples, "test_" + site.replace("-", "_"), lambda self, site=site: self.check(site))


add_one_test_for_each()

if __name__ == "__main__":
    sys.exit(support.main())
