#!/usr/bin/env python3
"""Help, version, suggestions, exit statuses, and that nothing starts when something is wrong."""
import json
import os
import re
import shlex

import support
from support import COMMANDS, LAUNCHING, Test, hpclaunch


class Help(Test):
    def test_no_command_is_an_error_that_shows_the_commands(self):
        done = self.ok(hpclaunch(), 2)
        self.assertEqual(done.out, "")
        for command in COMMANDS:
            self.assertRegex(done.err, r"(?m)^  %s +\w" % command)

    def test_help(self):
        texts = {self.ok(hpclaunch(word)).out for word in ("--help", "-h", "help")}
        self.assertEqual(len(texts), 1)
        text = texts.pop()
        for command in COMMANDS:
            self.assertRegex(text, r"(?m)^  %s +\w" % command)
        self.assertNotIn("launch-local", text)
        self.assertIn("hpclaunch run -n 2 -- python3 train.py", text)

    def test_version(self):
        for word in ("--version", "-V"):
            done = self.ok(hpclaunch(word))
            self.assertRegex(done.out, r"\Ahpclaunch \d+\.\d+\.\d+\n\Z")

    def test_version_as_json(self):
        said = json.loads(self.ok(hpclaunch("--version", "--json")).out)
        self.assertEqual(hpclaunch("--version").out, "hpclaunch %s\n" % said["version"])
        self.assertIn("libc.so.6", said["needs"])
        number = [[int(part) for part in said["glibc"][key].split(".")] for key in ("floor", "here")]
        self.assertLessEqual(number[0], number[1])
        self.assertGreater(number[0], [2, 0])
        self.assertEqual(set(said["libraries"]), {"fmt", "CLI11", "nlohmann_json", "hwloc"})

    def test_help_of_every_command(self):
        for command in COMMANDS:
            for word in ("--help", "-h"):
                done = self.ok(hpclaunch(command, word))
                self.assertEqual(done.err, "")
                self.assertIn("Usage: hpclaunch " + command, done.out)
                self.assertIn("--help", done.out)
        for command in LAUNCHING:
            text = hpclaunch(command, "--help").out
            for option in ("--ranks", "--hostfile", "--topology", "--launcher", "--set", "--verify"):
                self.assertIn(option, text)
            self.assertIn("Exit status:", text)
        self.assertIn("--dry-run", hpclaunch("run", "--help").out)
        self.assertIn("dotenv", hpclaunch("env", "--help").out)

    def test_the_manual_has_the_exit_statuses_of_the_help(self):
        page = self.ok(hpclaunch("man")).out
        self.assertIn("\n.nh\n", page)  # or names of variables are broken with hyphens
        sections, statuses = page.split(".SH EXIT STATUS")
        self.assertNotIn("Exit status", sections)
        for command in COMMANDS:
            said = " ".join(hpclaunch(command, "--help").out.split("Exit status: ")[1].split())
            told = re.search(r"\.B %s\n(.*)" % command, statuses).group(1).replace("\\-", "-")
            self.assertEqual(told, said)

    def test_help_says_which_is_which(self):
        for word in ("-h", "--help"):
            self.assertIn("-h: short help; --help: all options", hpclaunch("run", word).out)
        self.assertEqual(hpclaunch("topo", "-h").out, hpclaunch("topo", "--help").out)
        self.assertIn("hpclaunch run --help", hpclaunch("run", "-h").out)

    def test_help_with_a_command(self):
        for command in COMMANDS:
            self.assertEqual(self.ok(hpclaunch("help", command)).out, self.ok(hpclaunch(command, "--help")).out)
        self.refused(2, "help", "rn", says=["hpclaunch: try: hpclaunch run"])

    def test_help_asks_nothing_of_the_machine(self):
        done = hpclaunch("run", "--topology", "/nonexistent/file", "--help")
        self.ok(done)
        self.assertIn("Usage: hpclaunch run", done.out)

    def test_help_after_the_program_is_the_programs(self):
        done = self.ok(hpclaunch("run", "-n", "1", "/bin/echo", "--help-me"))
        self.assertEqual(done.out, "--help-me\n")


