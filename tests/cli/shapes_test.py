#!/usr/bin/env python3
"""Every number of ranks with every number of devices on the nodes of sites: which cores they have, what is said of idle
ones; lists of CPUs and engines that do not fit; and that what a refusal says to type is right."""
import json
import re

import support
from support import Test, clean_env, hpclaunch, machine

# Devices of a node, hardware threads that ranks have of each core, and for each GPU the usable cores that are near it.
PACKAGES = [[*range(1, 52)]] * 3 + [[*range(53, 104)]] * 3
REGIONS = [[*range(8 * l3 + 1, 8 * l3 + 8)] for l3 in (6, 7, 2, 3, 0, 1, 4, 5)]
SITES = {
    ("aurora",): (12, 1, PACKAGES),
    ("aurora", "--device-mode", "gpu"): (6, 1, PACKAGES),
    ("aurora", "--stack", "plain"): (12, 1, PACKAGES),
    ("sunspot",): (12, 1, PACKAGES),
    ("frontier",): (8, 1, REGIONS),
    ("lumi-g",): (8, 1, REGIONS),
    ("perlmutter",): (4, 2, [[*range(16 * n, 16 * n + 16)] for n in (3, 2, 1, 0)]),
    ("polaris",): (4, 2, [[*range(8 * n, 8 * n + 8)] for n in (3, 2, 1, 0)]),
    ("daint",): (4, 1, [[*range(72 * n, 72 * n + 72)] for n in range(4)]),
    ("clariden",): (4, 1, [[*range(72 * n, 72 * n + 72)] for n in range(4)]),
    ("el-capitan",): (4, 2, [[*range(24 * n, 24 * n + 24)] for n in range(4)]),
    ("tuolumne",): (4, 2, [[*range(24 * n, 24 * n + 24)] for n in range(4)]),
}


def cpus_of(text):
    found = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


