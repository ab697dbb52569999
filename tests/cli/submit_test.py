#!/usr/bin/env python3
"""Jobs handed to made-up batch systems, and followed to their end."""
import json
import os
import re
import signal
import subprocess
import time

import support
from support import LIMIT, Test, clean_env, hpclaunch

# Answers in turn: `NAME.N` are its first line, the exit status, and what it prints; the last one stays. A line `sh: COMMAND` of an
# answer is run: so a job writes its output at a known moment.
ANSWERS = r'''
answer() {
  n=$(cat "$STATE/$1.count" 2>/dev/null || echo 0)
  n=$((n + 1))
  [ -e "$STATE/$1.$n" ] && echo "$n" > "$STATE/$1.count" || n=$((n - 1))
  [ "$n" -gt 0 ] || { echo "$1: no answer" >&2; exit 1; }
  sed -n 's/^sh: //p' "$STATE/$1.$n" > "$STATE/run" && . "$STATE/run"
  sed '1d; /^sh: /d' "$STATE/$1.$n"
  status=$(head -n 1 "$STATE/$1.$n")
  [ "$status" -eq 0 ] || sed '1d; /^sh: /d' "$STATE/$1.$n" >&2
  exit "$status"
}
echo "$(basename "$0") $*" >> "$STATE/calls"
'''
PBS_MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standins", "pbs.py")
FAKES = {
    "sbatch": 'cat > "$STATE/script"; env > "$STATE/env"; answer sbatch',
    "scontrol": 'answer scontrol',
    "sacct": 'answer sacct',
    "squeue": '[ ! -e "$STATE/squeue.1" ] || answer squeue',
    "flux": 'case "$*" in batch*) cat > "$STATE/script"; answer batch ;; *pending*) [ ! -e "$STATE/pending.1" ] || answer pending ;; jobs*) answer jobs ;; esac',
}


class Submit(Test):
    def setUp(self):
        super().setUp()
        self.state = os.path.join(self.folder, "state")
        os.mkdir(self.state)
        self.output = os.path.join(self.folder, "train.o123")
        for name, act in FAKES.items():
            self.file("bin/" + name, "#!/bin/sh\n%s%s\n" % (ANSWERS, act), 0o755)
        for name in "qsub", "qstat", "qdel":
            self.file("bin/" + name, '#!/bin/sh\nexec python3 "%s" "$STATE" %s "$@"\n' % (PBS_MODEL, name), 0o755)
        self.env = clean_env(PATH=os.path.join(self.folder, "bin") + ":/usr/bin:/bin", STATE=self.state, HPCLAUNCH_POLL_MS="20",
                             HPCLAUNCH_PROFILE_PATH="/nonexistent", XDG_CONFIG_HOME="/nonexistent")

    def answers(self, name, *texts):
        for number, text in enumerate(texts, 1):
            status = re.match(r"(\d+)\|", text)
            self.file("state/%s.%d" % (name, number), "%s\n%s\n" % (status.group(1) if status else 0, text[status.end() if status else 0:]))

    def submit(self, system, *words, status=0):
        return self.ok(hpclaunch("submit", "--scheduler", system, "-t", "1h", *words, "--", "/bin/echo", "a b", env=self.env, cwd=self.folder), status)

    def calls(self):
        with open(os.path.join(self.state, "calls")) as file:
            return file.read().splitlines()

    def job(self, letter, run="true", **more):
        """A step of job 123: its state, what it does before the answer, its other attributes."""
        return {"state": letter, "run": run, "attributes": {"Output_Path": "login1:" + self.output, **{name: str(value) for name, value in more.items()}}}

    def pbs(self, *steps, history=True, **model):
        for name in "turn", "calls":
            if os.path.exists(os.path.join(self.state, name)):
                os.unlink(os.path.join(self.state, name))
        self.file("state/model.json", json.dumps({"history": history, "jobs": steps, **model}))


SAYS = '''
# For submit --follow: PBS may forget the job at its end.
trap 'echo "hpclaunch: job $PBS_JOBID: exit status $?"' EXIT
trap 'exit 143' TERM
'''
GONE = {"state": None}
AWAY = {"failure": "qstat: cannot connect to server virt-pbs (errno=15010)", "status": 255}


