#!/usr/bin/env python3
"""One hpclaunch on each node, started by somebody else: --node-rank, torchrun's static rendezvous, platforms; and two nodes that are
network namespaces, where the ranks of both meet."""
import json
import os
import subprocess
import sys

import support
from support import HOST, Test, allowed, clean_env, hpclaunch

TYPED = ["--node-rank", "1", "--nodes", "2", "--master-addr", "10.0.0.1"]
KUBEFLOW = dict(PET_NNODES="2", PET_NODE_RANK="1", PET_NPROC_PER_NODE="2", PET_MASTER_ADDR="10.0.0.1", PET_MASTER_PORT="29500", KUBERNETES_SERVICE_HOST="10.96.0.1")
SHOW = "import json, os; print(json.dumps({n: v for n, v in os.environ.items() if n.startswith(('PET_', 'MASTER_')) or 'RANK' in n or 'WORLD' in n}))"


class Plans(Test):
    def plan(self, *words, env=None, status=(0, 1)):
        done = hpclaunch("plan", "--json", "--profile", "none", *words, "--", "python", "train.py", env=env or clean_env())
        self.assertIn(done.status, status, str(done))
        return json.loads(done.out)

    def choice(self, plan, name):
        found = [one for one in plan["choices"] if one["name"] == name]
        self.assertEqual(len(found), 1, name)
        return found[0]["value"], found[0]["history"][-1]["why"]

    def test_typed(self):
        plan = self.plan(*TYPED, "--ppn", "2")
        self.assertEqual([plan[key] for key in ("nodes", "node_rank", "world_size", "launcher", "hosts")], [2, 1, 4, "local", ["(node 0)", HOST]])
        self.assertEqual(self.choice(plan, "node"), ("1 of 2", "--node-rank 1"))
        self.assertEqual(plan["argv"][2:8], ["--ranks", "2", "--first-rank", "2", "--of", "4"])

    def test_started_by(self):
        plan = self.plan(env=clean_env(**KUBEFLOW))
        self.assertEqual([plan[key] for key in ("nodes", "node_rank", "world_size", "launcher")], [2, 1, 4, "local"])
        self.assertEqual(self.choice(plan, "node"), ("1 of 2", "started by Kubeflow: PET_NODE_RANK=1"))
        self.assertEqual(self.choice(plan, "ranks-per-node"), ("2", "PET_NPROC_PER_NODE=2"))

    def test_texts(self):
        env = clean_env(**KUBEFLOW)
        for words in (["plan"], ["explain", "node"], ["run", "--dry-run", "-v"], ["env"]):
            with self.subTest(words):
                program = ["--", "python3", "-c", "0"] * (words[0] in ("plan", "run"))
                done = hpclaunch(words[0], "--profile", "none", *words[1:], *program, env=env)
                self.assertIn(done.status, (0, 1), str(done))
                if words != ["env"]:
                    self.assertIn("1 of 2", done.out, str(done))

    def test_refused(self):
        run = ["run", "--profile", "none"]
        end = ["--", sys.executable, "-c", "0"]
        for words, env, says in ((["--node-rank", "1"], {}, ["of how many nodes?", "--node-rank R --nodes N --master-addr HOST"]),
                                 (["--node-rank", "1", "-N", "2"], {}, ["The address of node 0 is not known", "--master-addr HOST"]),
                                 (["--node-rank", "2", "-N", "2", "--master-addr", "10.0.0.1"], {}, ["there is no node 2 among 2", "--nodes 3, or --node-rank 0 to 1"]),
                                 ([*TYPED, "--launcher", "hydra"], {}, ["--launcher hydra starts all nodes", "omit --launcher"]),
                                 (["--launcher", "hydra"], KUBEFLOW, ["--launcher hydra starts all nodes", "omit --launcher; or --hostfile FILE"]),
                                 ([*TYPED, "--spares", "1"], {}, ["--spares: this hpclaunch starts one node"]),
                                 (["-n", "1"], KUBEFLOW, ["1 rank on 2 nodes: every node needs a rank (node 1 of 2, started by Kubeflow: PET_NODE_RANK=1)"]),
                                 ([], dict(KUBEFLOW, PET_NNODES="1:2", PET_NODE_RANK=None, PET_RDZV_ENDPOINT="w-0:1"), ["PET_NNODES=1:2", "fixed number"]),
                                 ([], dict(RANK="3", WORLD_SIZE="4", LOCAL_RANK="1"), ["this process is one rank already", "hpclaunch bind -- PROGRAM"])):
            with self.subTest(words):
                done = self.ok(hpclaunch(*run, *words, *end, env=clean_env(**env)), 125)
                for text in says:
                    self.assertIn(text, done.err, str(done))

    def test_nodes_of_a_list(self):
        hosts = self.file("hosts", "a\nb\n%s\n" % HOST)
        plan = self.plan("--hostfile", hosts, "--node-rank", "2", "--ppn", "1")
        self.assertEqual([plan[key] for key in ("nodes", "node_rank", "hosts", "launcher")], [3, 2, ["a", "b", HOST], "local"])
        self.assertEqual([one for one in plan["env"] if one["name"] == "MASTER_ADDR"][0]["value"], "a")

    def test_a_task_of_a_step(self):
        step = dict(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2]", SLURM_JOB_NUM_NODES="2", SLURM_STEP_ID="0", SLURM_PROCID="1", SLURM_NODEID="1", SLURM_STEP_NUM_TASKS="2",
                    SLURM_STEP_NUM_NODES="2", SLURM_STEP_NODELIST="n[1-2]")
        plan = self.plan("--node-rank", "1", "--ppn", "2", env=clean_env(**step))
        self.assertEqual([plan[key] for key in ("nodes", "node_rank", "hosts", "launcher")], [2, 1, ["n1", "n2"], "local"])
        ports = {one["value"] for env in (step, dict(step, SLURM_NODEID="0", SLURM_PROCID="0")) for one in self.plan("--node-rank", env["SLURM_NODEID"], "--ppn", "2", env=clean_env(**env))["env"]
                 if one["name"] == "MASTER_PORT"}
        self.assertEqual(len(ports), 1)
        self.assertEqual([one["id"] for one in plan["diagnostics"] if one["id"] == "inside-a-rank"], [])
        said = self.plan("--node-rank", "0", "--ppn", "2", env=clean_env(**step))["diagnostics"]
        self.assertIn("--node-rank 0, but SLURM_NODEID=1 of srun", [one["message"] for one in said])

    def test_a_part_of_the_job(self):
        job = dict(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-4]", SLURM_JOB_NUM_NODES="4")
        task = dict(job, SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="4", SLURM_STEP_NUM_NODES="4", SLURM_STEP_NODELIST="n[1-4]", SLURM_NODEID="1")
        mpi = dict(job, OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_LOCAL_SIZE="1")
        part = ["plan", "--json", "--profile", "none", "--node-rank", "1", "--nodes", "2", "--ppn", "2"]
        end = ["--", "python", "train.py"]
        line = ["torchrun", "--dry-run", "--nnodes", "2", "--nproc_per_node", "2", "--no-python"]
        for words, env, address in (([*part, "--master-addr", "n3", *end], job, "n3"), ([*part, *end], dict(job, MASTER_ADDR="n4"), "n4"), ([*part, *end], task, "n1"),
                                    ([*line, "true"], task, "n1"), ([*line, "--rdzv-backend", "c10d", "--rdzv-endpoint", "n3:29500", "true"], mpi, "n3")):
            with self.subTest(words, env=env):
                done = hpclaunch(*words, env=clean_env(**env))
                self.assertIn(done.status, (0, 1), str(done))
                if words[0] == "plan":
                    plan = json.loads(done.out)
                    self.assertEqual([one["value"] for one in plan["env"] if one["name"] == "MASTER_ADDR"], [address])
                    self.assertEqual((plan["nodes"], plan["node_rank"]), (2, 1))
                else:
                    self.assertIn("MASTER_ADDR=%s\n" % address, done.out, str(done))
        for words, env in (([*part, *end], job), ([*line, "true"], mpi), ([*line, "true"], dict(mpi, MASTER_ADDR="n4"))):
            with self.subTest(words, env=env):
                done = self.ok(hpclaunch(*words, env=clean_env(**env)), 2 if words[0] == "plan" else 125)
                self.assertIn("node 1 of 2: where do the ranks meet? The address of node 0 is not known", done.err)
        done = self.ok(hpclaunch(*line, "true", env=clean_env(**dict(task, SLURM_NODEID="2"))), 125)
        self.assertIn("there is no node 2 among 2", done.err)

    def test_what_to_type_for_an_address(self):
        hosts = self.file("hosts", "%s\nb\n" % HOST)
        for words, env, fix in ((["--hostfile", hosts, "--master-addr", "b"], {}, "omit the typed address; rank 0 runs on " + HOST),
                                (["--hostfile", hosts], dict(MASTER_ADDR="b"), "unset MASTER_ADDR; rank 0 runs on " + HOST),
                                (["--hostfile", hosts, "--node-rank", "0", "--master-addr", "10.255.255.1"], {}, "--master-addr HOST, with node 0's name or address")):
            with self.subTest(words):
                said = self.plan(*words, "--ppn", "1", env=clean_env(**env))["diagnostics"]
                self.assertEqual([one["fix"] for one in said if one["id"] == "address-elsewhere"], [fix])


