// Hands a script to the batch system and follows the job to its end. Batch systems ask not to be polled: the state is
// asked seldom, by the job's id, and while the output grows only its file is looked at.
//
//   submitted --10 s, 30 s, 60 s, ... 300 s--> running --every 60 s, or when the output stands still--> ended
#include "hpclaunch/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>

#include "hpclaunch/events.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/render.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/session.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

constexpr double kSubmitLimit = 600;  // sbatch repeats by itself when the queue is full

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, ' '))
    if (!word.empty()) words.emplace_back(word);
  return words;
}

Error refused(const Scheduler& system, const sys::Captured& answer) {
  const std::string all = answer.err + answer.out;
  Error error{ErrorKind::system,
              fmt::format("{} refused the job (status {}): {}", system.submit, answer.status,
                          shown(answer.complaint(), 300)),
              "hpclaunch script with the same options shows what was submitted"};
  for (const SubmitHint& one : system.submit_hints)
    if (all.find(one.message) != std::string::npos) error.hint = one.hint;
  return error;
}

// Times between two looks, in ms.
struct Pace {
  std::vector<long> waiting = {10'000, 30'000, 60'000, 120'000, 300'000};
  long running = 60'000;
  long still = 15'000;  // since the last question and the last output
  long file = 1'000;

  // A cap for tests: no batch system of theirs is to be spared.
  explicit Pace(const EnvSnapshot& env) {
    const auto cap = parse_natural(env.get("HPCLAUNCH_POLL_MS"));
    if (!cap || *cap == 0) return;
    for (long& one : waiting) one = std::min(one, *cap);
    for (long* one : {&running, &still, &file}) *one = std::min(*one, *cap);
  }
};

class Follower {
 public:
  Follower(const BatchScript& script, const std::string& id, Session& session)
      : system_(*script.scheduler),
        id_(id),
        session_(session),
        world_(this_world(session.env)),
        pace_(session.env),
        signals_(sys::hold({SIGINT, SIGTERM, SIGHUP})) {
    name_output(script.output.empty() ? std::string(system_.output_name) : script.output);
  }

  Result<int> run() {
    while (true) {
      if (const int signal = wait(); signal != 0) return left(signal);
      if (running() && !show_output()) return left(SIGPIPE);
      if (sys::clock_ms() < ask_at()) continue;
      const Result<bool> ended = ask();
      if (!ended) return ended.error();
      if (*ended) return end();
    }
  }

 private:
  // Where the batch system does not say. Flux spells an id with \u0192, and without UTF-8 with f.
  void name_output(std::string name) {
    if (system_.output_name.empty() || name.empty()) return;
    const std::size_t id_at = std::min(name.find("{{id}}"), name.find("{}"));
    if (id_at == std::string::npos) {
      outputs_.emplace_back(name);
      return;
    }
    const std::string before = name.substr(0, id_at);
    const std::string after = name.substr(name.find("}", id_at) + (name[id_at + 1] == '{' ? 2 : 1));
    const bool wide = id_.starts_with("\u0192");
    const std::string digits = id_.substr(wide ? std::string_view("\u0192").size() : 1);
    for (const char* letter : {"\u0192", "f"})
      outputs_.emplace_back(fmt::format("{}{}{}{}", before, letter, digits, after));
  }

  // A signal that ends it, or 0.
  int wait() {
    sys::Wait wait;
    wait.on(signals_.fd());
    wait.until(running() ? std::min(ask_at(), sys::clock_ms() + pace_.file) : ask_at());
    wait.run();
    const auto seen = signals_.next();
    return seen ? static_cast<int>(seen->ssi_signo) : 0;
  }

  bool running() const { return state_ && state_->phase != JobState::Phase::waiting; }

  long ask_at() const {
    const std::size_t turn = std::min(questions_, pace_.waiting.size() - 1);
    if (!running()) return asked_ + pace_.waiting[turn];
    return std::min(asked_ + pace_.running, std::max(asked_, grown_) + pace_.still);
  }

  // False: nobody reads our output.
  bool show_output() {
    for (sys::GrowingFile& output : outputs_)
      for (std::string text = output.more(); !text.empty(); text = output.more()) {
        grown_ = sys::clock_ms();
        if (!print(session_, text)) return false;
        std::fflush(session_.out);
      }
    return true;
  }

  void say(const std::string& text) {
    fmt::print(session_.err, "hpclaunch: job {}: {}\n", id_, render::printable(text));
  }

  // The first answer to one of the system's questions; nullopt where it knows the job no more.
  Result<std::optional<JobState>> answer() {
    std::string failure;
    bool forgotten = false;
    for (const StateQuestion& question : system_.ask_state) {
      std::vector<std::string> words;
      for (const std::string_view word : question.command)
        words.emplace_back(word == "{job}" ? id_ : word);
      const Result<sys::Captured> got = ask_batch_system(std::move(words), world_);
      if (got && got->status == 0)
        if (std::optional<JobState> state = question.read(got->out)) return state;
      if (got && (got->err + got->out).find(system_.unknown_job) != std::string::npos)
        forgotten = true;
      else if (failure.empty())
        failure = got ? got->complaint() : got.error().message;
    }
    if (forgotten) return std::optional<JobState>();
    return Error{ErrorKind::system, failure.empty() ? "no answer" : failure};
  }

  // "3 of 12"; "" where the batch system does not say, as for a job that waits for something else than its turn.
  std::string place(const JobState& now) const {
    std::vector<std::string> words;
    for (const std::string_view word : system_.ask_queue) {
      if (word == "{queue}" && now.queue.empty()) return "";
      words.emplace_back(word == "{queue}" ? now.queue : word);
    }
    if (words.empty()) return "";
    const Result<sys::Captured> got = ask_batch_system(std::move(words), world_);
    return got && got->status == 0 ? place_in_queue(got->out, id_) : "";
  }

