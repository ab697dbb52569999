// Values that qsub refuses whatever the site has configured. Sources: qsub.c, chk_Jrange.c, ck_job_name.c, parse_depend.c,
// attr_fn_time.c and attr_fn_size.c of OpenPBS 23.06, and what its qsub said of 284 directives.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "lint/asks.h"
#include "lint/engine.h"

namespace hpclaunch::lint {

namespace {

using View = std::string_view;

bool is_one_of(View word, std::initializer_list<View> names) {
  return std::ranges::find(names, word) != names.end();
}

std::optional<long> number(View text) { return text.empty() ? std::nullopt : parse_natural(text); }

bool within(View text, long least, long most) {
  const auto value = number(text);
  return value && *value >= least && *value <= most;
}

// Some of `letters`, or `none` alone.
bool letters_or(View text, View letters, View none) {
  return text == none || (!text.empty() && text.find_first_not_of(letters) == text.npos);
}

bool is_name(View text) {
  constexpr std::size_t kMost = 230;
  return text.size() <= kMost && consists_of(text, "._-+");
}

bool is_range(View text) {
  const std::size_t percent = text.find('%');
  if (percent != text.npos && !number(text.substr(percent + 1))) return false;  // "%N" at once
  text = text.substr(0, percent);
  const std::size_t colon = text.find(':');
  const View range = text.substr(0, colon);
  const std::size_t dash = std::min(range.find('-'), range.size() - (range.empty() ? 0 : 1));
  const auto first = number(range.substr(0, dash));
  const auto last = number(range.substr(dash + 1));
  return first && last && *first < *last &&
         (colon == text.npos || within(text.substr(colon + 1), 1, 2'147'483'647));
}

// [[[[CC]YY]MM]DD]hhmm[.SS]
bool is_start(View text) {
  const std::size_t point = text.find('.');
  const View digits = text.substr(0, point);
  const std::size_t size = digits.size();
  if (digits.find_first_not_of("0123456789") != digits.npos || size < 4 || size > 12 ||
      size % 2 != 0 || (point != text.npos && !within(text.substr(point + 1), 0, 59)))
    return false;
  const auto part = [&](std::size_t behind) { return digits.substr(size - behind, 2); };
  return within(part(2), 0, 59) && within(part(4), 0, 23) && (size < 6 || within(part(6), 1, 31)) &&
         (size < 8 || within(part(8), 1, 12));
}

bool is_checkpoint(View text) {
  if (text.starts_with("c=") || text.starts_with("w="))
    return within(text.substr(2), 1, 2'147'483'647);
  return is_one_of(text, {"n", "s", "c", "w"});
}

bool is_priority(View text) {
  return within(text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0), 0,
                text.starts_with('-') ? 1024 : 1023);
}

bool are_paths(View text) {
  const auto paths = split(text, ',');
  const auto everywhere =
      std::ranges::count_if(paths, [](View one) { return one.find('@') == one.npos; });
  return everywhere < 2 && text.find(' ') == text.npos &&
         std::ranges::all_of(paths, [](View one) { return one.starts_with('/'); });
}

bool is_time(View text) {
  const std::size_t point = text.find('.');
  const auto parts = split(text.substr(0, point), ':');  // the last one may be empty
  return parts.size() <= 3 &&
         (point == text.npos || point + 1 == text.size() || number(text.substr(point + 1))) &&
         std::all_of(parts.begin(), parts.end() - 1, [](View one) { return !!number(one); }) &&
         (parts.back().empty() || number(parts.back()));
}

// "16gb", "4000", "2Gw"
bool is_size(View text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = to_lower(text.substr(end));
  const View scale = View(unit).substr(!unit.empty() && View("kmgtp").find(unit[0]) != View::npos);
  return end > 0 && is_one_of(scale, {"", "b", "w"});
}

bool is_count(View text) { return number(text).has_value(); }

// Of a resource wherever it stands; those of the site take any value.
bool is_resource_value(View name, View value) {
  if (is_one_of(name, {"ncpus", "mpiprocs", "ompthreads", "nice"}))
    return is_count(value.substr(name == "nice" && value.starts_with('-') ? 1 : 0));
  if (value.empty()) return true;  // as it comes
  if (is_one_of(name, {"mem", "vmem", "pmem", "pvmem", "file"})) return is_size(value);
  if (is_one_of(name, {"walltime", "min_walltime", "max_walltime", "cput", "pcput"}))
    return is_time(value);
  return true;
}

bool is_select(View text) {
  return std::ranges::all_of(split(text, '+'), [](View chunk) {
    const auto items = split(chunk, ':');
    const bool counted = items.front().find('=') == View::npos;
    if (counted && !within(items.front(), 1, 2'147'483'647)) return false;
    return std::all_of(items.begin() + (counted ? 1 : 0), items.end(), [](View item) {
      const std::size_t equals = std::min(item.find('='), item.size());
      const View value = item.substr(std::min(equals + 1, item.size()));
      return is_identifier(item.substr(0, equals)) && !value.empty() &&
             is_resource_value(item.substr(0, equals), value);
    });
  });
}

bool is_place(View text) {
  int kinds[3] = {};
  const std::string lower = to_lower(text);
  for (const View word : split(lower, ':')) {
    const int kind = is_one_of(word, {"free", "pack", "scatter", "vscatter"}) ? 0
                     : is_one_of(word, {"excl", "exclhost", "shared"})        ? 1
                     : word.starts_with("group=") && word.size() > 6          ? 2
                                                                              : 3;
    if (kind == 3 || ++kinds[kind] > 1) return false;
  }
  return true;
}

// "2:ppn=4", "node1+node2": names of nodes and properties are the site's.
bool is_nodes(View text) {
  return std::ranges::all_of(split(text, '+'), [](View chunk) {
    const auto items = split(chunk, ':');
    return items.front() != "0" && std::ranges::all_of(items, [](View item) {
             if (item.starts_with("gpus=") || item.starts_with("mem=")) return false;
             return !item.starts_with("ppn=") || within(item.substr(4), 1, 2'147'483'647);
           });
  });
}

bool is_dependency(View text) {
  return std::ranges::all_of(split(text, ','), [](View one) {
    const auto items = split(trim(one), ':');
    if (!is_one_of(items.front(), {"on", "after", "afterok", "afternotok", "afterany", "before",
                                   "beforeok", "beforenotok", "beforeany", "runone"}))
      return false;
    return items.size() > 1 && std::all_of(items.begin() + 1, items.end(), [](View id) {
             const std::size_t bracket = id.find('[');  // of a whole array
             return !id.empty() && id.front() >= '0' && id.front() <= '9' &&
                    (bracket == id.npos || id.substr(bracket, 2) == "[]");
           });
  });
}

// "depend=afterok:1,afterany:2,block=true": a member without a name belongs to the one before.
bool is_attributes(View text) {
  std::vector<std::pair<View, std::string>> all;
  for (const View item : split(text, ',')) {
    const std::size_t equals = item.find('=');
    if (equals != item.npos && is_identifier(item.substr(0, equals)))
      all.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    else if (all.empty())
      return false;
    else
      all.back().second += fmt::format(",{}", item);
  }
  return std::ranges::all_of(all, [](const auto& one) {
    const std::string value = to_lower(one.second);
    if (one.first == "depend") return is_dependency(one.second);
    if (is_one_of(one.first, {"umask", "run_count"})) return is_count(value);
    if (is_one_of(one.first, {"block", "release_nodes_on_stageout"}))
      return value == "true" || value == "false";
    if (one.first == "tolerate_node_failures")
      return is_one_of(value, {"all", "none", "job_start"});
    if (is_one_of(one.first, {"group_list", "x"})) return one.first != "x" && !value.empty();
    if (one.first == "sandbox") return is_one_of(value, {"home", "private", "o_workdir"});
    if (one.first == "stagein" || one.first == "stageout") return value.find('@') != value.npos;
    return true;
  });
}

struct Row {
  View option;
  bool (*good)(View value);
  const char* expected;
};

constexpr Row kRows[] = {
    {"-N", is_name, "at most 230 letters, digits, '.', '_', '-' and '+'"},
    {"-J", is_range, "FIRST-LAST[:STEP], FIRST below LAST: -J 1-8"},
    {"-a", is_start, "[[[[CC]YY]MM]DD]hhmm[.SS]: -a 2230"},
    {"-c", is_checkpoint, "n, s, c, w, c=MINUTES or w=MINUTES"},
    {"-p", is_priority, "a number from -1024 to 1023"},
    {"-S", are_paths, "an absolute path: -S /bin/bash"},
    {"-W", is_attributes, "NAME=VALUE, as depend=afterok:JOB, block=true, umask=022"},
    {"-j",
     [](View v) {
       return is_one_of(v, {"oe", "eo", "n"});
     },
     "oe, eo or n"},
    {"-k", [](View v) { return letters_or(v, "doe", "n") && v != "d"; },
     "n, or letters of o, e and d: -k doe"},
    {"-m", [](View v) { return letters_or(v, "abej", "n"); },
     "n, or letters of a, b and e: -m abe"},
    {"-r", [](View v) { return v == "y" || v == "n"; }, "y or n"},
    {"-R", [](View v) { return letters_or(v, "oe", "oe"); }, "o, e or oe"},
    {"-l select", is_select, "[COUNT:]NAME=VALUE[:...][+...]: -l select=2:ncpus=64:mpiprocs=4"},
    {"-l place", is_place,
     "free, pack, scatter or vscatter, with :excl or :shared, with :group=NAME"},
    {"-l nodes", is_nodes, "COUNT[:ppn=N], COUNT of 1 or more"},
};

// Text that somebody fills in before it is submitted, or that no shell expands (variable-in-directive).
bool is_open(View value) { return value.find_first_of("$`<{") != value.npos; }

bool needs_value(View option) {
  return option.size() == 2 && View("aAcCeJjklmMNopPqrRSuvW").find(option[1]) != View::npos;
}

void resource(const Ask& ask, View name, Findings& findings) {
  if (is_one_of(name, {"ppn", "excl", "scatter", "pack", "shared"}))
    findings.add("directive-value", ask.span, fmt::format("{} is no resource of its own", name),
                 name == "ppn" ? "-l nodes=N:ppn=P, or -l select=N:ncpus=P:mpiprocs=P"
                               : "-l place=scatter:excl");
  else if (!is_identifier(name))
    findings.add("directive-value", ask.span,
                 fmt::format("{} is not NAME=VALUE: qsub refuses the job", shown(name)),
                 "-l walltime=1:00:00");
  else if (!is_resource_value(name, ask.value))
    findings.add(
        name.ends_with("walltime") || name.ends_with("cput") ? "bad-time" : "directive-value",
        ask.span, fmt::format("\"{}\" is no value of {}", shown(ask.value, 40), name),
        name.ends_with("time") || name.ends_with("cput") ? "HH:MM:SS, or seconds"
        : is_one_of(name, {"ncpus", "mpiprocs", "ompthreads", "nice"})
            ? "a whole number"
            : "a whole number with kb, mb, gb or tb: 16gb");
}

}  // namespace

void check_pbs(const Script& script, Findings& findings) {
  const bool torque = for_torque(script);
  for (const Ask& ask : script.asks) {
    if (ask.system != "pbs" || script.shell.directives[ask.directive].late) continue;
    const bool may_be_empty = is_one_of(ask.name, {"-A", "-P", "-q"}) && !ask.value_span.empty();
    if (needs_value(ask.name) && ask.value.empty() && !may_be_empty) {
      findings.add("directive-value", ask.span, fmt::format("{} needs a value", ask.name));
      continue;
    }
    if (is_open(ask.value) || torque) continue;
    const auto row = std::ranges::find(kRows, ask.name, &Row::option);
    if (row != std::end(kRows)) {
      if (!row->good(ask.value))
        findings.add(
            "directive-value", ask.span,
            fmt::format("qsub refuses \"{}\" as value of {}", shown(ask.value, 60), ask.name),
            row->expected);
    } else if (ask.name.starts_with("-l ")) {
      resource(ask, View(ask.name).substr(3), findings);
    }
  }
}

}  // namespace hpclaunch::lint
