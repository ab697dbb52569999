// The pure parts of the local launcher: lines, the choice of the rank to blame, the report.
#include <algorithm>
#include <csignal>
#include <random>
#include <string>
#include <vector>

#include "hpclaunch/events.h"
#include "support/catch.h"
#include "sys/local/job.h"
#include "sys/local/lines.h"
#include "sys/report.h"

namespace {

using namespace hpclaunch::sys;
using namespace hpclaunch::sys::local;

// What a reader of both our outputs sees.
std::string all(const Pieces& pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += piece.bytes;
  return text;
}

std::string of(const Pieces& pieces, Stream stream) {
  std::string text;
  for (const Piece& piece : pieces) {
    if (piece.stream == stream) text += piece.bytes;
  }
  return text;
}

TEST_CASE("whole lines leave at once, beginnings wait for their rest", "[local][lines]") {
  Lines lines(2, false, true);
  Pieces to;
  lines.feed(0, Stream::out, "one\ntw", 0, to);
  lines.feed(1, Stream::out, "uno\n", 0, to);
  CHECK(all(to) == "one\nuno\n");
  lines.feed(0, Stream::out, "o\n", 1, to);
  CHECK(all(to) == "one\nuno\ntwo\n");
  CHECK(lines.next_flush() == -1);
}

TEST_CASE("a prompt of rank 0 shows after a short silence", "[local][lines]") {
  Lines lines(2, false, true);
  Pieces to;
  lines.feed(0, Stream::out, "name? ", 10, to);
  CHECK(lines.next_flush() == 10 + Lines::kQuiet);
  lines.flush(10 + Lines::kQuiet - 1, to);
  CHECK(all(to).empty());
  lines.flush(10 + Lines::kQuiet, to);
  CHECK(all(to) == "name? ");
  CHECK(lines.next_flush() == -1);
}

TEST_CASE("a full buffer cut inside a line is no prompt", "[local][lines]") {
  Lines lines(2, false, true);
  Pieces to;
  lines.feed(0, Stream::out, std::string(4096, 'x'), 0, to);
  CHECK(lines.next_flush() == Lines::kPatience);
}

TEST_CASE("the beginning of another rank's line waits long, then shows", "[local][lines]") {
  Lines lines(2, false, true);
  Pieces to;
  lines.feed(1, Stream::out, "connecting ...", 0, to);
  lines.flush(Lines::kPatience - 1, to);
  CHECK(all(to).empty());
  lines.flush(Lines::kPatience, to);
  CHECK(all(to) == "connecting ...");
}

TEST_CASE("an interrupted beginning gets one newline, not two", "[local][lines]") {
  Lines lines(2, false, true);
  Pieces to;
  lines.feed(0, Stream::out, "begin", 0, to);
  lines.flush(200, to);
  lines.feed(1, Stream::out, "other\n", 201, to);
  CHECK(all(to) == "begin\nother\n");
  SECTION("its own newline counts as already written") {
    lines.feed(0, Stream::out, "\nnext\n", 202, to);
    CHECK(all(to) == "begin\nother\nnext\n");
  }
  SECTION("anything else follows on a line of its own") {
    lines.feed(0, Stream::out, " end\n", 202, to);
    CHECK(all(to) == "begin\nother\n end\n");
  }
}

TEST_CASE("two outputs that are different files do not interrupt each other", "[local][lines]") {
  Lines lines(2, false, false);
  Pieces to;
  lines.feed(0, Stream::out, "begin", 0, to);
  lines.flush(200, to);
  lines.feed(1, Stream::err, "other\n", 201, to);
  lines.feed(0, Stream::out, " end\n", 202, to);
  CHECK(of(to, Stream::out) == "begin end\n");
  CHECK(of(to, Stream::err) == "other\n");
}

TEST_CASE("labels stand at the start of every line and after every carriage return",
          "[local][lines]") {
  Lines lines(11, true, true);
  Pieces to;
  lines.feed(3, Stream::out, "a\n\nb\r\nbar 1\rbar 2\rx", 0, to);
  lines.close(3, Stream::out, to);
  CHECK(all(to) == "[ 3] a\n[ 3] \n[ 3] b\r\n[ 3] bar 1\r[ 3] bar 2\r[ 3] x");
  lines.feed(10, Stream::err, "c\n", 0, to);
  CHECK(all(to) == "[ 3] a\n[ 3] \n[ 3] b\r\n[ 3] bar 1\r[ 3] bar 2\r[ 3] x\n[10] c\n");
}

TEST_CASE("a labelled line that was shown in part goes on without a second label",
          "[local][lines]") {
  Lines lines(2, true, true);
  Pieces to;
  lines.feed(0, Stream::out, "load", 0, to);
  lines.flush(200, to);
  lines.feed(0, Stream::out, "ed\n", 300, to);
  CHECK(all(to) == "[0] loaded\n");
}

TEST_CASE("a carriage return that was shown alone may still get its newline", "[local][lines]") {
  Lines lines(2, true, true);
  Pieces to;
  lines.feed(0, Stream::out, "bar\r", 0, to);
  CHECK(all(to).empty());
  lines.flush(200, to);
  CHECK(all(to) == "[0] bar\r");
  lines.feed(0, Stream::out, "\nnext\n", 300, to);
  CHECK(all(to) == "[0] bar\r\n[0] next\n");
}

TEST_CASE("a progress bar of any rank shows after a short silence", "[local][lines]") {
  Lines lines(2, false, true);
  Pieces to;
  lines.feed(1, Stream::err, "\r 10%", 0, to);
  CHECK(all(to) == "\r");
  lines.flush(Lines::kQuiet, to);
  CHECK(all(to) == "\r 10%");
}

TEST_CASE("a single rank passes through byte by byte", "[local][lines]") {
  Lines lines(1, false, true);
  Pieces to;
  for (const char byte : std::string("a\r\nb\rc")) lines.feed(0, Stream::out, {&byte, 1}, 0, to);
  CHECK(all(to) == "a\r\nb\rc");
  CHECK(lines.next_flush() == -1);
}

TEST_CASE("a very long line goes in pieces", "[local][lines]") {
  Lines lines(2, false, true);
  Pieces to;
  for (int i = 0; i < 40; ++i) lines.feed(1, Stream::out, std::string(4096, 'x'), 0, to);
  CHECK(all(to).size() >= 40 * 4096 - Lines::kLongestLine);
  lines.close(1, Stream::out, to);
  CHECK(all(to) == std::string(40 * 4096, 'x'));
}

// Each rank prints lines that say whose they are; chunks, order, and silences are random.
TEST_CASE("whatever the pieces, each rank's bytes come out unchanged and lines stay whole",
          "[local][lines]") {
  std::mt19937 random(20240229);
  const auto below = [&random](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const std::size_t ranks = 2 + below(4);
    std::vector<std::string> texts(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t line = below(6); line > 0; --line) {
        const char* const ends[] = {"\n", "\n", "\r\n"};
        texts[rank] += static_cast<char>('A' + rank) +
                       std::string(below(30), static_cast<char>('a' + rank)) + ends[below(3)];
      }
    }
    const bool label = below(2) == 0;
    Lines lines(static_cast<int>(ranks), label, true);
    Pieces to;
    std::vector<std::string> rest = texts;
    for (std::size_t left = 1; left > 0;) {
      const std::size_t rank = below(ranks);
      const std::string piece = rest[rank].substr(0, below(9));
      rest[rank].erase(0, piece.size());
      lines.feed(static_cast<int>(rank), Stream::out, piece, 0, to);
      left = 0;
      for (const std::string& text : rest) left += text.size();
    }
    for (std::size_t rank = 0; rank < ranks; ++rank)
      lines.close(static_cast<int>(rank), Stream::out, to);
    // Take the output apart again, line by line.
    std::vector<std::string> seen(ranks);
    std::string text = all(to);
    while (!text.empty()) {
      std::string line = text.substr(0, text.find('\n') + 1);
      text.erase(0, line.size());
      if (label) {
        REQUIRE(line.size() > 4);
        REQUIRE(line.substr(0, 4) ==
                std::string("[") + static_cast<char>('0' + (line[4] - 'A')) + "] ");
        line.erase(0, 4);
      }
      const auto rank = static_cast<std::size_t>(line[0] - 'A');
      REQUIRE(rank < ranks);
      seen[rank] += line;
    }
    REQUIRE(seen == texts);
  }
}