class Suggestions(Test):
    def test_commands(self):
        for wrong, right in (("rn", "run"), ("runn", "run"), ("plna", "plan"), ("explian", "explain"),
                             ("top", "topo"), ("completions", "completion")):
            self.refused(2, wrong, says=['unknown command "%s"' % wrong, "hpclaunch: try: hpclaunch %s\n" % right])
        self.refused(2, "frobnicate", says=["hpclaunch: try: hpclaunch --help"])
        self.refused(2, "--frobnicate", says=['--frobnicate', "hpclaunch --help"])

    def test_hidden_commands_are_not_suggested(self):
        self.assertNotIn("launch-local", self.refused(2, "launch-loca").err)

    def test_options(self):
        for wrong, right in (("--rnaks", "--ranks"), ("--oversubscribed", "--oversubscribe"), ("--hostfiel=x", "--hostfile"),
                             ("--bindvia", "--bind-via"), ("--master-prot", "--master-port"), ("--cpu-per-rank", "--cpus-per-rank")):
            for command in LAUNCHING:
                self.refused(125 if command in ("run", "submit") else 2, command, wrong, "2",
                             says=['hpclaunch: unknown option %s' % wrong.split("=")[0], "hpclaunch: try: %s\n" % right])
        self.refused(125, "run", "--dryrun", "--", "true", says=["hpclaunch: try: --dry-run"])
        self.refused(2, "topo", "--jsno", says=["hpclaunch: try: --json"])
        for unlike in ("--zzzzzzzzzz", "-y"):
            self.refused(2, "plan", unlike, says=["hpclaunch: try: hpclaunch plan --help"])

    # The command, what other programs call it, what to type instead.
    FOREIGN = (
        ("run", "--launcher srun", "--launcher slurm"), ("run", "--launcher prterun", "--launcher prrte"), ("run", "--launcher mpich", "--launcher hydra"),
        ("run", "--launcher mpirun", '--launcher "$(command -v mpirun)"'),
        # srun and sbatch
        ("run", "--gpus 8", "-n 8"), ("run", "-G 4", "-n 4"), ("run", "--ntasks=8", "-n 8"), ("run", "--ntasks-per-node 2", "--ppn 2"), ("run", "--gres=gpu:a100:2", "--ppn 2"),
        ("run", "--gpus-per-task=a100:1", "--devices-per-rank 1"), ("run", "-c 1", "--cpus-per-rank 1"), ("run", "--ntasks-per-gpu 1", "--ranks-per-device 1"),
        ("run", "--mem 4G", "--launcher-arg=--mem=4G"), ("run", "--kill-on-bad-exit=1", "--launcher-arg=--kill-on-bad-exit=1"), ("run", "--mpi pmix", "--launcher-arg=--mpi=pmix"),
        ("run", "-p debug", "hpclaunch submit --queue debug"), ("run", "--container-image x.sif", "--container x.sif"), ("run", "--exclusive", "--launcher-arg=--exclusive"),
        ("submit", "-p debug", "--queue debug"), ("submit", "--partition=debug", "--queue debug"), ("submit", "--job-name train", "--name train"), ("submit", "-J train", "--name train"),
        ("submit", "--walltime 01:00:00", "--time 01:00:00"), ("submit", "--walltime=3600", "--time 3600s"), ("submit", "-W 1:30", "--time 1:30:00"),
        ("submit", "--time-limit 30", "--time 30m"), ("submit", "--qos debug", "--queue debug"), ("submit", "--gpus-per-node=a100:4", "--gpus 4"), ("submit", "--gres=gpu:4", "--gpus 4"),
        ("submit", "-o out.txt", "--output out.txt"), ("submit", "-C gpu", "--constraint gpu"), ("submit", "--project p1", "--account p1"), ("submit", "--requeue", "--batch=--requeue"),
        ("submit", "--mem-per-cpu 2G", "--batch=--mem-per-cpu=2G"), ("submit", "-l select=2", "--batch='-l select=2'"), ("script", "--mail-user a@b.c", "--mail a@b.c"),
        # flux, mpirun, torchrun, accelerate, deepspeed, apptainer
        ("run", "--tasks-per-node=2", "--ppn 2"), ("run", "--label-io", "--label"), ("run", "--cores-per-task 1", "--cpus-per-rank 1"),
        ("run", "-np 4", "-n 4"), ("run", "-perhost 2", "--ppn 2"), ("run", "--mca btl tcp", "--launcher-arg=--mca --launcher-arg=btl --launcher-arg=tcp"), ("run", "--tag-output", "--label"),
        ("run", "--allow-run-as-root", "--launcher-arg=--allow-run-as-root"), ("run", "-wdir /tmp", "cd /tmp && hpclaunch run"), ("run", "--report-bindings", "--launcher-arg=--report-bindings"),
        ("run", "--nproc_per_node=2", "--ppn 2"), ("run", "--nnodes 1", "-N 1"), ("run", "--standalone", "-N 1"), ("run", "--rdzv_backend=c10d", "hpclaunch torchrun [OPTIONS] SCRIPT"),
        ("run", "--num_processes 2", "-n 2"), ("run", "--num_machines 1", "-N 1"), ("run", "--main_process_port 29500", "--master-port 29500"), ("run", "--num_gpus 2", "--ppn 2"),
        ("run", "--image x.sif", "--container x.sif"), ("run", "-B /tmp", "--container-bind /tmp"), ("run", "--bind /tmp:/data", "--container-bind /tmp:/data"),
    )

    def test_options_of_other_programs(self):
        refused = "unknown option", "unexpected", "needs a value", "must be", "invalid value"
        for command, typed, meant in self.FOREIGN:
            with self.subTest((command, typed)):
                done = hpclaunch(command, *typed.split(), "--", "/bin/true")
                self.assertIn("hpclaunch: try: %s\n" % meant, done.err)
                if not meant.startswith("-") or "$" in meant:
                    continue
                again = hpclaunch(command, *shlex.split(meant), *(() if command == "script" else ("--dry-run",)), "--", "/bin/true")
                for text in refused:
                    self.assertNotIn(text, again.err)

    def test_spellings_of_values(self):
        plans = [self.ok(hpclaunch("plan", "--oversubscribe", "--master-port=23458", *words)).out
                 for words in (["-n", "3"], ["-n3"], ["--ranks", "3"], ["--ranks=3"])]
        self.assertEqual(len(set(plans)), 1)
        self.has(hpclaunch("plan", "--launcher", "hydra", "--launcher-arg=-print-all-exitcodes", "-n", "1", "/bin/true"), "-print-all-exitcodes")

    def test_one_word_too_many(self):
        self.refused(2, "topo", "extra", says=['"extra"'])
        self.refused(2, "completion", "bash", "zsh", says=['"zsh"'])

    def test_launchers(self):
        self.refused(125, "run", "--launcher", "hidra", "--", "/bin/true", says=['"hidra"', "--launcher hydra"])
        self.refused(125, "run", "--launcher", "xyzzy", "--", "/bin/true", says=['"xyzzy"', "hydra, intelmpi, jsrun, local, openmpi"])


