#!/usr/bin/python3
"""Healthy programs that say nothing for longer than --stall allows: none of them is taken for one that hangs. It prints how many ran."""
import os
import re
import subprocess
import sys

import engines
from engines import support

PROGRAM = os.path.join(engines.HERE, "healthy.py")
PYTHON = "/usr/bin/python3"
LIMIT = 4
SECONDS = 3 * LIMIT + 3  # longer than what is allowed to a loop at one line
AT_ONCE = 5
RANKS = 3
# Programs that are not Python: a solver, and what waits.
SOLVER = "#include <time.h>\nint main(void) { time_t end = time(0) + %d; volatile double x = 1; while (time(0) < end) x = x * 1.0000001 + 1; return 0; }\n"
SHELLS = {"a shell": "for i in $(seq %d); do sleep 1; done" % SECONDS, "a pipe": "yes | head -c 30000000000 | timeout %d cat >/dev/null || true" % SECONDS}


class Healthy(support.Test):
    def programs(self):
        """{name: words}"""
        found = {name: ["/bin/sh", "-c", script] for name, script in SHELLS.items()}
        subprocess.run(["cc", "-O1", "-o", self.folder + "/solver", self.file("solver.c", SOLVER % SECONDS)], check=True)
        found["a solver"] = [self.folder + "/solver"]
        names = subprocess.run([PYTHON, PROGRAM, "names", "/", "1"], env={"RANK": "0", "WORLD_SIZE": "1"}, stdout=subprocess.PIPE, text=True, check=True)
        for name in names.stdout.split():
            os.mkdir(os.path.join(self.folder, name))
            found[name] = [PYTHON, PROGRAM, name, os.path.join(self.folder, name), str(SECONDS)]
        return found

    def test_none_is_taken_for_one_that_hangs(self):
        programs = self.programs()
        self.assertGreaterEqual(len(programs), 30)
        left, running, alarms = list(programs.items()), [], {}
        while left or running:
            while left and len(running) < AT_ONCE:
                name, words = left.pop(0)
                argv = [support.HPCLAUNCH, "run", "--force", "--oversubscribe", "-n", str(RANKS), "--stall", str(LIMIT), "--", *words]
                running.append((name, subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=support.clean_env())))
            name, process = running.pop(0)
            _, err = process.communicate(timeout=support.LIMIT)
            self.assertEqual(process.returncode, 0, "%s\n%s" % (name, err))
            if re.search("no rank has moved", err):
                alarms[name] = err
        print("%d healthy programs, %d alarms" % (len(programs), len(alarms)), file=sys.stderr, flush=True)
        self.assertEqual(alarms, {}, "\n".join(alarms.values()))


if __name__ == "__main__":
    engines.main()
