// Hands a script to the batch system and follows the job to its end. Batch systems ask not to be polled: the state is
// asked seldom, by the job's id, and while the output grows only its file is looked at.
//
//   submitted --10 s, 30 s, 60 s, ... 300 s--> running --every 60 s, or when the output stands still--> ended
//
// Every state ends: a job that the batch system has forgotten has ended, one that cannot start is not waited for, and a
// batch system that does not answer is asked kMostFailures times.
#include "hpclaunch/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <set>

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
constexpr int kMostFailures = 24;     // at Pace::waiting: nearly two hours
constexpr std::size_t kTail = 8192;   // of the output, where the job's last lines are

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
  for (const SubmitHint& one : system.hints)
    if (all.find(one.message) != std::string::npos) error.hint = one.hint;
  return error;
}

// A line of the script's output: "hpclaunch: job 123: exit status 3".
std::string status_line(std::string_view id) {
  return fmt::format("hpclaunch: job {}: exit status ", id);
}

std::string replace_all(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// What follows the last `start` of a line; nullopt: no line starts so.
std::optional<std::string> last_line(const std::string& text, const std::string& start) {
  if (start.empty()) return std::nullopt;
  const std::string lines = "\n" + text;
  const std::size_t at = lines.rfind("\n" + start);
  if (at == lines.npos) return std::nullopt;
  const std::string rest = lines.substr(at + 1 + start.size());
  return rest.substr(0, rest.find('\n'));
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
    name_output(script);
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
  void name_output(const BatchScript& script) {
    if (system_.output_name.empty()) return;
    const std::string name =
        script.output.empty() ? std::string(system_.output_name) : in_directory(script.output);
    std::vector<std::string> ids = {id_};
    const bool wide = id_.starts_with("\u0192");
    if (wide || id_.starts_with("f")) {
      const std::string digits = id_.substr(wide ? std::string_view("\u0192").size() : 1);
      ids = {"\u0192" + digits, "f" + digits};
    }
    for (const std::string& id : ids) {
      std::string text = name;
      for (const auto& [what, by] : {std::pair<const char*, std::string>{"{{id}}", id},
                                     {"{{name}}", script.name},
                                     {"{id}", id},
                                     {"{name}", script.name},
                                     {"{number}", id.substr(0, id.find_first_of(".["))}})
        text = replace_all(std::move(text), what, by);
      if (outputs_.empty() || outputs_.front().path() != text) outputs_.emplace_back(text);
    }
  }

  // The file that the batch system writes in a directory that was named for the output.
  std::string in_directory(const std::string& output) const {
    if (!output.ends_with('/')) return output;
    return output + replace_all(std::string(system_.output_in), "{id}", id_);
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
    const std::size_t turn = std::min(
        failures_ > 0 ? static_cast<std::size_t>(failures_) : questions_, pace_.waiting.size() - 1);
    if (!running() || failures_ > 0) return asked_ + pace_.waiting[turn];
    return std::min(asked_ + pace_.running, std::max(asked_, grown_) + pace_.still);
  }

  // False: nobody reads our output.
  bool show_output() {
    for (sys::GrowingFile& output : outputs_)
      for (std::string text = output.more(); !text.empty(); text = output.more()) {
        grown_ = sys::clock_ms();
        tail_ += text;
        if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
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
      if (off_.contains(&question)) continue;
      std::vector<std::string> words;
      for (const std::string_view word : question.command)
        words.emplace_back(word == "{job}" ? id_ : word);
      const Result<sys::Captured> got = ask_batch_system(std::move(words), world_);
      if (got && got->status == 0)
        if (std::optional<JobState> state = question.read(got->out)) return state;
      const std::string said = got ? got->err + got->out : "";
      if (said.find(system_.unknown_job) != std::string::npos)
        forgotten = true;
      else if (!question.off.empty() && said.find(question.off) != std::string::npos)
        off_.insert(&question);
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
      if (++failures_ < kMostFailures) return false;
      return Error{ErrorKind::system,
                   fmt::format("job {}: status unknown: {} did not answer {} questions: {}", id_,
                               system_.title, failures_, failure_),
                   question_to_type()};
    }
    failures_ = 0;
    failure_.clear();
    if (!*got) return ++forgotten_ == kTwice;
    forgotten_ = 0;
    show_state(**got);
    never_ = state_->never ? never_ + 1 : 0;
    if (never_ == kTwice)
      return Error{ErrorKind::system, fmt::format("job {} cannot start: {}", id_, state_->why),
                   fmt::format("{} {}", system_.cancel, id_)};
    return state_->phase == JobState::Phase::ended;
  }

  // "qstat -f 123", the last one that is answered.
  std::string question_to_type() const {
    std::string text;
    for (const std::string_view word : system_.ask_state.back().command)
      text += fmt::format("{}{}", text.empty() ? "" : " ", word == "{job}" ? id_ : quote_sh(word));
    return text;
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
    const std::string output = in_directory(now.output);
    if (!output.empty() && (outputs_.empty() || outputs_.front().path() != output)) {
      outputs_.clear();
      outputs_.emplace_back(output);
    }
    state_ = now;
  }

  Result<int> left(int signal) {
    fmt::print(session_.err, "hpclaunch: job {} continues; cancel it with: {} {}\n", id_,
               system_.cancel, id_);
    return 128 + signal;
  }

  bool seen() const { return std::ranges::any_of(outputs_, &sys::GrowingFile::seen); }

  // The last output may come after the end: from the node's disk, or through a file system's cache.
  Result<int> end() {
    constexpr int kLooks = 10;
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
    return ending();
  }

  // By the batch system, else by the job's own last lines.
  Result<int> ending() {
    const bool forgotten = forgotten_ > 0;
    int status = state_ ? state_->status.value_or(kUnknown) : kUnknown;
    const std::string text = forgotten ? "ended" : shown_;
    const bool silent = status == kUnknown;  // the batch system is
    if (const auto why = last_line(tail_, std::string(system_.killed)); silent && why)
      return said(fmt::format("{}, {}", text, *why), 1);
    if (const auto own = last_line(tail_, status_line(id_)); silent && own)
      status = static_cast<int>(parse_natural(*own, 255).value_or(kUnknown));
    if (status != kUnknown) return said(fmt::format("{}, exit status {}", text, status), status);
    if (!forgotten) return said(text, 1);
    return Error{ErrorKind::system,
                 fmt::format("job {} has ended; status unknown: {} does not know the job any more",
                             id_, system_.title),
                 seen() ? "tail " + quote_sh(outputs_.front().path()) : question_to_type()};
  }

  int said(const std::string& text, int status) {
    say(text);
    return status;
  }

  static constexpr int kUnknown = -1;
  static constexpr int kTwice = 2;  // answers about an end that may be an error of the moment

  const Scheduler& system_;
  const std::string& id_;
  Session& session_;
  World world_;
  Pace pace_;
  sys::Signals signals_;
  std::vector<sys::GrowingFile> outputs_;  // names that the file may have
  std::optional<JobState> state_;
  std::set<const StateQuestion*> off_;
  std::string shown_;
  std::string tail_;  // of the output
  std::string failure_;
  std::size_t questions_ = 0;
  int failures_ = 0;  // the last ones, as the two below
  int forgotten_ = 0;
  int never_ = 0;
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

std::string followed(const BatchScript& script) {
  const Scheduler& system = *script.scheduler;
  if (!system.forgets) return script.text;
  const std::string id = fmt::format("${}", system.job_variable);
  std::string text = script.text;
  return text.insert(script.body,
                     fmt::format("\n# For submit --follow: {} may forget the job at its end.\n"
                                 "trap 'echo \"{}$?\"' EXIT\n"
                                 "trap 'exit 143' TERM\n",
                                 system.title, status_line(id)));
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
