#!/usr/bin/env python3
"""hpclaunch run --launcher ssh. Nodes are played by this machine: a stand-in for ssh runs the login shell here; where it is
about ssh itself, the real one goes to a real sshd on the loopback.
"""
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

import support
from support import HOST, Test, clean_env, execute, hpclaunch, need

sys.path.append(os.path.join(support.ROOT, "tests", "support"))
import allowed  # noqa: E402

# Like ssh it ends with 255 where it does not reach a node, and joins its words for the node's login shell, which has
# nothing of our environment. What each node is like stands in the folder of its name.
SSH = r'''#!/bin/sh
while case $1 in -o | -p) shift 2 ;; -*) shift ;; *) false ;; esac do :; done
node=$1 folder=%(folder)s/$1
shift
mkdir -p "$folder"
echo $$ >"$folder/pid"
printf '%%s\n' "$*" >"$folder/command"
if [ -e "$folder/down" ]; then cat "$folder/down" >&2; exit 255; fi
if [ -e "$folder/hangs" ]; then exec sleep 1000; fi
if [ -e "$folder/profile" ]; then cat "$folder/profile"; fi
shell=/bin/sh
if [ -e "$folder/shell" ]; then shell=$(cat "$folder/shell"); fi
cd /
exec setsid -f -w env -i HOME="$folder" USER=me SHELL="$shell" PATH="$folder/bin:$PATH" "$shell" -c "$*"
'''
SAYS = "#!/bin/sh\necho \"$RANK $LOCAL_RANK $NODE_RANK $WORLD_SIZE\"\n"
EVERYWHERE = ["--master-addr", "198.51.100.1", "--oversubscribe", "--launcher", "ssh"]


def eventually(holds, what):
    """Waits until `holds()`; as long as a slow machine may need."""
    end = time.monotonic() + support.LIMIT
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("not within %d s: %s" % (support.LIMIT, what))
        time.sleep(0.02)


