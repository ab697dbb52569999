#!/usr/bin/env python3
"""The shape of the house, executable: who may include whom, what the pure modules may touch, and what
may not stand in the program at all.

    layers.py [--root DIR]     checks the tree; prints each violation as file:line: text; 1 if there is one
    layers.py --self-test      plants one violation of each kind in a small tree and expects it to be found

Needs Python 3.6 and nothing else.
"""
import argparse
import os
import re
import sys
import tempfile

FLOORS = [  # docs/architecture.md: a module sees lower floors only; doctor and authoring stand on world, stall on render, shim beside shared
    "base shim shared",
    "model",
    "profile knowledge scheduler launcher sys",
    "plan check lint render probe",
    "world stall",
    "doctor authoring",
    "start",
    "cli catalogue",
]
FLOOR_OF = {module: floor for floor, modules in enumerate(FLOORS) for module in modules.split()}
BESIDE = {("shim", "shared")}

PUBLIC = {  # header in include/hpclaunch -> the module that owns it
    "result.h": "base", "cpuset.h": "base", "grammar.h": "base", "text.h": "base",
    "topology.h": "model", "env.h": "model", "plan.h": "model", "request.h": "model", "hosts.h": "model",
    "rank_report.h": "model", "diagnostic.h": "model", "device_vendor.h": "model", "launcher_traits.h": "model",
    "json_reader.h": "model", "late.h": "model", "progress.h": "model", "traceback.h": "model", "rows.h": "model", "secret.h": "model", "platforms.h": "model",
    "profile.h": "profile", "profile_format.h": "profile", "golden_case.h": "profile", "knowledge.h": "knowledge", "scheduler.h": "scheduler", "launcher.h": "launcher", "programs.h": "model",
    "sys.h": "sys", "events.h": "sys", "make_plan.h": "plan", "wire.h": "plan", "check.h": "check", "lint.h": "lint", "render.h": "render",
    "probe.h": "probe", "stacks.h": "stall", "authoring.h": "authoring", "doctor.h": "doctor",
    "world.h": "world", "prepared.h": "world", "launch.h": "world", "session.h": "world", "site_profiles.h": "world",
    "frameworks.h": "world", "launches.h": "world", "paths.h": "world", "batch.h": "world",
    "start.h": "start", "running.h": "start", "run_record.h": "start", "verify.h": "start", "submit.h": "start",
}
MAX_PUBLIC = len(PUBLIC)

SEES = {  # module -> modules whose public headers it may include
    "base": "",
    "model": "base",
    "profile": "base model", "knowledge": "base model", "scheduler": "base model", "launcher": "base model",
    "sys": "base model shared",
    "plan": "base model profile knowledge", "check": "base model profile knowledge launcher",
    "lint": "base model knowledge scheduler launcher",
    "render": "base model", "probe": "base model sys",
    "world": "base model profile knowledge scheduler launcher sys plan check render probe",
    "stall": "base model render",
    "doctor": "base model profile knowledge scheduler launcher sys probe world",
    "start": "base model scheduler launcher sys plan check render stall world doctor",
    "authoring": "base model profile knowledge scheduler launcher sys plan check render probe world",
    # A command line: no batch system, no launcher, no probe.
    "cli": "base model profile knowledge sys check lint render stall world doctor start authoring",
    "shim": "shared", "shared": "",
    # hpclaunch-catalogue and -sites, which compile data at build time; no part of the program.
    "catalogue": "base model profile knowledge scheduler lint",
}
SEES = {module: set(names.split()) for module, names in SEES.items()}
PURPOSE = {  # module -> what it is for, in six words; scripts/house draws docs/images/house.svg from this and the above
    "base": "text, CPU sets, results and errors",
    "model": "Topology, Request, Plan and their JSON",
    "profile": "reads, detects, resolves site profiles",
    "knowledge": "the compiled catalogue of environment variables",
    "scheduler": "batch systems: jobs, hosts, time, directives",
    "launcher": "launch lines and traits; container engines",
    "sys": "files, processes, local and supervised start",
    "catalogue": "build-time compiler of data in profiles",
    "plan": "facts in, one Plan out",
    "check": "plan against node, environment and reports",
    "lint": "finds mistakes in batch scripts",
    "render": "tables, explanations, shell formats, pictures",
    "probe": "the live node as a Topology",
    "world": "asks a machine, prepares a job",
    "stall": "who stands still, where and why",
    "doctor": "examines this machine for a job",
    "start": "stages, starts, ends and verifies jobs",
    "authoring": "creates, shows and tests site profiles",
    "cli": "commands, options, help, completion",
    "shim": "freestanding, between launcher and rank",
    "shared": "frames between hpclaunch and its monitors",
}
PURPOSE_WORDS = 6
PURE = {"base", "model", "profile", "knowledge", "scheduler", "launcher", "plan", "check", "lint", "render", "stall"}

