#!/usr/bin/env python3
"""The files at the top that people read first, kept honest: CITATION.cff has the version of CMakeLists.txt, and
CHANGELOG.md the form of "Keep a Changelog".

    house_files.py [--root DIR]     checks the tree; prints each violation as file:line: text; 1 if there is one
    house_files.py --self-test      plants one violation of each kind in a small tree and expects it to be found

Needs Python 3.6 and nothing else.
"""
import argparse
import os
import re
import sys
import tempfile
from datetime import datetime

CATEGORIES = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
FIELDS = ["cff-version", "message", "title", "type", "authors", "license", "version"]
PROJECT = re.compile(r"^\s*project\s*\(\s*hpclaunch\s+VERSION\s+(\d+(?:\.\d+)*)", re.M)
RELEASE = re.compile(r"\[(\d+\.\d+\.\d+)\] - (\S+)")


def numbers(version):
    return [int(part) for part in version.split(".")]


def is_date(text):
    try:
        return datetime.strptime(text, "%Y-%m-%d").strftime("%Y-%m-%d") == text
    except ValueError:
        return False


class Tree:
    def __init__(self, root):
        self.root = root
        self.found = []

    def report(self, name, line, text):
        self.found.append("%s:%d: %s" % (name, line, text))

    def read(self, name):
        """The text of a file at the top; None, with a report, when there is none."""
        try:
            with open(os.path.join(self.root, name), encoding="utf-8") as file:
                return file.read()
        except OSError as error:
            self.report(name, 0, "cannot be read: %s" % error.strerror)
            return None

    def check(self):
        cmake, citation, changelog = map(self.read, ["CMakeLists.txt", "CITATION.cff", "CHANGELOG.md"])
        version = None
        if cmake is not None:
            project = PROJECT.search(cmake)
            version = project.group(1) if project else None
            if version is None:
                self.report("CMakeLists.txt", 1, "no project(hpclaunch VERSION ...)")
        if citation is not None:
            self.check_citation(citation, version)
        if changelog is not None:
            self.check_changelog(changelog, version)
        return self.found

    def check_citation(self, text, version):
        """Keys without an indent are those of the document; a nested one, as of a reference, has its own version."""
        values = {}
        for number, line in enumerate(text.split("\n"), 1):
            entry = re.match(r"([a-z-]+):\s*(.*?)\s*$", line)
            if entry:
                values[entry.group(1)] = (number, entry.group(2).strip("\"'"))
        for field in FIELDS:
            if field not in values:
                self.report("CITATION.cff", 1, "no %s" % field)
        if "version" in values and version is not None and values["version"][1] != version:
            self.report("CITATION.cff", values["version"][0],
                        "version %s; CMakeLists.txt has %s" % (values["version"][1], version))

    def check_changelog(self, text, version):
        name = "CHANGELOG.md"
        sections = 0
        newest = None  # of the releases above
        categories = None  # of this section; None above the first one
        for number, line in enumerate(text.split("\n"), 1):
            level, _, title = line.partition(" ")
            if level == "##":
                sections += 1
                categories = []
                if title == "[Unreleased]":
                    if sections != 1:
                        self.report(name, number, "[Unreleased] stands once, above all versions")
                    continue
                if sections == 1:
                    self.report(name, number, "no section [Unreleased] above the versions")
                newest = self.check_release(name, number, title, newest, version)
            elif level == "###" and categories is not None:
                if title not in CATEGORIES:
                    self.report(name, number, "\"%s\" is none of %s" % (title, ", ".join(CATEGORIES)))
                elif title in categories:
                    self.report(name, number, "%s stands twice in this section" % title)
                categories.append(title)
            elif categories is not None and line.strip() and not re.match(r"\[[^\]]+\]: ", line):
                if not categories:
                    self.report(name, number, "no category above this line")
                elif not line.startswith("- "):
                    self.report(name, number, "an entry is one line that starts with \"- \"")
        if sections == 0:
            self.report(name, 1, "no section [Unreleased]")

    def check_release(self, name, number, title, newest, version):
        """The version of this heading; that of the ones above where it has none."""
        release = RELEASE.match(title)
        if release is None or release.end() != len(title):
            self.report(name, number, "a version is \"## [1.2.3] - YYYY-MM-DD\", not \"%s\"" % title)
            return newest
        this, day = numbers(release.group(1)), release.group(2)
        if not is_date(day):
            self.report(name, number, "%s is not a date YYYY-MM-DD" % day)
        if newest is not None and this >= newest:
            self.report(name, number, "%s below an older or equal version; the newest is on top" % release.group(1))
        elif newest is None and version is not None and this > numbers(version):
            self.report(name, number, "%s is newer than CMakeLists.txt, which has %s" % (release.group(1), version))
        return this