def alive(pid):
    try:
        with open("/proc/%s/stat" % pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


class Ssh(Test):
    def setUp(self):
        super().setUp()
        self.ssh = self.file("ssh", SSH % {"folder": self.folder}, 0o755)
        self.env = clean_env(HPCLAUNCH_SSH=self.ssh)

    def words(self, hosts, *words):
        return ["run", "-H", hosts, *EVERYWHERE, *words]

    def run_on(self, hosts, *words, status=0, env=None):
        return self.ok(hpclaunch(*self.words(hosts, *words), env=env or self.env), status)

    def rank(self, text, name="rank"):
        return self.file(name, "#!/bin/sh\n" + text, 0o755)

    def popen(self, hosts, *words):
        job = subprocess.Popen([support.HPCLAUNCH, *self.words(hosts, *words)], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (job.kill(), job.communicate()))
        return job

    def pids(self, count):
        """Of ranks that have written theirs to pid.RANK."""
        paths = [os.path.join(self.folder, "pid.%d" % rank) for rank in range(count)]
        eventually(lambda: all(read(path).endswith("\n") for path in paths), "ranks run")
        return [read(path).strip() for path in paths]


class Runs(Ssh):
    def test_ranks_in_blocks_of_the_counts(self):
        done = self.run_on("a:2,b:1", "--", self.rank(SAYS))
        self.assertEqual(sorted(done.out.splitlines()), ["0 0 0 3", "1 1 0 3", "2 0 1 3"])

    def test_this_machine_needs_no_ssh(self):
        self.run_on("b:1,%s:1" % HOST, "--", self.rank(SAYS))
        self.assertFalse(os.path.exists(os.path.join(self.folder, HOST)))
        self.assertTrue(os.path.exists(os.path.join(self.folder, "b")))

    def test_labels_and_both_streams(self):
        done = self.run_on("a,b", "--label", "--", self.rank('echo out; echo err >&2; printf begun'))
        for stream, word in (done.out, "out"), (done.err, "err"), (done.out, "begun"):
            self.assertEqual(sorted(line for line in stream.splitlines() if line.endswith(word)), ["[0] " + word, "[1] " + word])

    def test_much_output_arrives_whole(self):
        lines = 20000
        done = self.run_on("a:2,b:1", "--", self.rank('i=0; while [ $i -lt %d ]; do echo "$RANK $i"; i=$((i + 1)); done' % lines))
        self.assertEqual(sorted(done.out.splitlines()), sorted("%d %d" % (rank, i) for rank in range(3) for i in range(lines)))

    def test_the_environment_is_whole_and_on_no_command_line(self):
        value = "two  blanks 'quote' \"double\" $HOME `id` * \\ \n line"
        secret = "s3cret-%d" % os.getpid()
        # awk has it from the environment, so that its own command line is none of those with the secret.
        look = self.rank('for file in /proc/[0-9]*/cmdline; do tr "\\0" " " <"$file"; echo; done 2>/dev/null | '
                         'awk \'index($0, ENVIRON["SECRET"]) { seen++ } END { print seen + 0 }\' >"%s/seen.$RANK"\n'
                         'env -0 >"%s/env.$RANK"' % (self.folder, self.folder))
        env = dict(self.env, ODD=value, SECRET=secret, OLDPWD="/x")
        self.run_on("a,b", "--", look, env=env)
        for rank, node in (0, "a"), (1, "b"):
            with open(os.path.join(self.folder, "env.%d" % rank), "rb") as file:
                got = support.entries(file.read())
            self.assertEqual(got[b"ODD"].decode(), value)
            self.assertEqual(got[b"SECRET"].decode(), secret)
            self.assertEqual(got[b"HOME"].decode(), os.path.join(self.folder, node))  # the node's own
            self.assertEqual(got[b"PWD"].decode(), os.getcwd())
            self.assertEqual(read(os.path.join(self.folder, "seen.%d" % rank)), "0\n")
            self.assertNotIn(secret, read(os.path.join(self.folder, node, "command")))

    def test_names_that_no_shell_can_export(self):
        done = self.run_on("a", "-n", "1", "--", "/usr/bin/env", env=dict(self.env, **{"BASH_FUNC_f%%": "() { :; }"}))
        self.has(done, "BASH_FUNC_f%%=() { :; }")

    def test_login_shells_of_any_kind(self):
        for shell in "dash", "bash", "tcsh", "fish", "busybox":
            with self.subTest(shell=shell):
                path = need(shell)
                if shell == "busybox":
                    path = self.file("sh.busybox", '#!/bin/sh\nexec %s ash "$@"\n' % path, 0o755)
                self.file("a/shell", path)
                self.assertEqual(self.run_on("a", "-n", "1", "--", self.rank(SAYS)).out, "0 0 0 1\n")

    def test_a_login_that_talks(self):
        self.file("a/profile", "Welcome to a!\nNo newline at the end")
        done = self.run_on("a,b", "--", self.rank(SAYS))
        self.assertEqual(sorted(done.out.splitlines()), ["0 0 0 2", "1 0 1 2"])
        done = self.run_on("a,b", "--launcher-arg=-v", "--", self.rank(SAYS))
        self.has(done, "hpclaunch: a: its login prints 14 bytes, which are dropped")

    def test_many_nodes_at_most_32_on_their_way(self):
        hosts = ["n%d" % i for i in range(64)]
        done = self.run_on("n[0-63]", "--", self.rank(SAYS))
        self.assertEqual(len(done.out.splitlines()), 64)
        for host in hosts:
            self.file(host + "/hangs", "")
            os.remove(os.path.join(self.folder, host, "pid"))
        started = lambda: sum(os.path.exists(os.path.join(self.folder, host, "pid")) for host in hosts)
        job = self.popen("n[0-63]", "--", self.rank(SAYS))
        eventually(lambda: started() >= 32, "32 on their way")
        job.send_signal(signal.SIGTERM)
        out, err = job.communicate(timeout=support.LIMIT)
        self.assertEqual((started(), out), (32, ""), err)
        self.assertIn("not reached by ssh so far: n0, n1, n2, n3, n4, n5, n6, n7 and 56 more", err)

    def test_programs_are_sent_once(self):
        self.run_on("a", "-n", "1", "--", self.rank(SAYS))
        folder = "/tmp/hpclaunch-%d" % os.getuid()
        holds = [os.path.join(folder, name) for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, "hpclaunch-node"))]
        before = {path: os.stat(os.path.join(path, "hpclaunch-node")).st_ino for path in holds}
        self.assertGreater(len(before), 0)
        for path in holds:
            self.assertEqual(sorted(os.listdir(path)), ["hpclaunch-node", "hpclaunch-shim", "hpclaunch-stacks"])
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o700)
        self.run_on("a", "-n", "1", "--", self.rank(SAYS))
        self.assertEqual(before, {path: os.stat(os.path.join(path, "hpclaunch-node")).st_ino for path in holds})