# What asks the machine, the clock or chance. Equal inputs must print equal bytes.
IMPURE_HEADERS = re.compile(
    r"^(unistd|fcntl|dlfcn|sched|signal|csignal|poll|netdb|pthread|spawn|ifaddrs|dirent|termios|time|ctime|"
    r"filesystem|fstream|iostream|chrono|random|thread|mutex|future|hwloc)(\.h)?$|"
    r"^(sys|arpa|netinet|net|linux|hwloc)/")
IMPURE_NAMES = re.compile(
    r"\b(getenv|secure_getenv|setenv|putenv|environ|popen|system|fork|execve|fopen|freopen|rand|srand|getpid)\s*\(|"
    r"\benviron\b")
REFUSED_EVERYWHERE = [
    (re.compile(r"#\s*include\s*<unordered_(map|set)>"), "ordered containers only: output must not depend on hashing"),
    (re.compile(r"\bvirtual\b"), "no virtual functions: feed values or a table of functions"),
]
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def site_names():
    """"jean-zay" also as jean_zay; sites that people call by another name than their profile's."""
    files = os.listdir(os.path.join(HERE, "profiles", "site"))
    return [name[:-len(".json")].replace("-", "[-_ ]?") for name in files] + ["lumi", "alps", "marenostrum", "capitan"]


def launcher_names():
    with open(os.path.join(HERE, "include", "hpclaunch", "launcher_traits.h"), encoding="utf-8") as handle:
        return re.findall(r"^  ROW\((\w+)\)", handle.read(), re.M) + ["srun", "mpiexec", "mpirun"]


SITES = re.compile(r"\b(%s)\b" % "|".join(site_names()), re.I)
# What differs between launchers stands in their files, as traits; elsewhere nothing asks for one by its name.
LAUNCHERS = re.compile(r'(?:launcher|name|wanted)\w* *[!=]= *"(%s)"' % "|".join(launcher_names()))
LAUNCHER_FILES = {"launcher", "lint"}  # lint reads words of scripts
MAX_LINES = 400

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCE = (".cpp", ".h", ".c", ".hpp", ".cc")


def without_comments(text):
    """The code alone, line by line: comments and the inside of string literals become blanks."""
    piece = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)

    def blank(match):
        found = match.group(0)
        line = text.rfind("\n", 0, match.start()) + 1
        if found[0] == '"' and re.match(r"\s*#\s*include\s*$", text[line:match.start()]):
            return found
        return re.sub(r"[^\n]", " ", found)

    return piece.sub(blank, text)