class HandIn(Submit):
    def test_each_system(self):
        for system, name, printed, id in (("pbs", "qsub", "123.virt-pbs", "123.virt-pbs"), ("slurm", "sbatch", "77;virtual", "77"),
                                          ("flux", "batch", "\u0192M7Zq9", "\u0192M7Zq9")):
            if system == "pbs":
                self.pbs()
            else:
                self.answers(name, printed)
            done = self.submit(system)
            self.assertEqual([done.out, done.err], [id + "\n", ""])
            with open(os.path.join(self.state, "script")) as file:
                script = file.read()
            self.assertTrue(script.startswith("#!/bin/bash -l\n"))
            self.assertTrue(script.endswith("run -- /bin/echo 'a b'\n"), script)
        self.assertEqual(self.calls(), ["qsub", "sbatch --parsable", "flux batch"])

    def test_a_dry_run_prints_what_script_prints(self):
        for words in (["--scheduler", "slurm", "-N", "2", "-t", "1h"], ["--profile", "frontier", "--launcher-arg", "--follow", "--launcher-arg=--dry-run"],
                      ["--profile", "polaris", "-m", "train"]):
            module = words[-2] == "-m"
            program = [*([] if module else ["--", "/bin/echo"]), "a b", "--dry-run", "--follow"]
            script = self.ok(hpclaunch("script", *words, *program, env=self.env, cwd=self.folder))
            options = len(words) - 2 if module else len(words)
            for own in (["--dry-run"], ["--follow", "--dry-run"]):
                for at in 0, options:
                    done = self.ok(hpclaunch("submit", *words[:at], *own, *words[at:], *program, env=self.env, cwd=self.folder))
                    says = "polaris" in words and "--follow" in own
                    self.assertEqual([done.out, done.err], [script.out.replace('\n\ncd "', "\n" + SAYS + '\ncd "') if says else script.out, script.err])
        self.refused(125, "submit", "--dry-run", "--profile", "aurora", "--ppn", "999", "--", "true", env=self.env)
        self.assertFalse(os.path.exists(os.path.join(self.state, "calls")))

    def test_inside_a_job_the_new_one_inherits_nothing_of_slurm(self):
        self.answers("sbatch", "77")
        self.env.update(SLURM_NTASKS="8", SLURM_MEM_PER_CPU="256", SLURM_CONF="/etc/slurm.conf", SRUN_CPUS_PER_TASK="4", SBATCH_QOS="mine", MINE="1")
        self.submit("slurm")
        with open(os.path.join(self.state, "env")) as file:
            names = {line.split("=")[0] for line in file}
        self.assertEqual(names & {"SLURM_NTASKS", "SLURM_MEM_PER_CPU", "SRUN_CPUS_PER_TASK"}, set())
        self.assertLessEqual({"SLURM_CONF", "SBATCH_QOS", "MINE"}, names)

    def test_what_the_system_says(self):
        for text, hint in (("qsub: Account_Name is required to be set.", "-A PROJECT"), ("qsub: Resource: filesystems is required to be set.", "--filesystems"),
                           ("qsub: something new", "hpclaunch script")):
            self.pbs(refusal=text, refusal_status=2)
            done = self.submit("pbs", status=125)
            self.assertEqual(done.out, "")
            self.has(done, text, "status 2", hint)
        self.answers("sbatch", "1|sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified")
        self.has(self.submit("slurm", status=125), "Invalid account", "sacctmgr")
        self.answers("sbatch", "nothing that is a job")
        self.has(self.submit("slurm", status=125), "printed no job id")

    def test_directories_of_the_output_are_made(self):
        for system, name, output in (("slurm", "sbatch", "logs/a/%x-%j.txt"), ("flux", "batch", "flux/{{id}}/o"), ("pbs", "qsub", os.path.join(self.folder, "abs/o"))):
            self.answers(name, "77")
            self.pbs()
            self.submit(system, "--output", output, "--error", "errors-%s/e" % system)
            made = os.path.join(self.folder, "errors-" + system), os.path.join(self.folder, output.split("%")[0].split("{")[0])
            self.assertTrue(os.path.isdir(made[0]), made)
            self.assertTrue(os.path.isdir(made[1] if system != "pbs" else os.path.dirname(made[1])), made)
        self.submit("slurm", "--output", "plain.txt")
        handed = len(self.calls())
        self.file("taken", "")
        self.has(self.submit("slurm", "--output", "taken/out", status=125), "no directory for the output taken/out", "--output")
        self.assertEqual(len(self.calls()), handed)

    def test_words_around_the_id(self):
        self.answers("sbatch", "Welcome to the cluster\n\n77")
        self.assertEqual(self.submit("slurm").out, "77\n")

    def test_no_account(self):
        self.refused(125, "submit", "--profile", "aurora", "-t", "1h", "--", "true", env=self.env, says=["error", "account-missing", "not submitted"])
        self.assertFalse(os.path.exists(os.path.join(self.state, "calls")))

    def test_no_batch_system(self):
        env = dict(self.env, PATH="/nonexistent")
        self.refused(127, "submit", "--scheduler", "pbs", "-t", "1h", "--", "true", env=env, says=["qsub", "login node", "hpclaunch script -o FILE"])
        self.refused(125, "submit", "--scheduler", "cobalt", "-t", "1h", "--", "true", env=self.env, says=["takes files only", "hpclaunch script -o job.sh"])

    def test_follow_where_nothing_can_be_asked(self):
        self.file("bin/bsub", "#!/bin/sh\ncat > /dev/null\necho 'Job <5> is submitted to queue <normal>.'\n", 0o755)
        self.assertEqual(self.submit("lsf").out, "5\n")
        done = self.submit("lsf", "--follow", status=125)
        self.assertEqual(done.out, "5\n")
        self.has(done, "--follow is not available for LSF")