class Ends(Ssh):
    def test_status_of_the_first_failure(self):
        done = self.run_on("a:2,b:1", "--", self.rank('if [ $RANK = 2 ]; then exit 7; fi; exec sleep 1000'), status=7)
        self.has(done, "rank 2 failed first", "exit status 7")
        done = self.run_on("a:2,b:1", "--", self.rank('if [ $RANK = 1 ]; then kill -KILL $$; fi; exec sleep 1000'), status=137)
        self.has(done, "rank 1 failed first", "SIGKILL")

    def test_status_without_supervision(self):
        self.run_on("a:2,b:1", "--no-supervise", "--", self.rank('if [ $RANK = 2 ]; then exit 7; fi; exec sleep 1000'), status=7)
        self.run_on("a:2,b:1", "--no-supervise", "--", self.rank('if [ $RANK = 1 ]; then kill -SEGV $$; fi; exec sleep 1000'), status=139)

    RECORDS = 'trap "echo term >%(folder)s/term.$RANK; exit 0" TERM\necho $$ >%(folder)s/pid.$RANK\nwhile :; do sleep 0.05; done'

    def test_signals_reach_the_ranks(self):
        job = self.popen("a:2,b:1", "--", self.rank(self.RECORDS % {"folder": self.folder}))
        pids = self.pids(3)
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=support.LIMIT)
        self.assertEqual(job.returncode, 0)  # the ranks have ended well
        for rank in range(3):
            self.assertEqual(read(os.path.join(self.folder, "term.%d" % rank)), "term\n")
        self.assertFalse(any(alive(pid) for pid in pids))

    def test_nothing_is_left_when_hpclaunch_is_killed(self):
        stays = 'trap "" TERM HUP INT\nsetsid sleep 1000 &\necho $! >%(folder)s/child.$RANK\necho $$ >%(folder)s/pid.$RANK\nwhile :; do sleep 0.05; done'
        for who in "hpclaunch", "launch-ssh":
            with self.subTest(killed=who):
                for rank in range(3):
                    self.file("pid.%d" % rank, "")
                job = self.popen("a:2,b:1", "--", self.rank(stays % {"folder": self.folder}))
                pids = self.pids(3) + [read(os.path.join(self.folder, "child.%d" % rank)).strip() for rank in range(3)]
                victim = job.pid
                if who == "launch-ssh":
                    with open("/proc/%d/task/%d/children" % (job.pid, job.pid)) as children:
                        victim = next(int(pid) for pid in children.read().split() if "launch-ssh" in read("/proc/%s/cmdline" % pid))
                os.kill(victim, signal.SIGKILL)
                eventually(lambda: not any(alive(pid) for pid in pids), "ranks end")
                job.communicate(timeout=support.LIMIT)

    def test_a_lost_connection_is_no_dead_rank(self):
        job = self.popen("a,b", "--", self.rank('echo $$ >%s/pid.$RANK; exec sleep 1000' % self.folder))
        pids = self.pids(2)
        # The stand-in has become the node's processes; the sleep's shim is a child of hpclaunch-node.
        os.kill(int(read(os.path.join(self.folder, "b", "pid"))), signal.SIGKILL)
        out, err = job.communicate(timeout=support.LIMIT)
        self.assertIn("node b lost: connection lost", err)
        self.assertNotEqual(job.returncode, 0)
        self.assertFalse(any(alive(pid) for pid in pids))


