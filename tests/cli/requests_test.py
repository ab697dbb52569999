#!/usr/bin/env python3
"""What a job is asked for: the options that batch systems spell differently."""
import support
from support import Test, clean_env, hpclaunch

HERE = clean_env(PATH="/nonexistent", HPCLAUNCH_PROFILE_PATH="/nonexistent", XDG_CONFIG_HOME="/nonexistent")


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


class Options(Written):
    OPTIONS = (("--gpus", "2"), ("--mem", "64G"), ("--dependency", "afterok:12"), ("--array", "1-4"), ("--reservation", "R5"), ("--exclude", "n1"), ("--mail", "a@b.org"), ("--error", "err.txt"))
    WANTED = {
        "slurm": ["--gpus-per-node=2", "--mem=64G", "-d afterok:12", "-a 1-4", "--reservation=R5", "-x n1", "--mail-type=BEGIN,END,FAIL --mail-user=a@b.org", "-e err.txt"],
        "pbs": ["-l select=2:ngpus=2", "-l select=2:mem=64GB", "-W depend=afterok:12", "-J 1-4", "-q R5", None, "-m abe -M a@b.org", "-e err.txt"],
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