GOOD = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.22)\nproject(hpclaunch VERSION 1.2.0 LANGUAGES C CXX)\n",
    "CITATION.cff": "cff-version: 1.2.0\nmessage: Cite it.\ntitle: hpclaunch\ntype: software\nauthors:\n"
                    "  - name: Somebody\nlicense: Apache-2.0\nversion: \"1.2.0\"\nreferences:\n  - version: 7.0\n",
    "CHANGELOG.md": "# Changelog\n\nForm.\n\n## [Unreleased]\n\n### Added\n\n- a thing\n\n### Fixed\n\n- a fault\n\n"
                    "## [1.2.0] - 2026-11-20\n\n### Added\n\n- another thing\n\n"
                    "## [1.1.10] - 2026-10-31\n\n### Security\n\n- a hole\n\n## [1.1.9] - 2026-10-30\n\n"
                    "### Removed\n\n- a command\n\n[1.1.9]: https://example.org\n",
}
PLANTED = [  # (file, text in it, what stands there instead, what the report must contain; "" where nothing may be reported)
    ("CITATION.cff", "", "", ""),
    ("CITATION.cff", "\"1.2.0\"", "1.2.0", ""),
    ("CITATION.cff", "\"1.2.0\"", "1.1.0", "version 1.1.0; CMakeLists.txt has 1.2.0"),
    ("CITATION.cff", "version: \"1.2.0\"\n", "", "no version"),
    ("CITATION.cff", "authors:\n  - name: Somebody\n", "", "no authors"),
    ("CITATION.cff", None, None, "cannot be read"),
    ("CMakeLists.txt", "VERSION 1.2.0 ", "", "no project(hpclaunch VERSION"),
    ("CHANGELOG.md", None, None, "cannot be read"),
    ("CHANGELOG.md", GOOD["CHANGELOG.md"], "# Changelog\n", "no section [Unreleased]"),
    ("CHANGELOG.md", "## [Unreleased]\n\n### Added\n\n- a thing\n\n### Fixed\n\n- a fault\n\n", "",
     "no section [Unreleased] above the versions"),
    ("CHANGELOG.md", "## [1.1.10] - 2026-10-31", "## [Unreleased]", "stands once"),
    ("CHANGELOG.md", "[1.2.0] - 2026-11-20", "[1.2.0]", "a version is"),
    ("CHANGELOG.md", "[1.2.0] - 2026-11-20", "1.2.0 - 2026-11-20", "a version is"),
    ("CHANGELOG.md", "[1.2.0] - 2026-11-20", "[1.2.0] - 2026-11-20 soon", "a version is"),
    ("CHANGELOG.md", "2026-11-20", "2026-02-30", "is not a date"),
    ("CHANGELOG.md", "2026-11-20", "20.11.2026", "is not a date"),
    ("CHANGELOG.md", "[1.1.9]", "[1.1.11]", "the newest is on top"),
    ("CHANGELOG.md", "[1.1.9]", "[1.1.10]", "the newest is on top"),
    ("CHANGELOG.md", "[1.2.0]", "[1.3.0]", "newer than CMakeLists.txt"),
    ("CHANGELOG.md", "### Fixed", "### Bugs", "\"Bugs\" is none of Added"),
    ("CHANGELOG.md", "### Security", "### security", "\"security\" is none of Added"),
    ("CHANGELOG.md", "### Fixed", "### Added", "stands twice"),
    ("CHANGELOG.md", "- a thing\n", "- a thing\n  that is long\n", "an entry is one line"),
    ("CHANGELOG.md", "### Removed\n", "", "no category above"),
]


def self_test():
    wrong = 0
    for name, old, new, expected in PLANTED:
        with tempfile.TemporaryDirectory() as root:
            for file, text in GOOD.items():
                if file == name and old is None:
                    continue
                planted = text.replace(old, new, 1) if file == name and old else text
                if file == name and old and planted == text:
                    wrong += 1
                    print("self-test: %s has no %r to replace" % (name, old))
                with open(os.path.join(root, file), "w", encoding="utf-8") as out:
                    out.write(planted)
            found = Tree(root).check()
        good = (len(found) == 1 and expected in found[0]) if expected else not found
        if not good:
            wrong += 1
            print("self-test: %s %r -> %r: expected %r, got %r" % (name, old, new, expected, found))
    print("house_files.py self-test: %d cases, %d wrong" % (len(PLANTED), wrong))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description="checks CITATION.cff and CHANGELOG.md")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    found = Tree(options.root).check()
    for text in found:
        print(text)
    print("house_files.py: %d violations" % len(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