class Refuses(Ssh):
    """One node cannot be had: it is named with the reason, no rank runs, nothing is left."""

    def refuses(self, *says, hosts="a,b", words=(), status=125):
        mark = os.path.join(self.folder, "ran")
        done = self.ok(hpclaunch(*self.words(hosts, *words, "--", self.rank('touch "%s"' % mark)), env=self.env), status)
        self.has(done, *says)
        self.assertFalse(os.path.exists(mark), str(done))
        return done

    def test_down(self):
        self.file("b/down", "ssh: connect to host b port 22: No route to host\n")
        self.refuses("hpclaunch: node b not started: ssh: connect to host b port 22: No route to host (ssh ended with 255)", "try: ssh b true")

    def test_password_wanted(self):
        self.file("b/down", "me@b: Permission denied (publickey,password).\n")
        self.refuses("node b not started: me@b: Permission denied (publickey,password).", "try: ssh-copy-id b")

    def test_no_login(self):
        self.file("b/profile", "This account is currently not available.\n")
        self.file("b/shell", "/bin/false")
        self.refuses("node b not started: This account is currently not available. (ssh ended with 1)")

    def test_hangs(self):
        self.file("b/hangs", "")
        done = self.refuses("hpclaunch: not reached by ssh so far: b", words=["--start-timeout", "1"])
        self.assertFalse(alive(read(os.path.join(self.folder, "b", "pid")).strip()), str(done))

    def test_another_machine(self):
        self.file("b/bin/uname", '#!/bin/sh\ncase $1 in -m) echo riscv64 ;; *) exec /bin/uname "$@" ;; esac\n', 0o755)
        self.refuses("node b not started: it is riscv64, and the programs of this installation are for " + os.uname().machine)

    def test_a_login_that_prints_without_end(self):
        self.file("b/shell", self.file("yes", "#!/bin/sh\nexec yes 'welcome to b'\n", 0o755))
        self.refuses("node b not started: its login prints without end", "try: ssh b true")

    @allowed.needs(allowed.MOUNTS)
    def test_no_working_directory_on_one_node(self):
        """The others have it, and no rank of theirs runs."""
        place = os.path.join(self.folder, "data", "run")
        os.makedirs(place)
        unshare = "unshare --mount" if os.geteuid() == 0 else "unshare --map-root-user --mount"
        self.file("b/shell", self.file("hides", '#!/bin/sh\nexec %s /bin/sh -c \'mount -t tmpfs none "%s" && exec /bin/sh -c "$0"\' "$2"\n' % (unshare, os.path.dirname(place)), 0o755))
        mark = os.path.join(self.folder, "ran")
        done = self.ok(hpclaunch(*self.words("a,b,c", "--", self.rank('touch "%s"' % mark)), env=self.env, cwd=place), 125)
        self.has(done, "node b not started: working directory %s: No such file or directory" % place)
        for other in "node a", "node c":
            self.assertNotIn(other, done.err)
        self.assertFalse(os.path.exists(mark), str(done))

    def test_no_working_directory(self):
        gone = os.path.join(self.folder, "gone")
        os.mkdir(gone)
        script = 'cd "%s" && rmdir "%s" && exec "$@"' % (gone, gone)
        done = execute(["sh", "-c", script, "sh", support.HPCLAUNCH, *self.words("a,b", "--", "/bin/true")], env=self.env)
        self.assertNotEqual(done.status, 0)

    def test_options_of_ssh(self):
        self.file("b/down", "no\n")
        done = self.refuses(words=["--launcher-arg=-p", "--launcher-arg=2222"])
        self.has(done, "node b not started: no")
        plan = self.json("plan", "-H", "a,b", *EVERYWHERE, "--launcher-arg=-p", "--launcher-arg=2222", "--", "/bin/true", env=self.env)
        argv = plan["argv"]
        self.assertEqual(argv[argv.index("ssh") - 1:][:5], ["--", "ssh", "-p", "2222", "--"])
        self.refused(127, *self.words("a,b", "--", "/bin/true"), env=dict(self.env, HPCLAUNCH_SSH="/nonesuch/ssh"), says=["/nonesuch/ssh is not on PATH"])


