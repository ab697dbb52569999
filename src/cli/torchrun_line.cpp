// torchrun's options, and how argparse reads them. Sources: pytorch 1.13 and 2.9, torch/distributed/run.py and
// argparse_util.py; Python 3.11, argparse.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/torchrun.h"
#include "hpclaunch/frameworks.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

using Option = TorchrunOption;
using How = TorchrunOption::How;

constexpr std::array kOptions = {
    Option{"nproc-per-node", "N|WORD", "Ranks per node, or gpu, xpu, cpu, auto (1)", How::common},
    Option{"nnodes", "N|MIN:MAX", "Nodes, or the least and the most of them (1)", How::common},
    Option{"node-rank", "N", "Number of this node; the plan's numbers hold", How::common},
    Option{"standalone", "", "One node", How::common},
    Option{"rdzv-backend", "NAME", "static or c10d; etcd is refused (static)", How::common},
    Option{"rdzv-endpoint", "HOST", "Of static MASTER_ADDR and port, of c10d the port",
           How::common},
    Option{"rdzv-id", "ID", "TORCHELASTIC_RUN_ID", How::common},
    Option{"rdzv-conf", "K=V,...", "join_timeout, timeout: --start-timeout"},
    Option{"master-addr", "HOST", ""},
    Option{"master-port", "PORT", ""},
    Option{"max-restarts", "N", ""},
    Option{"module", "", "The program is a Python module", How::common, "", 'm'},
    Option{"no-python", "", "The program is no Python script", How::common},
    Option{"run-path", "", "Start the script by its absolute path"},
    Option{"role", "NAME", "ROLE_NAME", How::common},
    Option{"log-dir", "DIR", ""},
    Option{"redirects", "WHAT", "One file per rank in --log-dir: 0 to 3", How::common, "", 'r'},
    Option{"tee", "WHAT", "Prefix output lines with the rank: 0 to 3", How::common, "", 't'},
    Option{"virtual-local-rank", "", "--gpu-view own"},
    Option{"shutdown-timeout", "SECONDS", "Time from SIGTERM to SIGKILL"},
    Option{"numa-binding", "MODE", "Ranks are bound to cores near their device anyway", How::silent,
           "", 0, false},
    Option{"monitor-interval", "SECONDS", "Ranks are monitored without polling", How::silent},
    Option{"start-method", "NAME", "Ranks are processes of their own", How::silent},
    Option{"event-log-handler", "NAME", "No events: --report FILE has them", How::said,
           "no event handler: --report FILE writes what happened"},
    Option{"local-addr", "HOST", "The node's fabric address is chosen by the plan", How::said,
           "the plan chooses interfaces; --set GLOO_SOCKET_IFNAME=NAME names one"},
    Option{"local-ranks-filter", "RANKS", "Output of all ranks is shown", How::said,
           "the output of all ranks is shown; --log-dir DIR separates it"},
    Option{"signals-to-handle", "NAMES", "HUP, INT, QUIT, TERM, USR1 and USR2 reach the ranks",
           How::silent},
    Option{"duplicate-stdout-filters", "WORDS", "", How::said,
           "no filtered copies of the output: --log-dir DIR has all of it"},
    Option{"duplicate-stderr-filters", "WORDS", "", How::said,
           "no filtered copies of the output: --log-dir DIR has all of it"},
    Option{"logs-specs", "NAME", "Refused: needs torch", How::refused,
           "names Python code of torch, which hpclaunch does not load", 0, false},
    Option{"use-env", "", "LOCAL_RANK is in the environment in any case", How::silent, "", 0,
           false},
};

const Option* by_letter(char letter) {
  const auto found = std::ranges::find(kOptions, letter, &Option::letter);
  return letter == 0 || found == kOptions.end() ? nullptr : &*found;
}

// Numbers below zero are values, as for argparse.
bool is_value(const std::string& word) {
  if (word.size() < 2 || word.front() != '-') return true;
  return word.find_first_not_of("0123456789.", 1) == std::string::npos ||
         word.find(' ') != std::string::npos;
}

class Reader {
 public:
  Reader(const std::vector<std::string>& words, const CommandTree& own)
      : words_(words), own_(own) {}

  Result<TorchrunLine> all() {
    while (at_ < words_.size() && words_[at_].starts_with('-') && words_[at_] != "-") {
      const std::string& word = words_[at_++];
      if (word == "--") break;
      if (const Status read = word.starts_with("--") ? full(word) : letters(word); !read)
        return read.error();
    }
    const bool dashes = at_ > 0 && at_ <= words_.size() && words_[at_ - 1] == "--";
    line_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    line_.lost_dashes = !dashes && line_.program.size() > 1 && line_.program[1] == "--";
    if (line_.lost_dashes) line_.program.erase(line_.program.begin() + 1);
    return std::move(line_);
  }