class Follow(Submit):
    def test_pbs(self):
        self.pbs(self.job("Q", comment="Not Running: Not enough free nodes available", **{"estimated.start_time": "Mon Nov 23 20:00:00 2026"}),
                 self.job("R", "printf 'one\\n' > " + self.output), self.job("R", "printf 'two\\n' >> " + self.output),
                 self.job("F", "printf 'end' >> " + self.output, Exit_status=3))
        done = self.submit("pbs", "--follow", status=3)
        self.assertEqual(done.out, "123.virt-pbs\none\ntwo\nend")
        self.assertEqual([line for line in done.err.splitlines()],
                         ["hpclaunch: job 123.virt-pbs: queued, Not Running: Not enough free nodes available, expected start Mon Nov 23 20:00:00 2026",
                          "hpclaunch: job 123.virt-pbs: running", "hpclaunch: job 123.virt-pbs: finished, exit status 3"])
        self.assertEqual(set(self.calls()[1:]), {"qstat -x -f 123.virt-pbs"})

    def test_how_a_pbs_job_ends(self):
        for more, status in (({"Exit_status": 0}, 0), ({"Exit_status": 271}, 143), ({"Exit_status": 265}, 137), ({"Exit_status": -29}, 1), ({}, 1),
                             ({"Exit_status": 512}, 128), ({"substate": 91}, 143), ({"substate": 91, "Exit_status": 0}, 0)):
            self.pbs(self.job("F", **more))
            self.submit("pbs", "--follow", status=status)

    def test_pbs_without_history(self):
        """The default: qstat -x has nothing, qstat -f forgets the job at its end; the script says how it ended."""
        says = "echo out > {0}; echo 'hpclaunch: job 123.virt-pbs: exit status %d' >> {0}".format(self.output)
        for steps, status in (((self.job("Q"), self.job("R"), self.job("R", says % 7), GONE), 7), ((self.job("R", says % 0), GONE), 0),
                              ((self.job("E", "true", Exit_status=4), GONE), 4), ((self.job("B", Exit_status=0), self.job("R", says % 6, Exit_status=0), GONE), 6), ((self.job("E", "true", Exit_status=271), GONE), 143)):
            if os.path.exists(self.output):
                os.unlink(self.output)
            self.pbs(*steps, history=False)
            done = self.submit("pbs", "--follow", status=status)
            self.has(done, "job 123.virt-pbs: ended, exit status %d\n" % status)
            self.assertEqual(self.calls().count("qstat -x -f 123.virt-pbs"), 1)
        with open(os.path.join(self.state, "script")) as file:
            script = file.read()
        self.assertIn(SAYS, script)

    def run_script(self, *program, folder=None, until=None):
        """(status, output) of the script that submit --follow hands in, as bash runs it; TERM to all of the job once it prints `until`."""
        self.pbs(GONE, history=False)
        self.ok(hpclaunch("submit", "--scheduler", "pbs", "-t", "1h", "--follow", "--launcher", "local", "--", *program, env=self.env, cwd=self.folder), 125)
        job = subprocess.Popen(["/bin/bash", os.path.join(self.state, "script")], env=dict(self.env, PBS_O_WORKDIR=folder or self.folder, PBS_JOBID="123.virt-pbs"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True)
        if until:
            self.assertEqual(job.stdout.readline(), until)
            os.killpg(job.pid, signal.SIGTERM)
        out = job.communicate(timeout=LIMIT)[0].decode()
        return job.returncode, out

    def test_a_script_says_how_it_ended(self):
        """Also where an earlier line fails, and at qdel, which sends TERM to every process of the session."""
        says = "hpclaunch: job 123.virt-pbs: exit status %d\n"
        self.assertEqual(self.run_script("/bin/sh", "-c", "exit 9"), (9, says % 9))
        self.assertEqual(self.run_script("/bin/true", folder="/nonexistent"), (1, says % 1))
        self.assertEqual(self.run_script("/bin/sh", "-c", "echo started; exec sleep 60", until=b"started\n"), (143, says % 143))

    def test_a_short_pbs_job_without_history(self):
        """It has gone before the first question: its output has the name that PBS gives it."""
        self.pbs(GONE, history=False)
        self.file("job.o123", "out\nhpclaunch: job 123.virt-pbs: exit status 5\n")
        done = self.submit("pbs", "--name", "job", "--follow", status=5)
        self.assertIn("\nout\n", done.out)

    def test_a_status_that_is_lost(self):
        for history in True, False:
            for steps in ((GONE,), (self.job("R", "echo out > " + self.output), GONE)):
                self.pbs(*steps, history=history)
                done = self.submit("pbs", "--follow", status=125)
                self.has(done, "job 123.virt-pbs has ended; status unknown: PBS does not know the job any more",
                         "try: tail " + self.output if len(steps) > 1 else "try: qstat -f 123.virt-pbs")
                if len(steps) > 1:
                    self.assertEqual(done.out, "123.virt-pbs\nout\n")

    def test_pbs_says_in_the_output_why_it_ended_the_job(self):
        says = "echo '=>> PBS: job killed: walltime 11 exceeded limit 5' > {0}; echo 'hpclaunch: job 123.virt-pbs: exit status 143' >> {0}".format(self.output)
        self.pbs(self.job("R", says), GONE, history=False)
        self.has(self.submit("pbs", "--follow", status=1), "job 123.virt-pbs: ended, walltime 11 exceeded limit 5\n")

    def test_a_job_that_can_never_run(self):
        why = "Can Never Run: Insufficient amount of resource: ncpus (R: 9999 A: 32 T: 32)"
        self.pbs(self.job("Q", comment="Not Running: No available resources"), self.job("Q", comment=why))
        self.has(self.submit("pbs", "--follow", status=125), "job 123.virt-pbs: queued, " + why, "hpclaunch: job 123.virt-pbs cannot start: " + why, "try: qdel 123.virt-pbs")
        self.pbs(self.job("Q", comment=why), self.job("R"), self.job("F", Exit_status=0))
        self.submit("pbs", "--follow")

    def test_a_server_that_is_away(self):
        self.pbs(AWAY, AWAY, AWAY, self.job("R"), AWAY, AWAY, self.job("F", Exit_status=0))
        done = self.submit("pbs", "--follow")
        self.assertEqual(done.err.count("cannot connect"), 2)

    def test_a_server_that_stays_away(self):
        self.pbs(self.job("R"), AWAY)
        self.has(self.submit("pbs", "--follow", status=125), "status unknown: PBS did not answer 24 questions: qstat: cannot connect to server virt-pbs",
                 "try: qstat -f 123.virt-pbs")

    def test_output_that_is_replaced(self):
        """A job that is put back and starts again: its file shrinks, or is another one."""
        self.pbs(self.job("R", "echo first-try > " + self.output), self.job("R"), self.job("Q"), self.job("R", "echo b > " + self.output), self.job("R"),
                 self.job("R", "echo other > {0}.new; mv {0}.new {0}".format(self.output)), self.job("R"), self.job("F", Exit_status=0))
        self.assertEqual(self.submit("pbs", "--follow").out, "123.virt-pbs\nfirst-try\nb\nother\n")

    def test_no_output(self):
        self.pbs(self.job("F", Exit_status=0))
        self.has(self.submit("pbs", "--follow"), "no output file " + self.output)

    def slurm(self, state, code="0:0", reason="None"):
        return "JobId=77 JobName=train\n   JobState=%s Reason=%s Dependency=(null)\n   Requeue=1 ExitCode=%s\n   StartTime=Unknown EndTime=Unknown\n   StdErr=%s\n   StdOut=%s\n" % (
            state, reason, code, self.output, self.output)

    def test_slurm(self):
        self.answers("sbatch", "77")
        self.answers("scontrol", self.slurm("PENDING", reason="Resources"), self.slurm("RUNNING") + "sh: echo out > '%s'" % self.output, self.slurm("FAILED", "3:0", "NonZeroExitCode"))
        done = self.submit("slurm", "--follow", status=3)
        self.assertEqual(done.out, "77\nout\n")
        self.has(done, "PENDING, Resources\n", "RUNNING\n", "FAILED, NonZeroExitCode, exit status 3")

    def test_the_place_in_the_queue(self):
        self.answers("sbatch", "77")
        waits = self.slurm("PENDING", reason="Priority") + "   Partition=gpu AllocNode:Sid=login:1\n"
        self.answers("scontrol", waits, waits, waits, self.slurm("COMPLETED"))
        self.answers("squeue", "12\n77\n9", "77\n9", "8|squeue: error: slurm_load_jobs")
        done = self.submit("slurm", "--follow")
        self.has(done, "PENDING, Priority, 2 of 3 in the queue gpu\n", "PENDING, Priority, 1 of 2 in the queue gpu\n", "PENDING, Priority\n")
        self.assertIn("squeue -h -t PENDING --sort=-p,i -p gpu -o %A", self.calls())
        self.answers("batch", "f3")
        self.answers("jobs", "SCHED|||||", "INACTIVE|COMPLETED|0|||")
        self.answers("pending", "f1\nf3")
        self.has(self.submit("flux", "--follow"), "job f3: SCHED, 2 of 2 in the queue\n")

    def test_how_a_slurm_job_ends(self):
        self.answers("sbatch", "77")
        for state, code, status in (("COMPLETED", "0:0", 0), ("FAILED", "0:9", 137), ("CANCELLED", "0:0", 143), ("TIMEOUT", "0:0", 1), ("OUT_OF_MEMORY", "0:125", 1),
                                    ("NODE_FAIL", "1:0", 1)):
            self.answers("scontrol", self.slurm(state, code))
            self.submit("slurm", "--follow", status=status)

    def test_slurm_asks_the_accounts_of_old_jobs(self):
        self.answers("sbatch", "77")
        self.answers("scontrol", "1|slurm_load_jobs error: Invalid job id specified")
        self.answers("sacct", "", "CANCELLED by 1000|0:15")
        self.has(self.submit("slurm", "--follow", status=143), "CANCELLED, CANCELLED by 1000, exit status 143")

    def test_flux(self):
        self.answers("batch", "\u0192M7Zq9")
        for name, code, result, status in (("\u0192M7Zq9", "3", "FAILED", 3), ("fM7Zq9", "-15", "FAILED", 143), ("\u0192M7Zq9", "0", "COMPLETED", 0), ("x", "-128", "CANCELED", 143),
                                           ("x", "", "CANCELED", 143), ("x", "142", "TIMEOUT", 142), ("x", "-128", "FAILED", 1)):
            output = os.path.join(self.folder, "flux-%s.out" % name)
            self.answers("jobs", "SCHED||||depends:after|", "RUN||||n[1-2]|\nsh: echo out > '%s'" % output, "INACTIVE|%s|%s||n[1-2]|" % (result, code))
            done = self.submit("flux", "--follow", status=status)
            self.assertEqual(done.out, "\u0192M7Zq9\n" + ("" if name == "x" else "out\n"))
            self.has(done, "SCHED, depends:after\n", "RUN\n", result)
            os.unlink(output)
            os.unlink(os.path.join(self.state, "jobs.count"))

    def test_the_note_of_a_flux_exception(self):
        self.answers("batch", "f3")
        for answer, status, says in (("INACTIVE|FAILED|1|alloc||unsatisfiable request: need 3 node(s), only 2 eligible", 1, "FAILED, unsatisfiable request: need 3 node(s), only 2 eligible"),
                                     ("INACTIVE|FAILED|127|exec|n1|task 0 (host n1): start failed: a|b: No such file or directory", 127, "start failed: a|b: No such file"),
                                     ("INACTIVE|TIMEOUT|142|timeout|n1|resource allocation expired", 142, "TIMEOUT, resource allocation expired, exit status 142"),
                                     ("INACTIVE|CANCELED|-128|cancel||", 143, "CANCELED, exit status 143")):
            self.answers("jobs", "RUN||||n1|", answer)
            self.has(self.submit("flux", "--follow", status=status), says)
            os.unlink(os.path.join(self.state, "jobs.count"))
        self.answers("jobs", "RUN||||n1|", "1|JobID f3 unknown")
        self.has(self.submit("flux", "--follow", status=125), "status unknown: Flux does not know the job any more")

    def test_slurm_jobs_that_cannot_start(self):
        self.answers("sbatch", "77")
        for reason, never in (("PartitionTimeLimit", True), ("DependencyNeverSatisfied", True), ("BadConstraints", True), ("QOSMaxCpuPerJobLimit", True),
                              ("AssocMaxWallDurationPerJobLimit", True), ("PartitionNodeLimit", False), ("JobHeldUser", False), ("AssocGrpCpuLimit", False)):
            self.answers("scontrol", *[self.slurm("PENDING", reason=reason)] * 3, self.slurm("COMPLETED"))
            done = self.submit("slurm", "--follow", status=125 if never else 0)
            self.has(done, "PENDING, %s\n" % reason)
            self.assertEqual("hpclaunch: job 77 cannot start: %s" % reason in done.err, never)
            os.unlink(os.path.join(self.state, "scontrol.count"))

    def test_a_slurm_job_without_accounting(self):
        self.answers("sbatch", "77")
        self.answers("scontrol", self.slurm("RUNNING"), "1|slurm_load_jobs error: Invalid job id specified")
        self.answers("sacct", "1|Slurm accounting storage is disabled")
        self.has(self.submit("slurm", "--follow", status=125), "job 77 has ended; status unknown: Slurm does not know the job any more")

    def test_the_output_that_was_named(self):
        self.answers("batch", "\u0192M7Zq9")
        self.answers("jobs", "RUN|||||\nsh: echo out > '%s/log.txt'" % self.folder, "INACTIVE|COMPLETED|0|||")
        self.assertEqual(self.submit("flux", "--output", "log.txt", "--follow").out, "\u0192M7Zq9\nout\n")

    def stopped(self, number):
        self.pbs(self.job("R"))
        child = subprocess.Popen([support.HPCLAUNCH, "submit", "--scheduler", "pbs", "-t", "1h", "--follow", "--", "true"], env=self.env, cwd=self.folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn(b"running", child.stderr.readline())
        child.send_signal(number)
        _, err = child.communicate(timeout=LIMIT)
        return child.returncode, err.decode()

    def test_ctrl_c_leaves_the_job(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            status, err = self.stopped(number)
            self.assertEqual(status, 128 + number)
            self.assertIn("job 123.virt-pbs continues; cancel it with: qdel 123.virt-pbs", err)
            self.assertNotIn("qdel", "".join(self.calls()))

    def test_without_the_cap_it_is_not_polled(self):
        """The first question comes 10 s after the submission."""
        self.pbs(self.job("R"))
        child = subprocess.Popen([support.HPCLAUNCH, "submit", "--scheduler", "pbs", "-t", "1h", "--follow", "--", "true"],
                                 env={name: value for name, value in self.env.items() if name != "HPCLAUNCH_POLL_MS"}, cwd=self.folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(child.stdout.readline(), b"123.virt-pbs\n")
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=LIMIT)
        self.assertEqual(self.calls(), ["qsub"])


if __name__ == "__main__":
    support.main()