@unittest.skipUnless(os.geteuid() == 0, "needs root: mounts")
class Folders(Ssh):
    PLACES = ["/tmp/hpclaunch-0", "/var/tmp/hpclaunch-0", "%(folder)s/a/.cache/hpclaunch", "/dev/shm/hpclaunch-0"]

    def run_mounted(self, options, places, status=0):
        """In a mount namespace, with file systems of such options on the first places."""
        steps = "set -e\n"
        for place in places:
            place = place % {"folder": self.folder}
            steps += "mkdir -p '%s'; mount -t tmpfs -o mode=700,%s none '%s'\n" % (place, options, place)
        steps += 'exec "$@"'
        return self.ok(execute([need("unshare"), "-m", "sh", "-c", steps, "sh", support.HPCLAUNCH, *self.words("a", "-n", "1", "--", self.rank(SAYS))], env=self.env), status)

    def test_the_next_one_where_programs_may_not_be_executed(self):
        self.assertEqual(self.run_mounted("noexec", self.PLACES[:1]).out, "0 0 0 1\n")

    def test_the_next_one_where_it_is_full(self):
        self.assertEqual(self.run_mounted("size=16k", self.PLACES[:2]).out, "0 0 0 1\n")

    def test_the_next_one_where_it_is_read_only(self):
        self.assertEqual(self.run_mounted("ro", self.PLACES[:2]).out, "0 0 0 1\n")

    def test_none(self):
        done = self.run_mounted("size=16k", self.PLACES, 125)
        self.has(done, "node a not started: no folder for hpclaunch-shim (/tmp/hpclaunch-0: no space; /var/tmp/hpclaunch-0: no space; ",
                 "/dev/shm/hpclaunch-0: no space)")

    def test_not_one_that_others_may_write(self):
        done = self.run_mounted("uid=1,mode=700", self.PLACES, 125)
        self.has(done, "/tmp/hpclaunch-0: mode drwx------, owner 1")
        self.has(self.run_mounted("mode=777", self.PLACES, 125), "/tmp/hpclaunch-0: mode drwxrwxrwx, owner 0")


@unittest.skipUnless(os.geteuid() == 0, "needs root: sshd")
class RealSsh(Ssh):
    """A real sshd on the loopback; a user's ssh_config makes several nodes of it."""

    def setUp(self):
        super().setUp()
        keygen = need("ssh-keygen")
        for key in "host", "user":
            subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.folder, key)], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        facts = {"folder": self.folder, "port": port}
        os.makedirs("/run/sshd", exist_ok=True)
        config = self.file("sshd_config", "ListenAddress 127.0.0.1\nPort %(port)d\nHostKey %(folder)s/host\nAuthorizedKeysFile %(folder)s/user.pub\n"
                           "UsePAM no\nStrictModes no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n" % facts)
        server = subprocess.Popen([need("sshd"), "-D", "-e", "-f", config], stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (server.kill(), server.wait()))
        self.file("known", "[127.0.0.1]:%d %s\n" % (port, " ".join(read(os.path.join(self.folder, "host.pub")).split()[:2])))
        self.ssh_config = self.file("ssh_config", "Host refused\n  Port 9\nHost unknown\n  UserKnownHostsFile /dev/null\nHost nokey\n  IdentityFile /nonexistent\nHost * !nokey\n  IdentityFile %(folder)s/user\n"
                                    "Host *\n  HostName 127.0.0.1\n  Port %(port)d\n  IdentitiesOnly yes\n"
                                    "  UserKnownHostsFile %(folder)s/known\n  GlobalKnownHostsFile /dev/null\n  RemoteCommand false\n  RequestTTY yes\n"
                                    "  LocalForward 1 127.0.0.1:1\n  ExitOnForwardFailure yes\n" % facts, 0o600)
        self.env = clean_env(HPCLAUNCH_SSH="ssh -F " + self.ssh_config)

        def answers():
            try:
                with socket.create_connection(("127.0.0.1", port), 1):
                    return True
            except OSError:
                return False
        eventually(answers, "sshd listens")

    def test_runs(self):
        done = self.run_on("n1:2,n2:1", "--", self.rank('echo "$RANK ${SSH_CONNECTION:+by ssh}"'))
        self.assertEqual(sorted(done.out.splitlines()), ["0 by ssh", "1 by ssh", "2 by ssh"])

    def test_connections_that_sshd_drops_are_made_again(self):
        """MaxStartups: of more than ten that have not logged in, some are closed at once."""
        done = self.run_on("n[1-40]", "--", self.rank("echo $RANK"))
        self.assertEqual(sorted(map(int, done.out.split())), list(range(40)))

    def test_nothing_is_left(self):
        job = self.popen("n1,n2", "--", self.rank('echo $$ >%s/pid.$RANK; exec sleep 1000' % self.folder))
        pids = self.pids(2)
        job.kill()
        eventually(lambda: not any(alive(pid) for pid in pids), "ranks end")

    def test_reasons(self):
        for host, why, hint in (("unknown", "Host key verification failed.", "ssh unknown true, once by hand"), ("nokey", "Permission denied (publickey)", "ssh-copy-id nokey"),
                                ("refused", "Connection refused", "ssh refused true")):
            with self.subTest(host=host):
                done = self.run_on("n1,%s" % host, "--", self.rank("touch %s/ran" % self.folder), status=125)
                self.has(done, "node %s not started: " % host, why, "try: " + hint)
                self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")))