class Errors(Test):
    """Each also checks that the program was not started: it would have made a file."""

    def setUp(self):
        super().setUp()
        self.mark = os.path.join(self.folder, "started")
        self.program = self.file("program", "#!/bin/sh\n: > %s\n" % self.mark, 0o755)

    def not_started(self, status, *words, says=(), env=None, program=None):
        done = self.refused(status, "run", *words, "--", program or self.program, says=says, env=env)
        self.assertFalse(os.path.exists(self.mark), str(done))
        return done

    def test_the_mark_is_made_when_nothing_is_wrong(self):
        self.ok(hpclaunch("run", "-n", "1", "--", self.program))
        self.assertTrue(os.path.exists(self.mark))

    def test_program(self):
        self.refused(125, "run", says=["PROGRAM is missing", "hpclaunch: try: hpclaunch run"])
        self.refused(125, "run", "-n", "1", "--", says=["PROGRAM is missing"])
        self.refused(127, "run", "--", "no-such-program-of-ours", says=['"no-such-program-of-ours"', "PATH"])
        self.refused(127, "run", "--", "./no-such-program", says=['"./no-such-program"'], cwd=self.folder)
        self.refused(127, "run", "--", self.folder + "/no/such/folder/program")
        self.refused(127, "run", "--", "", says=["empty"])
        plain = self.file("plain", "#!/bin/sh\n", 0o644)
        self.refused(126, "run", "--", plain, says=[plain, "chmod +x"])
        self.refused(126, "run", "--", "plain", says=["plain"], env=support.clean_env(PATH=self.folder))
        self.refused(126, "run", "--", self.folder, says=[self.folder, "directory"])

    def test_program_in_path_behind_a_file_that_cannot_run(self):
        self.file("a/tool", "x", 0o644)
        self.file("b/tool", "#!/bin/sh\necho good\n", 0o755)
        os.mkdir(os.path.join(self.folder, "c"))
        os.mkdir(os.path.join(self.folder, "c", "tool"))
        path = ":".join(os.path.join(self.folder, d) for d in "cab") + ":/usr/bin:/bin"
        done = self.ok(hpclaunch("run", "-n", "1", "--", "tool", env=support.clean_env(PATH=path)))
        self.assertEqual(done.out, "good\n")

    def test_counts(self):
        for option in ("-n", "--ranks", "-N", "--nodes", "--ppn", "--ranks-per-node", "--cpus-per-rank"):
            for value in ("0", "-1", "two", "1.5", "99999999999999999999", "010", "0x2", "+2", " 2"):
                self.not_started(125, option, value, says=["--", '"%s"' % value])
            self.not_started(125, option, "", says=["--"])
        self.not_started(125, "-n", "3", "--ppn", "2", says=["3 ranks", "2 nodes"])
        self.not_started(125, "-N", "2", says=["2 nodes", "--hostfile"])

    def test_oversubscription_has_to_be_asked_for(self):
        many = len(os.sched_getaffinity(0)) + 1
        self.not_started(125, "-n", str(many), says=["%d ranks" % many, "--oversubscribe"])
        self.not_started(125, "-n", "1", "--cpus-per-rank", str(many), says=["cpus-per-rank"])

    def test_values(self):
        self.not_started(125, "--bind-via", "lancher", says=["--bind-via", "lancher", "launcher, shim, none", "did you mean launcher?"])
        self.refused(125, "run", "-n", says=["-n needs a value (N)"])
        self.refused(2, "plan", "--bind-via", says=["--bind-via needs a value (WHO)"])
        self.refused(2, "plan", "--topology", "-n", "2", says=["--topology", "needs a value, not the option -n"])
        self.refused(2, "topo", "--topology", "--svg=a.svg", says=["--topology", "needs a value, not the option --svg=a.svg"])
        self.not_started(125, "-n", says=["--ranks", "--"])
        self.not_started(125, "--set", says=["--set", "NAME=VALUE"])
        self.not_started(125, "--bind-via", "launcher", says=["launcher local", "--bind-via shim"])
        self.not_started(125, "--verify", "maybe", says=["--verify", "strict"])
        for port in ("0", "70000", "-1", "http"):
            self.not_started(125, "--master-port", port, says=["--master-port"])
        for seconds in ("-1", "nan", "inf", "soon", "86401", ""):
            self.not_started(125, "--grace", seconds, says=["--grace"])
        self.not_started(125, "--set", "NAME", says=["--set", '"NAME"', "NAME=VALUE"])
        self.not_started(125, "--set", "=value", says=["--set", "NAME=VALUE"])
        self.not_started(125, "--unset", "", says=["--unset"])
        self.not_started(125, "--unset", "A=B", says=["--unset", '"A=B"'])
        self.not_started(125, "--launcher-arg", "x", says=["--launcher-arg", "local"])

    def test_an_empty_name_is_not_silently_the_default(self):
        for option in ("--topology", "--hostfile", "--launcher"):
            self.not_started(125, option, "", says=[option])

    def test_master_port_of_the_environment(self):
        for port in ("0", "70000", "http", "", "12 34"):
            done = hpclaunch("run", "-n", "1", "--", self.program, env=support.clean_env(MASTER_PORT=port))
            self.ok(done, 125)
            self.has(done, "MASTER_PORT", "bad-port")
            self.assertFalse(os.path.exists(self.mark))

    def test_topology_file(self):
        self.not_started(125, "--topology", "/no/such/file", says=["/no/such/file", "No such file"])
        broken = self.file("broken.json", '{\n  "schema": 1,\n  "cores": [ oops ]\n}\n')
        self.not_started(125, "--topology", broken, says=["broken.json:3:14"])
        typo = self.file("typo.json", '{\n  "schema": 1,\n  "hostnam": "a"\n}\n')
        self.not_started(125, "--topology", typo, says=["typo.json:3", "hostnam"])
        xml = self.file("broken.xml", '<?xml version="1.0"?>\n<topology><object type="Machine">\n')
        self.not_started(125, "--topology", xml, says=["broken.xml"])
        self.not_started(125, "--topology", self.folder, says=[self.folder])
        self.not_started(125, "--topology", self.file("empty", ""), says=["empty"])
        for command in ("plan", "topo"):
            self.refused(2, command, "--topology", broken, says=["broken.json:3:14"])

    def test_hostfile(self):
        self.not_started(125, "--hostfile", "/no/such/hosts", says=["/no/such/hosts", "No such file"])
        self.not_started(125, "--hostfile", self.file("h1", "nodeA\nnodeB:many\n"), says=["h1:2"])
        self.not_started(125, "--hostfile", self.file("h2", "# none\n\n"), says=["h2"])

    def test_launcher_program(self):
        self.not_started(125, "--launcher", "/bin/true", says=["/bin/true"])
        self.not_started(127, "--launcher", "/no/such/mpiexec", says=["/no/such/mpiexec"])
        self.not_started(127, "--launcher", "hydra", says=["hydra"], env=support.clean_env(PATH=self.folder))

    def test_inside_a_rank(self):
        inside = support.clean_env(HPCLAUNCH_LOCAL_RANK="0")
        done = hpclaunch("run", "-n", "1", "--", self.program, env=inside)
        self.ok(done, 125)
        self.has(done, "inside-a-rank", "--force")
        self.assertEqual(done.out, "")
        self.assertFalse(os.path.exists(self.mark))
        done = self.ok(hpclaunch("run", "-n", "1", "--force", "--", self.program, env=inside))
        self.assertTrue(os.path.exists(self.mark))
        # For real, not only by the variable:
        done = hpclaunch("run", "-n", "1", "--force", "--", support.HPCLAUNCH, "run", "-n", "1", "--", "/bin/true")
        self.ok(done, 125)
        self.has(done, "inside-a-rank")

    def test_one_value_for_all_ranks(self):
        for name in ("RANK", "LOCAL_RANK"):
            done = hpclaunch("run", "-n", "2", "--oversubscribe", "--set", name + "=0", "--", self.program)
            self.ok(done, 125)
            self.has(done, "same-on-every-rank", name)
            self.assertFalse(os.path.exists(self.mark))


