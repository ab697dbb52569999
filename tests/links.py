#!/usr/bin/env python3
"""links.py FOLDER: every relative link and picture in the Markdown files below FOLDER leads to a file in it, and every
#anchor to a heading."""
import os
import re
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)|<(?:img|a)\b[^>]*\b(?:src|href)=\"([^\"]+)\"")


def read(path):
    """The text of a page without its code blocks."""
    with open(path, encoding="utf-8") as file:
        return re.sub(r"(?ms)^```.*?^```", "", file.read())


def anchors(path):
    """The names that GitHub gives the headings of a page."""
    found = set()
    for title in re.findall(r"(?m)^#+ +(.*?)\s*$", read(path)):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", lambda m: m.group(1) or "", title)
        found.add(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
    return found


def main():
    root = os.path.realpath(sys.argv[1])
    broken, links = [], 0
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in (".git", "build")]
        for name in files:
            path = os.path.join(folder, name)
            if not name.endswith(".md"):
                continue
            for match in LINK.finditer(re.sub(r"`[^`\n]*`(?!\])", "", read(path))):
                link = match.group(1) or match.group(2)
                if re.match(r"[a-z]+:", link):
                    continue
                links += 1
                target, _, anchor = link.partition("#")
                target = os.path.realpath(os.path.join(folder, target)) if target else path
                if not os.path.exists(target) or not target.startswith(root):
                    broken.append("%s: no file %s" % (os.path.relpath(path, root), link))
                elif anchor and target.endswith(".md") and anchor not in anchors(target):
                    broken.append("%s: no heading %s" % (os.path.relpath(path, root), link))
    print("\n".join(broken) or "%d links lead somewhere" % links)
    return 1 if broken or not links else 0


if __name__ == "__main__":
    sys.exit(main())
