#include "start/stage.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>

#include "hpclaunch/events.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

constexpr double kStageGraceSeconds = 5;
constexpr double kRemoveSeconds = 120;
constexpr double kOfLimit = 0.8;  // what a node waits, so that it can answer within ours
constexpr int kReaders = 64;      // nodes that read the archive at once
constexpr std::string_view kMark = "hpclaunch-stage ";

constexpr const char* kPack =
    "set -e; tar -C \"$1\" --exclude=./.hpclaunch-stage --sort=name -cf \"$2\" .";

// One node's answer: "done", "reused" or "failed", and for the last its step and words.
struct Answer {
  std::string word;
  std::string step;
  std::string words;
};

class Staging {
 public:
  Staging(const Prepared& prepared, const StageLines& lines)
      : prepared_(prepared),
        stage_(prepared.stage),
        lines_(lines),
        end_(sys::wall_clock() + stage_.seconds) {
    key_ = fmt::format("{}.{}.{}", short_host(sys::host_name()), getpid(),
                       static_cast<long long>(end_));
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() { remove_own(); }

  int interrupted() const { return interrupted_; }
  void say(const std::string& line, bool last) const {
    if (lines_) lines_(line, last);
  }

  // The archive is needed until the nodes have read it.
  Status in() {
    Status done = to_nodes();
    remove_own();
    return done;
  }

  // Also after a failure, and without a message where a node does not answer any more.
  void out() {
    begun_at_ = sys::wall_clock();
    end_ = begun_at_ + std::min<double>(kRemoveSeconds, stage_.seconds);
    bool reused = false;
    const Status removed = stage_.method == "copper" ? stop_copper() : on_nodes("remove", reused);
    say("", false);
    if (!removed) say(fmt::format("staging is not undone: {}", removed.error().message), true);
  }

 private:
  Status to_nodes() {
    if (!stage_.copper.empty() && stage_.method == "copper") return start_copper();
    if (Status made = make_archive(); !made) return made;
    const bool broadcasts = stage_.method == "sbcast";
    bool reused = false;
    if (broadcasts) {
      if (Status asked = on_nodes("prepare", reused); !asked) return asked;
      if (!reused)
        if (Status sent = broadcast(); !sent) return sent;
    }
    if (!reused)
      if (Status unpacked = on_nodes("unpack", reused); !unpacked) return unpacked;
    say(fmt::format("staged {} to {} on {}: {}", stage_.source, stage_.environment, nodes_text(),
                    reused ? "reused" : fmt::format("{}{}", method_text(), times_)),
        true);
    return Done{};
  }

  double left() const { return std::max(1.0, end_ - sys::wall_clock()); }
  std::string nodes_text() const { return counted(prepared_.plan.nodes(), "node"); }
  std::string method_text() const {
    return bytes_ == 0 ? stage_.method : fmt::format("{} {}", human_bytes(bytes_), stage_.method);
  }
  void took(const std::string& step) {
    const double now = sys::wall_clock();
    times_ += fmt::format(", {} {:.1f} s", step, now - begun_at_);
    begun_at_ = now;
  }
  std::string node_name(int node) const {
    const HostNames& hosts = prepared_.plan.hosts.names;
    const auto at = static_cast<std::size_t>(node);
    return at < hosts.size() ? std::string(hosts[at]) : fmt::format("node {}", node);
  }
  std::string hint_for(const std::string& step, std::string_view words) const {
    const auto says = [&](std::string_view text) { return words.find(text) != words.npos; };
    if (says("Unexpected EOF") || says("unexpected end") || says("no bin/python"))
      return "pack the environment again: the archive is incomplete";
    if (step == "build") return "PIP_FIND_LINKS=DIR with the wheels of all packages";
    if (step == "prepare" || step == "unpack" || step == "lock" || says("No space left") ||
        says("Read-only"))
      return "--stage-to DIR for another directory of each node";
    return "--stage none, or correct the source";
  }
  Error failure(const std::string& where, const std::string& step, const std::string& words) const {
    return {ErrorKind::system,
            fmt::format("--stage {}: {}{} failed: {}", stage_.method, where, step, words),
            hint_for(step, words)};
  }
  Error interrupted_error() const {
    return {ErrorKind::system, fmt::format("staging was interrupted by signal {}", interrupted_)};
  }

  static std::string end_of(const std::string& text) {
    constexpr std::size_t kMost = 300;
    std::string end(trim(text));
    if (end.size() > kMost) end.erase(0, end.size() - kMost);
    return shown(end, kMost);
  }

  // A command of this machine; its output, of which the first line tells what failed.
  Result<std::string> here(const std::string& step, const std::vector<std::string>& argv,
                           const EnvSnapshot& env) {
    begun_at_ = sys::wall_clock();
    say(fmt::format("staging: {} {}", step, stage_.source), false);
    std::string text;
    const Result<sys::Ended> ended =
        sys::listen_to(argv, env, left(), kStageGraceSeconds,
                       [&](std::string_view line, double) { text.append(line).append("\n"); });
    if (!ended) return ended.error();
    interrupted_ = ended->interrupted_by;
    if (interrupted_ != 0) return interrupted_error();
    if (ended->too_late)
      return failure("", step,
                     fmt::format("not done after {} s (--stage-timeout)", stage_.seconds));
    if (ended->status != 0)
      return failure("", step, fmt::format("status {}: {}", ended->status, end_of(text)));
    took(step);
    return text;
  }

  // Its script answers 0 after a fixed time, ready or not: each node reads a file through the mount. Stop needs the
  // same directories as the start.
  std::vector<std::string> copper_line(std::string script) const {
    const EnvSnapshot& env = prepared_.env;
    return {"/bin/sh",
            "-c",
            "exec \"$@\" 2>&1",
            "sh",
            std::move(script),
            "-d",
            env.get("HOME", "/tmp") + "/copper-logs",
            "-v",
            stage_.base};
  }

  Status start_copper() {
    std::vector<std::string> line = copper_line(stage_.copper);
    line.insert(line.end(), {"-s", "1"});
    const Result<std::string> started = here("copper start", line, prepared_.env);
    if (!started) return started.error();
    archive_ = stage_.known_file;
    bool reused = false;
    if (Status ready = on_nodes("ready", reused); !ready) return ready;
    say(fmt::format("copper shows {} below {} on {}{}", stage_.source, stage_.base, nodes_text(),
                    times_),
        true);
    return Done{};
  }

  Status stop_copper() {
    std::string script = stage_.copper;
    const std::size_t name = script.rfind("/launch_copper");
    script.replace(name, std::string_view("/launch").size(), "/stop");
    const Result<std::string> stopped = here("copper stop", copper_line(script), prepared_.env);
    return stopped ? Status(Done{}) : Status(stopped.error());
  }

  // A directory of this launch alone, where all nodes that read from it can.
  Status make_own() {
    const EnvSnapshot& env = prepared_.env;
    std::string parent = env.get("TMPDIR", "/tmp");
    if (stage_.method == "copy")
      parent = env.get("XDG_CACHE_HOME", env.get("HOME", "/tmp") + "/.cache") + "/hpclaunch";
    Result<sys::HeldFolder> made = sys::hold_folder(parent, "hpclaunch-stage");
    if (!made)
      return Error{made.error().kind, made.error().message,
                   stage_.method == "copy"
                       ? "set XDG_CACHE_HOME to a directory that all nodes share"
                       : "set TMPDIR"};
    own_ = *std::move(made);
    return Done{};
  }

  void remove_own() {
    std::error_code failed;
    if (!own_.path.empty()) std::filesystem::remove_all(own_.path, failed);
    if (own_.lock >= 0) close(own_.lock);
    own_ = {};
  }

  // The file that is copied, its size and its stamp.
  Status make_archive() {
    if (Status made = make_own(); !made) return made;
    archive_ = stage_.source;
    const EnvSnapshot plain({"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"});
    if (stage_.tree) {
      archive_ = own_.path + "/packed.tar";
      const Result<std::string> packed =
          here("pack",
               {"/bin/sh", "-c", std::string("exec 2>&1; ") + kPack, "sh", stage_.source, archive_},
               plain);
      if (!packed) return packed.error();
    }
    const Result<std::string> sum =
        here("checksum", {"/bin/sh", "-c", "exec sha256sum <\"$1\" 2>&1", "sh", archive_}, plain);
    if (!sum) return sum.error();
    struct stat info {};
    if (stat(archive_.c_str(), &info) != 0)
      return Error{ErrorKind::system, fmt::format("cannot read {}", archive_)};
    bytes_ = static_cast<unsigned long long>(info.st_size);
    stamp_ =
        fmt::format("{} {} {}", bytes_, stage_.tree ? 0 : static_cast<long long>(info.st_mtime),
                    sum->substr(0, sum->find(' ')));
    return Done{};
  }

  // sbcast's status is an error number cut to 8 bits, and a full disk has no name of its own there.
  Status broadcast() {
    const std::string target =
        fmt::format("{}/hpclaunch-{}/tmp-{}/archive", stage_.base, sys::user_id(), key_);
    const Result<std::string> sent = here(
        "broadcast", {"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh", stage_.sbcast, archive_, target},
        prepared_.env);
    const std::string text = sent ? *sent : sent.error().message;
    constexpr std::string_view kRefused = "REQUEST_FILE_BCAST(";
    const std::size_t at = text.find(kRefused);
    if (at == std::string::npos) return sent ? Status(Done{}) : Status(sent.error());
    const std::string_view rest = std::string_view(text).substr(at + kRefused.size());
    std::string words(trim(rest.substr(std::min(rest.find(':') + 1, rest.size()))));
    words = words.substr(0, words.find('\n'));
    if (words.find("Unspecified") != std::string::npos) words += " (a full disk has no other text)";
    return failure(std::string(rest.substr(0, rest.find(')'))) + ", step ", "broadcast", words);
  }

  std::vector<std::string> command_of(const std::string& action) const {
    return {"/bin/sh",
            "-c",
            kStageSteps,
            "hpclaunch-stage",
            action,
            stage_.method,
            stage_.base,
            stage_.id,
            key_,
            stamp_,
            fmt::format("{}", bytes_),
            archive_,
            stage_.root,
            stage_.old_prefix,
            stage_.keep ? "yes" : "no",
            stage_.method == "copy" && action == "unpack" ? own_.path : "",
            fmt::format("{}", kReaders),
            fmt::format("{:.0f}", std::max(1.0, left() * kOfLimit))};
  }

  void take(std::string_view line, std::map<int, Answer>& answers) const {
    const std::size_t at = line.find(kMark);
    if (at == std::string_view::npos) return say(std::string(line), true);
    const auto words = split(line.substr(at + kMark.size()), ' ');
    const auto node = parse_natural(words.front());
    if (!node || words.size() < 2) return;
    Answer& answer = answers[static_cast<int>(*node)];
    answer.word = words[1];
    if (words.size() < 3) return;
    answer.step = words[2];
    answer.words = joined(std::vector(words.begin() + 3, words.end()), " ");
  }

  // The same step on every node. `reused`: all of them have the content already.
  Status on_nodes(const std::string& step, bool& reused) {
    const Result<NodeStep> line = node_step(prepared_, command_of(step));
    if (!line) return line.error();
    std::map<int, Answer> answers;
    const auto progress = [&] {
      say(fmt::format("staging to {}: {} {}/{} nodes", stage_.base, step, answers.size(),
                      prepared_.plan.nodes()),
          false);
    };
    progress();
    const Result<sys::Ended> ended = sys::listen_to(
        line->argv, line->env, left(), kStageGraceSeconds, [&](std::string_view said, double) {
          take(said, answers);
          progress();
        });
    if (!ended) return ended.error();
    if (ended->interrupted_by != 0) interrupted_ = ended->interrupted_by;
    if (ended->interrupted_by != 0) return interrupted_error();
    if (Status answered = check(step, answers, *ended); !answered) return answered;
    reused =
        std::ranges::all_of(answers, [](const auto& one) { return one.second.word == "reused"; });
    took(step);
    return Done{};
  }

  Status check(const std::string& step, const std::map<int, Answer>& answers,
               const sys::Ended& ended) const {
    const auto others = [](std::size_t count) {
      return count < 2 ? std::string() : fmt::format(" and {}", counted(count - 1, "other node"));
    };
    std::vector<int> failed, silent;
    for (int node = 0; node < prepared_.plan.nodes(); ++node) {
      const auto at = answers.find(node);
      if (at == answers.end())
        silent.push_back(node);
      else if (at->second.word == "failed")
        failed.push_back(node);
    }
    if (!failed.empty()) {
      const Answer& first = answers.at(failed.front());
      return failure(node_name(failed.front()) + others(failed.size()) + ", step ", first.step,
                     first.words);
    }
    if (silent.empty()) return Done{};
    return failure(node_name(silent.front()) + others(silent.size()) + ", step ", step,
                   ended.too_late
                       ? fmt::format("no answer within {} s (--stage-timeout)", stage_.seconds)
                       : fmt::format("no answer; the launcher ended with status {}", ended.status));
  }

  const Prepared& prepared_;
  const Stage& stage_;
  const StageLines& lines_;
  double end_;
  double begun_at_ = sys::wall_clock();
  std::string key_;
  sys::HeldFolder own_;
  std::string archive_;
  std::string stamp_;
  std::string times_;
  unsigned long long bytes_ = 0;
  int interrupted_ = 0;
};

}  // namespace

Result<sys::Ending> staged(const Prepared& prepared, const StageLines& lines,
                           const std::function<Result<sys::Ending>()>& job) {
  constexpr int kSignalled = 128;
  sys::Signals held(sys::hold({SIGINT, SIGTERM, SIGHUP}));  // they come between the steps, too
  Staging staging(prepared, lines);
  const Status in = staging.in();
  int signal = staging.interrupted();
  if (const auto pending = held.next(); signal == 0 && pending)
    signal = static_cast<int>(pending->ssi_signo);
  Result<sys::Ending> ending = in ? Result<sys::Ending>(sys::Ending{}) : in.error();
  if (in && signal == 0) ending = job();
  held.discard();
  staging.out();
  if (signal == 0) return ending;
  staging.say(fmt::format("staging was interrupted by signal {}", signal), true);
  sys::Ending stopped;
  stopped.status = kSignalled + signal;
  return stopped;
}

}  // namespace hpclaunch::job
