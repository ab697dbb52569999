// Directives: what a script asks of its batch system.
#include "lint/asks.h"

#include <algorithm>

#include "hpclaunch/programs.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"

namespace hpclaunch::lint {

namespace {

const Scheduler* system_of(std::string_view sentinel) {
  for (const Scheduler& one : rows<Scheduler>())
    if (has_word(one.sentinels, sentinel)) return &one;
  return nullptr;
}

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// A value of PBS's -l: its members as asks of their own, "-l select", "-l walltime".
void add_resources(Script& script, const Ask& whole) {
  std::size_t at = 0;
  for (const std::string_view item : split(whole.value, ',')) {
    Ask one = whole;
    const std::size_t equals = item.find('=');
    one.name = "-l " + std::string(item.substr(0, equals));
    one.value = equals == item.npos ? "" : std::string(unquoted(item.substr(equals + 1)));
    const auto begin = static_cast<std::uint32_t>(whole.value_span.begin + at);
    one.value_span = span_of(begin + (equals == item.npos ? 0 : equals + 1), begin + item.size());
    script.asks.push_back(std::move(one));
    at += item.size() + 1;
  }
}

void read_directive(Script& script, std::size_t index) {
  const Directive& directive = script.shell.directives[index];
  const Scheduler* system = system_of(directive.sentinel);
  if (system == nullptr) return;
  if (script.request.system.empty()) script.request.system = system->name;
  const std::vector<Word> words = words_in(script.shell.text, directive.body);
  std::vector<std::string> texts;
  texts.reserve(words.size());
  for (const Word& word : words) texts.emplace_back(script.shell.at(word.span));
  const OptionLine line = read_options(grammars_of(system->grammar), texts, 0, Strays::skip);
  if (!line.strays.empty()) script.strays.emplace_back(index, words[line.strays.front()].span);
  for (const GivenOption& one : line.options) {
    Ask ask;
    ask.system = system->name;
    ask.directive = index;
    const bool letter = one.option.name().starts_with("--") && !one.name.starts_with("--");
    ask.name = letter ? std::string(one.option.name()) : one.name;
    ask.span = span_of(words[one.first].span.begin, words[one.end - 1].span.end);
    if (one.has_value)
      ask.value_span = span_of(words[one.value_word].span.begin + one.value_at, ask.span.end);
    ask.value = unquoted(script.shell.at(ask.value_span));
    if (system->name == "pbs" && ask.name == "-l")
      add_resources(script, ask);
    else
      script.asks.push_back(std::move(ask));
  }
  if (!line.dashes) return;
  Ask ask;
  ask.system = system->name;
  ask.directive = index;
  ask.name = "--";
  ask.span = words[line.rest - 1].span;
  if (line.rest < words.size()) ask.value = texts[line.rest];
  script.asks.push_back(std::move(ask));
}

long natural(const Ask* ask) { return ask == nullptr ? 0 : parse_natural(ask->value).value_or(0); }

std::string text_of(const Ask* ask) { return ask == nullptr ? "" : ask->value; }

// "2:ncpus=64:mpiprocs=4:ngpus=4", chunks joined by '+'.
void read_select(const std::string& select, RequestOfJob& request) {
  for (const std::string_view chunk : split(select, '+')) {
    const std::vector<std::string_view> items = split(chunk, ':');
    const std::optional<long> count = parse_natural(items.front());
    request.nodes += count.value_or(1);
    for (const std::string_view item : items) {
      if (item.starts_with("mpiprocs="))
        request.tasks_per_node = parse_natural(item.substr(9)).value_or(0);
      if (item.starts_with("ngpus=")) request.gpus_per_node = item.substr(6);
    }
  }
}

}  // namespace

void read_asks(Script& script) {
  for (std::size_t i = 0; i < script.shell.directives.size(); ++i) read_directive(script, i);
  RequestOfJob& request = script.request;
  request.exported = text_of(script.ask({"--export"}));
  request.constraint = text_of(script.ask({"--constraint", "--requires"}));
  const bool slots = request.system == "lsf";  // what -n counts; nodes in Cobalt
  request.nodes =
      natural(slots ? script.ask({"-nnodes"}) : script.ask({"--nodes", "-nnodes", "-n"}));
  request.tasks = natural(slots ? script.ask({"-n"}) : script.ask({"--ntasks", "--nslots"}));
  request.tasks_per_node = natural(script.ask({"--ntasks-per-node", "--tasks-per-node"}));
  request.cpus_per_task = natural(script.ask({"--cpus-per-task", "--cores-per-slot"}));
  request.gpus_per_node = text_of(script.ask({"--gpus-per-node"}));
  request.gpus_per_task = text_of(script.ask({"--gpus-per-task", "--gpus-per-slot"}));
  request.gpus = text_of(script.ask({"--gpus"}));
  if (const Ask* gres = script.ask({"--gres"}); gres != nullptr && gres->value.starts_with("gpu"))
    request.gpus_per_node = gres->value.size() > 4 ? gres->value.substr(4) : "1";
  if (const Ask* select = script.ask({"-l select"})) {
    request.nodes = 0;
    read_select(select->value, request);
  }
}

std::vector<std::string> known_options(std::string_view system) {
  std::vector<std::string> names;
  if (const Scheduler* known = find_row<Scheduler>(system))
    for (const hpclaunch::Option& one : options_of(grammars_of(known->grammar)))
      for (const std::string_view name : one.names)
        if (name.starts_with("--")) names.emplace_back(name);
  std::ranges::sort(names);
  return names;
}

bool for_torque(const Script& script) {
  return has_one_in_it(words_named("of torque"), script.shell.text);
}

bool is_plugin_option(std::string_view system, std::string_view name) {
  const Scheduler* known = find_row<Scheduler>(system);
  return known != nullptr && !options_named(grammars_of(known->plugins), name).empty();
}

}  // namespace hpclaunch::lint