class Shapes(Test):
    def plan(self, *words, env=None):
        done = hpclaunch("plan", "--json", "--profile", *words, "--", "/bin/true", env=env or clean_env())
        self.assertIn(done.status, (0, 1), str(done))
        return json.loads(done.out)

    def ids(self, plan):
        return [one["id"] for one in plan["diagnostics"]]

    def shape(self, site, ranks, each):
        return self.plan(*site, "-N", "2", "--ppn", str(ranks), "--devices-per-rank", str(each))

    def check_shape(self, site, ranks, each):
        _, threads, near = SITES[site]
        cores = set().union(*near)
        plan = self.shape(site, ranks, each)
        used, wanted = set(), set()
        self.assertEqual(len(plan["classes"][0]["ranks"]), ranks)
        for rank in plan["classes"][0]["ranks"]:
            devices = [rank["device"]] + [unit["device"] for unit in rank["more_units"]]
            self.assertEqual(len(devices), each)
            its = set().union(*(near[device] for device in devices))
            mine = cpus_of(rank["cpus"])
            firsts = mine & cores
            self.assertEqual((rank["cores"], len(mine)), (len(firsts), threads * len(firsts)))
            self.assertLessEqual(firsts, its)
            self.assertFalse(firsts & used)
            used |= firsts
            wanted |= its
        self.assertEqual(used, wanted)
        self.assertEqual("idle-cores" in self.ids(plan), 2 * len(used) <= len(cores))

    def test_ranks_of_several_devices_have_the_cores_near_any_of_them(self):
        for site, (devices, _, _) in SITES.items():
            for each in range(2, devices + 1):
                for ranks in range(1, devices // each + 1):
                    with self.subTest(site=site, ranks=ranks, each=each):
                        self.check_shape(site, ranks, each)

    def test_one_process_that_owns_a_node(self):
        for site, (devices, _, near) in SITES.items():
            with self.subTest(site=site):
                rank = self.shape(site, 1, devices)["classes"][0]["ranks"][0]
                self.assertEqual(rank["cores"], len(set().union(*near)))
        self.assertEqual(self.shape(("aurora",), 1, 12)["classes"][0]["ranks"][0]["cpus"], "1-51,53-103")
        self.assertEqual(self.shape(("frontier",), 1, 8)["classes"][0]["ranks"][0]["cpus"], "1-7,9-15,17-23,25-31,33-39,41-47,49-55,57-63")
        why = " ".join(hpclaunch("explain", "--profile", "aurora", "-N", "1", "--ppn", "1", "--devices-per-rank", "12", "cpu-bind", env=clean_env()).out.split())
        self.assertIn("each rank gets the first hardware thread of each of its cores", why)
        self.assertIn("profile rule four-each is for one device per rank", why)

    def test_idle_cores_are_named_where_no_page_keeps_them_free(self):
        for words, said in ((("aurora", "--ppn", "12"), False), (("aurora", "--ppn", "48"), False), (("aurora", "--ppn", "12", "--stack", "frameworks-2024"), False),
                            (("polaris", "--ppn", "4", "--stack", "conda-2022"), False), (("aurora", "--ppn", "1", "--devices-per-rank", "2"), True),
                            (("frontier", "--ppn", "4"), True), (("frontier", "--ppn", "5"), False), (("lumi-g", "--ppn", "2"), True),
                            (("perlmutter", "--ppn", "1"), True), (("daint", "--ppn", "1", "--devices-per-rank", "2"), True),
                            (("frontier", "--ppn", "1", "--cpus-per-rank", "3"), False)):
            with self.subTest(words=words):
                self.assertEqual("idle-cores" in self.ids(self.plan(*words, "-N", "1")), said)

    def test_ranks_without_devices_have_no_cores_of_the_devices_rule(self):
        plan = self.plan("aurora", "-N", "1", "--ppn", "12", "--devices-per-rank", "0")
        said = [one["message"] for one in plan["diagnostics"] if one["id"] == "idle-cores"]
        self.assertEqual(said, ["54 of 102 cores are idle: profile rule four-each is for ranks with devices"])


class Lists(Shapes):
    MODULE = {"LOADEDMODULES": "frameworks/2025.0.0:frameworks_optimized/1.0"}

    def said(self, env, *words):
        done = hpclaunch("plan", "--profile", "aurora", "-N", "1", *words, "--", "/bin/true", env=clean_env(**env))
        return done.err

    def test_a_list_of_cpus_that_does_not_fit_is_named(self):
        twelve = ":".join("%d-%d" % (first, first + 3) for first in [*range(4, 28, 4), *range(56, 80, 4)])
        self.assertNotIn("CPU_BIND", self.said(dict(self.MODULE, CPU_BIND="verbose,list:" + twelve)))
        for value, severity, why in (("garbage", "warning", '"garbage" is not a list of CPUs'), ("list:", "warning", '"" is not a list of CPUs'),
                                     ("depth", "warning", '"depth" is not a list of CPUs'), ("list:" + twelve.replace("4-7", "0-3"), "warning", "CPU 0 is reserved for the system: "),
                                     ("list:" + twelve.replace("4-7", "4-8"), "warning", "CPU 8 would be two ranks'"),
                                     ("list:" + twelve.replace("76-79", "300"), "warning", "CPU 300 cannot be used on this node"),
                                     ("list:1-4:5-8", "note", "it has the CPUs of 2 ranks, and a node has 12")):
            with self.subTest(value=value):
                text = self.said(dict(self.MODULE, CPU_BIND=value))
                self.assertIn("%s: ignoring CPU_BIND=" % severity, text)
                self.assertRegex(text, re.escape(why) + r".* \[list-ignored\]")
        self.assertIn("it has the CPUs of 12 ranks, and a node has 6 [list-ignored]", self.said(dict(self.MODULE, CPU_BIND="list:" + twelve), "--ppn", "6"))
        self.assertIn("it has the CPUs of 12 ranks, and a node has 1 [list-ignored]",
                      self.said(dict(self.MODULE, CPU_BIND="list:" + twelve), "--ppn", "1", "--devices-per-rank", "12"))
        self.assertNotIn("list-ignored", self.said(self.MODULE))

    def test_a_list_decides_what_follows_from_cores(self):
        """On every stack and every site, typed or exported, in the notation of any launcher."""
        for words, env in ((["--cpu-bind", "1-6:53-60"], {}), ([], {"CPU_BIND": "verbose,list:1-6:53-60"}),
                           (["--cpu-bind", "mask_cpu:7e,0x1fe0000000000000"], {"CPU_BIND": "list:7:8"})):
            for stack in ("plain", "frameworks-2025.0"):
                with self.subTest(words=words, env=env, stack=stack):
                    done = self.ok(hpclaunch("plan", "--profile", "aurora", "-N", "1", "--ppn", "2", "--stack", stack, "--json", *words,
                                             "--set", "CCL_WORKER_COUNT=1", "--", "/bin/true", env=clean_env(**env)))
                    plan = json.loads(done.out)
                    ranks = plan["classes"][0]["ranks"]
                    self.assertEqual([(rank["cpus"], rank["cores"], rank["device"] // 3) for rank in ranks], [("1-6", 6, 0), ("53-60", 8, 1)])
                    self.assertIn("list:1-6:53-60", plan["argv"])

    def test_a_list_keeps_helper_threads_off_the_cores_of_ranks(self):
        """The stack of 2024 gives oneCCL's workers a core beside the rank's, and Horovod's thread one of its own."""
        lists = ["%d-%d" % (first + 2, first + 5) for first in [*range(0, 48, 8), *range(52, 100, 8)]]
        done = self.ok(hpclaunch("plan", "--profile", "aurora", "-N", "1", "--ppn", "12", "--stack", "frameworks-2024", "--cpu-bind", ":".join(lists), "--json", "--", "/bin/true"))
        set_to = {one["name"]: one["history"][-1]["value"] for one in json.loads(done.out)["env"]}
        used = [cpus_of(one) for one in lists]
        workers = [int(one) for one in set_to["CCL_WORKER_AFFINITY"].split(",")]
        self.assertEqual(len(set(workers)), 12)
        for rank, worker in enumerate(workers):
            self.assertNotIn(worker, set().union(*used))
            self.assertEqual(worker > 51, rank > 5, "on the rank's package")
        self.assertEqual([int(one) for one in set_to["HOROVOD_THREAD_AFFINITY"].split(",")], [max(one) for one in used])

    def test_a_typed_list_that_does_not_fit_is_refused(self):
        for text, words, says in (("depth", [], '"depth" is not a list of CPUs'), ("1-4", [], "it has the CPUs of 1 rank, and a node has 2"),
                                  ("0-3:8-11", [], "CPU 0 is reserved for the system"), ("1-4:3-8", [], "CPUs 3-4 would be two ranks'"),
                                  ("1-4:900", [], "CPU 900 cannot be used on this node"), ("1-4:5-8", ["--cpus-per-rank", "4"], "--cpus-per-rank decides"),
                                  ("1-4:5-8", ["--bind-via", "none"], "--bind-via none leaves ranks unbound")):
            with self.subTest(text=text):
                done = hpclaunch("plan", "--profile", "aurora", "-N", "1", "--ppn", "2", "--cpu-bind", text, *words, "--", "/bin/true")
                self.assertEqual(done.status, 2, str(done))
                self.assertIn("--cpu-bind %s: %s" % (text, says), done.err)
        self.ok(hpclaunch("plan", "--profile", "aurora", "-N", "1", "--ppn", "2", "--cpu-bind", "1-4:3-8", "--oversubscribe", "--", "/bin/true"))

    def test_the_last_node_takes_the_first_lists(self):
        plan = json.loads(self.ok(hpclaunch("plan", "--profile", "aurora", "-N", "2", "-n", "3", "--ppn", "2", "--launcher", "hydra", "--cpu-bind", "1-4:53-56", "--json", "--", "/bin/true")).out)
        self.assertEqual([[rank["cpus"] for rank in one["ranks"]] for one in plan["classes"]], [["1-4", "53-56"], ["1-4"]])

    def test_a_list_where_granted_cores_are_not_known(self):
        job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NNODES": "2", "SLURM_JOB_NUM_NODES": "2", "SLURM_TASKS_PER_NODE": "1(x2)",
               "SLURM_JOB_CPUS_PER_NODE": "2,4"}
        words = ("--profile", "none", "--ppn", "1", "--topology", machine("documented/dgx-h100.xml"), "--", "/bin/true")
        why = "the job has part of each node, and which CPUs these are is not known"
        self.assertIn("ignoring CPU_BIND=\"0\": " + why, self.ok(hpclaunch("plan", *words, env=clean_env(CPU_BIND="0", **job))).err)
        done = hpclaunch("plan", "--cpu-bind", "0", *words, env=clean_env(**job))
        self.assertEqual(done.status, 2, str(done))
        self.assertIn("--cpu-bind 0: " + why, done.err)

    def test_lists_of_helpers_against_the_node(self):
        workers = "42,43,44,45,46,47,94,95,96,97,98,%d"
        self.assertNotIn("CCL_WORKER_AFFINITY", self.said({"CCL_WORKER_AFFINITY": workers % 99}))
        self.assertIn("CCL_WORKER_AFFINITY names CPU 250, which the node does not have [list-invalid]", self.said({"CCL_WORKER_AFFINITY": workers % 250}))
        self.assertIn("puts 1 of 12 threads of oneCCL on cores of ranks [helper-cores]", self.said({"CCL_WORKER_AFFINITY": workers % 108}))
        self.assertIn('HOROVOD_THREAD_AFFINITY="some" is not a list of CPUs [list-invalid]', self.said({"HOROVOD_THREAD_AFFINITY": "some"}))

    def test_engines_against_the_node(self):
        def pairs(devices, engines=2):
            return {"ZEX_NUMBER_OF_CCS": ",".join("%d:%d" % (device, engines) for device in devices)}
        for mode, ok in (("tile", 12), ("gpu", 6)):
            words = ("--device-mode", mode, "--ppn", str(2 * ok))
            self.assertNotIn("[list-", self.said(pairs(range(ok)), *words))
            self.assertIn("it names device %d, and the node has %d devices [list-invalid]" % (ok, ok), self.said(pairs(range(ok + 1)), *words))
        self.assertIn("is no DEVICE:ENGINES with 1, 2 or 4 engines [list-invalid]", self.said({"ZEX_NUMBER_OF_CCS": "0:2;1:2"}, "--ppn", "24"))
        self.assertIn("is no DEVICE:ENGINES with 1, 2 or 4 engines [list-invalid]", self.said({}, "--ppn", "24", "--set", "ZEX_NUMBER_OF_CCS=0:3"))
        self.assertIn("devices 3,4,5 of ranks are not named, and keep one queue each [list-partial]", self.said(pairs(range(3)), "--ppn", "24", "--gpu-view", "all"))
        self.assertNotIn("[list-", self.said(pairs([0]), "--ppn", "24", "--gpu-view", "own"))  # a rank counts its own from 0
        self.assertNotIn("[list-", self.said({}, "--ppn", "24"))


class Hints(Test):
    """Each alternative of a hint that has a number is typed in place of what was refused, and must be a plan."""

    ALIASES = {"--ranks-per-node": "--ppn", "--ranks": "-n", "--nodes": "-N"}

    def typed(self, words, alternative):
        words = list(words)
        options = re.findall(r"(--[a-z-]+)(?: to)?(?: (\d+))?", alternative)
        self.assertTrue(options, alternative)
        for option, value in options:
            option = self.ALIASES.get(option, option)
            if not value and option != "--oversubscribe":  # "a smaller --devices-per-rank"
                return None
            if option in words:
                words[words.index(option) + 1] = value
            else:
                words += [option, value] if value else [option]
        return words

    def works(self, *words, says=()):
        with self.subTest(words=words):
            done = hpclaunch("plan", *words, "--", "/bin/true", env=clean_env())
            self.ok(done, 2)
            hint = done.err.split("hpclaunch: try: ")[1].strip()
            for text in says:
                self.assertIn(text, hint)
            tried = [self.typed(words, one) for one in re.split(", or ", hint.replace(" or fewer", ""))]
            self.assertTrue(any(tried), hint)
            for again in filter(None, tried):
                done = hpclaunch("plan", *again, "--", "/bin/true", env=clean_env())
                self.assertNotIn("error", done.err, "%s: %s" % (again, done))
                self.assertIn(done.status, (0, 1), "%s: %s" % (again, done))

    def test_more_cores_than_there_are(self):
        for site in ("frontier", "lumi-g", "perlmutter", "polaris", "aurora", "daint", "narval"):
            for cores in (10, 56, 1000):
                for ppn in (2, 8, 300):
                    words = ("--profile", site, "--gpu-view", "own", "-N", "1", "--ppn", str(ppn), "--cpus-per-rank", str(cores))
                    if hpclaunch("plan", *words, "--", "/bin/true", env=clean_env()).status == 2:
                        self.works(*words)
        self.works("--profile", "frontier", "-N", "1", "--ppn", "8", "--cpus-per-rank", "56",
                   says=("--cpus-per-rank 7", "--ranks-per-node 1 with --devices-per-rank 8"))
        self.works("--profile", "aurora", "-N", "1", "--ppn", "12", "--cpus-per-rank", "34", says=("--ranks-per-node 3 with --devices-per-rank 4",))
        self.works("--profile", "perlmutter", "-N", "1", "--gpu-view", "all", "--ppn", "4", "--cpus-per-rank", "64", says=("--ranks-per-node 1",))

    def test_more_ranks_than_cores(self):
        for site in ("frontier", "perlmutter", "aurora", "daint"):
            self.works("--profile", site, "--gpu-view", "own", "-N", "1", "--ppn", "300")
        self.works("--profile", "none", "--topology", machine("laptop-8.xml"), "--ppn", "100", says=("--oversubscribe",))
        self.works("--profile", "none", "--topology", machine("laptop-8.xml"), "--ppn", "100", "--cpus-per-rank", "2")
        self.works("--profile", "none", "--topology", machine("laptop-8.xml"), "--ppn", "100", "--cpus-per-rank", "200")

    def test_counts_and_devices(self):
        self.works("--profile", "frontier", "-N", "1", "--ppn", "2", "-n", "5", says=("--ranks-per-node to 5", "--ranks to 2"))
        self.works("--profile", "frontier", "-N", "1", "--ppn", "5", "--devices-per-rank", "2")
        self.works("--profile", "frontier", "-N", "1", "--ppn", "1", "--devices-per-rank", "9")
        self.works("--profile", "aurora", "-N", "1", "--ppn", "13", "--ranks-per-device", "1")

    def test_notes_too(self):
        for words in (("frontier", "--ppn", "4"), ("perlmutter", "--ppn", "1"), ("aurora", "--ppn", "1", "--devices-per-rank", "2")):
            words = ("--profile", *words, "-N", "1")
            done = hpclaunch("plan", *words, "--", "/bin/true", env=clean_env())
            fix = re.search(r"\[idle-cores\]\nhpclaunch: try: (.*)", done.err).group(1)
            self.ok(hpclaunch("plan", *self.typed(words, fix), "--", "/bin/true", env=clean_env()))


if __name__ == "__main__":
    support.main()