 private:
  // "--nnodes=2", "--nproc_per 2", and options of `run` by their full names.
  Status full(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string typed = word.substr(0, equals);
    const std::string name = replaced(typed.substr(2), {{'_', "-"}});
    std::vector<const Option*> fits;
    for (const Option& one : kOptions)
      if (one.name == name)
        fits = {&one};
      else if (one.name.starts_with(name) && (fits.empty() || fits.front()->name != name))
        fits.push_back(&one);
    const bool exact = fits.size() == 1 && fits.front()->name == name;
    if (!exact && own_option(typed)) return add_own(word, typed, equals);
    if (fits.empty()) return unknown(typed);
    if (fits.size() > 1) {
      std::vector<std::string> names;
      names.reserve(fits.size());
      for (const Option* one : fits) names.push_back(fmt::format("--{}", one->name));
      return Error{ErrorKind::usage, fmt::format("{} is short for several options", typed),
                   joined(names, " or ")};
    }
    return take(*fits.front(), typed, equals == std::string::npos ? nullptr : &word[equals + 1]);
  }

  // "-r3", "-mr 3", "-r=3"; else an option of `run`.
  Status letters(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const Option* option = by_letter(word[i]);
      if (option == nullptr) {
        const std::string name = word.substr(0, 2);
        if (i > 1 || own_option(name) == nullptr) return unknown(word);
        return add_own(word, name, word.size() > 2 ? 2 : std::string::npos);
      }
      const char* rest = word.c_str() + i + 1;
      if (option->value.empty() || *rest == '\0') {
        if (Status taken = take(*option, word, nullptr); !taken) return taken;
        continue;
      }
      return take(*option, word, *rest == '=' ? rest + 1 : rest);
    }
    return Done{};
  }

  Status take(const Option& option, const std::string& typed, const char* value) {
    const std::string name(option.name);
    if (option.value.empty()) {
      if (value != nullptr)
        return Error{ErrorKind::usage, fmt::format("{} takes no value", typed), "--" + name};
      line_.values[name] = "1";
      return Done{};
    }
    if (value == nullptr && (at_ == words_.size() || !is_value(words_[at_])))
      return Error{ErrorKind::usage, fmt::format("{} needs a value ({})", typed, option.value),
                   fmt::format("--{} {}", name, option.value)};
    line_.values[name] = value != nullptr ? value : words_[at_++];
    return Done{};
  }

  const OptionInfo* own_option(const std::string& name) const {
    const auto found = std::ranges::find_if(own_.options, [&](const OptionInfo& option) {
      return std::ranges::count(option.names, name) > 0;
    });
    return found == own_.options.end() ? nullptr : &*found;
  }

  Status add_own(const std::string& word, const std::string& name, std::size_t value) {
    line_.own.push_back(word);
    const OptionInfo& option = *own_option(name);
    const bool next = !option.value_name.empty() && option.bare.empty();
    if (next && value == std::string::npos && at_ < words_.size())
      line_.own.push_back(words_[at_++]);
    return Done{};
  }

  Error unknown(const std::string& typed) const {
    std::vector<std::string> known;
    known.reserve(kOptions.size());
    for (const Option& one : kOptions) known.push_back(fmt::format("--{}", one.name));
    const std::string next = at_ < words_.size() ? words_[at_] : "";
    std::string hint = job::meant_option(typed, next);
    if (const auto near = nearest(typed, known); near && hint.empty()) hint = *near;
    return Error{ErrorKind::usage, fmt::format("torchrun has no option {}", typed),
                 hint.empty() ? "hpclaunch torchrun --help" : hint};
  }

  const std::vector<std::string>& words_;
  const CommandTree& own_;
  TorchrunLine line_;
  std::size_t at_ = 0;
};

// PET_NNODES and the others; of a flag an integer.
Status add_defaults(const EnvSnapshot& env, TorchrunLine& line) {
  for (const Option& one : kOptions) {
    std::string name = "PET_" + replaced(one.name, {{'-', "_"}});
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
    const std::string* value = one.has_default ? env.find(name) : nullptr;
    if (value == nullptr || line.has(one.name)) continue;
    if (one.value.empty() && !parse_natural(*value))
      return Error{ErrorKind::usage, fmt::format("{}=\"{}\" must be 0 or 1", name, shown(*value)),
                   "unset " + name};
    if (*value != "0" || !one.value.empty()) line.values[std::string(one.name)] = *value;
  }
  return Done{};
}

}  // namespace

std::span<const TorchrunOption> torchrun_options() { return kOptions; }

std::string TorchrunLine::get(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

Result<TorchrunLine> read_torchrun(const std::vector<std::string>& words, const CommandTree& own,
                                   const EnvSnapshot& env) {
  Result<TorchrunLine> line = Reader(words, own).all();
  if (!line) return line;
  if (const Status good = add_defaults(env, *line); !good) return good.error();
  return line;
}

}  // namespace hpclaunch::cli
