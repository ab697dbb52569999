#!/usr/bin/python3
"""`hpclaunch submit --follow` with a real sbatch: output, state and exit status of jobs on two nodes."""
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


if __name__ == "__main__":
    engines.main()
