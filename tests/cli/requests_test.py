#!/usr/bin/env python3
"""What a job is asked for: parts of shared nodes, whole nodes, and the options that batch systems spell differently."""
import json
import sys

import support
from support import Test, clean_env, hpclaunch

HERE = clean_env(PATH="/nonexistent", HPCLAUNCH_PROFILE_PATH="/nonexistent", XDG_CONFIG_HOME="/nonexistent")
CPU = ["--node-type", "cpu"]


def alliance(gpus, ranks, cores, memory):
    return ([gpus] if gpus else []) + ["--ntasks-per-node=%d" % ranks, "-c %d" % cores, "--mem=" + memory]


def jean_zay(kind, gpus, ranks, cores):
    return [kind, "--gres=gpu:%d" % gpus, "--ntasks-per-node=%d" % ranks, "--cpus-per-task=%d" % cores, "--hint=nomultithread"]


def leonardo(gpus, ranks, cores, memory=None):
    return (["--partition=boost_usr_prod", "--gres=gpu:%d" % gpus] + ([] if memory else ["--exclusive"])
            + ["--ntasks-per-node=%d" % ranks, "--cpus-per-task=%d" % cores, "--mem=" + (memory or "494000")])


def marenostrum(gpus, ranks, cores):
    return ["--gres=gpu:%d" % gpus, "--ntasks-per-node=%d" % ranks, "-c %d" % cores]


