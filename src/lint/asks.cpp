// Directives: what a script asks of its batch system.
#include "lint/asks.h"

#include <algorithm>

#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"

namespace hpclaunch::lint {

namespace {

using System = DirectiveOptions;

bool lists(std::string_view words, std::string_view word, char between = ' ') {
  const auto all = split(words, between);
  return std::ranges::count(all, word) > 0;
}

const System* system_of(std::string_view sentinel) {
  for (const System& one : directive_options())
    if (lists(one.sentinels, sentinel, '|')) return &one;
  return nullptr;
}

std::string long_name(const System& system, char letter) {
  for (const std::string_view row : split(system.letters, '|'))
    if (row.size() > 2 && row.front() == letter) return "--" + std::string(row.substr(2));
  return {'-', letter};
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
  const System* system = system_of(directive.sentinel);
  if (system == nullptr) return;
  if (script.request.system.empty()) script.request.system = system->name;
  const std::string_view text = script.shell.text;
  const std::vector<Word> words = words_in(text, directive.body);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word(script.shell.at(words[i].span));
    if (word.size() < 2 || word.front() != '-') {
      if (script.strays.empty() || script.strays.back().first != index)
        script.strays.emplace_back(index, words[i].span);
      continue;
    }
    Ask ask;
    ask.system = system->name;
    ask.directive = index;
    ask.span = words[i].span;
    std::size_t skip = 0;  // bytes of the word before a value in it
    const std::size_t equals = word.find('=');
    if (word[1] == '-' && word.size() > 2) {
      ask.name = word.substr(0, equals);
      if (equals != std::string::npos) skip = equals + 1;
    } else if (system->long_names) {
      ask.name = long_name(*system, word[1]);
      if (word.size() > 2) skip = word[2] == '=' ? 3 : 2;
    } else if (system->name == "pbs" && word.size() > 2) {  // getopt(3): "-lwalltime=1:00:00"
      ask.name = word.substr(0, 2);
      skip = 2;
    } else {
      ask.name = word;
    }
    const std::string bare = ask.name.substr(
        ask.name.find_first_not_of('-') == std::string::npos ? 0 : ask.name.find_first_not_of('-'));
    const bool pbs = system->name == "pbs";  // getopt(3) takes the next word, whatever it is
    const bool next_is_value =
        i + 1 < words.size() && (pbs || text[words[i + 1].span.begin] != '-');
    if (skip != 0) {
      ask.value_span = span_of(words[i].span.begin + skip, words[i].span.end);
    } else if (!lists(system->flags, bare) && next_is_value) {
      ask.value_span = words[++i].span;
      ask.span.end = ask.value_span.end;
    }
    ask.value = unquoted(script.shell.at(ask.value_span));
    if (pbs && ask.name == "-l")
      add_resources(script, ask);
    else
      script.asks.push_back(std::move(ask));
  }
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
  request.exported = text_of(script.ask("--export"));
  request.constraint = text_of(script.ask("--constraint --requires"));
  const bool slots = request.system == "lsf";  // what -n counts; nodes in Cobalt
  request.nodes = natural(script.ask(slots ? "-nnodes" : "--nodes -nnodes -n"));
  request.tasks = natural(script.ask(slots ? "-n" : "--ntasks --nslots"));
  request.tasks_per_node = natural(script.ask("--ntasks-per-node --tasks-per-node"));
  request.cpus_per_task = natural(script.ask("--cpus-per-task --cores-per-slot"));
  request.gpus_per_node = text_of(script.ask("--gpus-per-node"));
  request.gpus_per_task = text_of(script.ask("--gpus-per-task --gpus-per-slot"));
  request.gpus = text_of(script.ask("--gpus"));
  if (const Ask* gres = script.ask("--gres"); gres != nullptr && gres->value.starts_with("gpu"))
    request.gpus_per_node = gres->value.size() > 4 ? gres->value.substr(4) : "1";
  if (const Ask* select = script.ask("-l\x1fselect")) {
    request.nodes = 0;
    read_select(select->value, request);
  }
}

std::vector<std::string> options_of(std::string_view system) {
  std::vector<std::string> names;
  for (const System& one : directive_options()) {
    if (one.name != system || one.options.empty() || !one.long_names) continue;
    for (const std::string_view list : {one.options, one.flags})
      for (const std::string_view name : split(list, ' '))
        names.push_back("--" + std::string(name));
  }
  std::ranges::sort(names);  // some have an optional value and stand in both lists
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool for_torque(const Script& script) {
  constexpr std::string_view kOwn[] = {"PBS_ARRAYID", "PBS_GPUFILE", "PBS_NUM_NODES", "PBS_NUM_PPN",
                                       "PBS_WALLTIME"};
  return std::ranges::any_of(kOwn, [&](std::string_view name) {
    return script.shell.text.find(name) != std::string_view::npos;
  });
}

bool is_plugin_option(std::string_view system, std::string_view name) {
  return std::ranges::any_of(directive_options(), [&](const System& one) {
    return one.name == system && name.starts_with("--") && lists(one.plugins, name.substr(2));
  });
}

}  // namespace hpclaunch::lint
