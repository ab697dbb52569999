#!/usr/bin/env python3
"""add_rows.py FROM TO: copies a folder of profiles and adds a row of each kind that CONTRIBUTING.md says needs no C++.
The build compiles the copy into hpclaunch-added; added_test.py sees the rows at work."""
import os
import re
import shutil
import sys

ROWS = (  # file, list (of the row of that name), row
    ("programs/grammars.json", "options", '{"names": ["--moonlight"], "takes": "value"}', "sbatch"),
    ("programs/engines.json", "engines", """{"name": "boxer", "programs": ["boxer"], "start": ["enter"], "names": ["*"], "bind": ["--share={from}:{to}"],
      "devices": {"nvidia": ["--cards"]}, "shows_devices": ["--cards"], "line": {"words": ["enter"], "skip": 1, "grammar": {"unknown": "nothing", "flags": ["--cards"], "values": ["--share"]}}}"""),
    ("programs/gpus.json", "gpus", '{"vendor": "zeta", "names": ["z9000"]}'),
    ("programs/launchers.json", "launchers", '{"name": "serveall", "programs": ["serveall"], "starts": "agent", "agent_args": ["--peer=$MASTER_ADDR"]}'),
    ("programs/requests.json", "exclusions", '{"system": "slurm", "id": "new-1", "where": ["job"], "of": ["--mem"], "with": ["--time"], "effect": "refused", "source": "x"}'),
    ("programs/batch-systems.json", "hints", '{"message": "the moon is full", "hint": "wait"}', "slurm"),
    ("programs/batch-systems.json", "batch_systems", """{"name": "queueup", "title": "QueueUp", "job_variable": "QUEUEUP_JOB", "hosts_file": "QUEUEUP_HOSTS", "one_per_line": true,
      "sentinels": ["#QUEUEUP"], "grammar": "qsub of cobalt", "directives": {"nodes": "--hosts {}", "time": "--for {}", "name": "--called {}"}, "allocate": "queueup -I {}", "submit": "queueup", "cancel": "unqueue"}"""),
    ("programs/platforms.json", "platforms", '{"name": "cloudy", "title": "Cloudy", "set": ["CLOUDY_NODE", "CLOUDY_NODES"], "nodes": "CLOUDY_NODES", "node": "CLOUDY_NODE", "address": ["CLOUDY_HEAD"]}'),
    ("programs/waits.json", "waits", '{"file": "newlib/comm.py", "functions": ["exchange"], "kind": "collective"}'),
    ("programs/words.json", "words", '"NEW_CACHE_DIR"', "caches"),
    ("lint/retired.json", "retired", '{"module": true, "name": "oldtool", "what": "gone", "now": "newtool"}'),
    ("lint/rules.json", "rules", """{"code": "aaa-new", "severity": "error", "title": "new", "why": "So.",
      "launches": [{"launchers": ["srun"], "variable": "NEW_THING", "value": "on", "without": ["--new=thing"], "message": "NEW_THING without --new"}]}"""),
    ("variables/known-issues.json", "known_issues", """{"id": "new-trouble", "when": {"nccl": {"eq": "9.9.9"}}, "effect": "hang", "why": "nccl 9.9.9 hangs.",
      "fix": "nccl 9.9.10", "source": "x", "checked": "2026-11-28"}"""),
)


def main():
    source, target = sys.argv[1:]
    shutil.rmtree(target, ignore_errors=True)
    for folder in ("programs", "lint", "variables"):
        shutil.copytree(os.path.join(source, folder), os.path.join(target, folder))
    for file, key, row, *owner in ROWS:
        path = os.path.join(target, file)
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        begin = r'"name": "%s",(?:(?!^    \{).)*?"%s": \[' % (owner[0], key) if owner else r'^  "%s": \[' % key
        text, count = re.subn("(?ms)" + begin, lambda m: m.group(0) + "\n    " + row + ",", text, count=1)
        if count != 1:
            sys.exit("%s: no list %s" % (file, key))
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)


if __name__ == "__main__":
    main()
