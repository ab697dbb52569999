#!/usr/bin/env python3
"""Batch scripts: their directives as each batch system reads them, the queue, what runs in the job."""
import json
import os
import re
import shlex

import support
from support import ROOT, Test, clean_env, execute, hpclaunch, need

HERE = clean_env(PATH="/nonexistent", HPCLAUNCH_PROFILE_PATH="/nonexistent", XDG_CONFIG_HOME="/nonexistent")
SENTINELS = {"pbs": "#PBS ", "slurm": "#SBATCH ", "flux": "# flux: "}
ACCOUNTS = {"pbs": "-A", "slurm": "-A", "flux": "-B"}
TIMES = {"1:30:00": 5400, "90m": 5400, "1h30m": 5400, "2d": 172800, "1-00:00:00": 86400, "1d12h": 129600, "45s": 45, "0:00:30": 30,
         "1.5h": 5400, "0.25d": 21600, "1-12:00": 129600, "1-12": 129600}


def sites():
    for name in sorted(os.listdir(os.path.join(ROOT, "profiles", "site"))):
        with open(os.path.join(ROOT, "profiles", "site", name), encoding="utf-8") as file:
            text = re.sub(r"(?m)^\s*//.*$", "", file.read())
        yield json.loads(text)


def directives(system, text):
    """Words of the directives: lines of the sentinel before the first command, as the batch system reads them."""
    words = []
    for line in text.splitlines():
        if line.startswith(SENTINELS[system]):
            words += shlex.split(line[len(SENTINELS[system]):])
        elif line and not line.startswith("#"):
            break
    return words


def value(words, *names):
    found = None
    for at, word in enumerate(words):
        name, equals, rest = word.partition("=")
        if word in names:
            found = words[at + 1]
        elif equals and name in names:
            found = rest
    return found


def resources(words):
    """PBS: what the -l options ask for."""
    asked = [words[at + 1] for at, word in enumerate(words) if word == "-l"]
    return dict(one.split("=", 1) for one in asked), asked


def seconds(system, text):
    """A time limit as that system reads it."""
    if system == "flux":
        return int(re.fullmatch(r"(\d+)m", text).group(1)) * 60
    parts = [int(part) for part in text.split(":")]
    assert len(parts) == 3, text  # of two, or one, systems have different opinions
    return parts[0] * 3600 + parts[1] * 60 + parts[2]


class Script(Test):
    def script(self, *words, program=("python3", "train.py"), env=HERE, says=()):
        done = self.ok(hpclaunch("script", *words, "--", *program, env=env))
        self.has(done, *says)
        self.last = done
        return done.out

    def command(self, text):
        """The words of the last line, as a shell reads them."""
        return shlex.split(text.strip().splitlines()[-1])