class Ranks(Test):
    def ranks(self, *words, status=0, env=None):
        done = self.ok(hpclaunch(*words, env=clean_env(**(env or {}))), status)
        return done, [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]

    def test_numbers(self):
        done, ranks = self.ranks("run", "--profile", "none", *TYPED, "--ppn", "2", "--oversubscribe", "--", sys.executable, "-c", SHOW, env=dict(PET_RDZV_ID="left", RANK="7", LOCAL_RANK="3"))
        self.assertEqual(sorted(one["RANK"] for one in ranks), ["2", "3"], str(done))
        for one in ranks:
            self.assertEqual([one[name] for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")],
                             ["4", "2", "1", "2", "1", "10.0.0.1", "29500"])
            self.assertEqual(int(one["LOCAL_RANK"]), int(one["RANK"]) - 2)
            self.assertEqual([name for name in one if name.startswith("PET_")], [])

    def test_labels_logs_and_failures(self):
        logs = os.path.join(self.folder, "logs")
        ready = os.path.join(self.folder, "ready")
        fail = ("import os, sys, time; print('here', flush=True); failing = os.environ['RANK'] == '3'; failing or open(%r, 'w').close()\n"
                "while not (failing and os.path.exists(%r)): time.sleep(0.02)\nsys.exit(5)" % (ready, ready))
        done, _ = self.ranks("run", "--profile", "none", *TYPED, "--ppn", "2", "--oversubscribe", "--label", "--log-dir", logs, "--", sys.executable, "-c", fail, status=5)
        self.assertEqual(sorted(set(done.out.splitlines())), ["[2] here", "[3] here"])
        self.assertEqual(sorted(os.listdir(logs)), ["rank-2.log", "rank-3.log"])
        self.assertIn("rank 3 failed first: host %s" % HOST, done.err)

    def test_the_printed_script(self):
        script = self.ok(hpclaunch("run", "--dry-run", "--profile", "none", *TYPED, "--ppn", "2", "--oversubscribe", "--label", "--", sys.executable, "-c", "import os; print(os.environ['RANK'])"))
        done = self.ok(support.execute(["sh", "-c", script.out]))
        self.assertEqual(sorted(done.out.split("\n"))[1:], ["[2] 2", "[3] 3"], str(done))

    def test_verify(self):
        done = self.ok(hpclaunch("verify", "--profile", "none", *TYPED, "--ppn", "2", "--oversubscribe", "--", sys.executable, "-c", "0", env=clean_env()))
        self.assertIn("2 of 2 ranks as planned on node 1 of 2", done.out, str(done))

    def test_uneven(self):
        folder = dict(DSTACK_RUN_ID="r", DSTACK_NODES_NUM="3", DSTACK_NODES_IPS="10.0.0.1\n10.0.0.2\n10.0.0.3", DSTACK_MASTER_NODE_IP="10.0.0.1",
                      DSTACK_MPI_HOSTFILE=self.file("hosts", "10.0.0.1 slots=1\n10.0.0.2 slots=3\n10.0.0.3 slots=2\n"))
        for node, expected in (("0", ["0"]), ("1", ["1", "2", "3"]), ("2", ["4", "5"])):
            done, ranks = self.ranks("run", "--profile", "none", "--oversubscribe", "--force", "--", sys.executable, "-c", SHOW, env=dict(folder, DSTACK_NODE_RANK=node))
            self.assertEqual(sorted(one["RANK"] for one in ranks), expected, str(done))
            self.assertEqual({(one["WORLD_SIZE"], one["LOCAL_WORLD_SIZE"]) for one in ranks}, {("6", str(len(expected)))})

    def test_torchrun(self):
        words = ["torchrun", "--nnodes", "2", "--nproc_per_node", "2", "--node_rank", "1", "--no-python"]
        end = [sys.executable, "-c", SHOW]
        for more in (["--master_addr", "10.0.0.1", "--master_port", "29511"], ["--rdzv-backend", "c10d", "--rdzv-endpoint", "10.0.0.1:29511"]):
            done, ranks = self.ranks(*words, *more, *end)
            self.assertEqual(sorted(one["RANK"] for one in ranks), ["2", "3"], str(done))
            self.assertEqual({(one["WORLD_SIZE"], one["MASTER_ADDR"], one["MASTER_PORT"]) for one in ranks}, {("4", "10.0.0.1", "29511")})
        self.assertIn("--master-addr HOST", self.ranks(*words, *end, status=125)[0].err)
        bare = self.ranks("torchrun", "--nnodes", "2", "--no-python", *end, status=125)[0]
        self.assertIn("--node-rank R on each node", bare.err)
        done, ranks = self.ranks("torchrun", "--no-python", *end, env=KUBEFLOW)
        self.assertEqual(sorted(one["RANK"] for one in ranks), ["2", "3"], str(done))
        done, ranks = self.ranks("torchrun", "--nproc_per_node=2", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=10.0.0.1:29511", "--no-python", *end,
                                 env=dict(SKYPILOT_NODE_RANK="1", SKYPILOT_NUM_NODES="2", SKYPILOT_NODE_IPS="10.0.0.1\n10.0.0.2"))
        self.assertEqual(sorted(one["RANK"] for one in ranks), ["2", "3"], str(done))

    def test_torchrun_where_pods_are_known_by_master_addr(self):
        words = ["torchrun", "--nnodes", "2", "--nproc_per_node", "2", "--rdzv-backend", "c10d", "--no-python", sys.executable, "-c", SHOW]
        pods = dict(RANK="1", WORLD_SIZE="2", MASTER_ADDR="10.0.0.1", MASTER_PORT="23456")
        for more in (dict(KUBERNETES_SERVICE_HOST="10.96.0.1"), dict(NPROC_PER_NODE="8"), dict(VC_TASK_INDEX="0")):
            done, ranks = self.ranks(*words, env=dict(pods, **more))
            self.assertEqual(sorted(one["RANK"] for one in ranks), ["2", "3"], str(done))
            self.assertEqual({(one["WORLD_SIZE"], one["MASTER_ADDR"], one["MASTER_PORT"]) for one in ranks}, {("4", "10.0.0.1", "23456")})
        done, ranks = self.ranks(*words[:-4], "--rdzv-endpoint", "10.0.0.9:7000", *words[-4:], env=dict(pods, NPROC_PER_NODE="8"))
        self.assertEqual({(one["MASTER_ADDR"], one["MASTER_PORT"]) for one in ranks}, {("10.0.0.9", "7000")}, str(done))
        # Without a platform torchrun does not look at it.
        self.assertIn("The address of node 0 is not known", self.ranks(*words[:-4], "--node-rank", "1", *words[-4:], status=125, env=dict(MASTER_ADDR="10.0.0.1"))[0].err)
        done, ranks = self.ranks("torchrun", "--nproc_per_node", "2", *words[-4:], env=dict(MASTER_ADDR="10.0.0.1", MASTER_PORT="7"))
        self.assertEqual([one["RANK"] for one in ranks if (one["MASTER_ADDR"], one["MASTER_PORT"]) == ("10.0.0.1", "7")], [], str(done))
        self.assertEqual(len(ranks), 2)

    def test_one_node(self):
        sky = dict(SKYPILOT_NODE_RANK="0", SKYPILOT_NUM_NODES="1", SKYPILOT_NODE_IPS="10.0.0.1", SKYPILOT_NUM_GPUS_PER_NODE="3")
        run = ["run", "--profile", "none", "--oversubscribe", "--force"]
        end = ["--", sys.executable, "-c", SHOW]
        for env in (sky, dict(PET_NNODES="1", PET_NPROC_PER_NODE="3"), dict(KUBEFLOW, PET_NNODES="1", PET_NODE_RANK="0", PET_NPROC_PER_NODE="3")):
            done, ranks = self.ranks(*run, *end, env=env)
            self.assertEqual([(one["WORLD_SIZE"], one["MASTER_ADDR"]) for one in ranks], [("3", "127.0.0.1")] * 3, str(done))
            done, ranks = self.ranks(*run, "--ppn", "2", *end, env=env)
            self.assertEqual(len(ranks), 2, str(done))
        done, ranks = self.ranks(*run, "--nodes", "1", *end, env=dict(sky, SKYPILOT_NODE_RANK="1", SKYPILOT_NUM_NODES="2", SKYPILOT_NODE_IPS="10.0.0.1\n10.0.0.2"))
        self.assertEqual([one["WORLD_SIZE"] for one in ranks], ["3"] * 3, str(done))

    def test_standalone(self):
        words = ["torchrun", "--standalone", "--nproc_per_node", "2", "--no-python", sys.executable, "-c", SHOW]
        for env in (KUBEFLOW, dict(KUBEFLOW, PET_NNODES="1:2"), dict(PET_NNODES="1:2", PET_RDZV_ENDPOINT="w-0:1", PET_RDZV_BACKEND="c10d")):
            done, ranks = self.ranks(*words, env=env)
            self.assertEqual([(one["WORLD_SIZE"], one["GROUP_WORLD_SIZE"]) for one in ranks], [("2", "1")] * 2, str(done))
        step = dict(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2]", SLURM_JOB_NUM_NODES="2", SLURM_STEP_ID="0", SLURM_NODEID="1", SLURM_STEP_NUM_TASKS="2", SLURM_STEP_NUM_NODES="2",
                    SLURM_STEP_NODELIST="n[1-2]")
        done = self.ranks(*words, env=step, status=125)[0]
        self.assertIn("--standalone is one node, and the job has 2 nodes", done.err)
        done = self.ranks("torchrun", *words[2:], env=step, status=125)[0]
        self.assertEqual([line for line in done.err.splitlines() if "try:" not in line], ["hpclaunch: srun starts 2 nodes (SLURM_NODEID=1), and this line is for one: each would be a world of its own"])


