"""Stands in for OpenPBS 23.06 with its defaults: qsub, qstat, qdel and a server whose jobs move by one step at each
question.

    pbs.py FOLDER qsub|qstat|qdel ARGUMENTS...

FOLDER/model.json:  {"history": false, "jobs": [STEP, ...]}. A step is what the job is at one question, the last one stays:

    {"state": "R", "attributes": {"comment": "..."}, "run": "shell command, before the answer"}
    {"state": null}         gone: ended, or purged from the history
    {"failure": "text", "status": 255}    the server is away

FOLDER/calls has a line for each call, FOLDER/script what qsub was given. Texts and statuses are those of the real
programs: history off: `qstat -x` prints nothing but a line on stderr and returns 0; an unknown job: 153; `qstat -f` of an
ended job of the history: 35. Long lines of `qstat -f` are broken with a newline and a tab, anywhere.
"""
import json
import os
import subprocess
import sys

ID = "123.virt-pbs"
WIDTH = 78


def broken(name, value):
    """As prt_attr of qstat breaks it: at commas where a piece does not fit, else within the piece, at a blank too."""
    text, start = "    %s = " % name, len(name) + 7
    for number, piece in enumerate(value.split(",")):
        text += "," if number else ""
        if start + len(piece) < WIDTH:
            text, start = text + piece, start + len(piece)
            continue
        if number:
            text, start = text + "\n\t", 9
        for letter in piece:
            text, start = text + letter, start + 1
            if start > WIDTH:
                text, start = text + "\n\t", 8
    return text


class Server:
    def __init__(self, folder):
        self.folder = folder
        with open(self.path("model.json")) as file:
            self.model = json.load(file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def step(self):
        try:
            with open(self.path("turn")) as file:
                turn = int(file.read())
        except OSError:
            turn = 0
        steps = self.model["jobs"]
        with open(self.path("turn"), "w") as file:
            file.write(str(turn + 1))
        step = steps[min(turn, len(steps) - 1)]
        if turn < len(steps) and "run" in step:
            subprocess.run(["/bin/sh", "-c", step["run"]], check=True)
        return step


def fail(text, status):
    print(text, file=sys.stderr)
    sys.exit(status)


def qsub(server, words):
    with open(server.path("script"), "w") as file:
        file.write(sys.stdin.read())
    if "refusal" in server.model:
        fail(server.model["refusal"], server.model.get("refusal_status", 1))
    print(ID)


def qstat(server, words):
    id = words[-1]
    if "-x" in words and not server.model["history"]:
        fail("qstat: PBS is not configured to maintain job history %s" % id, 0)
    step = server.step()
    if "failure" in step:
        fail(step["failure"], step["status"])
    if "json" in words and (id != ID or step["state"] is None):
        print(json.dumps({"timestamp": 1764201600, "pbs_version": "23.06.06", "pbs_server": "virt-pbs"}, indent=4))
        fail("qstat: Unknown Job Id %s" % id, 153)
    if id != ID or step["state"] is None or (step["state"] == "F" and not server.model["history"]):
        fail("qstat: Unknown Job Id %s" % id, 153)
    if step["state"] == "F" and "-x" not in words:
        fail("qstat: %s Job has finished, use -x or -H to obtain historical job information" % id, 35)
    print("Job Id: " + ID)
    shown = {"Job_Name": "train", "Job_Owner": "user@login1", "job_state": step["state"], "queue": "workq", "server": "virt-pbs",
             **server.model.get("attributes", {}), **step.get("attributes", {})}
    for name, value in shown.items():
        print(broken(name, value))
    print()


def main():
    server = Server(sys.argv[1])
    with open(server.path("calls"), "a") as file:
        file.write(" ".join(sys.argv[2:]) + "\n")
    {"qsub": qsub, "qstat": qstat, "qdel": lambda *_: None}[sys.argv[2]](server, sys.argv[3:])


main()
