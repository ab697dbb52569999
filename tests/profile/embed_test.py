#!/usr/bin/env python3
"""hpclaunch-embed from outside: no file at all, awkward bytes, and every way in which the build must stop.

    embed_test.py HPCLAUNCH_EMBED
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

EMBED = sys.argv[1]
CXX = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")


class Embed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.output = os.path.join(self.folder, "profiles.cpp")

    def put(self, path, text):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as handle:
            handle.write(text)
        return path

    def embed(self, *files):
        return subprocess.run([EMBED, self.output] + list(files), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)

    def refused(self, part, *files):
        result = self.embed(*files)
        self.assertEqual(result.returncode, 1)
        self.assertIn(part, result.stderr)
        self.assertFalse(os.path.exists(self.output))

    def test_no_file_makes_an_empty_table(self):
        self.assertEqual(self.embed().returncode, 0)
        with open(self.output) as handle:
            self.assertIn("std::array<BuiltinProfile, 0>", handle.read())

    def test_the_name_is_the_file_name(self):
        self.refused("call the file b.json", self.put("site/a.json", b'{"name": "b"}'))

    def test_what_is_no_profile(self):
        self.refused("is not a JSON object", self.put("site/a.json", b'{"name": "a",}'))
        self.refused("is not a JSON object", self.put("site/a.json", b"[]"))
        self.refused('has no "name"', self.put("site/a.json", b"{}"))
        self.refused("cannot read the file", os.path.join(self.folder, "site/none.json"))

    def test_parts_and_sites_stay_apart(self):
        self.refused("belongs in profiles/part", self.put("site/a.json", b'{"name": "a", "part": true}'))
        self.refused("else in profiles/site", self.put("part/b.json", b'{"name": "b"}'))

    def test_no_name_twice(self):
        self.refused("both have it", self.put("site/a.json", b'{"name": "a"}'),
                     self.put("part/a.json", b'{"name": "a", "part": true}'))

    def test_texts_come_back_byte_for_byte(self):
        if not CXX:
            self.skipTest("no compiler")
        text = b'{ // "quotes" \\ ??= %s {} \xc3\xa4\x01\r\n\n "name": "a",\t"detect": [{"host":\n "\xc3\xa412"}]}'
        text = text.replace(b"\x01", b"\x02" + b"7")  # a digit behind an octal escape
        files = [self.put("part/b.json", b'{"name": "b", "part": true}'), self.put("site/a.json", text)]
        result = self.embed(*files)
        self.assertEqual(result.returncode, 0, result.stderr)
        main = self.put("main.cpp", b"""
            #include "profiles.cpp"
            #include <cstdio>
            int main() {
              for (const auto& p : hpclaunch::builtin_profiles())
                std::printf("%.*s|%.*s|%.*s|%.*s\\n", int(p.name.size()), p.name.data(), int(p.file.size()), p.file.data(),
                            int(p.detect.size()), p.detect.data(), int(p.text.size()), p.text.data());
            }""")
        # The table needs four texts and a span, not the whole of profile.h.
        self.put("hpclaunch/profile.h", b"""
            #include <span>
            #include <string_view>
            namespace hpclaunch {
            struct BuiltinProfile { std::string_view name, file, text, detect; };
            std::span<const BuiltinProfile> builtin_profiles();
            }""")
        program = os.path.join(self.folder, "main")
        subprocess.run([CXX, "-std=c++20", "-Wall", "-Werror", "-I", self.folder, "-o", program, main], check=True)
        printed = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(printed, b'a|builtin:profiles/site/a.json|[{"host":"\\u00e412"}]|' + text +
                         b'\nb|builtin:profiles/part/b.json|[]|{"name": "b", "part": true}\n')


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