MEET = """
import json, os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
port = int(os.environ["MASTER_PORT"])
seen = {rank: [os.environ["GROUP_RANK"], os.environ["LOCAL_RANK"]]}
if rank == 0:
    server = socket.create_server(("", port), backlog=world)
    peers = [server.accept()[0] for _ in range(world - 1)]
    for peer in peers:
        seen.update({int(k): v for k, v in json.loads(peer.makefile().readline()).items()})
    text = json.dumps({str(k): v for k, v in seen.items()}, sort_keys=True)
    for peer in peers:
        peer.sendall((text + "\\n").encode())
else:
    while True:
        try:
            peer = socket.create_connection((os.environ["MASTER_ADDR"], port))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    peer.sendall((json.dumps(seen) + "\\n").encode())
    text = peer.makefile().readline().strip()
print(text, flush=True)
"""

# Two network namespaces on one cable, with a hosts file of their own. Ends with its standard input.
TWO_NODES = """
cat /etc/hosts > "$1"; mount --bind "$1" /etc/hosts
ip link set lo up
unshare --net sleep 100000 & peer=$!
until [ "$(readlink /proc/$peer/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
ip link add va type veth peer name vb
ip link set vb netns $peer
ip addr add 10.77.9.1/24 dev va; ip link set va up
nsenter -t $peer --net sh -ec 'ip link set lo up; ip addr add 10.77.9.2/24 dev vb; ip link set vb up'
echo $$ $peer
read -r end || true
kill $peer
"""


