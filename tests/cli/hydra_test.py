#!/usr/bin/env python3
"""hpclaunch run through MPICH's mpiexec: found among others of its name, spoken to, and checked at each rank.

Two nodes are played by this one: Hydra starts its proxies by fork instead of ssh.
"""
import os
import re
import subprocess

import support
from support import HOST, Test, clean_env, cpu_list, execute, hpclaunch, need

ALLOWED = os.sched_getaffinity(0)
SYSTEM = "/usr/bin:/bin"

support.idle_stdin()


class Hydra(Test):
    def setUp(self):
        super().setUp()
        self.mpiexec = need("mpiexec.hydra")
        hosts = self.file("hosts", "nodeA\nnodeB\n")
        self.nodes = ["--hostfile", hosts, "--launcher-arg=-launcher", "--launcher-arg=fork", "--master-addr", "198.51.100.1", "--oversubscribe"]


class Found(Hydra):
    def which(self, path, *words):
        """The mpiexec that a plan would start."""
        return self.json("plan", "-n", "1", *words, "--", "/bin/true", env=clean_env(PATH=path))["argv"][0]

    def link(self, folder, name, target):
        os.makedirs(os.path.join(self.folder, folder), exist_ok=True)
        os.symlink(target, os.path.join(self.folder, folder, name))
        return os.path.join(self.folder, folder)

    def test_behind_open_mpi_of_the_same_name(self):
        other = self.link("openmpi", "mpiexec", need("mpiexec.openmpi", "orterun"))
        ours = self.link("mpich", "mpiexec.hydra", self.mpiexec)
        self.assertEqual(self.which("%s:%s:%s" % (other, ours, SYSTEM), "--launcher", "hydra"), os.path.join(ours, "mpiexec.hydra"))

    def test_by_what_it_is_not_by_its_name(self):
        plain = self.link("mpich", "mpiexec", self.mpiexec)
        self.assertEqual(self.which(plain, "--launcher", "hydra"), plain + "/mpiexec")

    def test_open_mpi_alone_is_named_in_the_error(self):
        only = self.link("openmpi", "mpiexec", need("mpiexec.openmpi", "orterun"))
        self.refused(127, "run", "--launcher", "hydra", "--", "/bin/true", env=clean_env(PATH=only),
                     says=["launcher hydra is not on PATH", only + "/mpiexec", "openmpi"])

    def test_whatever_mpiexec_is_spoken_to_as_what_it_is(self):
        only = self.link("openmpi", "mpiexec", need("mpiexec.openmpi", "orterun"))
        for words, env in (self.nodes, clean_env(PATH=only)), (["--launcher", only + "/mpiexec"], clean_env()):
            plan = self.json("plan", "-n", "2", "--oversubscribe", *words, "--", "/bin/true", env=env)
            self.assertEqual([plan["launcher"], plan["argv"][0]], ["openmpi", only + "/mpiexec"])

    def test_by_path(self):
        plain = self.link("some where", "mpiexec", self.mpiexec)
        self.assertEqual(self.which(SYSTEM, "--launcher", plain + "/mpiexec"), plain + "/mpiexec")
        wrapper = self.file("own/mpiexec", '#!/bin/sh\nexec %s "$@"\n' % self.mpiexec, 0o755)  # Hydra looks for its proxy beside itself
        done = self.ok(hpclaunch("run", "-n", "1", "--launcher", wrapper, "--", "/bin/echo", "well"))
        self.assertEqual(done.out, "well\n")

    def test_decoys(self):
        mute = os.path.dirname(self.file("mute/mpiexec", "#!/bin/sh\nexit 3\n", 0o755))
        plain = os.path.dirname(self.file("plain/mpiexec.hydra", "not a program", 0o644))
        ours = self.link("mpich", "mpiexec.hydra", self.mpiexec)
        self.assertEqual(self.which(":".join([mute, plain, ours, SYSTEM]), "--launcher", "hydra"), ours + "/mpiexec.hydra")

    def test_several_nodes_take_it_without_being_told(self):
        plan = self.json("plan", *self.nodes, "--", "/bin/true")
        self.assertEqual(plan["launcher"], "hydra")
        self.assertEqual(plan["hosts"], ["nodeA", "nodeB"])

    def test_one_node_takes_none(self):
        self.assertEqual(self.json("plan", "--", "/bin/true")["launcher"], "local")