class Tree:
    def __init__(self, root):
        self.root = root
        self.found = []

    def report(self, path, line, text):
        self.found.append("%s:%d: %s" % (os.path.relpath(path, self.root), line, text))

    def files(self, folder):
        for place, folders, names in os.walk(os.path.join(self.root, folder)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(SOURCE):
                    yield os.path.join(place, name)

    def check_include(self, path, number, module, bracket, name, owner):
        """`owner` is true for a public header of the module: it may be included from inside it."""
        if bracket == "<":
            if module in PURE and IMPURE_HEADERS.search(name):
                self.report(path, number, "%s is pure and may not include <%s>" % (module, name))
            if name.startswith("hpclaunch/"):
                self.report(path, number, 'write "%s" with quotes' % name)
            return
        if name.startswith("hpclaunch/"):
            other = PUBLIC.get(name[len("hpclaunch/"):])
            if other is None:
                return  # check_public reports headers that nobody owns; a missing file is the compiler's affair
            if other != module and other not in SEES[module]:
                self.report(path, number, "%s may not see %s (%s)" % (module, other, name))
            return
        if owner:
            self.report(path, number, 'a public header includes public headers only, not "%s"' % name)
            return
        beside = os.path.join(os.path.dirname(path), name)
        target = beside if name.startswith(".") or os.path.exists(beside) else os.path.join(self.root, "src", name)
        parts = os.path.relpath(os.path.normpath(target), os.path.join(self.root, "src")).split(os.sep)
        if parts[0] != module and not (parts[0] == "shared" and "shared" in SEES[module]):
            self.report(path, number, '"%s" is private to %s; %s may not include it' % (name, parts[0], module))

    def check_file(self, path, module, owner):
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        if text.count("\n") > MAX_LINES:
            self.report(path, MAX_LINES, "%d lines; split it (limit %d)" % (text.count("\n"), MAX_LINES))
        for number, line in enumerate(text.split("\n"), 1):
            site = SITES.search(line)
            if site:
                self.report(path, number, "names a site (%s); sites are data, in profiles/" % site.group(0))
            launcher = LAUNCHERS.search(line)
            if launcher and module not in LAUNCHER_FILES:
                self.report(path, number, "asks for launcher %s by its name; add a trait" % launcher.group(1))
        for number, line in enumerate(without_comments(text).split("\n"), 1):
            include = INCLUDE.match(line)
            if include:
                self.check_include(path, number, module, include.group(1), include.group(2), owner)
            elif module in PURE and IMPURE_NAMES.search(line):
                what = IMPURE_NAMES.search(line).group(0).rstrip("( ")
                self.report(path, number, "%s is pure and may not call %s" % (module, what))
            for pattern, why in REFUSED_EVERYWHERE:
                if pattern.search(line):
                    self.report(path, number, why)

    def table(self):
        """Modules by floor, the highest first, with the lines of their sources and public headers."""
        lines = {}
        for folder in ("include", "src"):
            for path in self.files(folder):
                parts = os.path.relpath(path, self.root).split(os.sep)
                module = PUBLIC.get(parts[-1], "?") if folder == "include" else parts[1]
                with open(path, encoding="utf-8") as handle:
                    lines.setdefault(module, [0, 0])[folder == "include"] += handle.read().count("\n")
        rows = ["floor  module      src  include"]
        for floor in reversed(range(len(FLOORS))):
            for module in FLOORS[floor].split():
                rows.append("%5d  %-9s %5d    %5d" % ((floor, module) + tuple(lines.get(module, (0, 0)))))
        rows.append("       %-9s %5d    %5d" % (("total",) + tuple(map(sum, zip(*lines.values())))))
        return "\n".join(rows)

    def check(self):
        public = list(self.files("include"))
        if len(public) > MAX_PUBLIC:
            self.report(os.path.join(self.root, "include"), 0,
                        "%d public headers; the limit is %d" % (len(public), MAX_PUBLIC))
        for path in public:
            owner = PUBLIC.get(os.path.basename(path))
            if owner is None:
                self.report(path, 1, "no module owns this header; add it to PUBLIC in tests/layers.py")
            else:
                self.check_file(path, owner, True)
        for path in self.files("src"):
            module = os.path.relpath(path, os.path.join(self.root, "src")).split(os.sep)[0]
            if module not in SEES:
                self.report(path, 1, "src/%s is no module of SEES in tests/layers.py" % module)
            else:
                self.check_file(path, module, False)
        return len(public), self.found


PLANTED = [  # (file, text, what the report must contain; "" where nothing may be reported)
    ("src/base/a.cpp", '#include "hpclaunch/plan.h"\n', "base may not see model"),
    ("src/render/a.cpp", '#include "hpclaunch/sys.h"\n', "render may not see sys"),
    ("src/launcher/a.cpp", '#include "hpclaunch/wire.h"\n', "launcher may not see plan"),
    ("src/launcher/a.cpp", '#include "hpclaunch/launcher_traits.h"\n', ""),
    ("src/scheduler/a.cpp", '#include "hpclaunch/sys.h"\n', "scheduler may not see sys"),
    ("src/scheduler/a.cpp", "#include <ctime>\n", "may not include <ctime>"),
    ("src/world/a.cpp", '#include "hpclaunch/wire.h"\n#include "hpclaunch/probe.h"\n', ""),
    ("src/start/a.cpp", '#include "cli/parser.h"\n', "is private to cli"),
    ("src/authoring/a.cpp", '#include "hpclaunch/prepared.h"\n', ""),
    ("src/world/a.cpp", '#include "hpclaunch/start.h"\n', "world may not see start"),
    ("src/start/a.cpp", '#include "hpclaunch/authoring.h"\n', "start may not see authoring"),
    ("src/cli/a.cpp", '#include "hpclaunch/scheduler.h"\n', "cli may not see scheduler"),
    ("src/probe/a.cpp", '#include "hpclaunch/render.h"\n', "probe may not see render"),
    ("src/probe/a.cpp", '#include "hpclaunch/sys.h"\n#include <hwloc.h>\n', ""),
    ("src/shim/main.c", '#include "hpclaunch/result.h"\n', "shim may not see base"),
    ("src/cli/a.cpp", '#include "plan/place.h"\n', "is private to plan"),
    ("src/plan/a.cpp", '#include "../sys/files.h"\n', "is private to sys"),
    ("src/plan/a.cpp", '#include "place.h"\n#include "plan/place.h"\n', ""),
    ("src/plan/a.cpp", "#include <unistd.h>\n", "may not include <unistd.h>"),
    ("src/plan/a.cpp", "#include <sys/stat.h>\n", "may not include <sys/stat.h>"),
    ("src/model/a.cpp", "#include <fstream>\n", "may not include <fstream>"),
    ("src/sys/a.cpp", "#include <fstream>\n", ""),
    ("src/check/a.cpp", 'auto* home = std::getenv("HOME");\n', "may not call getenv"),
    ("src/check/a.cpp", '// getenv("HOME") is not for us\nauto s = "getenv(x)"; auto r = R"(fork())";\n', ""),
    ("src/sys/a.cpp", "#include <unordered_map>\n", "ordered containers only"),
    ("src/cli/a.cpp", "struct A { virtual ~A(); };\n", "no virtual functions"),
    ("src/cli/a.cpp", "// works on Frontier\n", "names a site (Frontier)"),
    ("src/cli/a.cpp", "int frontiers = 0;\n", ""),
    ("src/world/a.cpp", 'if (launcher.name == "slurm") use();\n', "add a trait"),
    ("src/launcher/a.cpp", 'if (name == "slurm") use();\n', ""),
    ("src/cli/a.cpp", "int x;\n" * (MAX_LINES + 1), "split it"),
    ("src/cli/a.cpp", "#include <hpclaunch/plan.h>\n", "with quotes"),
    ("src/extra/a.cpp", "int x;\n", "no module of SEES"),
    ("include/hpclaunch/other.h", "int x;\n", "no module owns this header"),
    ("include/hpclaunch/plan.h", '#include "hpclaunch/sys.h"\n', "model may not see sys"),
    ("include/hpclaunch/plan.h", '#include "plan/place.h"\n', "public headers only"),
]


def write(root, name, text):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)