def gpu_clusters():
    """Narval, Fir, Rorqual and Nibi: GPU, GPUs of a node, cores and memory of one, in shapes that all of them have."""
    for name, model, count, cores, memory in (("narval", "a100", 4, 12, 124), ("fir", "h100", 4, 12, 280), ("rorqual", "h100", 4, 16, 124), ("nibi", "h100", 8, 14, 250)):
        def gpus(number, model=model):
            return "--gpus-per-node=%s:%d" % (model, number)
        whole = alliance(gpus(count), count, cores, "0")
        yield name, [
            ("-N 1", whole),
            ("-N 2", whole),
            ("-N 1 -n 1", alliance(gpus(1), 1, cores, "%dG" % memory)),
            ("-N 1 -n 1 --cpus-per-rank 1", alliance(gpus(1), 1, 1, "%dG" % memory)),
            ("-N 1 -n 2", alliance(gpus(2), 2, cores, "%dG" % (2 * memory))),
            ("-N 1 -n 3", alliance(gpus(3), 3, cores, "%dG" % (3 * memory))),
            ("-N 2 -n 3", alliance(gpus(2), 2, cores, "%dG" % (2 * memory))),
            ("-N 2 --ppn 1", alliance(gpus(1), 1, cores, "%dG" % memory)),
            ("-N 1 -n 1 --devices-per-rank 2", alliance(gpus(2), 1, 2 * cores, "%dG" % (2 * memory))),
            ("-N 1 --gpus 2", alliance(gpus(2), 2, cores, "%dG" % (2 * memory))),
            ("-N 1 -n 4 --gpus 2", alliance(gpus(2), 4, cores // 2, "%dG" % (2 * memory))),
            ("-N 1 -n 1 --gpus %d" % count, alliance(gpus(count), 1, count * cores, "0")),
            ("-N 1 --agent", alliance(gpus(count), 1, count * cores, "0")),
        ]


SITES = dict(gpu_clusters())
SITES["narval"] += [
    ("-N 1 -n 1 --cpus-per-rank 6 --mem 32000M", ["--gpus-per-node=a100:1", "--ntasks-per-node=1", "-c 6", "--mem=32000M"]),
    (" ".join(CPU) + " -N 1 -n 1 --cpus-per-rank 1", alliance("", 1, 1, "4000M")),
    (" ".join(CPU) + " -N 1 -n 4 --cpus-per-rank 2", alliance("", 4, 2, "32000M")),
    (" ".join(CPU) + " -N 1 --ppn 8", alliance("", 8, 8, "0")),
]
SITES.update({
    "trillium": [
        ("-N 1 -n 1", alliance("--gpus-per-node=h100:1", 1, 24, "188G")),
        ("-N 1 --gpus 1", alliance("--gpus-per-node=h100:1", 1, 24, "188G")),
        ("-N 1 -n 2", alliance("--gpus-per-node=h100:4", 2, 48, "0")),
        ("-N 1 -n 3", alliance("--gpus-per-node=h100:4", 3, 32, "0")),
        ("-N 2", alliance("--gpus-per-node=h100:4", 4, 24, "0")),
        ("-N 1 --node-type cpu -n 1 --cpus-per-rank 1", alliance("", 1, 1, "0")),
    ],
    "jean-zay": [
        ("-N 1", jean_zay("--constraint=h100", 4, 4, 24)),
        ("-N 1 -n 1", jean_zay("--constraint=h100", 1, 1, 24)),
        ("-N 1 -n 2", jean_zay("--constraint=h100", 2, 2, 24)),
        ("-N 2 -n 3", jean_zay("--constraint=h100", 2, 2, 24)),
        ("-N 1 -n 1 --cpus-per-rank 1", jean_zay("--constraint=h100", 1, 1, 1)),
        ("-N 1 -n 1 --gpus 3", jean_zay("--constraint=h100", 3, 1, 72)),
        ("-N 1 --node-type a100 -n 1", jean_zay("--constraint=a100", 1, 1, 8)),
        ("-N 1 --node-type a100 -n 5", jean_zay("--constraint=a100", 5, 5, 8)),
        ("-N 1 --node-type v100-32g -n 1", jean_zay("--constraint=v100-32g", 1, 1, 10)),
        ("-N 1 --node-type v100-8gpu -n 1", jean_zay("--partition=gpu_p2", 1, 1, 3)),
        ("-N 1 --node-type v100 -n 1", jean_zay("", 1, 1, 10)[1:]),
    ],
    "leonardo": [
        ("-N 1", leonardo(4, 4, 8)),
        ("-N 2", leonardo(4, 4, 8)),
        ("-N 1 -n 1", leonardo(1, 1, 8, "123500M")),
        ("-N 1 -n 2", leonardo(2, 2, 8, "247000M")),
        ("-N 1 -n 3", leonardo(3, 3, 8, "370500M")),
        ("-N 2 -n 3", leonardo(2, 2, 8, "247000M")),
        ("-N 1 -n 1 --cpus-per-rank 1", leonardo(1, 1, 1, "123500M")),
        ("-N 1 --gpus 2", leonardo(2, 2, 8, "247000M")),
        ("-N 1 -n 1 --gpus 4", leonardo(4, 1, 32)),
        ("-N 1 -n 1 --mem 200G", leonardo(1, 1, 8, "200G")),
    ],
    "marenostrum5": [
        ("-N 1", marenostrum(4, 4, 20)),
        ("-N 1 -n 1", marenostrum(1, 1, 20)),
        ("-N 1 -n 2", marenostrum(2, 2, 20)),
        ("-N 1 -n 3", marenostrum(3, 3, 20)),
        ("-N 2 -n 3", marenostrum(2, 1, 40)),
        ("-N 1 -n 1 --cpus-per-rank 1", marenostrum(1, 1, 20)),
        ("-N 1 -n 1 --cpus-per-rank 40", marenostrum(2, 1, 40)),
        ("-N 1 -n 4 --gpus 2", marenostrum(2, 4, 10)),
        ("-N 1 -n 3 --gpus 2", marenostrum(2, 1, 40)),
        ("-N 1 -n 1 --gpus 4", marenostrum(4, 1, 80)),
    ],
})
SITES["lumi-g"] = [
    ("-N 1", ["--gpus-per-node=8", "--exclusive", "--mem=0"]),
    ("-N 1 -n 1", ["--gpus-per-node=8", "--exclusive", "--mem=0"]),  # standard-g gives whole nodes
    ("-q small-g -N 1", ["--gpus-per-node=8", "--exclusive", "--mem=0"]),
] + [("-q %s %s" % (queue, shape), ["--gpus-per-node=%d" % gpus, "--ntasks-per-node=%d" % ranks, "--cpus-per-task=%d" % cores, "--mem=%dG" % (60 * gpus)])
     for queue, shape, gpus, ranks, cores in (("small-g", "-N 1 -n 1", 1, 1, 7), ("small-g", "-N 1 -n 4", 4, 4, 7), ("dev-g", "-N 1 --gpus 2", 2, 2, 7),
                                              ("small-g", "-N 2 -n 3", 2, 2, 7), ("small-g", "-N 1 -n 1 --cpus-per-rank 1", 1, 1, 1))]
SITES["perlmutter"] = [
    ("-N 1", ["--constraint=gpu", "--gpus-per-node=4"]),
    ("-N 1 -n 1", ["--constraint=gpu", "--gpus-per-node=4"]),  # regular gives whole nodes
    ("-q shared -N 1 -n 1", ["--constraint=gpu", "--gpus-per-node=1", "--ntasks-per-node=1", "-c 32"]),
    ("-q shared -N 1 -n 2", ["--constraint=gpu", "--gpus-per-node=2", "--ntasks-per-node=1", "-c 64"]),
    ("-q shared -N 1 -n 1 --cpus-per-rank 1", ["--constraint=gpu", "--gpus-per-node=1", "--ntasks-per-node=1", "-c 32"]),
    ("-q shared -N 1 --gpus 2", ["--constraint=gpu", "--gpus-per-node=2", "--ntasks-per-node=1", "-c 64"]),
]
WHOLE = {  # sites that give whole nodes: the same for every shape
    "aurora": ["-l place=scatter", "-k doe"], "polaris": ["-l place=scatter", "-k doe"], "frontier": [],
    "daint": ["--uenv=pytorch/v2.9.1:/user-environment", "--view=default", "--gpus-per-node=4"], "jupiter": ["--gres=gpu:4"],
    "gcp-a3": ["--gpus-per-node=8", "--exclusive", "--mem=0"],
}
SHAPES = ("-N 1", "-N 1 -n 1", "-N 1 -n 1 --cpus-per-rank 1", "-N 1 -n 2", "-N 1 -n 3", "-N 2 --ppn 1", "-N 2 -n 3 --gpu-view own", "-N 1 --ppn 4", "-N 1 -n 1 --devices-per-rank 2", "-N 1 --agent")
OWN = ("-N ", "-t ", "-A ", "-q ", "-p ", "-J ", "-l select", "-l walltime", "-l filesystems", "-j ", "--network", "-C ")  # of every script; --network: Frontier, from 2 nodes on


class Written(Test):
    def script(self, *words, says=()):
        done = self.ok(hpclaunch("script", "-t", "1h", "-A", "abc", *words, "--", "python3", "train.py", env=HERE))
        self.has(done, *says)
        return done.out

    def directives(self, text):
        """Without sentinel, those of every job left out."""
        found = [line.split(" ", 1)[1] for line in text.splitlines() if line.startswith(("#SBATCH ", "#PBS ", "#BSUB ", "#$ ", "#COBALT "))]
        found += [line[len("# flux: "):] for line in text.splitlines() if line.startswith("# flux: ")]
        return found

    def lint(self, name, text):
        done = hpclaunch("lint", self.file(name, text), env=HERE)
        self.ok(done)


class Requests(Written):
    def asks_for(self, site, number, shape, wanted):
        with self.subTest(site, shape=shape):
            text = self.script("--profile", site, *shape.split())
            got = [one for one in self.directives(text) if not one.startswith(OWN)]
            self.assertEqual(sorted(got), sorted(wanted))
            self.lint("%s-%d.sh" % (site, number), text)

    def test_shared_nodes(self):
        for site, shapes in SITES.items():
            self.assertGreater(len(shapes), 5)
            for number, (shape, wanted) in enumerate(shapes):
                self.asks_for(site, number, shape, wanted)

    def test_whole_nodes(self):
        for site, wanted in WHOLE.items():
            for number, shape in enumerate(SHAPES):
                self.asks_for(site, number, shape, wanted)

    def test_the_plan_is_that_of_the_job(self):
        plan = json.loads(self.ok(hpclaunch("plan", "--json", "--profile", "narval", "-N", "1", "-n", "1", "--", sys.executable, env=HERE)).out)
        self.assertEqual(plan["batch"], ["--gpus-per-node=a100:1", "--ntasks-per-node=1", "-c 12", "--mem=124G"])
        self.assertEqual(plan["classes"][0]["granted"], 12)
        self.assertIn("-c12", plan["argv"])

    def test_the_profile_shows_it(self):
        for site, entries, share, text in (("narval", "nodes", {"cores": 12, "memory_mb": 126976, "core_memory_mb": 4000}, "12 cores, 126976 MiB with each device; 4000 MiB with each core"),
                                           ("perlmutter", "queues", {"cores": 16, "exact": True, "devices": [1, 2]}, "16 cores with each device; 1 or 2 devices")):
            shown = json.loads(self.ok(hpclaunch("profile", "show", site, "--format", "json", env=HERE)).out)["profiles"][0]
            entries = shown["job"]["queues"] if entries == "queues" else shown[entries]
            self.assertIn(share, [one.get("share") for one in entries])
            self.has(hpclaunch("profile", "show", site, env=HERE), text)

    def test_the_hint(self):
        done = hpclaunch("run", "--profile", "narval", "-N", "1", "-n", "1", "--", "true", env=HERE)
        self.ok(done, 125)
        self.has(done, "salloc -N 1 -t 01:00:00 -A def-PROJECT --gpus-per-node=a100:1 --ntasks-per-node=1 -c 12 --mem=124G")

    def test_numbers_of_gpus_that_no_job_can_have(self):
        for site, number, says in (("narval", "5", "4 devices"), ("trillium", "2", "jobs have all 4 devices"), ("frontier", "1", "jobs have all 8 devices"), ("lumi-g", "1", "-q small-g"), ("narval", "0", "--gpus")):
            self.refused(2, "script", "--profile", site, "--gpus", number, "--", "true", env=HERE, says=[says])
        self.refused(2, "script", "--profile", "narval", "--node-type", "cpu", "--gpus", "1", "--", "true", env=HERE, says=["0 devices", "--node-type"])
        self.assertEqual(self.directives(self.script("--profile", "frontier", "--gpus", "8")), self.directives(self.script("--profile", "frontier")))

    def test_memory(self):
        self.assertIn("#SBATCH --mem=450G\n", self.script("--profile", "clariden", "--mem", "450G"))
        self.assertEqual([one for one in self.directives(self.script("--profile", "gcp-a3", "--mem", "10G")) if "mem" in one], ["--mem=10G"])
        for bad in ("0", "64", "G", "1.5G", "64GB", "-1G", "99999999999G"):
            self.refused(2, "script", "--profile", "narval", "--mem=" + bad, "--", "true", env=HERE, says=["--mem"])


class Options(Written):
    OPTIONS = (("--gpus", "2"), ("--mem", "64G"), ("--dependency", "afterok:12"), ("--array", "1-4"), ("--reservation", "R5"), ("--exclude", "n1"), ("--mail", "a@b.org"), ("--error", "err.txt"))
    WANTED = {
        "slurm": ["--gpus-per-node=2", "--mem=64G", "-d afterok:12", "-a 1-4", "--reservation=R5", "-x n1", "--mail-type=BEGIN,END,FAIL --mail-user=a@b.org", "-e err.txt"],
        "pbs": ["-l select=2:ngpus=2:ncpus=2:mpiprocs=2", "-l select=2:mem=64GB", "-W depend=afterok:12", "-J 1-4", "-q R5", None, "-m abe -M a@b.org", "-e err.txt"],
        "flux": ["-g 2", None, "--dependency=afterok:12", None, None, "--requires=-host:n1", None, "--error=err.txt"],
        "lsf": ["-gpu num=2", '-R "rusage[mem=64GB]"', "-w afterok:12", '-J "train[1-4]"', "-U R5", None, "-B -N -u a@b.org", "-e err.txt"],
        "cobalt": [None, None, "--dependencies=afterok:12", None, None, None, "-M a@b.org", "-e err.txt"],
        "sge": [None, None, "-hold_jid afterok:12", "-t 1-4", "-ar R5", None, "-m bea -M a@b.org", "-e err.txt"],
    }

    def test_each_system(self):
        for system, all in self.WANTED.items():
            nodes = [] if system == "sge" else ["-N", "2"]
            plain = self.directives(self.script("--scheduler", system, *nodes))
            for (option, value), wanted in zip(self.OPTIONS, all):
                with self.subTest(system, option=option):
                    if wanted is None:
                        self.refused(2, "script", "--scheduler", system, option, value, "--", "true", env=HERE,
                                     says=["has no directive for %s %s" % (option, value), "--batch OPTION"])
                        continue
                    got = self.directives(self.script("--scheduler", system, *nodes, option, value))
                    self.assertIn(wanted, got)
                    self.assertLessEqual(len(got), len(plain) + 1)

    def test_together(self):
        words = [word for pair in self.OPTIONS for word in pair]
        text = self.script("--scheduler", "slurm", "-N", "2", *words)
        for wanted in self.WANTED["slurm"]:
            self.assertIn("#SBATCH %s\n" % wanted, text)
        self.lint("all.sh", text)
        self.assertIn("#PBS -l select=2:system=polaris:mem=64GB\n", self.script("--profile", "polaris", "-N", "2", "--mem", "64G"))

    def test_nodes_of_pbs_that_are_not_known(self):
        """select=N alone is one CPU of each node."""
        for words, select, place in ((["-N", "2", "--ppn", "2", "--cpus-per-rank", "1"], "select=2:ncpus=2:mpiprocs=2", "place=scatter"),
                                     (["-N", "2", "-n", "3", "--cpus-per-rank", "4"], "select=2:ncpus=8:mpiprocs=2", "place=scatter"),
                                     (["--ppn", "3", "--cpus-per-rank", "1", "--gpus", "2"], "select=1:ngpus=2:ncpus=3:mpiprocs=3", None),
                                     (["-N", "3", "--gpus", "1"], "select=3:ngpus=1:ncpus=1:mpiprocs=1", "place=scatter"),
                                     (["-n", "4", "--cpus-per-rank", "2", "--constraint", "arch=x"], "select=1:arch=x:ncpus=8:mpiprocs=4", None),
                                     (["-N", "2", "--ppn", "2"], "select=2", "place=scatter:excl"), (["--cpus-per-rank", "2"], "select=1", "place=scatter:excl"),
                                     ([], "select=1", "place=scatter:excl"), (["-N", "2", "--batch=-l place=pack"], "select=2", "place=pack"),
                                     (["-N", "2", "--batch=-lselect=4:x=1"], None, "place=scatter:excl")):
            with self.subTest(words):
                got = self.directives(self.script("--profile", "none", "--scheduler", "pbs", *words))
                self.assertEqual([one for one in got if one.startswith("-l select")], ["-l " + select] if select else [])
                self.assertEqual([one for one in got if one.startswith("-l place")], ["-l " + place] if place else [])
                self.assertIn("-k doe", got)
        self.assertNotIn("-k doe", self.directives(self.script("--profile", "none", "--scheduler", "pbs", "--batch=-k oe")))
        self.assertIn("cpus-default", self.ok(hpclaunch("script", "--scheduler", "pbs", "--gpus", "1", "--", "true", env=HERE)).err)

    def test_a_directory_for_the_output(self):
        folder = self.file("logs/x", "")[:-2]
        for system, out, err in (("pbs", "logs/", "logs/"), ("slurm", "logs/slurm-%j.out", "logs/slurm-%j.err"), ("flux", "logs/flux-{{id}}.out", "logs/flux-{{id}}.err"),
                                 ("lsf", "logs/%J.out", "logs/%J.err"), ("sge", "logs/", "logs/")):
            for given in folder, folder + "/":
                got = self.directives(self.script("--profile", "none", "--scheduler", system, "--output", given, "--error", given))
                for wanted in out, err:
                    self.assertTrue([one for one in got if one.endswith(folder[:-4] + wanted)], [system, wanted, got])
        self.refused(2, "script", "--scheduler", "cobalt", "--output", folder, "--", "true", env=HERE, says=["a directory, and Cobalt takes a file", "--output %s/out.txt" % folder])

    def test_errors_have_a_file_or_are_joined(self):
        for system, join in (("pbs", "-j oe"), ("sge", "-j y")):
            self.assertIn(join, self.directives(self.script("--scheduler", system)))
            self.assertNotIn(join, self.directives(self.script("--scheduler", system, "--error", "e")))

    def test_a_reservation_of_pbs_is_a_queue(self):
        got = self.directives(self.script("--profile", "polaris", "--reservation", "R5"))
        self.assertEqual([one for one in got if one.startswith("-q ")], ["-q R5"])
        self.refused(2, "script", "--profile", "polaris", "-q", "prod", "--reservation", "R5", "--", "true", env=HERE, says=["PBS takes one of --queue and --reservation"])
        self.refused(2, "script", "--scheduler", "flux", "--constraint", "a", "--exclude", "n1", "--", "true", env=HERE, says=["Flux takes one of --constraint and --exclude"])

    def test_directives_as_they_are(self):
        text = self.script("--profile", "narval", "--batch=--comment=a b", "--batch", "-S 4")
        self.assertIn("#SBATCH --comment=a b\n#SBATCH -S 4\n", text)
        for bad in ("a\nb", " "):
            self.refused(2, "script", "--profile", "narval", "--batch=" + bad, "--", "true", env=HERE, says=["--batch", "is not an option of Slurm"])

    def test_values_that_no_directive_takes(self):
        for option in ("--dependency", "--array", "--reservation", "--exclude", "--mail", "--error"):
            self.refused(2, "script", "--scheduler", "slurm", option, "a\nb", "--", "true", env=HERE, says=["cannot stand in a batch directive"])


if __name__ == "__main__":
    support.main()
