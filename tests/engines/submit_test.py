#!/usr/bin/python3
"""Jobs of a real sbatch: output, state and exit status of `submit --follow`; `run` in jobs of every shape and inside other jobs."""
import json
import os

import engines
from engines import support


class Submit(engines.Test):
    nodes = 2

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o777)
        # Named nodes: one that still completes the last job would be passed over.
        node = {name: value for name, value in engines.PROFILE["nodes"][0].items() if name != "devices"}
        profile = dict(engines.PROFILE, nodes=[node], scheduler="slurm", launcher="slurm", name="virtual-batch", rules=[{
            "id": "nodes", "when": {"in_job": "no"}, "why": "the nodes of this test",
            "batch": {"slurm": ["-w " + ",".join(self.cluster.names[:self.nodes]), "--exclusive", "--overcommit"]}}])
        self.site = self.file("virtual-batch.json", json.dumps(profile))

    def submit(self, *words, options=(), **env):
        return self.on("login", "submit", "-N", str(self.nodes), "-t", "5m", "--profile", self.site, "--ppn", "1",
                       "--output", os.path.join(self.folder, "out-%j"), *self.meeting(), *options, "--", *words,
                       env=self.cluster.environment("login", HPCLAUNCH_POLL_MS="200", **env))

    def of_ranks(self, lines):
        """All lines; where the nodes have no addresses of their own, without the remark about the one that is given."""
        return sorted(line for line in lines if self.cluster.spaces or not line.startswith("hpclaunch: "))

    def test_to_the_end(self):
        done = self.ok(self.submit("/bin/sh", "-c", 'echo "rank $RANK of $WORLD_SIZE"', options=["--follow"]))
        id, *lines = done.out.splitlines()
        self.assertRegex(id, r"^\d+$")
        self.assertEqual(self.of_ranks(lines), ["rank 0 of 2", "rank 1 of 2"], str(done))
        self.has(done, "job %s: COMPLETED, exit status 0" % id)

    def test_a_job_that_fails(self):
        for _ in range(3):  # on a loaded machine, srun may drop what the tasks of a step that it ends have just written
            done = self.submit("/bin/sh", "-c", "echo before; exit 7", options=["--follow"])
            if "no exit status from rank" not in done.out:
                break
        self.ok(done, 7)
        self.assertIn("before", done.out)
        self.has(done, "FAILED", "exit status 7")

    def test_a_clean_environment(self):
        """SBATCH_EXPORT=NONE: the script needs nothing of the submitting shell."""
        done = self.ok(self.submit("/bin/sh", "-c", 'echo "rank $RANK $MINE"', options=["--follow"], SBATCH_EXPORT="NONE", MINE="here"))
        self.assertEqual(self.of_ranks(done.out.splitlines()[1:]), ["rank 0 ", "rank 1 "], str(done))

    def test_a_job_that_is_refused(self):
        done = self.ok(self.submit("/bin/true", options=["-q", "no-such-partition"]), 125)
        self.assertEqual(done.out, "")
        self.has(done, "sbatch refused the job", "invalid partition", "sinfo")

    def test_a_job_that_is_cancelled(self):
        """The job cancels itself."""
        done = self.submit("/bin/sh", "-c", 'scancel "$SLURM_JOB_ID"; sleep 60', options=["--follow"])
        self.assertNotEqual(done.status, 0, str(done))
        self.has(done, "CANCELLED")


# sbatch -W asks every few seconds.
WAIT_FOR = 'id=$("$0" --parsable "$@") || exit; while squeue -h -j $id 2>/dev/null | grep -q .; do sleep 0.1; done'