def self_test():
    wrong = 0
    for name, text, expected in PLANTED:
        with tempfile.TemporaryDirectory() as root:
            write(root, "include/hpclaunch/result.h", "#pragma once\n")
            write(root, "src/plan/place.h", "#pragma once\n")
            write(root, name, text)
            found = Tree(root).check()[1]
        good = (len(found) == 1 and expected in found[0]) if expected else not found
        if not good:
            wrong += 1
            print("self-test: %s %r: expected %r, got %r" % (name, text[:60], expected, found))
    with tempfile.TemporaryDirectory() as root:
        for name in list(PUBLIC)[:MAX_PUBLIC] + ["more.h"]:
            write(root, "include/hpclaunch/" + name, "#pragma once\n")
        found = Tree(root).check()[1]
        if not any("public headers; the limit" in text for text in found):
            wrong += 1
            print("self-test: too many public headers were let pass: %r" % found)
    # The graph itself: lower floors only, so no circle; nothing pure above what is not.
    for module, below in SEES.items():
        for other in below:
            if FLOOR_OF[other] >= FLOOR_OF[module] and (module, other) not in BESIDE:
                wrong += 1
                print("self-test: %s (floor %d) sees %s (floor %d)"
                      % (module, FLOOR_OF[module], other, FLOOR_OF[other]))
            if module in PURE and other not in PURE:
                wrong += 1
                print("self-test: %s is pure and sees %s, which is not" % (module, other))
    for module in sorted(set(SEES) | set(PURPOSE) | set(FLOOR_OF)):
        words = len(PURPOSE.get(module, "").split())
        if module not in SEES or module not in FLOOR_OF or not 0 < words <= PURPOSE_WORDS:
            wrong += 1
            print("self-test: %s needs a floor, a row of SEES, and a purpose of 1 to %d words in PURPOSE (%d)"
                  % (module, PURPOSE_WORDS, words))
    print("layers.py self-test: %d cases, %d wrong" % (len(PLANTED) + 1, wrong))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description="checks who includes whom")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    tree = Tree(options.root)
    headers, found = tree.check()
    if headers == 0:
        print("no public header below %s: wrong --root?" % options.root)
        return 1
    for text in found:
        print(text)
    print(tree.table())
    print("layers.py: %d public headers (limit %d), %d violations" % (headers, MAX_PUBLIC, len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