class Sites(Script):
    def test_every_site_and_size(self):
        made = []
        for site in sites():
            if "retired" in site:
                self.refused(2, "script", "--profile", site["name"], "--", "true", env=HERE, says=["was retired on", "--profile"])
                continue
            for queue in site["job"]["queues"]:
                few, many = queue.get("nodes", [1, 2])
                short, long = queue.get("minutes", [0, None])
                for nodes, minutes in {(max(few, 1), max(short, 30)), (min(many or 600, 600), long or 60)}:
                    if few <= nodes and (not long or minutes <= long):
                        made.append(self.one(site, nodes, minutes))
        self.assertGreater(len(made), 40)
        self.ok(execute([need("shellcheck"), "--severity=style", *made]))
        for script in made:
            self.ok(execute([need("bash"), "-n", script]))

    def one(self, site, nodes, minutes):
        with self.subTest(site["name"], nodes=nodes, minutes=minutes):
            text = self.script("--profile", site["name"], "-N", str(nodes), "-t", "%dm" % minutes)
            system = site["scheduler"]
            words = directives(system, text)
            self.assertTrue(text.startswith("#!/bin/bash -l\n"))
            if system == "pbs":
                asked, every = resources(words)
                self.assertEqual(len(every), len(set(one.split("=")[0] for one in every)), words)
                self.assertEqual([asked["select"].split(":")[0], asked["place"]], [str(nodes), "scatter"])
                self.assertEqual(asked["filesystems"], site["job"]["filesystems"])
                self.assertEqual([value(words, "-k"), value(words, "-j")], ["doe", "oe"])
                limit = asked["walltime"]
                self.assertIn('cd "$PBS_O_WORKDIR" || exit 1\n', text)
            else:
                self.assertEqual(value(words, "-N"), str(nodes))
                limit = value(words, "-t")
            self.assertEqual(seconds(system, limit), minutes * 60)
            self.assertEqual(value(words, ACCOUNTS[system]), site["job"].get("account"))
            allowed = [queue.get("name") for queue in site["job"]["queues"]
                       if queue.get("nodes", [0, None])[0] <= nodes <= (queue.get("nodes", [0, None])[1] or nodes)
                       and queue.get("minutes", [0, None])[0] <= minutes <= (queue.get("minutes", [0, None])[1] or minutes)]
            self.assertEqual(value(words, "-q", "-p"), allowed[0])
            self.assertEqual(self.command(text), ["hpclaunch", "run", "--profile", site["name"], "--", "python3", "train.py"])
            if system == "slurm":
                self.assertIn("\nexport SLURM_EXPORT_ENV=ALL\n", text)
            return self.file("%s-%d-%d.sh" % (site["name"], nodes, minutes), text)

    def test_modules_of_the_stack(self):
        self.assertIn("\nmodule use /soft/modulefiles || exit 1\nmodule load conda || exit 1\nconda activate base || exit 1\n", self.script("--profile", "polaris"))
        self.assertIn("\nmodule purge || exit 1\nmodule use /appl", self.script("--profile", "lumi-g"))
        self.assertIn("\nmodule load conda/2022-07-19 || exit 1\nconda activate base || exit 1\n", self.script("--profile", "polaris", "--stack", "conda-2022"))
        self.assertIn("\nmodule load PrgEnv-gnu/8.5.0 miniforge3/23.11.0-0 rocm/5.7.1 craype-accel-amd-gfx90a || exit 1\n",
                      self.script("--profile", "frontier", "--stack", "rocm-5.7"))
        self.assertIn("--uenv=", self.script("--profile", "daint"))
        self.assertNotIn("--uenv=", self.script("--profile", "daint", "--stack", "own"))

    def test_the_directives_of_rules(self):
        text = self.script("--profile", "frontier", "-N", "2")
        self.assertIn("#SBATCH --network=disable_rdzv_get\n", text)
        self.assertRegex(text, r"(?m)^# --network=disable_rdzv_get: \w")
        self.assertNotIn("disable_rdzv_get", self.script("--profile", "frontier", "-N", "1"))
        self.assertIn("--gpus-per-node=h100:4", self.script("--profile", "trillium"))
        self.assertIn("#SBATCH -c 12\n", self.script("--profile", "narval", "-t", "1h"))
        self.assertNotIn("--gpus-per-node", self.script("--profile", "narval", "--node-type", "cpu", "-t", "1h"))
        self.assertIn("# flux: --amd-gpumode=TPX\n", self.script("--profile", "tuolumne", "--node-type", "tpx"))

    def test_a_plan_that_cannot_be(self):
        self.refused(2, "script", "--profile", "aurora", "--ppn", "999", "--", "true", env=HERE)
        self.refused(2, "script", "--profile", "perlmutter", "--gpu-view", "launcher", "--", "true", env=HERE, says=["no flags of srun"])


