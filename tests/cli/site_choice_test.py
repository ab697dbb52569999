#!/usr/bin/env python3
"""Which site a job is on, and whose word holds there: the user's, the profile's or the command line's."""
import json
import os
import re
import shutil

import support
from allowed import needs
from site_jobs import AURORA_LIST, PALS, SiteTest
from support import hpclaunch


class WhichSite(SiteTest):
    def test_signals_of_two_sites(self):
        job = self.aurora(2, SLURM_CLUSTER_NAME="frontier")
        started = job.run()
        self.ok(started.done, 125)
        self.assertIsNone(started.argv)
        self.has(started.done, "2 sites detected", "aurora (PBS_JOBID=", "frontier (SLURM_CLUSTER_NAME=frontier",
                 "--profile aurora or --profile frontier")
        for command in ("plan", "env", "explain"):
            done = job.hpclaunch(command)
            self.ok(done, 2)
            self.has(done, "aurora", "frontier")

    def test_a_choice_settles_it(self):
        job = self.aurora(2, SLURM_CLUSTER_NAME="frontier")
        self.launched(job, "--np 24 --ppn 12 --cpu-bind %s %s --pmi=pmix --" % (AURORA_LIST, PALS), "--profile", "aurora", ranks=range(24))

    def test_host_names_that_many_sites_have(self):
        job = self.slurm("nid001234", 1)
        done = job.hpclaunch("plan", "--", job.program)
        self.ok(done)
        self.has(done, "[site-unknown]", "--profile NAME", "--profile none")
        for site in ("lumi-g", "perlmutter", "daint", "clariden"):
            self.assertIn(site, done.err)
        self.assertNotRegex(done.out, r"NCCL_|FI_CXI")

    def test_xnames_alone_prove_nothing(self):
        job = self.pbs("pbs.example.org", ["x4407c6s2b0n0", "x4407c6s3b0n0"], "login1")
        done = job.hpclaunch("plan", "--", job.program)
        self.ok(done)
        self.has(done, "[site-unknown]", "aurora")
        self.assertNotIn("CCL_", done.out)

    def test_signals_are_told(self):
        job = self.aurora(2)
        done = job.hpclaunch("explain", "profile")
        self.ok(done)
        self.has(done, "aurora", "PBS_JOBID")

    def test_no_profile(self):
        job = self.aurora(2)
        started = job.run("--profile", "none", "--verify", "off")
        self.ok(started.done)
        self.assertEqual(started.argv[:4], ["--np", "2", "--ppn", "1"])
        for env in started.ranks.values():
            self.assertEqual([name for name in env if re.match("CCL_|FI_|ZE_|NCCL_", name)], [])

    def own_profile(self, job, mode=0o644):
        folder = os.path.join(job.folder, ".config", "hpclaunch", "profiles")
        os.makedirs(folder, mode=0o755)
        path = os.path.join(folder, "aurora.json")
        with open(path, "w") as file:
            file.write("""{
              "schema": 1, "name": "aurora", "doc": "mine", "extends": ["intel-max"], "launcher": "pals", "scheduler": "pbs",
              "detect": [{"env": "PBS_JOBID", "like": "*.aurora.alcf.anl.gov"}],
              "rules": [{"id": "port", "default": {"MASTER_PORT": "4711"}, "why": "a test"}]
            }""")
        os.chmod(path, mode)
        return path

    def test_a_users_profile_overrides_ours_whole(self):
        job = self.aurora(2)
        self.own_profile(job)
        started = job.run("--ppn", "1", "--verify", "off")
        self.ok(started.done)
        self.each(started, {"MASTER_PORT": "4711"}, absent=("CCL_PROCESS_LAUNCHER",))

    def test_a_profile_that_others_may_write_does_not_count(self):
        """And takes nothing away: ours is used, or nothing is started."""
        job = self.aurora(2)
        path = self.own_profile(job, 0o666)
        started = job.run("--verify", "off")
        self.assertIn(started.done.status, (0, 125), str(started))
        self.has(started.done, path, "is writable by group or others")
        self.each(started, {"MASTER_PORT": "2345", "CCL_PROCESS_LAUNCHER": "pmix"})


    def site_profile(self, owner=0, mode=0o644, signal="mine", text=None):
        """A profile in the site's folder; its job's environment has MY_SITE=mine."""
        folder = os.path.join(self.folder, "profiles")
        os.makedirs(folder, mode=0o755, exist_ok=True)
        path = os.path.join(folder, "mysite.json")
        with open(path, "w") as file:
            file.write(text or """{"schema": 1, "name": "mysite", "doc": "a site", "detect": [{"env": "MY_SITE", "like": "%s"}],
              "rules": [{"id": "port", "default": {"MASTER_PORT": "4711"}, "why": "a test"}]}""" % signal)
        os.chmod(path, mode)
        if os.geteuid() == 0:
            os.chown(path, owner, owner)
        return path, support.clean_env(HPCLAUNCH_PROFILE_PATH=folder, MY_SITE="mine")

    def test_a_detected_profile_that_cannot_be_used_is_an_error(self):
        broken = '{"schema": 1, "name": "mysite", "doc": "a site", "detect": [{"env": "MY_SITE", "like": "mine"}], "ruls": []}'
        for changes, why in (({"mode": 0o666}, "is writable by group or others"), ({"text": broken}, "unknown key")):
            path, env = self.site_profile(**changes)
            for command in ("plan", "run"):
                done = hpclaunch(command, "-n", "1", "--", "/bin/true", env=env)
                self.ok(done, 125 if command == "run" else 2)
                self.has(done, "MY_SITE=mine matches mine", "cannot be used", why, "--profile none")
            self.ok(hpclaunch("run", "-n", "1", "--profile", "none", "--", "/bin/true", env=env))
        path, env = self.site_profile(mode=0o666, signal="another")  # not this job's: said, and left alone
        self.has(self.ok(hpclaunch("run", "-n", "1", "--", "/bin/true", env=env)), "[profile-unusable]")

    @needs("mounts")
    def test_owners_that_are_trusted(self):
        """The installation's owner and those that the administrator lists; others are refused with a hint that helps."""
        if os.geteuid() != 0:
            return  # only root can give files away
        path, env = self.site_profile(owner=54321)
        words = ("plan", "-n", "1", "--json")
        done = hpclaunch(*words, env=env)
        self.ok(done, 2)
        self.has(done, "owned by 54321", "/etc/hpclaunch/trusted-owners", "echo 54321 >>")
        self.assertNotIn("chmod", done.err)
        prefix = os.path.join(self.folder, "prefix")
        top = os.path.dirname(os.path.dirname(os.path.realpath(support.HPCLAUNCH)))
        for part in ("bin/hpclaunch", "libexec/hpclaunch/hpclaunch-shim"):
            os.makedirs(os.path.dirname(os.path.join(prefix, part)))
            shutil.copy2(os.path.join(top, part), os.path.join(prefix, part))
        os.chown(prefix, 54321, 54321)
        program = os.path.join(prefix, "bin/hpclaunch")
        self.has(self.ok(support.execute([program, *words], env)), '"4711"')
        os.chown(prefix, 0, 0)
        self.ok(support.execute([program, *words], env), 2)
        etc = os.path.join(self.folder, "etc")
        shutil.copytree("/etc", etc, symlinks=True)
        os.makedirs(os.path.join(etc, "hpclaunch"), exist_ok=True)
        listed = os.path.join(etc, "hpclaunch", "trusted-owners")
        for text, mode, status in (("# admins\n54321\n", 0o644, 0), ("12345\n", 0o644, 2), ("54321\n", 0o666, 2)):
            with open(listed, "w") as file:
                file.write(text)
            os.chmod(listed, mode)
            inside = 'mount --bind "%s" /etc && exec "$@"' % etc
            self.ok(support.execute([support.need("unshare"), "-m", "sh", "-c", inside, "-", program, *words], env), status)

    def test_an_unreadable_folder_of_the_user_is_a_note(self):
        home = os.path.join(self.folder, "home")
        os.makedirs(os.path.join(home, ".config", "hpclaunch"))  # a link to itself: unreadable to root as well
        os.symlink("profiles", os.path.join(home, ".config", "hpclaunch", "profiles"))
        done = self.ok(hpclaunch("run", "-n", "1", "--", "/bin/true", env=support.clean_env(HOME=home)))
        self.has(done, "note: ignoring your own profiles", "[profiles-unreadable]")
        self.ok(hpclaunch("profile", "list", env=support.clean_env(HOME=home)))