TEST_CASE("silences add newlines only, and take no byte away", "[local][lines]") {
  std::mt19937 random(7);
  const auto below = [&random](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    Lines lines(3, false, true);
    Pieces to;
    std::vector<std::string> sent(3);
    long now = 0;
    for (int step = 0; step < 40; ++step) {
      const std::size_t rank = below(3);
      std::string piece(below(4), static_cast<char>('a' + rank));
      if (below(3) == 0) piece += below(2) == 0 ? "\n" : "\r";
      sent[rank] += piece;
      now += static_cast<long>(below(3)) * 3000;
      lines.flush(now, to);
      lines.feed(static_cast<int>(rank), Stream::out, piece, now, to);
    }
    for (int rank = 0; rank < 3; ++rank) lines.close(rank, Stream::out, to);
    const std::string text = all(to);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const char letter = static_cast<char>('a' + rank);
      CHECK(std::count(text.begin(), text.end(), letter) ==
            std::count(sent[rank].begin(), sent[rank].end(), letter));
    }
    const auto newlines = [](const std::string& in) {
      return std::count(in.begin(), in.end(), '\n');
    };
    CHECK(newlines(text) >= newlines(sent[0]) + newlines(sent[1]) + newlines(sent[2]));
    for (const char* mixed : {"ab", "ac", "ba", "bc", "ca", "cb"})
      CHECK(text.find(mixed) == std::string::npos);
  }
}