class Modules(Script):
    """Those of the stack, which the script loads, and those of --module, which hpclaunch run loads after them."""

    def loads(self, *words, says=()):
        """The lines that load something, and the words of hpclaunch run before the program."""
        text = self.script("-t", "1h", *words, says=says)
        lines = re.findall(r"(?m)^((?:module|conda) .*) \|\| exit 1$", text)
        return lines, self.command(text)[2:-3]

    def test_both(self):
        aurora, polaris = ["--profile", "aurora"], ["--profile", "polaris"]
        self.assertEqual(self.loads(*aurora, "--module", "copper"), (["module load frameworks"], [*aurora, "--module", "copper"]))
        self.assertEqual(self.loads(*aurora, "--module-use", "/m"), (["module load frameworks"], [*aurora, "--module-use", "/m"]))
        self.assertEqual(self.loads(*polaris, "--module", "a/1", "--module", "b"),
                         (["module use /soft/modulefiles", "module load conda", "conda activate base"], [*polaris, "--module", "a/1", "--module", "b"]))

    def test_another_version_stands_in_its_place(self):
        """Two versions conflict, and the environment of one of them may be active."""
        polaris = ["--profile", "polaris"]
        new = ["module use /soft/modulefiles", "module load conda/2025-09-25", "conda activate base"]
        self.assertEqual(self.loads(*polaris, "--module", "conda/2025-09-25"), (new, polaris))
        new.insert(1, "module use '/my modules'")
        self.assertEqual(self.loads(*polaris, "--module", "conda/2025-09-25", "--module", "copper", "--module-use", "/my modules"),
                         (new, [*polaris, "--module", "copper", "--module-use", "/my modules"]))
        h100 = ["--profile", "jean-zay", "--node-type", "h100"]
        self.assertEqual(self.loads(*h100, "--module", "pytorch-gpu/py3/2.7.0"), (["module purge", "module load arch/h100 pytorch-gpu/py3/2.7.0"], h100))

    def test_a_module_chooses_the_stack(self):
        for module, lines in (("frameworks/2024.2.1_u1", []), ("frameworks/2025.3.1", ["module load frameworks/2025.3.1"]),
                              ("frameworks_optimized", ["module use /soft/datascience/frameworks_optimized", "module load frameworks_optimized"])):
            aurora = ["--profile", "aurora"]
            self.assertEqual(self.loads(*aurora, "--module", module), (lines, aurora if lines else [*aurora, "--module", module]))
        self.assertEqual(self.loads("--profile", "polaris", "--module", "conda/2022-07-19"), (["module load conda/2022-07-19", "conda activate base"], ["--profile", "polaris"]))

    def test_none(self):
        self.assertEqual(self.loads("--profile", "aurora", "--module", "none"), ([], ["--profile", "aurora", "--module", "none"]))
        for command in "script", "run", "plan", "env", "explain", "verify":
            program = [] if command == "explain" else ["--", "true"]
            self.refused(125 if command == "run" else 2, command, "--profile", "aurora", "--module", "none", "--module", "copper", *program, env=HERE,
                         says=["--module none and --module copper contradict each other"])

    def test_names_are_checked_before_the_job_waits(self):
        self.refused(2, "script", "--profile", "aurora", "--module", "a;b", "--", "true", env=HERE, says=["--module must be a name"])
        self.refused(2, "script", "--profile", "aurora", "--module", "", "--", "true", env=HERE, says=["--module must be a name"])

    def test_a_stack_without_modules_is_named(self):
        """Of every site: each stack loads what its profile says, or a note says that there is nothing."""
        silent = []
        for site in sites():
            if "retired" in site:
                continue
            shown = json.loads(self.ok(hpclaunch("profile", "show", site["name"], "--format", "json", env=HERE)).out)
            for stack in shown["profiles"][0].get("stacks", []):
                words = ["--profile", site["name"], "--stack", stack["name"], "-t", "1h"]
                says = ["the profile of %s has no modules for stack %s" % (site["name"], stack["name"]), "[stack-without-modules]", "--module NAME"]
                if "modules" in stack:
                    self.assertTrue(self.loads(*words)[0], words)
                    self.assertNotIn("stack-without-modules", self.last.err, words)
                    continue
                silent.append((site["name"], stack["name"]))
                self.assertEqual(self.loads(*words, says=says)[0], [])
                for more in "none", "tools":
                    self.assertEqual(self.loads(*words, "--module", more)[0], [])
                    self.assertNotIn("stack-without-modules", self.last.err, words)
        self.assertLessEqual({("aurora", "frameworks-2024"), ("aurora", "frameworks-2025.0"), ("fir", "StdEnv-2020")}, set(silent))
        self.assertFalse({("frontier", "rocm-5.7"), ("polaris", "conda-2022")} & set(silent))