class WhoDecides(SiteTest):
    def test_an_export_holds(self):
        job = self.aurora(2, CCL_OP_SYNC="0", MASTER_PORT="29400", FI_MR_CACHE_MONITOR="disabled")
        started = job.run("--verify", "off")
        self.ok(started.done)
        self.each(started, {"CCL_OP_SYNC": "0", "MASTER_PORT": "29400", "FI_MR_CACHE_MONITOR": "disabled"})
        told = job.hpclaunch("explain", "CCL_OP_SYNC")
        self.has(told, "overridden", "rule op-sync of profile aurora", "from the environment")

    def test_a_requirement_that_clashes_names_both_values(self):
        started = self.aurora(2, ZE_FLAT_DEVICE_HIERARCHY="COMPOSITE").run("--verify", "off")
        self.ok(started.done)
        self.each(started, {"ZE_FLAT_DEVICE_HIERARCHY": "FLAT"})
        self.has(started.done, 'ZE_FLAT_DEVICE_HIERARCHY="COMPOSITE"', '"FLAT"', "rule hierarchy-flat", "[export-against-profile]")

    def test_a_flag_goes_with_its_variable(self):
        for job, words in ((self.aurora(2, CCL_PROCESS_LAUNCHER="None"), ()), (self.aurora(2), ("--set", "CCL_PROCESS_LAUNCHER=none"))):
            started = job.run("--verify", "off", *words)
            self.ok(started.done)
            self.assertNotIn("--pmi=pmix", started.argv)

    def test_the_command_line_overrules_all(self):
        started = self.aurora(2, FI_MR_CACHE_MONITOR="disabled").run(
            "--verify", "off", "--set", "FI_MR_CACHE_MONITOR=kdreg2", "--unset", "CCL_KVS_MODE")
        self.ok(started.done)
        self.each(started, {"FI_MR_CACHE_MONITOR": "kdreg2"}, absent=("CCL_KVS_MODE",))

    def test_dry_run_is_the_same_job(self):
        job = self.aurora(2, LOADEDMODULES="frameworks/2024.2.1_u1", CCL_ROOT="/opt/ccl")
        script = self.file("dry.sh", self.ok(job.hpclaunch("run", "--dry-run", "--verify", "off", "--", job.program)).out)
        self.assertFalse(os.listdir(job.record))
        self.ok(support.execute(["/bin/sh", script], job.env, cwd=job.folder))
        by_script = job.started()
        job.forget()
        direct = job.run("--verify", "off", arguments=())
        self.assertEqual(by_script.argv, direct.argv)
        for rank in direct.ranks:
            self.assertEqual(self.comparable(by_script.ranks[rank]), self.comparable(direct.ranks[rank]))

    def test_the_same_plan_on_a_laptop(self):
        job = self.aurora(2)
        here = job.hpclaunch("plan", "--json", "--", "/bin/true")
        away = hpclaunch("plan", "--json", "--profile", "aurora", "-N", "2", "--", "/bin/true")
        for done in (here, away):
            self.ok(done)
        def line(done):
            argv = json.loads(done.out)["argv"]
            return argv[1:argv.index("--")]
        self.assertEqual(line(here), line(away))


if __name__ == "__main__":
    support.main()
