// Programs that start processes themselves, by the data of profiles/programs/launchers.json.
#include "job/programs.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/plan.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

bool lists(const Json& row, const char* key, std::string_view word) {
  const auto found = row.find(key);
  return found != row.end() && std::find(found->begin(), found->end(), word) != found->end();
}

// "/usr/bin/python3.11" is python. A program outside a bin folder is the user's own: "".
std::string installed_name(const std::string& word) {
  const std::size_t slash = word.rfind('/');
  if (slash != std::string::npos && !word.substr(0, slash).ends_with("bin")) return "";
  std::string name = word.substr(slash + 1);
  if (!name.starts_with("python") && !name.starts_with("pypy")) return name;
  return name.substr(0, name.find_last_not_of("0123456789.-") + 1);
}

const Json* row_of(const char* list, const char* key, const std::string& name) {
  for (const Json& row : known_programs().at(list))
    if (lists(row, key, name)) return &row;
  return nullptr;
}

// "-n" is n, "--nnodes=2" is nnodes and 2.
struct Option {
  std::string name;
  std::optional<std::string> value;
};

std::optional<Option> option_of(const std::string& word) {
  if (word.size() < 2 || word.front() != '-' || word == "--") return std::nullopt;
  const std::size_t begin = word.find_first_not_of('-');
  const std::size_t equals = word.find('=');
  if (begin == std::string::npos) return std::nullopt;
  Option option{word.substr(begin, equals == std::string::npos ? equals : equals - begin), {}};
  if (equals != std::string::npos) option.value = word.substr(equals + 1);
  const bool glued = begin == 1 && word.size() > 2 && word[2] >= '0' && word[2] <= '9';
  if (glued) option = {word.substr(1, 1), word.substr(2)};
  return option;
}

// "-oL": o takes a value, L.
bool has_value(const Json& row, const std::string& word, const Option& option) {
  const bool one_dash = word.size() > 2 && word[1] != '-';
  return option.value || (one_dash && lists(row, "values", word.substr(1, 1)));
}

// Past the options of a program that execs another one, and its own words. `module`: what `python -m` names.
// The end of the command behind an option that is not known: the next word may be its value.
std::size_t past_wrapper(const Json& row, const Words& command, std::size_t at,
                         std::string& module) {
  while (at < command.size() && module.empty()) {
    const std::optional<Option> option = option_of(command[at]);
    if (!option) break;
    const bool takes = !option->value && lists(row, "values", option->name);
    if (!takes && !has_value(row, command[at], *option) && !lists(row, "flags", option->name))
      return command.size();
    if (takes && option->name == row.value("module", "") && at + 1 < command.size())
      module = command[at + 1];
    at += takes ? 2 : 1;
  }
  const auto is_own = [&] {
    const bool assignment = row.value("assignments", false);
    return command[at] == "--" || (assignment && command[at].find('=') != std::string::npos);
  };
  while (at < command.size() && is_own()) ++at;
  return std::min(at + row.value("skip", 0u), command.size());
}

struct Found {
  const Json* row = nullptr;
  std::size_t begin = 0;  // of the launcher's words, an interpreter before it included
  std::size_t args = 0;
  std::string python = "python";
};

std::optional<Found> find_row(const Words& command) {
  std::string python = "python";
  for (std::size_t at = 0; at < command.size();) {
    const std::string name = installed_name(command[at]);
    const std::string next = at + 1 < command.size() ? command[at + 1] : "";
    if (const Json* row = row_of("launchers", "programs", name)) {
      const auto words = row->find("words");
      const bool second = words != row->end() && words->contains(name);
      if (second && !lists(*words, name.c_str(), next)) return std::nullopt;
      return Found{row, at, at + (second ? 2 : 1), python};
    }
    const Json* wrapper = row_of("wrappers", "programs", name);
    if (wrapper == nullptr) return std::nullopt;
    const bool second = wrapper->contains("words");
    if (second && !lists(*wrapper, "words", next)) return std::nullopt;
    const std::size_t begin = at;
    std::string module;
    if (wrapper->contains("module")) python = command[at];
    at = past_wrapper(*wrapper, command, at + (second ? 2 : 1), module);
    const Json* row = module.empty() ? nullptr : row_of("launchers", "modules", module);
    if (row != nullptr) return Found{row, begin, at, python};
    if (!module.empty()) return std::nullopt;
  }
  return std::nullopt;
}

// Values of NAME=VALUE and --NAME VALUE are hidden where the name is a secret's.
std::string shown(const Words& words) {
  std::string line;
  bool hide = false;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::ranges::replace(name, '-', '_');
    const bool secret = is_secret(name);
    line += hide                                    ? " <hidden>"
            : secret && equals != std::string::npos ? " " + word.substr(0, equals) + "=<hidden>"
                                                    : " " + quote_sh(word);
    hide = !hide && secret && equals == std::string::npos && word.starts_with('-');
  }
  return line;
}

// "hpclaunch run -N 2 --ppn 8 -- python train.py"
std::string meant(const Found& found, const Words& command) {
  const Json& row = *found.row;
  if (row.at("starts") == "agent") return "hpclaunch run --ppn 1 --" + shown(command);
  constexpr std::pair<const char*, const char*> kCounts[] = {
      {"nodes", "-N"}, {"ranks", "-n"}, {"ranks_per_node", "--ppn"}};
  std::string line = "hpclaunch run";
  bool module = false;
  bool is_program = !row.contains("interpreter");
  std::size_t at = found.args;
  while (at < command.size()) {
    const std::optional<Option> option = option_of(command[at]);
    if (!option) break;
    const bool module_flag = lists(row, "module_flags", option->name);
    module = module || module_flag;
    is_program = is_program || lists(row, "program_flags", option->name);
    const bool flag = module_flag || lists(row, "flags", option->name) || option->value;
    const std::string next = at + 1 < command.size() ? command[at + 1] : "";
    for (const auto& [key, ours] : kCounts)
      if (lists(row, key, option->name) &&
          parse_natural(option->value.value_or(next)).value_or(0) > 0)
        line += fmt::format(" {} {}", ours, option->value.value_or(next));
    at += flag ? 1 : lists(row, "two_words", option->name) ? 3 : 2;
  }
  at = std::min(at + (at < command.size() && command[at] == "--" ? 1 : 0), command.size());
  Words words(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(found.begin));
  if (!is_program) words.push_back(found.python);
  if (module) words.emplace_back("-m");
  words.insert(words.end(), command.begin() + static_cast<std::ptrdiff_t>(at), command.end());
  return line + " --" + (words.empty() ? " PROGRAM" : shown(words));
}

}  // namespace

const Json& known_programs() {
  static const Json kKnown = Json::parse(kPrograms, nullptr, true, true);
  return kKnown;
}

void check_program(const Request& request, const Plan& plan, Diagnostics& diagnostics) {
  const std::optional<Found> found = find_row(request.command);
  if (!found) return;
  const Json& row = *found->row;
  const bool agent = row.at("starts") == "agent";
  const bool typed = request.ranks || request.ranks_per_node;
  if (typed && plan.max_local_size() == 1 && (agent || row.contains("interpreter"))) return;
  diagnostics.push_back(
      {"program-is-launcher", Severity::error,
       fmt::format("{} {}; hpclaunch would start it {} times{}", row.at("name").get<std::string>(),
                   agent ? "serves a whole node" : "starts ranks itself",
                   agent ? plan.max_local_size() : plan.world_size(), agent ? " there" : ""),
       meant(*found, request.command)});
}

}  // namespace hpclaunch::job
