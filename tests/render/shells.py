#!/usr/bin/env python3
"""Real shells read what render_env and render_script write, and every byte is compared.

    shells.py RENDER_TOOL [SEED]

Needs dash, bash, tcsh, fish and a Lua; one that is missing is a failure. Values are a list of known
troublemakers and some hundreds made from a seed that failures print.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

NASTY = [
    b"", b" ", b"  ", b"a b", b" lead", b"trail ", b"\t", b"a\tb", b"\n", b"\n\n", b"a\nb", b"a\n", b"\na",
    b"line1\nline2\n\nline4\n", b"\r", b"a\r\nb", b"'", b"''", b"it's", b'"', b'say "hi"', b"\\", b"\\\\",
    b"a\\", b"\\n", b"\\'", b"\\\"", b"'\\''", b"\\\n", b"a\\\nb", b"$", b"$HOME", b"${HOME}", b"$(id)",
    b"`id`", b"a;b", b"a;;b", b"a&b", b"a|b", b"a>b", b"<a", b"#", b"# not a comment", b"a #b", b"!", b"!!",
    b"!$", b"a!b", b"! ", b"'!'", b"\\!", b"!\n!", b"^a^b", b"*", b"?", b"[a]", b"{a,b}", b"{}", b"~", b"~root",
    b"a:~", b"a=~/x", b"=ls", b"-n", b"--", b"-", b"-x", b"--help", b"%", b"%1", b"%self", b"@", b"@a", b"(", b")",
    b"(a b)", b"a=b", b"A=1 B=2", b"\x01", b"\x7f", b"\x1b[31m", b"\x80", b"\xff", b"\xc3", b"\xc3\xa9", b"\xe2\x82",
    b"\xe2\x82\xac", b"\xf0\x9f\x9a\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\x98\x80", b"\xee\x80\x80",
    b"\xef\xb7\x90", b"\xc0\xaf", b"\x81'", b"\x81\\", b"\x81\n\x81", b"\xff\xfe\n'", b"\xc2\x85", b"\xe2\x80\xa8",
    b"caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac", b"\\x41", b"\\101", b"\\u0041", b"%s %d", b"\\c", b"EOF\n", b"a\x0bb\x0cc",
    bytes(range(1, 256)), bytes(range(255, 0, -1)), b"\x88\x89\x81\x82\x83\x84\x85\x86\x87", b"x" * 100_000,
    b"q ' \\ \n! " * 1_000,
]
LISTS = [b"", b":", b"::", b"a::b", b":a:", b"/a:/b c", b"a:b\nc:d", b"\xff:\xc3\xa9:\xc3", b"a", b"~:$X:'"]


def changes_of(seed):
    """(name, value or None) in the order in which they are to be made."""
    dice = random.Random(seed)
    spicy = b"'\"\\!$`\n\t;:~ #&|<>(){}[]*?=-%^@\x01\x7f\x80\xff\xc3\xa9"
    values = list(NASTY)
    for _ in range(300):
        size = dice.choice([1, 2, 3, 5, 8, 20, 60])
        pool = dice.choice([spicy, bytes(range(1, 256)), b"ab '\\\n!$"])
        values.append(bytes(dice.choice(pool) for _ in range(size)))
    changes = [("V%d" % i, v) for i, v in enumerate(values)]
    changes += [("L%d_PATH" % i, v) for i, v in enumerate(LISTS)]
    changes += [("LC_ALL", b"C.UTF-8"), ("AFTER_LC", b"\xc3\xa9\xff"), ("LC_ALL", b"POSIX"),
                ("AFTER_LC_2", b"\xc3\xa9\xff"), ("PATH", b"/no where:/usr/bin:it's"), ("HOME", b"/h ome"),
                ("TZ", b"a b"), ("TERM", b"x;y"), ("LD_LIBRARY_PATH", b":/a::b:"), ("MANPATH", b"::"),
                ("IFS", b"V01"), ("_under", b"1"), ("lower", b"path\n"), ("path_", b"q"),
                ("GONE", None), ("NEVER_WAS", None), ("TWICE", b"1"), ("TWICE", b"2"), ("BACK", None),
                ("BACK", b"again")]
    return changes


def expected(changes):
    want = {"STAYS": b"s t\na'y"}
    for name, value in changes:
        want[name] = value
    return want


START = {"GONE": b"x", "BACK": b"x", "STAYS": b"s t\na'y", "HOME": b"/", "PATH": b"/usr/bin:/bin"}
COMMENTS = [b"why", b"it's !wild `id` $(id) \"", b"ends in \\", b"two\nlines\nexport STAYS=x", b"\xff \x1b[0m",
            b"]] --[[ \\", b"\r\nsetenv STAYS x", b"!!\\"]


class Failure(Exception):
    pass


def need(*names):
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    raise Failure("not installed: " + " or ".join(names))


def tool(program, arguments, changes, words=(), comments=()):
    data = b""
    for i, (name, value) in enumerate(changes):
        if comments:
            data += b"c\0" + comments[i % len(comments)] + b"\0"
        data += b"u\0" + name.encode() + b"\0" if value is None else b"s\0" + name.encode() + b"\0" + value + b"\0"
    for word in words:
        data += b"a\0" + word + b"\0"
    done = subprocess.run([program] + arguments + (["comments"] if comments else []), input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failure("%s: %s" % (arguments, done.stderr.decode(errors="replace")))
    return done.stdout


def environment(entries):
    return dict(e.split(b"=", 1) for e in entries.split(b"\0") if e)


def compare(label, got, want):
    bad = []
    for name, value in want.items():
        seen = got.get(name.encode())
        if seen != value:
            bad.append("  %s\n    want %.300r\n    got  %.300r" % (name, value, seen))
    if bad:
        raise Failure("%s: %d of %d differ\n%s" % (label, len(bad), len(want), "\n".join(bad[:8])))


def through(label, argv, changes, locale, text=None):
    env = {k.encode(): v for k, v in START.items()}
    if locale:
        env[b"LC_CTYPE"] = locale.encode()
    done = subprocess.run(argv, env=env, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0 or done.stderr:
        raise Failure("%s: status %d, %s" % (label, done.returncode, done.stderr[-500:].decode(errors="replace")))
    compare(label, environment(done.stdout), expected(changes))


def sh_family(program, changes, folder):
    path = os.path.join(folder, "f.sh")
    for comments in ((), COMMENTS):
        with open(path, "wb") as out:
            out.write(tool(program, ["sh"], changes, comments=comments))
        for shell in (["sh"], ["dash"], ["bash"], ["bash", "--posix"]):
            argv = [need(shell[0])] + shell[1:]
            for locale in ("C", "C.UTF-8"):
                label = " ".join(shell) + " " + locale
                through(label + " source", argv + ["-c", ". %s; exec /usr/bin/env -0" % path], changes, locale)
                through(label + " eval", argv + ["-c", 'eval "$(cat %s)"; exec /usr/bin/env -0' % path], changes, locale)


def csh_family(program, changes, folder):
    # tcsh keeps the environment as characters and writes it again in the locale of the moment: after
    # a change from UTF-8 to C it damages what it inherited as well. Nothing that is printed can help.
    changes = [c for c in changes if c != ("LC_ALL", b"POSIX")]
    path = os.path.join(folder, "f.csh")
    shell = need("tcsh")
    print_all = "exec /usr/bin/env -0"
    for comments in ((), COMMENTS):
        with open(path, "wb") as out:
            out.write(tool(program, ["csh"], changes, comments=comments))
        forms = [("C", ""), ("C.UTF-8", "set backslash_quote; ")] if comments else [("C.UTF-8", ""), ("C", "set noglob; ")]
        for locale, before in forms:
            through("tcsh %s %ssource" % (locale, before),
                    [shell, "-f", "-c", before + "source %s; %s" % (path, print_all)], changes, locale)
    through("csh", [need("csh"), "-f", "-c", "source %s; %s" % (path, print_all)], changes, "C")
    # What docs/reference/plan.md promises of the eval form: values of one line in ASCII.
    simple = [(n, v) for n, v in changes if v is None or (b"\n" not in v and max(v, default=0) < 128)]
    with open(path, "wb") as out:
        out.write(tool(program, ["csh"], simple))
    through("tcsh eval", [shell, "-f", "-c", 'eval "`cat %s`"; %s' % (path, print_all)], simple, "C")


def fish(program, changes, folder):
    path = os.path.join(folder, "f.fish")
    shell = need("fish")
    for comments in ((), COMMENTS):
        with open(path, "wb") as out:
            out.write(tool(program, ["fish"], changes, comments=comments))
        for locale in ("C", "C.UTF-8"):
            forms = ["cat %s | source", "source %s"] + ([] if comments else ["eval (cat %s)"])
            for form in forms:
                through("fish %s %s" % (locale, form),
                        [shell, "--no-config", "-c", (form + "; exec /usr/bin/env -0") % path], changes, locale)


LUA = rb"""
local function put(...) for _, s in ipairs{...} do io.write(#s, ":", s) end end
function setenv(n, v) put("s", n, v) end
function unsetenv(n) put("u", n) end
"""


def lmod(program, changes, folder):
    lua = need("lua5.3", "lua5.4", "lua", "luajit", "lua5.1")
    for comments in ((), COMMENTS):
        text = LUA + tool(program, ["lmod"], changes, comments=comments)
        path = os.path.join(folder, "f.lua")
        with open(path, "wb") as out:
            out.write(text)
        got = subprocess.run([lua, path], stdout=subprocess.PIPE, check=True).stdout
        want = b""
        for name, value in changes:
            parts = [b"u", name.encode()] if value is None else [b"s", name.encode(), value]
            want += b"".join(b"%d:%s" % (len(p), p) for p in parts)
        if got != want:
            raise Failure("lmod: the calls differ")


def script(program, changes, folder):
    # Linux takes 128 KiB a string; words of the command are the short troublemakers.
    words = [v for v in NASTY if len(v) < 1000]
    show = b"import os,sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    print_env = [b"/usr/bin/env", b"-0"]
    path = os.path.join(folder, "job.sh")
    safe = [(n, v) for n, v in changes if n != "LC_ALL"]
    for shell in (["sh"], ["bash"], ["bash", "--posix"], ["dash"]):
        for comments in ((), COMMENTS):
            with open(path, "wb") as out:
                out.write(tool(program, ["script"], safe, print_env, comments))
            through(" ".join(shell) + " script", shell + [path], safe, "C")
        python = sys.executable.encode()
        # "-n" and the like right behind an option are where a continued line could go wrong.
        with open(path, "wb") as out:
            out.write(tool(program, ["script"], [("X", b"1")], [python, b"-c", show] + words))
        got = subprocess.run(shell + [path], stdout=subprocess.PIPE, check=True).stdout
        if got != b"\0".join(words):
            raise Failure(" ".join(shell) + " script: the words of the command differ")


def main():
    program = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        changes = changes_of(seed)
        for part in (sh_family, csh_family, fish, lmod, script):
            try:
                part(program, changes, folder)
                print("ok    %s, seed %d" % (part.__name__, seed))
            except Failure as failure:
                failures += 1
                print("FAIL  %s, seed %d: %s" % (part.__name__, seed, failure))
    return 1 if failures else 0


sys.exit(main())