TEST_CASE("the end of a process that was told to end is no crash", "[local][report]") {
  RankExit crashed;
  crashed.signal = SIGSEGV;
  RankExit ended;
  ended.signal = SIGTERM;
  CHECK(is_crash(crashed));
  CHECK_FALSE(is_crash(ended));
  CHECK(crashed.status() == 128 + SIGSEGV);
}

TEST_CASE("the last lines of a rank", "[local][report]") {
  Tail tail;
  CHECK(tail.lines(10).empty());
  tail.add("one\ntwo\r\n 10%\r 20%\r 30%\nlast\n\n");
  CHECK(tail.lines(3) == std::vector<std::string>{"two", " 30%", "last"});
  CHECK(tail.lines(10).size() == 4);
  tail.add(std::string(5 * Tail::kBytes, 'x') + "\nend");
  CHECK(tail.lines(1) == std::vector<std::string>{"end"});
  CHECK(tail.lines(10).front().size() < Tail::kBytes);
}

TEST_CASE("a Python traceback is shown from its first line on", "[local][report]") {
  const std::string start = "Traceback (most recent call last):\n";
  const auto frames = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "  File \"f" + std::to_string(i) + "\"\n";
    return text;
  };
  const auto shown = [](const std::string& text) {
    Tail tail;
    tail.add(text);
    return tail.lines(10);
  };
  // Python's faulthandler prints the innermost frame first.
  const std::string fault = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1:\n";
  CHECK(shown(frames(30) + fault + frames(40)).front() == "Fatal Python error: Segmentation fault");
  const std::string before = frames(30);
  std::vector<std::string> lines =
      shown(before + "[rank0]: " + start + frames(40) + "ValueError\n");
  REQUIRE(lines.size() == 42);
  CHECK(lines.front() == "[rank0]: Traceback (most recent call last):");
  // The cause, and what was raised while it was handled; not what was handled before.
  const std::string chain = start + frames(20) +
                            "KeyError\n\nDuring handling of the above exception, "
                            "another exception occurred:\n\n" +
                            start + frames(20) + "E\n";
  CHECK(shown(start + frames(20) + "Handled\n" + before + chain).size() == 47);
  lines = shown(start + "  File \"mine\"\n" + frames(500) + "RuntimeError\n");
  REQUIRE(lines.size() == 101);
  CHECK(lines[1] == "  File \"mine\"");
  CHECK(lines[50] == "...");
  CHECK(lines.back() == "RuntimeError");
  CHECK(shown(start + frames(1) + "E\n").size() == 3);
  CHECK(shown(before + start + frames(1) + "E\n").size() == 10);
  // Of torchrun's agent nothing; a destructor ends no program.
  const std::string agent =
      start + frames(40) +
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nx\n";
  CHECK(shown(start + frames(20) + "E\n\n" + agent).size() == 23);
  CHECK(shown(start + frames(20) + "E\nException ignored in: <f>\n" + start + frames(2) + "F\n")
            .front() == "Traceback (most recent call last):");
}