  // True once the job has ended. A server that cannot be reached says nothing about the job.
  Result<bool> ask() {
    const Result<std::optional<JobState>> got = answer();
    asked_ = sys::clock_ms();
    ++questions_;
    if (!got) {
      if (got.error().message != failure_) say("state unknown: " + got.error().message);
      failure_ = got.error().message;
      return false;
    }
    failure_.clear();
    if (!*got) {
      if (++forgotten_ < 2) return false;
      return Error{ErrorKind::system,
                   fmt::format("{} does not know job {} any more: its exit status is lost",
                               system_.title, id_),
                   "look at its output file"};
    }
    forgotten_ = 0;
    show_state(**got);
    return state_->phase == JobState::Phase::ended;
  }

  void show_state(const JobState& now) {
    const bool waits = now.phase == JobState::Phase::waiting;
    std::string text = now.name;
    if (!now.why.empty() && now.phase != JobState::Phase::running) text += ", " + now.why;
    if (const std::string turn = waits ? place(now) : ""; !turn.empty())
      text += fmt::format(", {} in the queue{}", turn, now.queue.empty() ? "" : " " + now.queue);
    if (waits && !now.starts.empty()) text += ", expected start " + now.starts;
    if (now.phase != JobState::Phase::ended && text != shown_) say(text);
    shown_ = text;
    if (!now.output.empty() && (outputs_.empty() || outputs_.front().path() != now.output)) {
      outputs_.clear();
      outputs_.emplace_back(now.output);
    }
    state_ = now;
  }

  Result<int> left(int signal) {
    fmt::print(session_.err, "hpclaunch: job {} continues; cancel it with: {} {}\n", id_,
               system_.cancel, id_);
    return 128 + signal;
  }

  // The last output may come after the end: from the node's disk, or through a file system's cache.
  Result<int> end() {
    constexpr int kLooks = 10;
    const auto seen = [&] { return std::ranges::any_of(outputs_, &sys::GrowingFile::seen); };
    for (int look = 0; look < kLooks && !outputs_.empty(); ++look) {
      grown_ = 0;
      if (!show_output()) return left(SIGPIPE);
      if (look > 0 && seen() && grown_ == 0) break;
      sys::Wait pause;
      pause.on(signals_.fd());
      pause.until(sys::clock_ms() + pace_.file);
      pause.run();
      if (const auto signal = signals_.next()) break;
    }
    if (!outputs_.empty() && !seen()) say("no output file " + outputs_.front().path());
    const int status = state_->status.value_or(1);
    say(state_->status ? fmt::format("{}, exit status {}", shown_, status) : shown_);
    return status;
  }

  const Scheduler& system_;
  const std::string& id_;
  Session& session_;
  World world_;
  Pace pace_;
  sys::Signals signals_;
  std::vector<sys::GrowingFile> outputs_;  // names that the file may have
  std::optional<JobState> state_;
  std::string shown_;
  std::string failure_;
  std::size_t questions_ = 0;
  int forgotten_ = 0;
  long asked_ = sys::clock_ms();
  long grown_ = 0;
};

}  // namespace

// Batch systems make no directories: a job whose output has none fails, or its output is lost. A pattern of the system,
// as %j or {{id}}, stands for what is not known yet.
static Status make_folder_of(const std::string& file) {
  const std::string known = file.substr(0, file.find_first_of("%{"));
  const std::string folder = known.substr(0, known.rfind('/') + 1);
  std::error_code failed;
  if (known.find(':') == std::string::npos && !folder.empty())
    std::filesystem::create_directories(folder, failed);
  if (!failed || std::filesystem::is_directory(folder, failed)) return Done{};
  return Error{ErrorKind::system, fmt::format("no directory for the output {}", file),
               "name a file in a directory of yours: --output, --error"};
}

Result<std::string> submit(const BatchScript& script, const EnvSnapshot& env) {
  const Scheduler& system = *script.scheduler;
  if (!system.submits_stdin)
    return Error{ErrorKind::unsupported,
                 fmt::format("{} of {} takes files only", system.submit, system.title),
                 fmt::format("hpclaunch script -o job.sh ..., then {} job.sh", system.submit)};
  std::vector<std::string> words = words_of(system.submit);
  std::ranges::copy(words_of(system.submit_options), std::back_inserter(words));
  const Result<std::string> program = sys::find_program(words.front(), env.get("PATH"));
  if (!program)
    return Error{
        program.error().kind, program.error().message,
        "run this on a login node of the site, or write the script: hpclaunch script -o FILE"};
  words.front() = *program;
  for (const std::string& file : {script.output, script.error})
    if (const Status made = make_folder_of(file); !made) return made.error();
  const EnvSnapshot own = submission_environment(system.name, env);
  const Result<sys::Captured> done = sys::capture(words, kSubmitLimit, &own, script.text);
  if (!done) return done.error();
  if (done->status != 0) return refused(system, *done);
  std::string id = submitted_job(done->out);
  if (!id.empty()) return id;
  return Error{ErrorKind::system, fmt::format("{} printed no job id: {}", system.submit,
                                              shown(done->complaint(), 300))};
}

Result<int> follow(const BatchScript& script, const std::string& id, Session& session) {
  if (script.scheduler->ask_state.empty())
    return Error{ErrorKind::unsupported,
                 fmt::format("--follow is not available for {}", script.scheduler->title),
                 "omit --follow"};
  return Follower(script, id, session).run();
}

}  // namespace hpclaunch::job
