#!/usr/bin/env python3
"""--module, --conda and --venv: what ranks get, what the plan sees, what a dry run prints, and what is refused."""
import json
import os
import signal
import subprocess
import sys
import time

import support
from support import HOST, Test, clean_env, execute, hpclaunch

# As Lmod and Environment Modules have it: a shell function, files below MODULEPATH, words on stderr and a status.
MODULES = """
module() {
  case $1 in
    use) export MODULEPATH=$2:$MODULEPATH ;;
    load)
      for folder in ${MODULEPATH//:/ }; do
        if [ -r "$folder/$2" ]; then
          . "$folder/$2"
          export LOADEDMODULES=${LOADEDMODULES:+$LOADEDMODULES:}$2
          return 0
        fi
      done
      echo "Lmod has detected the following error:" >&2
      echo "  The following module(s) are unknown: \\"$2\\"" >&2
      return 1 ;;
  esac
}
echo "a banner on stdout"
"""
SHOW = "import os, sys; os.write(1, ' '.join([sys.prefix] + [os.environ.get(name, '-') for name in sys.argv[1:]]).encode() + b'\\n')"
PROFILE = {"schema": 1, "name": "here", "doc": "x",
           "stacks": [{"name": "new", "doc": "x", "when": [{"module.tools": {"ge": "2"}}]}, {"name": "old", "doc": "x"}], "defaults": {"stack": "old"},
           "rules": [{"id": "of-new", "when": {"stack": "new"}, "default": {"OF_STACK": "new"}, "why": "x"}]}


class Environment(Test):
    def setUp(self):
        super().setUp()
        self.file("lmod/init/bash", MODULES)
        self.file("lmod/init/sh", MODULES)
        self.file("modules/tools/2", "export TOOL_HOME=/opt/tools LD_LIBRARY_PATH=/opt/tools/lib; unset NOT_WANTED\n")
        self.modules = os.path.join(self.folder, "modules")

    def env(self, **more):
        return clean_env(MODULESHOME=os.path.join(self.folder, "lmod"), **more)

    def venv(self, name="venv"):
        path = os.path.join(self.folder, name)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", path], check=True)
        return path

    def conda_pack(self, *parts):
        """A virtual environment with the files by which conda's are known."""
        path = self.venv("packed")
        os.unlink(os.path.join(path, "pyvenv.cfg"))
        self.file("packed/conda-meta/history", "")
        self.file("packed/bin/activate", 'export CONDA_PREFIX=%s PATH="%s/bin:$PATH"\n' % (path, path))
        self.file("packed/bin/conda-unpack", "", 0o755)
        return path


