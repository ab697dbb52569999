#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "authoring/markdown.h"
#include "authoring/page.h"

namespace hpclaunch::cli::page {

namespace {

using Op = Test::Op;

// How a number is compared, with a place for it.
const char* comparison(Op op) {
  switch (op) {
    case Op::lt:
      return "fewer than {}";
    case Op::le:
      return "at most {}";
    case Op::gt:
      return "more than {}";
    case Op::ge:
      return "{} or more";
    case Op::ne:
    case Op::unlike:
      return "not {}";
    case Op::like:
      return "like {}";
    default:
      return "{}";
  }
}

std::string plain_list(const std::vector<std::string>& values) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += i + 1 == values.size() ? " or " : ", ";
    out += markdown::text(values[i]);
  }
  return out;
}

std::string amount(const Test& test) {
  return fmt::format(fmt::runtime(comparison(test.op)), plain_list(test.values));
}

struct Counted {
  const char* fact;
  const char* before;
  const char* one;
  const char* many;
};
constexpr std::array kCounted = {
    Counted{"nodes", "on ", "node", "nodes"},
    Counted{"ranks", "", "rank", "ranks"},
    Counted{"ranks_per_node", "", "rank per node", "ranks per node"},
    Counted{"ranks_per_device", "", "rank on a device", "ranks on a device"},
    Counted{"min_cores", "", "core for each rank", "cores for each rank"},
    Counted{"devices", "", "device on the node", "devices on the node"},
    Counted{"units", "", "unit on the node", "units on the node"},
    Counted{"live.numa_nodes", "", "NUMA node on this node", "NUMA nodes on this node"},
    Counted{"live.cores", "", "core on this node", "cores on this node"},
};

struct Named {
  const char* fact;
  const char* what;
};
constexpr std::array kNamed = {
    Named{"stack", "stack"},           Named{"device_mode", "mode"},
    Named{"gpu_view", "view"},         Named{"node_type", "node type"},
    Named{"launcher", "launcher"},     Named{"scheduler", "batch system"},
    Named{"host.first", "first host"}, Named{"host.first.short", "first host"},
};

struct YesNo {
  const char* fact;
  const char* yes;
  const char* no;
};
constexpr std::array kYesNo = {
    YesNo{"in_job", "inside a job", "outside a job"},
    YesNo{"even", "the same ranks on every node", "nodes with different numbers of ranks"},
    YesNo{"cores_divide", "the node's cores divide by its ranks",
          "the node's cores do not divide by its ranks"},
    YesNo{"whole_node", "on whole nodes", "on parts of nodes"},
};

// "`own` or `all`", "not `plain`"
std::string named_values(const Test& test) {
  if (test.op == Op::is_set) return "known";
  if (test.op == Op::is_unset) return "unknown";
  const bool refuses = test.op == Op::ne || test.op == Op::unlike;
  return fmt::format(fmt::runtime(comparison(test.op)),
                     markdown::codes(test.values, refuses ? "nor" : "or"));
}

std::string of_export(const std::string& name, const Test& test) {
  const std::string shown = markdown::code(name);
  if (test.op == Op::is_set) return shown + " is exported";
  if (test.op == Op::is_unset) return shown + " is not exported";
  return fmt::format("exported {} is {}", shown, named_values(test));
}

std::string of_value(const std::string& name, const Test& test) {
  const std::string shown = markdown::code(name);
  if (test.op == Op::is_set) return shown + " is set";
  if (test.op == Op::is_unset) return shown + " is not set";
  return fmt::format("{} is {}", shown, named_values(test));
}

std::string of_module(const std::string& name, const Test& test) {
  const std::string shown = "module " + markdown::code(name);
  switch (test.op) {
    case Op::is_set:
      return shown + " is loaded";
    case Op::is_unset:
      return shown + " is not loaded";
    case Op::lt:
      return fmt::format("{} older than {}", shown, plain_list(test.values));
    case Op::le:
      return fmt::format("{} {} or older", shown, plain_list(test.values));
    case Op::gt:
      return fmt::format("{} newer than {}", shown, plain_list(test.values));
    case Op::ge:
      return fmt::format("{} {} or newer", shown, plain_list(test.values));
    default:
      return fmt::format("{} {}", shown, named_values(test));
  }
}

std::string words(const Test& test) {
  const bool plain = test.op != Op::is_set && test.op != Op::is_unset;
  for (const Counted& one : kCounted)
    if (plain && test.fact == one.fact) {
      const bool single = test.values == std::vector<std::string>{"1"};
      if (test.fact == "devices" && test.op == Op::gt && test.values.front() == "0")
        return "on nodes with devices";
      return fmt::format("{}{} {}", one.before, amount(test), single ? one.one : one.many);
    }
  for (const YesNo& one : kYesNo)
    if (test.fact == one.fact && test.op == Op::eq && test.values.size() == 1)
      return test.values.front() == "yes" ? one.yes : one.no;
  for (const Named& one : kNamed)
    if (test.fact == one.fact) return fmt::format("{} {}", one.what, named_values(test));
  if (test.fact.starts_with("env.")) return of_export(test.fact.substr(4), test);
  if (test.fact.starts_with("value.")) return of_value(test.fact.substr(6), test);
  if (test.fact.starts_with("module.")) return of_module(test.fact.substr(7), test);
  return fmt::format("{} {}", markdown::code(test.fact), named_values(test));
}

}  // namespace

std::string when(const When& tests, std::string_view leave_out) {
  std::string out;
  for (const Test& test : tests)
    if (test.fact != leave_out) out += fmt::format("{}{}", out.empty() ? "" : ", ", words(test));
  return out.empty() ? "always" : out;
}

std::string origin(const std::string& id, const Origin& origin) {
  const std::string name = markdown::link(markdown::code(id), origin.source);
  return origin.checked.empty() ? name : fmt::format("{} {}", name, markdown::text(origin.checked));
}

std::string number_ranges(const std::vector<int>& ascending) {
  constexpr std::size_t kWhole = 3;  // shorter runs are written out, but for neighbours
  std::string out;
  for (std::size_t i = 0; i < ascending.size();) {
    const int step = i + 1 < ascending.size() ? ascending[i + 1] - ascending[i] : 1;
    std::size_t end = i;
    while (end + 1 < ascending.size() && ascending[end + 1] - ascending[end] == step) ++end;
    if (step > 1 && end - i < kWhole) end = i;
    if (!out.empty()) out += ", ";
    if (end == i)
      out += fmt::format("{}", ascending[i]);
    else if (step == 1)
      out += fmt::format("{}-{}", ascending[i], ascending[end]);
    else
      out += fmt::format("{}, {} ... {}", ascending[i], ascending[i + 1], ascending[end]);
    i = end + 1;
  }
  return out;
}

}  // namespace hpclaunch::cli::page