class Options(Script):
    def test_times(self):
        for site, system in (("aurora", "pbs"), ("daint", "slurm"), ("tuolumne", "flux")):
            for typed, wanted in TIMES.items():
                words = directives(system, self.script("--profile", site, "-q", "any", "-t", typed))
                limit = resources(words)[0]["walltime"] if system == "pbs" else value(words, "-t")
                self.assertEqual(seconds(system, limit), -(-wanted // 60) * 60 if system == "flux" else wanted, typed)
        self.assertIn("#BSUB -W 1:30\n", self.script("--scheduler", "lsf", "-t", "90m"))

    def test_times_that_two_systems_read_differently(self):
        for typed, meant in (("30", "30m"), ("30:00", "0:30:00"), ("1800", "1800s")):
            self.refused(2, "script", "--profile", "aurora", "-t", typed, "--", "true", env=HERE, says=["--time", typed, meant])
        for typed in ("0m", "h", "1x", "1m1h", "-5m", "1h30", "1:2:3:4", "1:99:00", "99999999999999999999d", "0:00:00"):
            self.refused(2, "script", "--profile", "aurora", "--time=" + typed, "--", "true", env=HERE, says=["--time"])

    def test_without_a_time(self):
        self.assertIn("walltime=00:30:00", self.script("--profile", "aurora", says=["time-limit-default", "30 minutes"]))

    def test_each(self):
        text = self.script("--profile", "polaris", "-N", "2", "-t", "1h", "-A", "abc", "-q", "R123", "--filesystems", "home", "--constraint", "system=other",
                           "--name", "exp-1", "--output", "logs/out.txt", says=["queue-unknown"])
        for line in ("-A abc", "-q R123", "-l filesystems=home", "-l select=2:system=other", "-N exp-1", "-o logs/out.txt"):
            self.assertIn("#PBS %s\n" % line, text)
        text = self.script("--profile", "clariden", "--constraint", "thp_never&nvidia_vboost_enabled", "-A", "g123")
        self.assertIn('#SBATCH -C "thp_never&nvidia_vboost_enabled"\n', text)

    def test_what_excludes_a_directive_replaces_it(self):
        """--mem-per-cpu for the profile's memory; two that exclude each other were both typed."""
        text = self.script("--profile", "narval", "-N", "1", "-A", "me", "--batch=--mem-per-cpu=4G")
        self.assertEqual(re.findall(r"#SBATCH (--mem\S*)", text), ["--mem-per-cpu=4G"])
        for words, says in ((["--batch=--mem-per-cpu=4G", "--batch=--mem-per-gpu=30G"], "sbatch refuses --mem-per-cpu=4G together with --mem-per-gpu=30G"),
                            (["--batch=--gpus-per-socket=1"], "--gpus-per-socket=1 needs --sockets-per-node or --extra-node-info")):
            self.refused(2, "script", "--scheduler", "slurm", "--profile", "none", *words, "--", "true", env=HERE, says=[says])

    def test_a_typed_directive_replaces_what_asks_for_the_same(self):
        def written(system, *words):
            lines = self.script("--scheduler", system, "--profile", "none", "-t", "1h", *words).splitlines()
            sentinel = dict(SENTINELS, lsf="#BSUB ")[system]
            return [line[len(sentinel):].strip() for line in lines if line.startswith(sentinel)]
        gpus = ("-N", "1", "--gpus", "4")
        for one in ("--gpus-per-node=a100_3g.20gb:1", "--gres=gpu:2", "-G 2", "--gpus=2", "--gpus-per-task=2", "--tres-per-task=gres/gpu:2"):
            self.assertEqual(written("slurm", *gpus, "--batch=" + one), ["-N 1", "-t 01:00:00", "-J train", one])
        self.assertIn("--gpus-per-node=4", written("slurm", *gpus, "--batch=--gres=nvme:1"))
        self.assertEqual(written("slurm", "-N", "2", "--mem", "4G", "--batch=--nodes=4", "--batch=--time=9", "--batch=--mem-per-cpu=1G"),
                         ["-J train", "--nodes=4", "--time=9", "--mem-per-cpu=1G"])
        self.assertEqual(written("pbs", "-N", "2", *gpus[2:], "--batch=-lselect=1:ngpus=1,walltime=2:00:00"),
                         ["-N train", "-j oe", "-l place=scatter", "-lselect=1:ngpus=1,walltime=2:00:00", "-k doe"])
        self.assertEqual(written("pbs", "-N", "2", "--batch=-l nodes=2:ppn=4", "--batch=-W umask=022", "--dependency", "afterok:1"),
                         ["-l walltime=01:00:00", "-N train", "-W depend=afterok:1", "-j oe", "-l nodes=2:ppn=4", "-W umask=022", "-k doe"])
        self.assertEqual(written("flux", "-N", "2", *gpus[2:], "--batch=--gpus-per-slot=1", "--batch=--nodes=1"), ["-t 60m", "--job-name=train", "--gpus-per-slot=1", "--nodes=1"])
        span = '-R "span[ptile=4] rusage[mem=5GB]"'
        self.assertEqual(written("lsf", "-N", "2", *gpus[2:], "--mem", "4G", "--batch=-gpu num=1:j_exclusive=yes", "--batch=" + span, "--batch=-n 8"),
                         ["-W 1:00", "-J train", "-gpu num=1:j_exclusive=yes", span, "-n 8"])
        self.assertEqual(written("lsf", "-N", "2", "--mem", "4G", '--batch=-R "span[ptile=4]"')[-2:], ['-R "rusage[mem=4GB]"', '-R "span[ptile=4]"'])
        self.refused(2, "script", "--scheduler", "pbs", "--profile", "none", "-N", "2", "--batch=-l mem=4GB", "--", "true", env=HERE,
                     says=["qsub refuses -l select=2 together with -l mem=4GB"])
        text = self.script("--profile", "leonardo", "-N", "1", "-A", "me", "--batch=--gpus-per-task=1", "--batch=-n4")
        self.assertNotIn("--gres", text)
        self.assertNotIn("--ntasks", text)

    def test_values_that_no_directive_takes(self):
        for option in ("-A", "-q", "--name", "--output", "--constraint"):
            for bad in ("a\nb", "$HOME/x", 'a"b', "a`b`", "it's"):
                self.refused(2, "script", "--profile", "frontier", option, bad, "--", "true", env=HERE, says=["cannot name a job" if option == "--name" else "cannot stand in a batch directive"])
        self.refused(2, "script", "--profile", "frontier", "--filesystems", "home", "--", "true", env=HERE, says=["Slurm has no directive for --filesystems"])

    def test_the_account(self):
        self.script("--profile", "aurora", says=["warning", "account-missing", "-A ACCOUNT"])
        for words, env in ((["-A", "x"], HERE), ([], dict(HERE, SBATCH_ACCOUNT="x"))):
            done = self.ok(hpclaunch("script", "--profile", "frontier", "-t", "1h", *words, "--", "true", env=env))
            self.assertEqual(done.err, "")
            self.assertNotIn("PROJECT", done.out)
        self.assertNotIn("-A", directives("slurm", self.script("--profile", "trillium")))

    def test_queues(self):
        for nodes, time, wanted in ((1, "30m", "debug"), (10, "1h", "debug-scaling"), (300, "12h", "prod"), (1025, "18h", "prod"), (4, "20h", "capacity")):
            self.assertIn("#PBS -q %s\n" % wanted, self.script("--profile", "aurora", "-N", str(nodes), "-t", time))
        self.refused(2, "script", "--profile", "aurora", "-N", "250", "-t", "2h", "--", "true", env=HERE,
                     says=["no queue takes 250 nodes for 2h", "debug-scaling: 2-256 nodes, 5m to 1h", "-N 256 -t 2h for queue prod"])
        self.script("--profile", "aurora", "-N", "10", "-q", "prod", says=["queue-limit", "256-1024 nodes"])
        self.assertIn("#SBATCH -q debug\n", self.script("--profile", "frontier", "-q", "debug"))
        # Modules and queues of a node type.
        for node, time, module, queue in (("h100", "48h", "arch/h100 ", "-q qos_gpu_h100-t4"), ("a100", "2h", "arch/a100 ", None),
                                          ("v100", "48h", "", "-q qos_gpu-t4"), ("v100-8gpu", "2h", "", None)):
            text = self.script("--profile", "jean-zay", "-N", "2", "-t", time, "--node-type", node)
            self.assertIn("module load %spytorch-gpu/py3/" % module, text)
            self.assertEqual(re.findall("#SBATCH (-q .*)", text), [queue] if queue else [])
        self.refused(2, "script", "--profile", "jean-zay", "-N", "2", "-t", "48h", "--node-type", "a100", "--", "true", env=HERE,
                     says=["no queue takes 2 nodes for 48h", "-t 20h"])
        self.assertIn("module load pytorch-gpu/py3/", self.script("--profile", "jean-zay", "--node-type", "a100", "--stack", "pytorch-v100"))
        self.assertIn("#SBATCH -q premium\n", self.script("--profile", "perlmutter", "-q", "premium"))
        self.assertIn("#SBATCH -p extended\n", self.script("--profile", "frontier", "-t", "20h"))

    def test_without_a_profile(self):
        text = self.script("--scheduler", "slurm", "-N", "4", "-t", "1h")
        self.assertEqual(directives("slurm", text), ["-N", "4", "-t", "01:00:00", "-J", "train"])
        self.refused(2, "script", "--", "true", env=HERE, says=["no batch system found", "--scheduler"])
        self.file("bin/qsub", "#!/bin/sh\n", 0o755)
        env = dict(HERE, PATH=os.path.join(self.folder, "bin"))
        text = self.script("-N", "2", env=env)
        self.assertIn("#PBS -l select=2\n", text)
        self.assertEqual(self.command(text)[0], os.path.realpath(support.HPCLAUNCH))  # this is a login node
        self.refused(2, "script", "--scheduler", "sge", "-N", "2", "--", "true", env=HERE, says=["SGE has no directive for --nodes"])


class Words(Script):
    def test_options_go_on_to_run(self):
        typed = ["-n8", "--ppn=4", "--set", "A=x y", "--set=B=-1", "--launcher-arg=-v", "--label", "--no-supervise", "--verify", "strict", "--verify", "off"]
        run = self.command(self.script("--profile", "perlmutter", "-N", "2", *typed))
        self.assertEqual(run, ["hpclaunch", "run", "--ranks", "8", "--ranks-per-node", "4", "--profile", "perlmutter", "--launcher-arg=-v", "--verify", "off",
                               "--set", "A=x y", "--set", "B=-1", "--label", "--no-supervise", "--", "python3", "train.py"])

    def test_any_word(self):
        program = ["python3", "a b.py", "it's", "$HOME", "x\ny", "--time", "1", "", "*", "!!"]
        text = self.script("--scheduler", "slurm", program=program)
        path = self.file("job.sh", text.replace("\nhpclaunch ", "\nprintf '%s\\0' ").replace("cd ", ": cd ").replace("command -v hpclaunch", "command -v sh"))
        done = self.ok(execute([need("bash"), path], clean_env(SLURM_SUBMIT_DIR="/")))
        self.assertEqual(done.out.split("\0")[:-1], ["run", "--", *program])
        self.assertEqual(directives("slurm", text)[-2:], ["-J", "a_b"])

    def test_secrets_stay_in_the_environment(self):
        text = self.script("--profile", "frontier", "--set", "HF_TOKEN=hf_secret", "--set=WANDB_API_KEY=wandb_secret", "--set", "X=1")
        self.assertNotIn("hf_secret", text)
        self.assertNotIn("wandb_secret", text)
        self.assertIn('"HF_TOKEN=${HF_TOKEN:?export it in the job, a secret is not written here}"', text)
        self.ok(execute([need("shellcheck"), self.file("job.sh", text)]))

    def test_no_argument_becomes_a_directive(self):
        for scheduler in ("flux", "slurm", "pbs"):
            text = self.script("--profile", "none", "--scheduler", scheduler, program=["python", *(["flux:", "FLUX:", "-N", "99"] * 40)])
            comments = [line for line in text.splitlines() if re.match(r"[^\w]*(flux|FLUX):", line)]
            self.assertEqual(comments, [line for line in comments if scheduler == "flux" and re.match(r"# flux: -", line) and "99" not in line], scheduler)

    def test_plain_is_gone(self):
        self.refused(2, "script", "--plain", "--profile", "polaris", "--", "a", env=HERE, says=["--plain", "hpclaunch run --dry-run"])

    def test_what_is_decided_here(self):
        rules = [{"id": "by-variable", "when": {"env.MY_NETWORK": {"set": False}}, "batch": {"slurm": ["--network=x"]}, "why": "x",
                  "source": "https://example.org", "checked": "2026-11-01"},
                 {"id": "by-module", "when": {"module.fast": {"set": True}}, "batch": {"slurm": ["--constraint=y"]}, "why": "x",
                  "source": "https://example.org", "checked": "2026-11-01"}]
        profile = self.file("mine.json", json.dumps({"schema": 1, "name": "mine", "doc": "x", "scheduler": "slurm", "launcher": "slurm", "rules": rules,
                                                     "nodes": [{"name": "n", "doc": "x", "use": "model", "packages": 1, "cores_per_numa": 4}]}))
        text = self.script("--profile", profile, "-t", "1h")
        self.assertIn("#SBATCH --network=x\n", text)
        self.assertIn("# Decided without the job's environment: rule by-variable holds (env.MY_NETWORK is not set)\n", text)
        self.assertIn("# Decided without the job's environment: rule by-module does not hold (module.fast set, and it is not)\n", text)
        self.assertNotIn("Decided without", self.script("--profile", "polaris", "-t", "1h"))

    def test_remarks_are_about_the_job(self):
        """Not about this machine, which has no allocation and perhaps no Python."""
        for program in (["-m", "train"], ["x.py"], ["python3", "x.py"]):
            done = self.ok(hpclaunch("script", "--profile", "polaris", "-N", "1", "-t", "1h", "-A", "P", "--", *program, env=HERE))
            self.assertEqual(done.err, "")
        done = self.ok(hpclaunch("script", "--profile", "polaris", "-t", "1h", "-A", "P", "--", "torchrun", "x.py", env=HERE), 2)
        self.has(done, "torchrun starts ranks itself", "hpclaunch run -- python x.py")

    def test_names(self):
        for program, name in ((["python", "-u", "src/train_ddp.py"], "train_ddp"), (["./a.out"], "a"), (["torchrun"], "torchrun"), (["3d.py"], "job"),
                              (["a" * 40], "a" * 15)):
            self.assertEqual(value(directives("slurm", self.script("--scheduler", "slurm", program=program)), "-J"), name)

    def test_file(self):
        path = os.path.join(self.folder, "job.sh")
        done = self.ok(hpclaunch("script", "--scheduler", "slurm", "-t", "1h", "-o", path, "--", "true", env=HERE))
        self.assertEqual([done.out, done.err], ["", ""])
        with open(path) as file:
            self.assertIn("#SBATCH -t 01:00:00\n", file.read())
        self.refused(2, "script", "--scheduler", "slurm", "-o", "/nonexistent/job.sh", "--", "true", env=HERE, says=["--write"])
        self.refused(2, "script", "--scheduler", "slurm", env=HERE, says=["PROGRAM is missing"])


class Place(Script):
    def test_paths_are_absolute(self):
        os.mkdir(os.path.join(self.folder, "envs"))
        done = self.ok(hpclaunch("script", "--profile", "polaris", "--venv", "envs/../envs", "--module-use=mods", "--", "python3", "t.py", env=HERE, cwd=self.folder))
        words = self.command(done.out)
        folder = os.path.realpath(self.folder)
        self.assertIn(folder + "/envs", words, str(done))
        self.assertTrue({folder + "/mods", "--module-use=" + folder + "/mods"} & set(words), str(done))

    def test_every_path_is_absolute(self):
        """Of every option whose value is a path by its help; names stay as they are."""
        folder = os.path.realpath(self.folder)
        usage = self.ok(hpclaunch("script", "--help", env=HERE)).out
        self.file("mine.json", json.dumps({"schema": 1, "name": "mine", "doc": "x", "scheduler": "slurm"}))
        own = {"--output", "--error", "--write"}  # of the job, and of this command: they do not reach run
        found = dict(re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+) (?:NAME\|)?(FILE|DIR|PATH|SRC\[:DST\])(?: |$)", usage))
        self.assertLessEqual({"--hostfile", "--log-dir", "--report", "--env-file", "--topology", "--stage-from", "--stage-to", "--venv", "--module-use",
                              "--launcher", "--container-bind"}, set(found))
        typed = [(option, "a/../b/c" + end, "b/c" + end) for option, kind in sorted(found.items())
                 for end in (["", ":/d"] if kind.startswith("SRC") else [""]) if option not in own]
        typed += [("--profile", "./mine.json", "mine.json"), ("--profile", "mine.json", "mine.json"), ("--conda", "./envs/x", "envs/x"),
                  ("--container", "image.sif", "image.sif"), ("--container", "./b", "b")]
        for option, value, path in typed:
            with self.subTest(option, value=value):
                system = () if option == "--profile" else ("--scheduler", "slurm")
                done = self.ok(hpclaunch("script", *system, option, value, "--", "python3", "b/c.py", env=HERE, cwd=self.folder))
                self.assertEqual(self.command(done.out), ["hpclaunch", "run", option, folder + "/" + path, "--", "python3", "b/c.py"])
        for option, value in (("--profile", "frontier"), ("--profile", "none"), ("--conda", "train"), ("--launcher", "hydra"),
                              ("--container", "docker://ubuntu"), ("--container", "ubuntu")):
            done = self.ok(hpclaunch("script", "--scheduler", "slurm", option, value, "--", "true", env=HERE, cwd=self.folder))
            self.assertEqual(self.command(done.out), ["hpclaunch", "run", option, value, "--", "true"])
        self.file("ubuntu/x", "")  # a directory is an image, too
        done = self.ok(hpclaunch("script", "--scheduler", "slurm", "--container", "ubuntu", "--", "true", env=HERE, cwd=self.folder))
        self.assertIn(folder + "/ubuntu", self.command(done.out))

    def test_a_job_without_hpclaunch(self):
        text = "\n".join(self.script("--profile", "polaris").split("\n\n")[-2:])  # without the site's modules
        bare = {"PATH": "/usr/bin:/bin"}
        done = execute(["/bin/bash", "-c", text], env=bare, cwd=self.folder)
        self.ok(done, 127)
        self.assertEqual(done.err, "hpclaunch is not on PATH in this job: add its directory to PATH here\n")
        self.file("bin/hpclaunch", "#!/bin/sh\necho \"$*\"\n", 0o755)
        done = self.ok(execute(["/bin/bash", "-c", text], env={"PATH": self.folder + "/bin:" + bare["PATH"]}, cwd=self.folder))
        self.assertEqual(done.out, "run --profile polaris -- python3 train.py\n")


class InAJob(Script):
    """The script under bash, with `module` and `hpclaunch` made up."""

    SHELL = """
module() { echo "module $*" >> "$LOG"; [ "$1 $2" != "load $BROKEN" ]; }
conda() { echo "conda $*" >> "$LOG"; }
"""

    def run_job(self, status=0, **more):
        log = os.path.join(self.folder, "log")
        self.file("bin/hpclaunch", '#!/bin/sh\necho "$PWD: $*" >> "%s"\nexit %d\n' % (log, status), 0o755)
        text = self.script("--profile", "polaris", program=("true",))
        env = clean_env(PATH=os.path.join(self.folder, "bin") + ":/usr/bin:/bin", LOG=log, BASH_ENV=self.file("shell", self.SHELL),
                        **{"PBS_O_WORKDIR": self.folder, **more})
        done = execute([need("bash"), self.file("job.sh", text)], env, cwd="/")
        if not os.path.exists(log):
            return done.status, []
        with open(log) as file:
            lines = file.read().splitlines()
        return done.status, lines

    def test_steps_and_status(self):
        modules = ["module use /soft/modulefiles", "module load conda", "conda activate base"]
        for status in (0, 1, 143):
            self.assertEqual(self.run_job(status), (status, [*modules, self.folder + ": run --profile polaris -- true"]))
            os.unlink(os.path.join(self.folder, "log"))

    def test_what_fails_ends_it(self):
        self.assertEqual(self.run_job(BROKEN="conda"), (1, ["module use /soft/modulefiles", "module load conda"]))
        os.unlink(os.path.join(self.folder, "log"))
        self.assertEqual(self.run_job(PBS_O_WORKDIR="/nonexistent"), (1, []))


if __name__ == "__main__":
    support.main()
