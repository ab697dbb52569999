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
    Option{"node-rank", "N", ""},
    Option{"standalone", "", "One node", How::common},
    Option{"rdzv-backend", "NAME", "static or c10d; etcd is refused (static)", How::common},
    Option{"rdzv-endpoint", "HOST", "Of static MASTER_ADDR and port, of c10d the port",
           How::common},
    Option{"rdzv-id", "ID", "TORCHELASTIC_RUN_ID", How::common},
    Option{"rdzv-conf", "K=V,...", "join_timeout, timeout: --start-timeout"},
    Option{"master-addr", "HOST", ""},
    Option{"master-port", "PORT", ""},
    Option{"max-restarts", "N", ""},
    Option{"module", "", "The program is a Python module", How::common},
    Option{"no-python", "", "The program is no Python script", How::common},
    Option{"run-path", "", "Start the script by its absolute path"},
    Option{"role", "NAME", "ROLE_NAME", How::common},
    Option{"log-dir", "DIR", ""},
    Option{"redirects", "WHAT", "One file per rank in --log-dir: 0 to 3", How::common},
    Option{"tee", "WHAT", "Prefix output lines with the rank: 0 to 3", How::common},
    Option{"virtual-local-rank", "", "--gpu-view own"},
    Option{"shutdown-timeout", "SECONDS", "Time from SIGTERM to SIGKILL"},
    Option{"numa-binding", "MODE", "Ranks are bound to cores near their device anyway", How::silent,
           "", false},
    Option{"monitor-interval", "SECONDS", "Ranks are monitored without polling", How::silent},
    Option{"start-method", "NAME", "Ranks are processes of their own", How::silent},
    Option{"event-log-handler", "NAME", "No events: --report FILE has them", How::said,
           "no event handler: --report FILE writes what happened"},
    Option{"local-addr", "HOST", "The node's fabric address is chosen by the plan", How::said,
           "the plan chooses interfaces; --set GLOO_SOCKET_IFNAME=NAME names one"},
    Option{"local-ranks-filter", "RANKS", ""},
    Option{"signals-to-handle", "NAMES", "HUP, INT, QUIT, TERM, USR1 and USR2 reach the ranks",
           How::silent},
    Option{"duplicate-stdout-filters", "WORDS", "", How::said,
           "no filtered copies of the output: --log-dir DIR has all of it"},
    Option{"duplicate-stderr-filters", "WORDS", "", How::said,
           "no filtered copies of the output: --log-dir DIR has all of it"},
    Option{"logs-specs", "NAME", "Refused: needs torch", How::refused,
           "names Python code of torch, which hpclaunch does not load", false},
    Option{"use-env", "", "LOCAL_RANK is in the environment in any case", How::silent, "", false},
};

// By its name in the grammar; nullptr: an option of `run`.
const Option* find_option(std::string_view name) {
  const auto found = std::ranges::find_if(kOptions, [&](const Option& one) {
    return name.starts_with("--") && name.substr(2) == one.name;
  });
  return found == kOptions.end() ? nullptr : &*found;
}

class Reader {
 public:
  Reader(const std::vector<std::string>& words, const CommandTree& own)
      : words_(words), own_(own) {}

  Result<TorchrunLine> all() {
    const CommandGrammar own(own_);
    Grammars grammars = job::program_grammar("torchrun");
    grammars.push_back(&own.grammar);
    const OptionLine read = read_options(grammars, words_);
    for (const GivenOption& one : read.options)
      if (const Status taken = take(one, grammars); !taken) return taken.error();
    line_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(read.rest), words_.end());
    line_.lost_dashes = !read.dashes && line_.program.size() > 1 && line_.program[1] == "--";
    if (line_.lost_dashes) line_.program.erase(line_.program.begin() + 1);
    return std::move(line_);
  }

 private:
  Status take(const GivenOption& one, const Grammars& grammars) {
    if (!one.known) {
      std::vector<std::string> names;
      const auto meant = options_named(grammars, one.name);
      for (const Option& option : kOptions)
        if (std::ranges::any_of(meant,
                                [&](auto& other) { return find_option(other.name()) == &option; }))
          names.push_back(fmt::format("--{}", option.name));
      if (names.empty()) return unknown(one);
      return Error{ErrorKind::usage, fmt::format("{} is short for several options", one.name),
                   joined(names, " or ")};
    }
    const Option* option = find_option(one.option.name());
    if (option == nullptr) {
      line_.own.insert(line_.own.end(), words_.begin() + static_cast<std::ptrdiff_t>(one.first),
                       words_.begin() + static_cast<std::ptrdiff_t>(one.end));
      return Done{};
    }
    const bool flag = one.option.takes == Takes::nothing;
    if (flag && one.has_value)
      return Error{ErrorKind::usage, fmt::format("{} takes no value", one.name),
                   std::string(one.option.name())};
    if (!flag && !one.has_value)
      return Error{ErrorKind::usage, fmt::format("{} needs a value ({})", one.name, option->value),
                   fmt::format("{} {}", one.option.name(), option->value)};
    line_.values[std::string(option->name)] = flag ? "1" : one.value;
    return Done{};
  }

  Error unknown(const GivenOption& one) const {
    const auto rest = std::span(words_).subspan(one.first);
    const bool is_long = one.name.starts_with("--");
    const std::string& typed = is_long ? one.name : rest.front();
    std::vector<std::string> known;
    known.reserve(kOptions.size());
    for (const Option& option : kOptions) known.push_back(fmt::format("--{}", option.name));
    std::string hint = job::meant_option(rest, [&](std::string_view name) {
      return std::ranges::any_of(own_.options, [&](const OptionInfo& option) {
        return std::ranges::count(option.names, name) > 0;
      });
    });
    if (const auto near = nearest(typed, known); near && hint.empty()) hint = *near;
    return Error{ErrorKind::usage, fmt::format("torchrun has no option {}", typed),
                 hint.empty() ? "hpclaunch torchrun --help" : hint};
  }

  const std::vector<std::string>& words_;
  const CommandTree& own_;
  TorchrunLine line_;
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
