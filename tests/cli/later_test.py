#!/usr/bin/env python3
"""Texts that are made before their job runs: what only the job knows is found there. A made-up launcher starts the real
shim for each rank, and the ranks get what `hpclaunch run` in that job would give them."""
import json
import os
import re

import support
from support import ROOT, Test, clean_env, execute, hpclaunch, need

# Starts four ranks on this machine, as two nodes, in every launcher's variables.
LAUNCHER = """#!/bin/sh
while [ "${1##*/}" != hpclaunch-shim ]; do shift || exit 9; done
for rank in 0 1 2 3; do
  local=$((rank % 2))
  SLURM_PROCID=$rank SLURM_LOCALID=$local PALS_RANKID=$rank PALS_LOCAL_RANKID=$local FLUX_TASK_RANK=$rank \\
    FLUX_TASK_LOCAL_ID=$local PMIX_RANK=$rank JSM_NAMESPACE_RANK=$rank JSM_NAMESPACE_LOCAL_RANK=$local "$@" || exit
done
"""
SHOW = """#!/bin/sh
[ -z "$SHOW_DIRECTORY" ] || [ -d "$SHOW_DIRECTORY" ] || echo "no directory $SHOW_DIRECTORY"
env > "$RESULTS/$RANK"
"""
# Batch system: launcher, variables of its job, the job's id there.
JOBS = {
    "slurm": ("slurm", {"SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "n[5-6]"}, "77"),
    "pbs": ("pals", {"PBS_JOBID": "77[3].server", "PBS_NODEFILE": "{nodes}"}, "77[3].server"),
    "flux": ("flux", {"FLUX_JOB_ID": "f2Xa", "FLUX_URI": "local:///x"}, "f2Xa"),
    "flux, nested": ("flux", {"FLUX_ENCLOSING_ID": "f9", "FLUX_URI": "local:///x"}, "f9"),
    "lsf": ("jsrun", {"LSB_JOBID": "12", "LSB_JOBINDEX": "0", "LSB_MCPU_HOSTS": "b1 1 n5 4 n6 4"}, "12"),
    "lsf, array": ("jsrun", {"LSB_JOBID": "12", "LSB_JOBINDEX": "3", "LSB_MCPU_HOSTS": "b1 1 n5 4 n6 4"}, "12[3]"),
    "cobalt": ("pals", {"COBALT_JOBID": "9", "COBALT_NODEFILE": "{nodes}"}, "9"),
    "sge": ("pals", {"JOB_ID": "5", "SGE_TASK_ID": "undefined", "PE_HOSTFILE": "{slots}"}, "5"),
    "sge, array": ("pals", {"JOB_ID": "5", "SGE_TASK_ID": "2", "PE_HOSTFILE": "{slots}"}, "5.2"),
}
UNLIKE = {"HPCLAUNCH_PLAN", "MASTER_PORT", "LOADEDMODULES"}


class Later(Test):
    def setUp(self):
        super().setUp()
        self.results = os.path.join(self.folder, "results")
        os.mkdir(self.results)
        self.file("nodes", "n5\nn6\n")
        self.file("slots", "n5 4 all.q\nn6 4 all.q\n")
        for name in ("srun", "mpiexec", "jsrun"):
            self.file("bin/" + name, LAUNCHER, 0o755)
        self.file("bin/flux", "#!/bin/sh\ncase $1 in run) shift; exec srun \"$@\";; hostlist) echo n5; [ $# != 2 ] || echo n6;; esac\n", 0o755)
        self.file("bin/scontrol", '#!/bin/sh\nprintf "n5\\nn6\\n"\n', 0o755)
        for name in ("sbatch", "qsub", "bsub"):
            self.file("bin/" + name, "#!/bin/sh\n", 0o755)
        self.show = self.file("show", SHOW, 0o755)

    def profile(self, system="slurm", launcher="slurm", rules=(), host=True, **more):
        own = [{"id": "caches", "why": "x", "source": "https://example.org", "checked": "2026-11-01",
                "default": dict({"MY_CACHE": "/tmp/${user}-c-${job_id}/x"}, **({"MY_HOST": "${host.first}:9"} if host else {})),
                "require": {"MY_NAME": "${user} $$USER"}, "prepend": {"LD_LIBRARY_PATH": "/opt/a b/lib"},
                "make_dirs": [self.folder + "/${user}-${job_id}"]},
               {"id": "more", "why": "x", "source": "https://example.org", "checked": "2026-11-01", "prepend": {"LD_LIBRARY_PATH": "/opt/more"},
                "require": {"MY_PLACE": "${user}.${local_rank}.${job_id}"}}, *rules]
        return self.file("%s.json" % system.split(",")[0], json.dumps({
            "schema": 1, "name": "site", "doc": "x", "launcher": launcher, "scheduler": system.split(",")[0], "rules": own,
            "nodes": [{"name": "compute", "doc": "x", "use": "model", "packages": 1, "cores_per_numa": 2}], **more}))

    def env(self, **more):
        return clean_env(PATH=os.path.join(self.folder, "bin") + ":/usr/bin:/bin", HOME="/home/laptop", USER="laptop", **more)

    def job(self, name, **more):
        """The environment of a job, in which another user's shell runs."""
        files = {"nodes": os.path.join(self.folder, "nodes"), "slots": os.path.join(self.folder, "slots")}
        own = {key: value.format(**files) for key, value in JOBS[name][1].items()}
        return dict(self.env(**own), **{"USER": "me", "HOME": "/home/me", "RESULTS": self.results, **more})

    def words(self, profile, *more):
        return ("--profile", profile, "-N", "2", "--ppn", "2", "--oversubscribe", *([] if "--supervise" in more else ["--no-supervise"]), *more)

    def text(self, profile, *more, env=None, command=("run", "--dry-run"), program=None):
        return self.ok(hpclaunch(*command, *self.words(profile, *more), "--", program or self.show, env=env or self.env()))

    def ranks(self, text, env, shell=("/bin/sh",)):
        """What each rank's program finds in its environment."""
        done = self.ok(execute([*shell, self.file("text", text)], env))
        self.assertNotRegex(done.out + done.err, "HPCLAUNCH_PLAN|changed|no directory", text)
        found = []
        for rank in range(4):
            path = os.path.join(self.results, str(rank))
            with open(path, encoding="utf-8") as file:
                found.append(dict(line.split("=", 1) for line in file.read().splitlines() if "=" in line))
            os.unlink(path)
        return found


class Jobs(Later):
    def test_ranks_get_what_run_gives_them(self):
        for name, (launcher, _, job_id) in JOBS.items():
            with self.subTest(name):
                more = ("--master-addr", "n5") if name.startswith("lsf") else ()
                profile = self.profile(name, launcher)
                if more:  # no command of LSF prints the first host
                    self.refused(125, "run", "--dry-run", *self.words(profile), "--", self.show, env=self.env(), says=["address of rank 0", "--hostfile"])
                    profile = self.profile(name, launcher, host=False)
                text = self.text(profile, *more).out
                self.assertNotIn("laptop", text)
                directory = "%s/me-%s" % (self.folder, job_id)
                job = self.job(name, LD_LIBRARY_PATH="/mine", SHOW_DIRECTORY=directory)
                ranks = self.ranks(text, job)
                self.assertEqual([rank["MY_PLACE"] for rank in ranks], ["me.%d.%s" % (r % 2, job_id) for r in range(4)])
                self.assertEqual(ranks[0]["MY_CACHE"], "/tmp/me-c-%s/x" % job_id)
                self.assertEqual(ranks[0]["MY_NAME"], "me $USER")
                self.assertEqual(ranks[0]["LD_LIBRARY_PATH"], "/opt/more:/opt/a b/lib:/mine")
                self.assertEqual(ranks[3]["TORCHELASTIC_RUN_ID"], job_id)
                inside = json.loads(self.ok(hpclaunch("env", "--format", "json", *self.words(profile, *more), env=job)).out)
                for variable, value in inside["set"].items():
                    if variable not in UNLIKE:
                        self.assertEqual([rank[variable] for rank in ranks], [value] * 4, variable)
                os.rmdir(directory)

    def test_every_posix_shell(self):
        text = self.text(self.profile()).out
        for shell in (["dash", "-eu"], ["bash", "-eu"], ["bash", "--posix"], ["busybox", "sh"]):
            ranks = self.ranks(text, self.job("slurm"), [need(shell[0]), *shell[1:]])
            self.assertEqual(ranks[1]["MY_CACHE"], "/tmp/me-c-77/x")
            self.assertEqual(ranks[1]["LD_LIBRARY_PATH"], "/opt/more:/opt/a b/lib")
        user = self.ranks(text, {key: value for key, value in self.job("slurm", LOGNAME="log").items() if key != "USER"})
        self.assertEqual(user[0]["MY_NAME"], "log $USER")

    def test_what_the_job_exports_counts_before_defaults(self):
        text = self.text(self.profile(), env=self.env(OMP_NUM_THREADS="5", MY_OTHER="x")).out
        self.assertIn("# As exported where this was made, unless the job exports it: OMP_NUM_THREADS\n", text)
        ranks = self.ranks(text, self.job("slurm", OMP_NUM_THREADS="3", MY_CACHE="/mine", MASTER_ADDR="n9", MY_NAME="no"))
        self.assertEqual([ranks[0][name] for name in ("OMP_NUM_THREADS", "MY_CACHE", "MASTER_ADDR", "MY_NAME")], ["3", "/mine", "n9", "me $USER"])
        ranks = self.ranks(text, self.job("slurm"))
        self.assertEqual([ranks[0][name] for name in ("OMP_NUM_THREADS", "MASTER_ADDR", "MY_HOST")], ["5", "n5", "n5:9"])

    def test_any_name(self):
        """What separates parts of HPCLAUNCH_PLAN, and what a shell expands."""
        text = self.text(self.profile()).out
        for user in ("a:b=c%2Fd", "a b  c", "$HOME`id`\"'", "dom\\me", "ü*?"):
            directory = "%s/%s-77" % (self.folder, user)
            ranks = self.ranks(text, self.job("slurm", USER=user, SHOW_DIRECTORY=directory))
            self.assertEqual([rank["MY_PLACE"] for rank in ranks], ["%s.%d.77" % (user, r % 2) for r in range(4)])
            os.rmdir(directory)

    def test_outside_a_job_it_ends(self):
        text = self.text(self.profile()).out
        for gone in ("SLURM_JOB_ID", ""):
            env = {key: value for key, value in self.job("slurm").items() if key != gone}
            if not gone:
                self.file("bin/scontrol", "#!/bin/sh\nexit 1\n", 0o755)
            done = self.ok(execute(["/bin/sh", self.file("text", text)], env), 2)
            self.has(done, "run this in a Slurm job")

    def test_the_environment_of_the_job_in_a_value(self):
        rule = {"id": "root", "why": "x", "source": "https://example.org", "checked": "2026-11-01", "when": {"env.MY_ROOT": {"set": True}},
                "require": {"MY_LIB": "${env.MY_ROOT}/lib", "MY_SCRATCH": "${env.HOME}/s"}, "make_dirs": ["${env.HOME}/d:1"]}
        profile = self.profile(rules=[rule])
        home = os.path.join(self.folder, "h=1")
        os.mkdir(home)
        text = self.text(profile, env=self.env(MY_ROOT="/made/here")).out
        self.assertNotIn("laptop", text)
        self.assertIn("# Decided without the job's environment: rule root holds (env.MY_ROOT = /made/here)\n", text)
        ranks = self.ranks(text, self.job("slurm", MY_ROOT="/there", HOME=home, SHOW_DIRECTORY=home + "/d:1"))
        self.assertEqual([ranks[2]["MY_LIB"], ranks[2]["MY_SCRATCH"]], ["/there/lib", home + "/s"])
        self.has(self.ok(execute(["/bin/sh", self.file("text", text)], self.job("slurm")), 2), "MY_ROOT: is not set in this job")
        self.assertIn("# Decided without the job's environment: rule root does not hold (env.MY_ROOT set, and it is not)\n", self.text(profile).out)

    def test_what_is_typed_stays(self):
        typed = "node00001 $USER ^USER^ \x0eUSER\x0f ${SLURM_JOB_ID}"
        text = self.text(self.profile(), "--set", "MY_TEXT=" + typed, "--launcher-arg=-v\x0eUSER\x0f").out
        self.assertIn(" '-v\x0eUSER\x0f'", text)
        self.assertEqual(self.ranks(text, self.job("slurm"))[0]["MY_TEXT"], typed)

    def test_the_signal_is_counted_from_the_start_of_the_job(self):
        text = self.text(self.profile(), "--signal", "USR1@300", "--ends-in", "01:00:00", "--supervise").out
        self.assertRegex(text, r"HPCLAUNCH_SIGNAL_TIME=\$\(\(\$\(date \+%s\) \+ (3300|3299)\)\)\n")
        self.assertRegex(text, r":notice=10\*\^\$HPCLAUNCH_SIGNAL_TIME_ESCAPED\^:")
        self.ranks(text, self.job("slurm"))

    def test_in_an_image(self):
        """There HPCLAUNCH_PLAN has the constants, too."""
        engine = {"engine": "apptainer", "options": ["--x"], "why": "x", "source": "https://example.org", "checked": "2026-11-01"}
        text = self.text(self.profile(containers=[engine]), "--container", "/images/x.sif").out
        self.assertNotIn("node00001", text)
        self.assertIn("# In the image the values of this text count before what the job exports\n", text)
        podman = self.text(self.profile(containers=[dict(engine, engine="podman-hpc")]), "--container", "/images/x").out
        self.assertIn("# Limits are left out: hpclaunch run gives the container those of the job\n", podman)
        self.assertNotIn("--ulimit", podman)
        here = os.path.join(self.folder, "a=b")
        os.mkdir(here)
        done = self.ok(execute(["/bin/sh", self.file("text", text)], self.job("slurm", MY_CACHE="/mine"), cwd=here))
        self.assertNotRegex(done.err, "HPCLAUNCH_PLAN|directory")
        with open(os.path.join(self.results, "3"), encoding="utf-8") as file:
            rank = dict(line.split("=", 1) for line in file.read().splitlines() if "=" in line)
        self.assertEqual([rank[name] for name in ("MASTER_ADDR", "MY_HOST", "MY_CACHE", "MY_PLACE", "PWD")], ["n5", "n5:9", "/tmp/me-c-77/x", "me.1.77", here])

    def test_the_hpclaunch_of_the_job(self):
        """Where this machine cannot submit the job, its installation is not the job's."""
        for name in ("sbatch", "qsub"):
            os.unlink(os.path.join(self.folder, "bin", name))
        profile = self.profile("pbs", "pals")
        text = self.text(profile).out
        self.assertNotIn(os.path.dirname(support.HPCLAUNCH), text)
        job = dict(self.job("pbs"), PATH=os.path.join(self.folder, "bin") + ":/usr/bin:/bin")
        done = self.ok(execute(["/bin/sh", self.file("text", text)], job), 127)
        self.assertEqual(done.err, "hpclaunch is not on PATH in this job: add its directory to PATH here\n")
        os.symlink(os.path.realpath(support.HPCLAUNCH), os.path.join(self.folder, "bin", "hpclaunch"))
        self.assertEqual(self.ranks(text, job)[0]["MY_NAME"], "me $USER")


class Formats(Later):
    def exports(self, form, text, env):
        """The environment behind the text, in that shell."""
        more = ["-f"] if form == "csh" else []
        path = self.file("text." + form, text + "env -0\n")
        done = self.ok(execute([need({"sh": "sh", "csh": "tcsh", "fish": "fish"}[form]), *more, path], env))
        return dict(one.split("=", 1) for one in done.out.split("\0") if "=" in one)

    def test_shells_agree(self):
        for name in JOBS:
            lsf = name.startswith("lsf")
            profile = self.profile(name, JOBS[name][0], host=not lsf)
            address = ("--master-addr", "n5") if lsf else ()
            for more in ({}, {"LD_LIBRARY_PATH": "/mine:/yours", "MY_CACHE": "/own dir"}):
                env = dict(self.job(name), HOME=self.folder, **more)
                found, names = {}, []
                for form in ("sh", "csh", "fish"):
                    text = self.text(profile, "--user", "me", *address, command=("env", "--format", form)).out
                    names = re.findall(r"(?m)^export (\w+)=", text) or names
                    found[form] = self.exports(form, text, env)
                for variable in names:
                    for form in ("csh", "fish"):
                        self.assertEqual(found[form].get(variable), found["sh"][variable], "%s %s %s" % (name, form, variable))

    def test_what_the_batch_system_sets_does_not_count(self):
        profile = self.profile("pbs", "pals")
        for form in ("sh", "csh", "fish"):
            text = self.text(profile, command=("env", "--format", form)).out
            for ncpus, threads, wanted in ((None, None, "1"), ("64", "64", "1"), ("64", "7", "7"), (None, "7", "7")):
                more = {name: value for name, value in (("NCPUS", ncpus), ("OMP_NUM_THREADS", threads)) if value}
                found = self.exports(form, text, dict(self.job("pbs"), HOME=self.folder, **more))
                self.assertEqual(found["OMP_NUM_THREADS"], wanted, (form, more))

    def test_the_user_of_each_shell(self):
        profile = self.profile()
        user = execute(["id", "-un"]).out.strip()
        for form in ("csh", "fish"):
            found = self.exports(form, self.text(profile, command=("env", "--format", form)).out, dict(self.job("slurm"), HOME=self.folder))
            self.assertEqual(found["MY_NAME"], user + " $USER")

    def test_outside_a_job(self):
        for form, shell in (("csh", ["tcsh", "-f"]), ("fish", ["fish"])):
            text = self.text(self.profile("pbs", "pals"), command=("env", "--format", form)).out
            env = dict(self.job("pbs"), HOME=self.folder)
            del env["PBS_JOBID"]
            self.assertEqual(execute([need(shell[0]), *shell[1:], self.file("text", text)], env).err, "hpclaunch: run this in a PBS job\n")

    def test_formats_without_expressions_refuse(self):
        profile = self.profile()
        for form in ("dotenv", "json", "lmod"):
            command = ("env", "--format", form, *self.words(profile, "--set", "LD_LIBRARY_PATH=/x"))
            self.refused(2, *command, env=self.env(), says=["HPCLAUNCH_PLAN: its value is known only in the job", "try: --job-id ID --user NAME, or --format sh"])
            self.refused(2, *command, "--job-id", "7", "--user", "u", env=self.env(), says=["MASTER_ADDR", "try: --hostfile FILE, or --format sh"])
            known = ("--job-id", "7", "--user", "u", "--master-addr", "n1", "--set", "MY_HOST=n1")
            self.assertIn("/tmp/u-c-7/x", self.ok(hpclaunch(*command, *known, env=self.env())).out)
            command = [word for word in command if word != "LD_LIBRARY_PATH=/x"]
            command.remove("--set")
            self.refused(2, *command, *known, env=self.env(), says=["LD_LIBRARY_PATH", "--set LD_LIBRARY_PATH=VALUE"])

    def test_options_fix_the_facts(self):
        text = self.text(self.profile(), "--job-id", "1 2", "--user", "o'neil").out
        self.assertNotIn("HPCLAUNCH_JOB", text)
        ranks = self.ranks(text, self.job("slurm"))
        self.assertEqual([ranks[1]["MY_PLACE"], ranks[1]["MY_CACHE"]], ["o'neil.1.1 2", "/tmp/o'neil-c-1 2/x"])
        os.rmdir(self.folder + "/o'neil-1 2")
        self.refused(125, "run", "--job-id", "7", "--", "/bin/true", says=["need --dry-run"])
        self.refused(125, "run", "--user", "u", "--", "/bin/true", says=["need --dry-run"])

    def test_what_people_read(self):
        profile = self.profile()
        plan = self.ok(hpclaunch("plan", "--json", *self.words(profile), env=self.env())).out
        self.assertNotIn("laptop", plan.replace("/home/laptop", ""))
        self.assertNotRegex(plan, r"\\u000[ef]")
        document = json.loads(plan)
        values = {one["name"]: one["value"] for one in document["env"]}
        self.assertEqual(values["MY_CACHE"], "/tmp/$USER-c-$SLURM_JOB_ID/x")
        self.assertEqual(values["LD_LIBRARY_PATH"], "/opt/more:/opt/a b/lib:$LD_LIBRARY_PATH")
        self.assertIn("$USER.1.$SLURM_JOB_ID", plan)
        shown = self.ok(hpclaunch("explain", *self.words(profile), "MY_CACHE", "directories", env=self.env())).out
        self.assertIn("/tmp/$USER-c-$SLURM_JOB_ID/x", shown)
        self.assertIn("%s/$USER-$SLURM_JOB_ID" % self.folder, shown)
        for command in ("plan", "explain"):
            done = hpclaunch(command, *self.words(profile, "--user", "u", "--job-id", "7"), *([] if command == "explain" else ["-v"]), env=self.env())
            self.assertIn("/tmp/u-c-7/x", done.out)

    def test_in_a_job_nothing_is_late(self):
        job = self.job("slurm")
        text = self.text(self.profile(), env=job).out
        self.assertIn("export MY_CACHE=/tmp/me-c-77/x\n", text)
        self.assertNotRegex(text, r"\$\{|\^|Decided without")


class Sites(Later):
    def test_frontier(self):
        text = self.ok(hpclaunch("run", "--dry-run", "--profile", "frontier", "-N", "2", "--", "true", env=self.env())).out
        self.assertNotRegex(text, "laptop|cache-0|RUN_ID=0")
        self.assertIn('export TORCHELASTIC_RUN_ID="$HPCLAUNCH_JOB"\n', text)
        self.assertIn('"${TRITON_CACHE_DIR-/tmp/$HPCLAUNCH_USER-cache-$HPCLAUNCH_JOB/triton}"\n', text)
        self.assertIn("# Decided without the job's environment: rule cray-libraries does not hold (env.CRAY_LD_LIBRARY_PATH set, and it is not)\n", text)
        script = self.ok(hpclaunch("script", "--profile", "frontier", "-N", "2", "-A", "x", "-t", "1h", "--", "true", env=self.env())).out
        self.assertIn("# Decided without the job's environment: rule ", script)

    def test_every_text_of_every_site_passes_our_checks(self):
        """lint, and bash -n and shellcheck where they are."""
        sites = [name[:-len(".json")] for name in sorted(os.listdir(os.path.join(ROOT, "profiles", "site")))]
        made = []
        for site in sites:
            for nodes in (("-N", "1"), ("-N", "2")):
                for command in (("script", "-t", "1h", "-A", "abc"), ("run", "--dry-run"), ("env",)):
                    done = hpclaunch(*command, "--profile", site, *nodes, "--", "python3", "train.py", env=clean_env(HOME="/home/me", USER="laptop"))
                    if "was retired" in done.err:
                        continue
                    self.ok(done)
                    self.assertNotRegex(done.out, "laptop|cache-0", site)
                    kind = "#!/bin/sh\n" if command[0] == "env" else ""
                    made.append(self.file("%s-%s-%s.sh" % (site, nodes[1], command[0]), kind + done.out))
        self.assertGreater(len(made), 100)
        done = self.ok(hpclaunch("lint", *made))
        self.assertEqual((done.out, done.err), ("no findings in %d files\n" % len(made), ""))
        for path in made:
            self.ok(execute([need("bash"), "-n", path]))
        self.ok(execute([need("shellcheck"), "--severity=style", *made]))


if __name__ == "__main__":
    support.main()
