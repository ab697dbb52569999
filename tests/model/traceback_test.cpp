// One file of tests/data/tracebacks for each shape of what a Python program leaves behind.
#include "hpclaunch/traceback.h"

#include <fstream>
#include <sstream>
#include <string>

#include "hpclaunch/text.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

std::string file(const std::string& name) {
  std::ifstream in(HPCLAUNCH_SOURCE_DIR "/tests/data/tracebacks/" + name + ".txt");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Row {
  const char* name;
  const char* raised;  // its first line
  const char* place;
  const char* cause = "";
  bool fatal = true;
};

constexpr Row kRows[] = {
    {"plain", "RuntimeError: shapes do not match", "/home/u/train.py:6 in step"},
    {"chained", "RuntimeError: step failed", "/home/u/train.py:11 in step", "KeyError: 'a'"},
    {"handling", "AttributeError: 'NoneType' object has no attribute 'close'",
     "/home/u/train.py:16 in step", "KeyError: 'a'"},
    {"group", "ExceptionGroup: readers (2 sub-exceptions)", "/home/u/train.py:3 in load",
     "KeyError: 'a'"},
    {"recursion", "RecursionError: maximum recursion depth exceeded",
     "/home/u/train.py:24 in step"},
    {"lines", "RuntimeError: multi", "/home/u/train.py:26 in step"},
    {"note", "ValueError: bad", "/home/u/train.py:28 in step"},
    {"library",
     "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: "
     "line 1 column 2 (char 1)",
     "/home/u/train.py:42 in step"},
    {"int", "KeyboardInterrupt", "/home/u/train.py:44 in step"},
    {"syntax", "SyntaxError: invalid syntax", "/home/u/broken.py:1"},
    {"pool", "KeyError: 'a'", "/home/u/train.py:3 in load"},
    {"dataloader", "ValueError: bad sample 17", "/home/u/data.py:12 in __getitem__"},
    {"rank_prefix",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total "
     "capacity of 39.39 GiB",
     "/home/u/train.py:41 in main"},
    {"cpp_frames",
     "torch.distributed.DistBackendError: NCCL error in: "
     "../torch/csrc/distributed/c10d/NCCLUtils.hpp:268, unhandled system error",
     "/home/u/train.py:9 in sync"},
    {"torchrun", "ZeroDivisionError: division by zero", "/home/u/train.py:5 in main"},
    {"rich", "ZeroDivisionError: division by zero", "/home/u/train.py:41 in main"},
    {"colours", "ZeroDivisionError: division by zero", "/home/u/train.py:5 in main"},
    {"fault", "Segmentation fault", "/home/u/train.py:46 in step"},
    {"fault_threads", "Aborted", "/home/u/train.py:46 in step"},
    {"thread", "KeyError: 'a'", "/home/u/train.py:3 in load", "", false},
    {"del", "OSError: [Errno 28] No space left on device", "/home/u/train.py:35 in step"},
    {"text", "", ""},
};

}  // namespace

TEST_CASE("shapes of tracebacks") {
  for (const Row& row : kRows) {
    INFO(row.name);
    const Traceback found = read_traceback(file(row.name));
    CHECK(found.raised.text() == row.raised);
    CHECK(found.raised.place() == row.place);
    CHECK(found.cause.text() == row.cause);
    CHECK(found.fatal == row.fatal);
    CHECK(found.found() == (row.raised[0] != '\0'));
  }
}

TEST_CASE("the lines of a traceback") {
  const Traceback agent = read_traceback(file("torchrun"));
  CHECK(agent.begin == 0);
  CHECK(agent.end == 8);  // what the agent adds is behind
  CHECK(read_traceback(file("rank_prefix")).begin == 1);
  CHECK(read_traceback(file("dataloader")).begin == 0);
  CHECK(read_traceback(file("chained")).begin == 0);
  CHECK(read_traceback(file("del")).begin == 6);
  const Traceback lines = read_traceback(file("lines"));
  CHECK(lines.raised.message == "multi\nsecond line");
  CHECK(read_traceback(file("cpp_frames")).raised.message.find("frame #0") == std::string::npos);
}

TEST_CASE("tracebacks: of two, the last one that ends the program") {
  const Traceback both = read_traceback(file("plain") + "caught; going on\n" + file("library"));
  CHECK(both.raised.type == "json.decoder.JSONDecodeError");
  CHECK(both.cause.type.empty());
  CHECK(read_traceback(file("plain") + file("thread")).raised.type == "RuntimeError");
}

TEST_CASE("tracebacks: what is cut or strange is no reason to stop") {
  const std::string text = file("group") + file("dataloader") + file("fault");
  for (std::size_t size = 0; size < text.size(); size += 7) {
    const Traceback front = read_traceback(std::string_view(text).substr(0, size));
    CHECK(front.begin <= front.end);
    const Traceback back = read_traceback(std::string_view(text).substr(size));
    CHECK(back.begin <= back.end);
  }
  CHECK(!read_traceback("Traceback (most recent call last):\n").found());
  CHECK(read_traceback("\x1b[\n[rank]: \n| \n  +").raised.type.empty());
}

TEST_CASE("tracebacks: files of the user") {
  CHECK(is_library("/usr/lib/python3.11/threading.py"));
  CHECK(is_library("/opt/venv/lib/python3.9/site-packages/torch/a.py"));
  CHECK(is_library("<frozen runpy>"));
  CHECK(!is_library("train.py"));
  CHECK(!is_library("/home/u/python3/train.py"));
  CHECK(Raised{"E", "", "/a/very/long/train.py", 3, "f"}.place(10) == "train.py:3 in f");
}