class Modules(Environment):
    def test_ranks_have_what_it_sets_and_not_what_it_unsets(self):
        env = self.ranks_environment("run", "-n", "2", "--module-use", self.modules, "--module", "tools/2", env=self.env(NOT_WANTED="1", KEPT="a b\n c"))
        for rank in (0, 1):
            self.assertEqual(env[rank][b"TOOL_HOME"], b"/opt/tools")
            self.assertEqual(env[rank][b"KEPT"], b"a b\n c")
            self.assertNotIn(b"NOT_WANTED", env[rank])
        self.assertNotIn("banner", self.last.out)

    def test_a_folder_of_modules_that_is_not_there(self):
        done = self.ok(hpclaunch("run", "-n", "1", "--module-use", "/nonexistent/x", "--", "/bin/true", env=self.env()))
        self.has(done, "--module-use /nonexistent/x: there is no such directory", "[module-folder-missing]")

    def test_an_activation_that_is_interrupted(self):
        self.interrupted()

    def test_an_activation_that_is_interrupted_at_its_start(self):
        """hpclaunch is slow to listen to signals."""
        self.interrupted(support.need("strace"), "-D", "-qq", "-o", "/dev/null", "-e", "trace=clone", "-e", "inject=clone:delay_exit=300000")

    def interrupted(self, *before):
        path, mark = self.venv(), os.path.join(self.folder, "up")
        self.file("venv/bin/activate", "sleep 601 & echo $! >%s.new; mv %s.new %s; wait\n" % (mark, mark, mark))
        child = subprocess.Popen([*before, support.HPCLAUNCH, "run", "-n", "1", "--venv", path, "--", "/bin/true"], env=self.env(), stdin=subprocess.DEVNULL)
        while not os.path.exists(mark):
            time.sleep(0.02)
        with open(mark) as file:
            pid = int(file.read())
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(support.LIMIT), -signal.SIGTERM)
        end = time.monotonic() + support.LIMIT
        while os.path.exists("/proc/%d" % pid):
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
                self.fail("what the activation has started is still there")
            time.sleep(0.02)

    def test_choose_the_stack(self):
        words = ["explain", "--profile", self.file("here.json", json.dumps(PROFILE)), "--module-use", self.modules]
        self.has(self.ok(hpclaunch(*words, "OF_STACK", env=self.env()), 0), "needs stack")
        self.has(self.ok(hpclaunch(*words, "--module", "tools/2", "OF_STACK", env=self.env())), "new")

    def test_named_to_a_launcher_that_needs_names(self):
        hosts = self.file("hosts", "nodeA\nnodeB\n")
        plan = self.json("plan", "--launcher", "openmpi", "--hostfile", hosts, "--oversubscribe", "--ppn", "1", "--master-addr", "198.51.100.1",
                         "--module-use", self.modules, "--module", "tools/2", "--", "/bin/true", env=self.env())
        named = [plan["argv"][i + 1] for i, word in enumerate(plan["argv"]) if word == "-x"]
        self.assertTrue({"TOOL_HOME", "LD_LIBRARY_PATH", "LOADEDMODULES"} <= set(named), named)

    def test_its_libraries_do_not_reach_our_own_commands(self):
        log = os.path.join(self.folder, "log")
        self.file("bin/squeue", '#!/bin/sh\necho "libraries=$LD_LIBRARY_PATH" >%s\necho 1:00:00\n' % log, 0o755)
        env = self.env(PATH="%s/bin:/usr/bin:/bin" % self.folder, SLURM_JOB_ID="7", SLURM_JOB_NODELIST=HOST, LD_LIBRARY_PATH="")
        done = hpclaunch("run", "-n", "1", "--launcher", "local", "--signal", "USR1@60", "--module-use", self.modules, "--module", "tools/2",
                         "--", "/bin/sh", "-c", "echo $LD_LIBRARY_PATH", env=env)
        self.assertEqual(self.ok(done).out, "/opt/tools/lib\n")
        with open(log) as file:
            self.assertEqual(file.read(), "libraries=\n")

    def test_unknown(self):
        self.refused(125, "run", "-n", "1", "--module", "tols", "--", "/bin/true", env=self.env(),
                     says=["--module tols: Lmod has detected the following error: The following module(s) are unknown: \"tols\"", "module avail"])
        self.refused(125, "run", "-n", "1", "--module", "tools", "--", "/bin/true", env=clean_env(MODULESHOME="/nowhere", LMOD_PKG=None),
                     says=["--module tools: "])

    def test_a_failure_with_status_0(self):
        """As Environment Modules before 5.0 end where a module cannot be loaded."""
        self.file("old/init/bash", 'module() { echo "ERROR:105: Unable to locate a modulefile for \'$2\'" >&2; }\n')
        for loaded in None, "other/1":
            self.refused(125, "run", "-n", "1", "--module", "tools", "--", "/bin/true",
                         env=clean_env(MODULESHOME=os.path.join(self.folder, "old"), LOADEDMODULES=loaded), says=["--module tools: ERROR:105: Unable to locate"])
        done = hpclaunch("run", "-n", "1", "--module-use", self.modules, "--module", "tools/2", "--", "/bin/true", env=self.env(LOADEDMODULES="tools/2"))
        self.ok(done)  # loaded already

    def test_no_words_of_a_shell(self):
        for word in "tools;touch x", "$(touch x)", "-tools", "a b":
            self.refused(125, "run", "-n", "1", "--module=" + word, "--", "/bin/true", env=self.env(), says=["--module must be a name"])

    def test_none(self):
        """Nothing is loaded, and what is loaded stays."""
        for loaded in "tools/2", None:
            done = hpclaunch("run", "-n", "1", "--module", "none", "--module", "none", "--", "/bin/sh", "-c", "echo $LOADEDMODULES",
                             env=clean_env(MODULESHOME="/nowhere", LOADEDMODULES=loaded))
            self.assertEqual([self.ok(done).out, done.err], [(loaded or "") + "\n", ""])
        self.refused(125, "run", "-n", "1", "--module", "tools/2", "--module", "none", "--module-use", self.modules, "--", "/bin/true", env=self.env(),
                     says=["--module none and --module tools/2 contradict each other", "omit one of them"])
        for command in ("run", "--dry-run"), ("env",):
            self.assertNotIn("module", self.ok(hpclaunch(*command, "-n", "1", "--module", "none", "--", "/bin/true", env=self.env())).out)

    def test_a_script_and_its_job_agree(self):
        """The script loads what the stack needs, and hpclaunch run, in the job, what was typed."""
        self.file("modules/more/1", "export MORE=$TOOL_HOME\n")
        self.file("modules/tools/3", "export TOOL_HOME=/opt/tools3\n")
        self.file("bin/hpclaunch", '#!/bin/sh\nexec "%s" "$@"\n' % support.HPCLAUNCH, 0o755)
        stacks = [{"name": "newest", "doc": "x", "when": [{"module.tools": {"ge": "3"}}], "modules": {"load": ["tools"]}},
                  dict(PROFILE["stacks"][0], modules={"load": ["tools/2"]}), PROFILE["stacks"][1]]
        rules = [dict(PROFILE["rules"][0], id=one["name"], when={"stack": one["name"]}, default={"OF_STACK": one["name"]}) for one in stacks]
        profile = self.file("here.json", json.dumps(dict(PROFILE, stacks=stacks, rules=rules, defaults={"stack": "new"})))
        env = self.env(MODULEPATH=self.modules, BASH_ENV=os.path.join(self.folder, "lmod/init/bash"), PATH="%s/bin:/usr/bin:/bin" % self.folder,
                       SLURM_SUBMIT_DIR=self.folder)
        for modules, expected in (([], "tools/2 - new"), (["more/1"], "tools/2:more/1 /opt/tools new"), (["tools/3", "more/1"], "tools/3:more/1 /opt/tools3 newest"),
                                  (["none"], "- - new")):
            typed = [word for name in modules for word in ("--module", name)]
            text = self.ok(hpclaunch("script", "--scheduler", "slurm", "--profile", profile, "-n", "1", "--launcher", "local", *typed, "--", "/bin/sh", "-c",
                                     "echo ${LOADEDMODULES:--} ${MORE:--} $OF_STACK", env=clean_env(PATH="/usr/bin:/bin"))).out
            done = self.ok(execute(["/bin/bash", self.file("job.sh", text)], env))
            self.assertEqual(done.out.splitlines()[-1], expected)

    def test_a_plan_for_elsewhere_counts_it_as_loaded(self):
        done = hpclaunch("explain", "--profile", self.file("here.json", json.dumps(PROFILE)), "--module", "tools/2.1", "OF_STACK",
                         env=clean_env(MODULESHOME="/nowhere"))
        self.has(self.ok(done), "[environment-not-here]", "new")