class Shapes(engines.Test):
    """`run` with nothing but a program, in what a job asked for."""

    nodes, shape = 2, "real-gpu"

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o777)
        self.script = self.file("job.sh", """#!/bin/sh
%s run %s -- sh -c 'echo "rank $RANK of $WORLD_SIZE"'
echo "status $?"
""" % (support.HPCLAUNCH, " ".join(self.meeting())), 0o755)

    def job(self, *options, script=None):
        """What a job prints."""
        out = os.path.join(self.folder, "out")
        done = self.cluster.run("login", ["/bin/sh", "-c", WAIT_FOR, "sbatch", "-o", out, "-t", "5", *options, script or self.script])
        self.assertEqual(done.returncode, 0, (options, done.stdout, done.stderr))
        with open(out, errors="replace") as file:
            return file.read()

    def starts(self, ranks, *options, **more):
        text = self.job(*options, **more)
        wanted = ["rank %d of %d" % (rank, ranks) for rank in range(ranks)] + ["status 0"]
        self.assertEqual(sorted(line for line in text.splitlines() if line.startswith(("rank ", "status "))), wanted, (options, text))

    def test_each_shape_of_a_request(self):
        for ranks, request in (
                (2, "--gpus-per-node=1 --ntasks-per-node=1 --cpus-per-gpu=2"), (4, "--gpus-per-node=2 --ntasks-per-node=2 --cpus-per-gpu=1"),
                (2, "--gpus-per-task=1 -n2 --cpus-per-gpu=2"), (4, "--ntasks-per-gpu=2 --gpus=2"), (2, "--gres=gpu:1 --cpus-per-gpu=2"),
                (2, "-n2 --gpus-per-socket=1 --sockets-per-node=1"), (2, "-n2 --mem-per-gpu=100 --gpus-per-node=1"),
                (4, "--ntasks-per-socket=1 -n4"), (3, "-n3"), (2, "-n2 --mem-per-cpu=200 -c2"), (2, "-n2 --hint=nomultithread")):
            with self.subTest(request):
                self.starts(ranks, "-N2", *request.split())

    def test_a_job_from_inside_another_one(self):
        """By sbatch of the user: hpclaunch in the inner job removes what the outer one left."""
        for outer, inner in (("--mem-per-cpu=100", "--mem=300"), ("--mem=300", "--mem-per-cpu=100"), ("--gpus-per-node=2", "--gpus=1"),
                             ("--gpus=2", "--gpus-per-node=1"), ("--gpus-per-node=1 --cpus-per-gpu=1", "--cpus-per-task=1")):
            with self.subTest(outer=outer, inner=inner):
                submit = self.file("outer.sh", "#!/bin/sh\nexec /bin/sh -c '%s' sbatch -o %s -N1 -n1 %s %s\n"
                                   % (WAIT_FOR, os.path.join(self.folder, "inner"), inner, self.file("inner.sh", """#!/bin/sh
%s run --launcher slurm -- sh -c 'echo "rank $RANK of $WORLD_SIZE"'
echo "status $?"
""" % support.HPCLAUNCH, 0o755)), 0o755)
                self.job("-N1", "-n1", *outer.split(), script=submit)
                with open(os.path.join(self.folder, "inner")) as file:
                    text = file.read()
                self.assertIn("rank 0 of 1\nstatus 0\n", text)

    def test_submit_inside_a_job(self):
        """The new job knows nothing of the numbers, the memory and the binding of the step that submits it."""
        inner = os.path.join(self.folder, "inner")
        outer = self.file("outer.sh", "#!/bin/sh\nsrun -n1 %s submit --force --follow -N 1 --ppn 1 -t 5m --scheduler slurm --profile none "
                          "--output %s -- sh -c 'env | grep ^SLURM_'\n" % (support.HPCLAUNCH, inner), 0o755)
        self.job("-N1", "-n1", "--mem-per-cpu=100", "--gpus-per-node=2", "--comment=x", script=outer)
        with open(inner) as file:
            text = file.read()
        self.assertIn("SLURM_JOB_ID=", text)
        for name in ("SLURM_GPUS_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_STEP_GPUS"):
            self.assertNotIn(name + "=", text)


if __name__ == "__main__":
    engines.main()