class TwoNodes(Test):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            allowed.leave_out("two nodes as namespaces need root")
        allowed.require("mounts")
        allowed.require("network")
        self.hosts = self.file("hosts", "")
        self.keeper = subprocess.Popen(["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", TWO_NODES, "sh", self.hosts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pids = self.keeper.stdout.readline().split()
        self.assertEqual(len(self.pids), 2)
        self.program = self.file("meet.py", MEET)

    def tearDown(self):
        self.keeper.communicate("\n", timeout=support.LIMIT)
        super().tearDown()

    def start(self, node, *words, **env):
        folder = os.path.join(self.folder, "runtime%d" % node)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return subprocess.Popen(["nsenter", "-t", self.pids[node], "--net", "--mount", support.HPCLAUNCH, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=clean_env(XDG_RUNTIME_DIR=folder, **env))

    def met(self, nodes, each):
        expected = {str(node * each + local): [str(node), str(local)] for node in range(2) for local in range(each)}
        for node in nodes:
            out, err = node.communicate(timeout=support.LIMIT)
            self.assertEqual(node.returncode, 0, err)
            lines = [json.loads(line) for line in out.splitlines()]
            self.assertEqual(lines, [expected] * each, err)

    def test_typed(self):
        words = ["--ppn", "2", "--oversubscribe", "--", sys.executable, self.program]
        self.met([self.start(n, "run", "--profile", "none", "--node-rank", str(n), "-N", "2", "--master-addr", "10.77.9.1", *words) for n in (1, 0)], 2)

    def test_torchrun_with_a_name_that_comes_late(self):
        words = ["torchrun", "--nnodes=2", "--nproc_per_node=2", "--master_addr=head.job", "--master_port=29533"]
        second = self.start(1, *words, "--node_rank=1", self.program, PYTHON_EXEC=sys.executable)
        lines = []
        while not any("waiting for head.job" in line for line in lines):
            line = second.stderr.readline()
            self.assertTrue(line, lines)
            lines.append(line)
        first = self.start(0, *words, "--node_rank=0", self.program, PYTHON_EXEC=sys.executable)
        with open(self.hosts, "a") as file:
            file.write("10.77.9.1 head.job\n")
        self.met([first, second], 2)

    def test_a_name_that_never_comes(self):
        done = self.start(1, "run", "--profile", "none", "--node-rank", "1", "-N", "2", "--master-addr", "head.never", "--start-timeout", "1", "-n", "2", "--", "true")
        _, err = done.communicate(timeout=support.LIMIT)
        self.assertEqual(done.returncode, 125, err)
        self.assertIn("MASTER_ADDR head.never does not resolve here after 1 s", err)

    def test_started_by_a_platform(self):
        nodes = [self.start(n, "run", "--profile", "none", "--oversubscribe", "--", sys.executable, self.program, SKYPILOT_NODE_RANK=str(n), SKYPILOT_NUM_NODES="2",
                            SKYPILOT_NODE_IPS="10.77.9.1\n10.77.9.2", SKYPILOT_NUM_GPUS_PER_NODE="2") for n in (0, 1)]
        self.met(nodes, 2)


if __name__ == "__main__":
    support.main()