class Venv(Environment):
    def test_the_program_is_found_in_it(self):
        venv = self.venv()
        done = hpclaunch("run", "-n", "2", "--venv", venv, "--", "python", "-c", SHOW, "VIRTUAL_ENV", env=clean_env(PYTHONHOME=None))
        self.assertEqual(self.ok(done).out, ("%s %s\n" % (venv, venv)) * 2)

    def test_moved(self):
        venv = self.venv("old")
        moved = os.path.join(self.folder, "new")
        os.rename(venv, moved)
        done = hpclaunch("run", "-n", "1", "--venv", moved, "--", "python", "-c", SHOW, "VIRTUAL_ENV")
        self.assertEqual(self.ok(done).out, "%s %s\n" % (moved, moved))

    def test_what_is_none(self):
        self.refused(125, "run", "--venv", self.folder, "--", "/bin/true", says=["--venv %s: " % self.folder, "it has no pyvenv.cfg", "python3 -m venv"])
        venv = self.venv()
        os.unlink(os.path.join(venv, "bin", "python"))
        self.refused(125, "run", "--venv", venv, "--", "/bin/true", says=["bin/python is missing"])

    def test_a_broken_script(self):
        venv = self.venv()
        for text, says in (("return 3\n", "status 3"), ("syntax error (\n", "syntax error")):
            self.file("venv/bin/activate", text)
            self.refused(125, "run", "--venv", venv, "--", "/bin/true", says=["--venv %s: " % venv, says])

    def test_a_dry_run_activates_and_does_the_same(self):
        venv = self.venv()
        words = ["--module-use", self.modules, "--module", "tools/2", "--venv", venv, "-n", "1", "--", "python", "-c", SHOW, "VIRTUAL_ENV", "TOOL_HOME"]
        script = self.ok(hpclaunch("run", "--dry-run", *words, env=self.env())).out
        self.assertIn("module load tools/2 || exit 125\n", script)
        self.assertNotIn("export TOOL_HOME", script)
        done = execute(["/bin/bash", self.file("script", script)], env=self.env())
        self.assertEqual(self.ok(done).out.splitlines()[-1], "%s %s /opt/tools" % (venv, venv))

    def test_env_prints_it_for_sh_only(self):
        venv = self.venv()
        self.has(self.ok(hpclaunch("env", "--venv", venv)), ". %s/bin/activate" % venv)
        self.refused(2, "env", "--venv", venv, "--format", "csh", says=["--format sh"])