class Chosen(Ssh):
    def only(self, *programs):
        for name in programs:
            self.file("path/" + name, "#!/bin/sh\n", 0o755)
        return clean_env(PATH=os.path.join(self.folder, "path"))

    def test_without_mpi_and_batch_system(self):
        plan = self.json("plan", "-H", "a,b", "--master-addr", "198.51.100.1", "--", "/bin/true", env=self.only("ssh"))
        self.assertEqual(plan["launcher"], "ssh")
        done = self.ok(hpclaunch("explain", "launcher", "-H", "a,b", "--master-addr", "198.51.100.1", env=self.only("ssh")))
        self.has(done, "several hosts, no batch system, and no mpiexec on PATH")

    def test_not_in_a_job(self):
        nodes = self.file("nodes", "a\nb\n")
        env = dict(self.only("ssh"), PBS_JOBID="1.s", PBS_ENVIRONMENT="PBS_BATCH", PBS_NODEFILE=nodes)
        self.refused(127, "run", "--master-addr", "198.51.100.1", "--", "/bin/true", env=env, says=["no supported launcher found on PATH"])

    def test_a_list_is_a_host_file(self):
        hosts = self.file("hosts", "a\nb:4\nn1\nn2\n")
        plans = [self.json("plan", *words, "--master-addr", "198.51.100.1", "--launcher", "ssh", "--oversubscribe", "-n", "7", "--", "/bin/true", env=self.env)["hosts"]
                 for words in (["--hostfile", hosts], ["-H", "a,b:4,n[1-2]"], ["--hosts", "a,b:4,n1,n2"])]
        self.assertEqual(plans[0], plans[1])
        self.assertEqual(plans[0], plans[2])
        self.refused(2, "plan", "-H", "a,b", "--hostfile", hosts, "--", "/bin/true", says=["--hostfile excludes --hosts"])
        for typed, says in (("me@a,b", ['"me@a" is no host', "User NAME in ~/.ssh/config"]), ("a#x,b", ['"a#x" is no host']), ("a:0,b", ["ranks must be 1 or more"]), (",", ["no host is named"])):
            self.refused(2, "plan", "-H", typed, "--", "/bin/true", says=[*says, "--hosts a,b:4" if "@" not in typed else "~/.ssh"])
        self.refused(2, "plan", "-H", "a[1-", "--", "/bin/true", says=["list of hosts", "--hosts a,b:4,n[1-3]"])


if __name__ == "__main__":
    support.main()