class OneNode(Hydra):
    def test_ranks(self):
        for n in (1, 2, 5):
            with self.subTest(n):
                plan = self.json("plan", "-n", str(n), "--oversubscribe", "--launcher", "hydra")
                ranks = self.ranks_environment("run", "-n", str(n), "--oversubscribe", "--launcher", "hydra")
                self.assertEqual(sorted(ranks), list(range(n)))
                for rank, env in ranks.items():
                    self.assertEqual([env[b"LOCAL_RANK"], env[b"WORLD_SIZE"], env[b"LOCAL_WORLD_SIZE"], env[b"GROUP_RANK"], env[b"PMI_RANK"]],
                                     [b"%d" % rank, b"%d" % n, b"%d" % n, b"0", b"%d" % rank])
                self.assertEqual([self.bound(rank) for rank in range(n)], [cpu_list(r["cpus"]) for r in plan["classes"][0]["ranks"]])

    def test_launcher_binds_and_nobody_has_to_mend(self):
        plan = self.json("plan", "-n", "1", "--launcher", "hydra", "--", "/bin/true")
        self.assertEqual(plan["bind_via"], "shim")
        self.assertEqual(plan["argv"][plan["argv"].index("-bind-to") + 1], "none")
        plan = self.json("plan", "-n", "1", "--launcher", "hydra", "--bind-via", "launcher", "--", "/bin/true")
        self.assertTrue(plan["argv"][plan["argv"].index("-bind-to") + 1].startswith("user:"))
        done = self.ok(hpclaunch("run", "-n", "1", "--launcher", "hydra", "--bind-via", "launcher", "--verify", "strict", "--", "/bin/true"))
        self.assertEqual(done.err, "")

    def test_shim_binds_when_told(self):
        plan = self.json("plan", "-n", "2", "--oversubscribe", "--launcher", "hydra", "--bind-via", "shim")
        self.ranks_environment("run", "-n", "2", "--oversubscribe", "--launcher", "hydra", "--bind-via", "shim")
        self.assertEqual([self.bound(0), self.bound(1)], [cpu_list(r["cpus"]) for r in plan["classes"][0]["ranks"]])

    def test_run_becomes_mpiexec_when_nobody_shall_stay(self):
        gate = os.path.join(self.folder, "gate")  # no standard input: Hydra fails when that ends together with the program
        wait = 'echo up; while [ ! -e "$0" ]; do sleep 0.05; done'
        run = subprocess.Popen([support.HPCLAUNCH, "run", "-n", "1", "--launcher", "hydra", "--no-supervise", "--", "/bin/sh", "-c", wait, gate],
                               env=clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        up = run.stdout.readline()
        program = os.path.realpath("/proc/%d/exe" % run.pid)
        self.file("gate", "")
        _, errors = run.communicate(timeout=support.LIMIT)
        self.assertEqual([up, run.returncode], [b"up\n", 0], errors.decode())
        self.assertEqual(program, os.path.realpath(self.mpiexec))

    def test_status_of_the_program(self):
        self.ok(hpclaunch("run", "-n", "1", "--launcher", "hydra", "--", "/bin/sh", "-c", "exit 21"), 21)

    def test_arguments_pass_as_bytes(self):
        done = self.ok(hpclaunch("run", "-n", "1", "--launcher", "hydra", "--", "/usr/bin/printf", "<%s>", "a b", "", "it's", "--", "-n", "$HOME"))
        self.assertEqual(done.out, "<a b><><it's><--><-n><$HOME>")
        done = self.ok(hpclaunch("run", "-n", "1", "--launcher", "hydra", "--", "/bin/echo", "a", ":", "%b", "/bin/echo"))
        self.assertEqual(done.out, "a : %b /bin/echo\n")

    def test_leftovers_are_removed(self):
        env = clean_env(HYDRA_BINDING="rr", HYDRA_HOST_FILE="/no/such/file", HYDRA_MAPPING="x")
        ranks = self.ranks_environment("run", "-n", "2", "--oversubscribe", "--launcher", "hydra", env=env)
        for rank in ranks.values():
            for name in (b"HYDRA_BINDING", b"HYDRA_HOST_FILE", b"HYDRA_MAPPING"):
                self.assertNotIn(name, rank)
        self.has(self.last, "export-overruled", "HYDRA_BINDING")

    def test_label(self):
        done = self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--label", "--launcher", "hydra", "--", "/bin/echo", "x"))
        self.assertEqual(sorted(done.out.splitlines()), ["[0] x", "[1] x"])

    def test_the_output_of_some_ranks(self):
        words = ("run", "-n", "2", "--oversubscribe", "--launcher", "hydra", "--local-ranks-filter", "1")
        done = hpclaunch(*words, "--", "/bin/sh", "-c", "echo out {RANK}; echo err {RANK} >&2; [ {RANK} != 0 ]")
        self.ok(done, 1)
        self.assertEqual(done.out, "out 1\n")
        self.has(done, "err 1", "rank 0 failed first", "  | err 0")
        self.assertNotIn("\nerr 0", "\n" + done.err)
        self.has(hpclaunch(*words, "--no-supervise", "--", "/bin/true"), "--no-supervise and --local-ranks-filter exclude each other")

    def test_a_log_per_rank(self):
        """Written by the ranks' side, raw; the output comes as well, and nothing of an earlier launch is touched."""
        logs = self.folder + "/logs"
        for place in (logs, logs + "/2"):
            done = hpclaunch("run", "-n", "2", "--oversubscribe", "--launcher", "hydra", "--label", "--log-dir", logs, "--", "/bin/sh", "-c",
                             "echo out $RANK; echo err >&2; : > $0.$RANK; while [ ! -e $0.0 ]; do sleep 0.05; done; exit $RANK", place.replace("/", "-").strip("-"), cwd=self.folder)
            self.ok(done, 1)
            self.has(done, "out 0", "out 1", "full output of rank 1: %s/rank-1.log" % place)
            for rank in range(2):
                with open("%s/rank-%d.log" % (place, rank)) as file:
                    self.assertEqual(sorted(file), ["err\n", "out %d\n" % rank])

    def test_a_log_on_a_full_disk_is_no_success(self):
        logs = self.folder + "/logs"
        os.mkdir(logs)
        os.symlink("/dev/full", logs + "/rank-1.log")
        done = hpclaunch("run", "-n", "2", "--oversubscribe", "--launcher", "hydra", "--log-dir", logs, "--", "/bin/sh", "-c", "echo out $RANK; sleep 0.5; echo end $RANK")
        self.ok(done, 125)
        self.assertEqual(sorted(done.out.splitlines()), ["end 0", "end 1", "out 0", "out 1"])
        self.has(done, "hpclaunch: cannot write %s/rank-1.log on %s: No space left on device; the job continues without this log\n" % (logs, HOST))

    def test_a_reader_that_leaves_is_named(self):
        done = execute(["/bin/bash", "-c", 'set -o pipefail; "$0" "$@" | head -n 1', support.HPCLAUNCH, "run", "-n", "2", "--oversubscribe", "--launcher", "hydra", "--",
                        "/bin/sh", "-c", "while :; do echo line; done"])
        self.assertEqual([done.status, done.out], [141, "line\n"])
        self.has(done, "hpclaunch: the reader of standard output has exited (SIGPIPE); no rank failed before\n")


class Clashes(Hydra):
    """What is given takes the place of ours: Hydra would stop at an option that comes twice."""

    def test_a_binding_of_ones_own_is_mended(self):
        words = ("-n", "1", "--launcher", "hydra", "--bind-via", "launcher", "--launcher-arg=-bind-to", "--launcher-arg=none")
        done = self.ok(hpclaunch("run", *words, "--", "/bin/echo", "ran"))
        self.assertEqual(done.out, "ran\n")
        self.has(done, "launcher-arg-clash", "-bind-to none")
        self.ok(hpclaunch("run", *words, "--verify", "strict", "--", "/bin/echo", "ran"), 125)

    def test_another_number_of_ranks_is_an_error(self):
        words = ("run", "-n", "2", "--oversubscribe", "--launcher", "hydra", "--launcher-arg=-n")
        done = self.ok(hpclaunch(*words, "--launcher-arg=3", "--", "/bin/echo", "ran"), 125)
        self.has(done, "launcher-arg-clash", "planned 2 ranks, now 3")
        self.assertEqual(done.out, "")
        done = self.ok(hpclaunch(*words, "--launcher-arg=2", "--", "/bin/echo", "ran"))
        self.assertEqual(done.out, "ran\nran\n")

    def test_hosts_of_a_file(self):
        hosts = self.file("two", "nodeA\nnodeB\n")
        words = ("run", "-n", "2", *self.nodes, "--launcher-arg=-f", "--launcher-arg=" + hosts)
        done = self.ok(hpclaunch(*words, "--", "/bin/echo", "ran"))
        self.assertEqual(done.out, "ran\nran\n")


class TwoNodes(Hydra):
    def layout(self, n, *words):
        """(node, local rank, ranks on the node) of every rank, from what the ranks were given."""
        ranks = self.ranks_environment("run", "-n", str(n), *self.nodes, *words)
        self.assertEqual(sorted(ranks), list(range(n)))
        plan = self.json("plan", "-n", str(n), *self.nodes, *words)
        found = []
        for rank in range(n):
            env = ranks[rank]
            numbers = [int(env[name]) for name in (b"GROUP_RANK", b"LOCAL_RANK", b"LOCAL_WORLD_SIZE")]
            self.assertEqual([env[b"WORLD_SIZE"], env[b"GROUP_WORLD_SIZE"]], [b"%d" % n, b"2"])
            self.assertEqual(env[b"NODE_RANK"], env[b"GROUP_RANK"])
            self.assertEqual(env[b"MASTER_ADDR"], b"198.51.100.1")
            run = [r for r in plan["layout"] if r["first_rank"] <= rank][-1]
            mine = plan["classes"][run["node_class"]]["ranks"][numbers[1]]
            self.assertEqual(self.bound(rank), cpu_list(mine["cpus"]), "rank %d" % rank)
            self.assertEqual(int(env[b"OMP_NUM_THREADS"]), mine["cores"])
            found.append(tuple(numbers))
        return found

    def test_even(self):
        self.assertEqual(self.layout(2), [(0, 0, 1), (1, 0, 1)])
        self.assertEqual(self.layout(4), [(0, 0, 2), (0, 1, 2), (1, 0, 2), (1, 1, 2)])

    def test_uneven(self):
        self.assertEqual(self.layout(3), [(0, 0, 2), (0, 1, 2), (1, 0, 1)])
        self.assertEqual(self.layout(5), [(0, 0, 3), (0, 1, 3), (0, 2, 3), (1, 0, 2), (1, 1, 2)])

    def test_uneven_by_ppn(self):
        self.assertEqual(self.layout(4, "--ppn", "3"), [(0, 0, 3), (0, 1, 3), (0, 2, 3), (1, 0, 1)])

    def test_slots_of_the_host_file(self):
        hosts = self.file("slots", "# two each\nnodeA:2\nnodeB slots=2\n")
        plan = self.json("plan", "--hostfile", hosts, *self.nodes[2:])
        self.assertEqual([plan["world_size"], plan["max_local_size"]], [4, 2])

    def test_fewer_nodes_than_the_file_has(self):
        plan = self.json("plan", *self.nodes, "-N", "1", "-n", "2")
        self.assertEqual(plan["hosts"], ["nodeA"])

    def test_the_meeting_point_is_the_first_host(self):
        plan = self.json("plan", "-n", "2", "--hostfile", self.nodes[1])
        self.assertEqual([s["value"] for s in plan["env"] if s["name"] == "MASTER_ADDR"], ["nodeA"])

    def test_per_rank_values_differ_between_node_classes(self):
        plan = self.json("plan", "--topology", support.machine("laptop-8.xml"), "-n", "3", *self.nodes)
        threads = [s["value"] for s in plan["env"] if s["name"] == "OMP_NUM_THREADS"][0]
        self.assertEqual(threads, {"per_rank": [["4", "4"], ["8"]]})
        self.assertEqual(plan["bind_via"], "shim")


class PlantedFaults(Hydra):
    """Hydra drops a binding that it cannot do without a word; the shim has to notice."""

    def setUp(self):
        super().setUp()
        base = max(ALLOWED) + 1000
        self.there = self.file("there.json", '{"schema": 1, "hostname": "there", "allowed": "%d", "cores": [{"pus": "%d"}]}' % (base, base))
        self.words = ["run", "-n", "1", "--launcher", "hydra", "--bind-via", "launcher", "--topology", self.there]

    def test_cpus_that_are_not_there(self):
        done = self.ok(hpclaunch(*self.words, "--", "/bin/echo", "ran"))
        self.assertEqual(done.out, "ran\n")
        self.assertRegex(done.err, r"hpclaunch: rank 0 on \S+: the launcher bound CPUs \S+, planned %d; the kernel refuses" % (max(ALLOWED) + 1000))

    def test_strict(self):
        done = hpclaunch(*self.words, "--verify", "strict", "--", "/bin/echo", "ran")
        self.ok(done, 125)
        self.assertEqual(done.out, "")
        self.has(done, "planned %d" % (max(ALLOWED) + 1000))

    def test_a_launcher_that_does_not_bind(self):
        if len(ALLOWED) < 2:
            return  # one CPU: bound and not bound are the same
        lazy = self.file("mpiexec", """#!/bin/sh
for word; do
  shift
  [ "$before" = -bind-to ] && word=none
  before=$word
  set -- "$@" "$word"
done
exec %s "$@"
""" % self.mpiexec, 0o755)
        words = ["-n", "2", "--cpus-per-rank", "1", "--launcher", lazy, "--bind-via", "launcher"]
        plan = self.json("plan", *words)
        wanted = [cpu_list(r["cpus"]) for r in plan["classes"][0]["ranks"]]
        self.ranks_environment("run", *words)
        self.assertEqual([self.bound(0), self.bound(1)], wanted)
        self.assertEqual(sorted(re.findall(r"hpclaunch: rank (\d) on \S+: the launcher bound CPUs .*; rebound", self.last.err)), ["0", "1"])
        done = hpclaunch("run", *words, "--verify", "strict", "--", "/bin/echo", "ran")
        self.ok(done, 125)
        self.assertEqual(done.out, "")


class RemoteStart(Test):
    """PBS nodes that refuse ssh: pbs_tmrsh, whose words no shell reads, starts Hydra's proxies and Open MPI's daemons."""

    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.folder, "bin")
        self.file("bin/pbs_tmrsh", '#!/bin/sh\necho "$1" >>%s/hosts\nshift\nexec "$@"\n' % self.folder, 0o755)
        self.refuse()
        self.env = clean_env(PATH=self.bin + ":" + SYSTEM, PBS_JOBID="1.server", PBS_ENVIRONMENT="PBS_BATCH", PBS_NODEFILE=self.file("nodes", "nodeA\nnodeB\n"))
        self.remote = os.path.join(os.path.dirname(support.shim_path()), "pbs-remote")
        self.words = ["-n", "2", "--ppn", "1", "--master-addr", "198.51.100.1"]

    def refuse(self, status=255):
        self.file("bin/ssh", '#!/bin/sh\necho "ssh: connect to host nodeA port 22: Connection refused" >&2\nexit %d\n' % status, 0o755)

    def argv(self, launcher, *words, **env):
        return self.json("plan", "--launcher", launcher, *self.words, *words, "--", "/bin/true", env=dict(self.env, **env))["argv"]

    def test_hydra_starts(self):
        need("mpiexec.hydra")
        done = self.ok(hpclaunch("run", "--launcher", "hydra", *self.words, "--", "/bin/sh", "-c", 'echo "$RANK of $WORLD_SIZE"', env=self.env))
        self.assertEqual(sorted(done.out.splitlines()), ["0 of 2", "1 of 2"])
        with open(os.path.join(self.folder, "hosts")) as hosts:
            self.assertEqual(sorted(hosts.read().split()), ["nodeA", "nodeB"])

    def test_each_launcher_in_its_words(self):
        hydra = self.argv("hydra")
        self.assertEqual(hydra[hydra.index("-launcher"):][:4], ["-launcher", "rsh", "-launcher-exec", self.remote])
        mpirun = self.argv("openmpi")
        self.assertEqual(mpirun[mpirun.index("plm_rsh_agent") - 1:][:3], ["--mca", "plm_rsh_agent", self.remote])
        done = self.ok(hpclaunch("explain", "launcher", "--launcher", "hydra", *self.words, env=self.env))
        self.assertIn("other nodes by pbs_tmrsh: ssh to nodeA fails: ssh: connect to host nodeA port 22: Connection refused", " ".join(done.out.split()))

    def test_where_ssh_works(self):
        self.refuse(0)
        self.assertNotIn("-launcher", self.argv("hydra"))

    def test_where_the_user_has_chosen(self):
        self.assertNotIn(self.remote, self.argv("hydra", HYDRA_LAUNCHER="ssh"))
        self.assertNotIn(self.remote, self.argv("hydra", "--launcher-arg=-launcher-exec", "--launcher-arg=/x"))
        self.assertNotIn(self.remote, self.argv("openmpi", OMPI_MCA_plm_rsh_agent="/x"))
        self.assertNotIn(self.remote, self.argv("openmpi", "--launcher-arg=--mca", "--launcher-arg=plm_rsh_agent", "--launcher-arg=/x"))

    def test_not_on_one_node_and_not_without_the_program(self):
        self.assertNotIn(self.remote, self.argv("hydra", "-N", "1", "-n", "1"))
        os.remove(os.path.join(self.bin, "pbs_tmrsh"))
        self.assertNotIn("-launcher", self.argv("hydra"))


if __name__ == "__main__":
    support.main()