class Staged(Environment):
    """What stage_test asks for in full, once with sanitizers, which the programs of that test do not have."""

    def words(self, *words):
        return ("run", "-n", "2", "--oversubscribe", "--stage", "copy", "--stage-to", self.folder, *words, "--", "python", "-c", SHOW)

    def test_the_copy_is_what_runs_and_goes(self):
        done = self.ok(hpclaunch(*self.words("--venv", self.venv()), env=self.env(XDG_CACHE_HOME=self.folder)))
        where = os.path.join(self.folder, "hpclaunch-%d" % os.getuid())
        self.assertEqual([line.startswith(where + "/") for line in done.out.splitlines()], [True, True], str(done))
        self.has(done, "staged", "on 1 node")
        self.assertFalse(os.path.exists(where))

    def test_a_place_that_others_can_read(self):
        where = os.path.join(self.folder, "hpclaunch-%d" % os.getuid())
        os.mkdir(where)
        os.chmod(where, 0o755)
        done = self.ok(hpclaunch(*self.words("--venv", self.venv()), env=self.env(XDG_CACHE_HOME=self.folder)), 125)
        self.has(done, "--stage copy: ", "step unpack failed: the mode of %s is not 700" % where, "--stage-to DIR")
        self.assertEqual(done.out, "")


class Conda(Environment):
    def test_a_pack_has_its_own_script(self):
        pack = self.conda_pack()
        done = hpclaunch("run", "-n", "1", "--conda", pack, "--", "/bin/sh", "-c", "echo $CONDA_PREFIX; command -v python", env=self.env())
        self.assertEqual(self.ok(done).out, "%s\n%s/bin/python\n" % (pack, pack))

    def test_without_conda(self):
        pack = self.conda_pack()
        os.unlink(pack + "/bin/activate")
        self.file("packed/etc/conda/activate.d/one.sh", "export FROM_ACTIVATE_D=1\n")
        done = hpclaunch("run", "-n", "1", "--conda", pack, "--", "/bin/sh", "-c", "echo $CONDA_PREFIX $FROM_ACTIVATE_D", env=self.env())
        self.assertEqual(self.ok(done).out, "%s 1\n" % pack)

    def test_by_name(self):
        hook = ('#!/bin/sh\ncat <<\'END\'\nconda() { if [ "$2" = train ]; then export CONDA_PREFIX=/envs/train; else echo '
                '"EnvironmentNameNotFound: Could not find conda environment: $2" >&2; return 1; fi; }\nEND\n')
        env = self.env(CONDA_EXE=self.file("conda", hook, 0o755))
        done = hpclaunch("run", "-n", "1", "--conda", "train", "--", "/bin/sh", "-c", "echo $CONDA_PREFIX", env=env)
        self.assertEqual(self.ok(done).out, "/envs/train\n")
        self.refused(125, "run", "--conda", "tran", "--", "/bin/true", env=env,
                     says=["--conda tran: EnvironmentNameNotFound: Could not find conda environment: tran", "conda env list"])

    def test_what_is_none(self):
        self.refused(125, "run", "--conda", self.folder, "--", "/bin/true", env=self.env(), says=["it has no conda-meta"])
        self.refused(125, "run", "--conda", "train", "--", "/bin/true", env=self.env(PATH="/usr/bin:/bin", CONDA_EXE=None), says=["no conda found"])


if __name__ == "__main__":
    support.main()