class Streams(Test):
    def test_a_reader_that_left_is_no_crash(self):
        import subprocess
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([support.HPCLAUNCH, "plan", "-n", "1"], stdout=write, stderr=subprocess.PIPE,
                              env=support.clean_env(), timeout=support.LIMIT)
        os.close(write)
        self.assertIn(done.returncode, (2, -13))
        self.assertEqual(done.stderr, b"")

    def test_a_full_disk_is_said(self):
        import subprocess
        for status, words in (
                (2, ["plan", "-n", "1"]), (2, ["topo"]), (2, ["env", "-n", "1"]), (2, ["explain", "-n", "1"]),
                (2, ["completion", "bash"]), (2, ["--help"]), (2, ["--version"]), (2, ["plan", "--help"]),
                (125, ["run", "-n", "1", "--dry-run", "--", "true"])):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([support.HPCLAUNCH, *words], stdout=full, stderr=subprocess.PIPE,
                                      env=support.clean_env(), timeout=support.LIMIT)
            self.assertEqual(done.returncode, status, words)
            self.assertIn(b"hpclaunch: cannot write the output", done.stderr)

    def test_a_pipe_is_read_and_none_is_waited_for_for_ever(self):
        import subprocess
        pipe, text = self.folder + "/pipe", self.folder + "/text"
        os.mkfifo(pipe)
        self.file("text", "here\n")
        files = (["plan", "--hostfile", pipe, "-N", "1"], ["plan", "--topology", pipe, "-n", "1"], ["plan", "--profile", pipe, "-n", "1"], ["profile", "validate", pipe])
        started = [subprocess.Popen([support.HPCLAUNCH, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=support.clean_env()) for words in files]
        late = self.folder + "/late"  # meanwhile
        os.mkfifo(late)
        late = subprocess.run(["/bin/sh", "-c", "(sleep 1; cat %s) >%s & exec %s plan --json -N 1 --hostfile %s" % (text, late, support.HPCLAUNCH, late)],
                              stdout=subprocess.PIPE, env=support.clean_env(), timeout=support.LIMIT)
        self.assertEqual(json.loads(late.stdout)["hosts"], ["here"])
        for child in started:
            err = child.communicate(timeout=support.LIMIT)[1]
            self.assertEqual(child.returncode, 2, err)
            self.assertIn(b"a pipe without input for 10 s", err)

    def test_no_colour_outside_a_terminal(self):
        for words in (["topo"], ["plan", "-n", "1"], ["explain", "-n", "1"]):
            done = hpclaunch(*words, env=support.clean_env(TERM="xterm-256color", LC_ALL="C.UTF-8"))
            self.assertNotIn("\033", done.out)
            done.raw_out.decode("ascii")

    def test_colour_and_width_on_a_terminal(self):
        def on_terminal(**extra):
            return support.on_terminal("plan", "--topology", support.machine("laptop-8.xml"), "-n", "2", env=support.clean_env(**extra))
        self.assertIn("\033[", on_terminal(TERM="xterm"))
        for extra in ({"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
            self.assertNotIn("\033", on_terminal(**extra))
        narrow = on_terminal(TERM="dumb", COLUMNS="70", LC_ALL="C.UTF-8")
        self.assertLessEqual(max(len(line) for line in re.split("\r?\n", narrow)), 70)


if __name__ == "__main__":
    support.main()