TEST_CASE("the report", "[local][report]") {
  hpclaunch::sys::Ending ending;
  hpclaunch::sys::RankFailure& first = ending.first.emplace();
  first.host = "node7";
  first.rank = 3;
  first.pid = 99;
  first.signal = SIGSEGV;
  first.core = true;
  first.seconds = 12.34;
  first.last_lines = {"a", "b"};
  ending.failed = 2;
  ending.ended = 6;
  CHECK(failure_report(ending, 8, 0, "hpclaunch", "logs/rank-3.log") ==
        "hpclaunch: rank 3 failed first: host node7, pid 99, SIGSEGV (signal 11, core dumped), "
        "12.3 s after start\n"
        "hpclaunch: last output of rank 3:\n"
        "  | a\n"
        "  | b\n"
        "hpclaunch: full output of rank 3: logs/rank-3.log\n"
        "hpclaunch: 1 other rank also failed\n"
        "hpclaunch: stopped 6 other ranks\n");
  first.signal = SIGINT;
  const std::string interrupted = failure_report(ending, 8, SIGINT);
  CHECK(interrupted.find("hpclaunch: interrupted (Ctrl-C)\n") != std::string::npos);
  CHECK(interrupted.find("last output") == std::string::npos);
  CHECK(signal_name(SIGUSR1) == "SIGUSR1");
  CHECK(signal_name(99) == "signal 99");
}

TEST_CASE("the supervisor's last message comes back, and a cut one is noticed", "[local]") {
  hpclaunch::sys::Ending ended;
  ended.status = 139;
  ended.ok = 5;
  ended.failed = 1;
  ended.ended = 2;
  ended.passed_on = 15;
  hpclaunch::sys::RankFailure& first = ended.first.emplace();
  first.rank = first.local_rank = 3;
  first.pid = 4711;
  first.signal = SIGSEGV;
  first.core = true;
  first.seconds = 1.5;
  first.host = "n1";
  first.last_lines = {"a", std::string("b:\0c", 4), ""};
  first.peak_kib = 1 << 20;
  first.oom_kills = 2;
  first.log = "logs/rank-3.log";
  first.traceback.raised = {"E", "\xff", "f.py", 3, "f"};
  first.traceback.cause.type = "KeyError";
  first.traceback.fatal = false;
  const auto outcome = decode(encode(ended));
  REQUIRE(outcome);
  REQUIRE(*outcome);
  const hpclaunch::sys::Ending& ending = **outcome;
  CHECK(ending.status == 139);
  CHECK(ending.ok == 5);
  CHECK(ending.failed == 1);
  CHECK(ending.ended == 2);
  CHECK(ending.passed_on == 15);
  REQUIRE(ending.first);
  CHECK(ending.first->rank == 3);
  CHECK(ending.first->pid == 4711);
  CHECK(ending.first->signal == SIGSEGV);
  CHECK(ending.first->core);
  CHECK(ending.first->seconds == 1.5);
  CHECK(ending.first->host == "n1");
  CHECK(ending.first->last_lines == first.last_lines);
  CHECK(ending.first->peak_kib == 1 << 20);
  CHECK(ending.first->oom_kills == 2);
  CHECK(ending.first->log == first.log);
  CHECK(ending.first->traceback.raised == first.traceback.raised);
  CHECK(ending.first->traceback.cause == first.traceback.cause);
  CHECK_FALSE(ending.first->traceback.fatal);
  const std::string message =
      encode(hpclaunch::Error{hpclaunch::ErrorKind::not_found, "no shim", "install it"});
  const auto error = decode(message);
  REQUIRE(error);
  REQUIRE_FALSE(*error);
  CHECK(error->error().kind == hpclaunch::ErrorKind::not_found);
  CHECK(error->error().message == "no shim");
  CHECK(error->error().hint == "install it");
  CHECK_FALSE(decode(""));
  CHECK_FALSE(decode(message.substr(0, message.size() - 1)));
  const std::string whole = encode(ended);
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    CHECK_FALSE(decode(whole.substr(0, size) + "."));
  }
}

}  // namespace
