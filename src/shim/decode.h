#pragma once
// HPCLAUNCH_PLAN, read without a heap or a library. The grammar is in docs/reference/shim.md.
//
// A checksum tells a damaged plan, so that what passes is as hpclaunch wrote it: nothing here looks for mistakes in
// it, and no plan makes a read or a write out of bounds. All of it is constexpr; tests/shim/static_test.cpp lets the
// compiler check it.

#include "text.h"

namespace hpclaunch::shim {

constexpr int kMaxClasses = 1024;       // node classes in one plan
constexpr int kMaxSet = 256;            // variables set for one rank
constexpr int kArenaBytes = 64 * 1024;  // their NAME=VALUE strings

/// What is wrong with the plan; `what` is null when nothing is. `piece` is quoted from the plan.
struct Fault {
  const char* what = nullptr;
  Text piece = {};
};

/// Where a rank stands. All numbers count from 0.
struct Place {
  int rank = -1;
  int local = -1;
  int node = -1;
  int local_size = 0;
  int node_class = -1;
};

/// The number behind "@.rank" and its like; false: no such fact.
constexpr bool fact(Text item, const Place& place, int& number) {
  if (item == "@.rank") return number = place.rank, true;
  if (item == "@.local-rank") return number = place.local, true;
  if (item == "@.node") return number = place.node, true;
  if (item == "@.local-size") return number = place.local_size, true;
  return false;
}

constexpr Text kNodeAddress = "@.address";  ///< the node's, which is looked up

enum class Verify { off, warn, strict, report };

/// How long the shim is there: until the program starts, or until it has ended.
enum class Stay {
  no,
  exit,  ///< its exit status, or its signal, becomes ours
  kill,  ///< a failure kills our process group: this launcher reacts to nothing else
};

/// What all ranks agree on.
struct Plan {
  Text rank_name;   ///< variable that holds the global rank; empty until known
  Text local_name;  ///< empty when the launcher has none
  Text layout;
  Text fields;  ///< all that follows the length
  Verify verify = Verify::warn;
  Text core;         ///< "unlimited" or bytes; empty: the limit stays
  Text directories;  ///< escaped paths, '/' between; empty: none
  Text logs;         ///< escaped path of the directory for the ranks' logs; empty: none
  Text shown;        ///< list of the local ranks whose output goes on; empty: of all
  Text hosts;        ///< a mark of kHostMark characters for each node; empty: not compared
  Text counted;      ///< the cores through which parts are counted; empty: each CPU is one
  Text order;    ///< the same with marks of one character, of hosts that are named as in the plan
  Text same;     ///< NAME*MARK with '/' between; empty: none
  Text absent;   ///< names with '/' between; empty: none
  Text present;  ///< the same, set to anything
  Text show;     ///< names, or their beginnings with '*', whose values a report has
  Text devices;  ///< VENDOR*FILE with '/' between: a stem in /dev, or a PCI id of render nodes
  Text gpus;     ///< PCI addresses as escaped paths, "/0000:18:00.0"
  Text usual;    ///< mark of what most reports have in common
  Text image;    ///< escaped: what the container was made of; empty: there is none
  Text cwd;      ///< escaped path: the working directory inside it
  Text
      after;  ///< seconds of the program, or "end", before its threads are reported; empty: before it starts
  bool import = false;  ///< argv imports a Python module first
  int port = 0;         ///< 0: none
  int first = 0;  ///< rank for which rank_name has 0: this node is started apart from the others
  Stay stay = Stay::no;
  bool with_parent = false;
  int signal = 0;                    ///< before the time limit; 0: none
  unsigned long long signal_at = 0;  ///< UNIX time
  int classes = 0;
  int class_ranks[kMaxClasses] = {};
};

/// Takes ":key=column" off the front of `rest`.
constexpr bool take_field(Text& rest, Text& key, Text& column) {
  if (rest.size == 0 || rest.at[0] != ':') return false;
  Text field;
  rest = rest.from(1);
  if (cut(rest, ':', field)) rest = {rest.at - 1, rest.size + 1};
  column = field;
  return cut(column, '=', key) && key.size > 0;
}

constexpr bool is_directive(Text key) { return key.at[0] >= 'a' && key.at[0] <= 'z'; }

constexpr bool read_verify(Text word, Verify& verify) {
  if (word == "off") return verify = Verify::off, true;
  if (word == "warn") return verify = Verify::warn, true;
  if (word == "strict") return verify = Verify::strict, true;
  if (word == "report") return verify = Verify::report, true;
  return false;
}

constexpr int kHostMark = 3;
constexpr int kValueMark = 5;
constexpr int kMaxPort = 65535;

constexpr bool read_stay(Text word, Stay& stay) {
  if (word == "exit") return stay = Stay::exit, true;
  if (word == "kill") return stay = Stay::kill, true;
  return false;
}

/// "SIGNAL*TIME"
constexpr bool read_signal(Text text, Plan& plan) {
  if (!take_number(text, plan.signal) || text.size < 2) return false;
  text = text.from(1);
  if (text.size > 2 && text.at[0] == '^') text = {text.at + 1, text.size - 2};
  return is_bytes(text, plan.signal_at);
}

/// False: a directive that this version does not know.
constexpr bool read_directive(Text key, Text column, Plan& plan) {
  constexpr struct {
    Text key;
    Text Plan::*text;
  } kTexts[] = {
      {"rank", &Plan::rank_name},  {"local", &Plan::local_name}, {"core", &Plan::core},
      {"dir", &Plan::directories}, {"log", &Plan::logs},         {"layout", &Plan::layout},
      {"same", &Plan::same},       {"absent", &Plan::absent},    {"present", &Plan::present},
      {"show", &Plan::show},       {"devices", &Plan::devices},  {"gpus", &Plan::gpus},
      {"usual", &Plan::usual},     {"hosts", &Plan::hosts},      {"order", &Plan::order},
      {"image", &Plan::image},     {"cwd", &Plan::cwd},          {"after", &Plan::after},
      {"counted", &Plan::counted}, {"shown", &Plan::shown}};
  for (const auto& [name, text] : kTexts)
    if (key == name) return plan.*text = column, true;
  if (key == "class" && plan.classes < kMaxClasses) {
    int& ranks = plan.class_ranks[plan.classes++];
    return is_number(column, ranks) && ranks > 0;
  }
  if (key == "verify") return read_verify(column, plan.verify);
  if (key == "port") return is_number(column, plan.port);
  if (key == "first") return is_number(column, plan.first);
  if (key == "import") return plan.import = true, column == "first";
  if (key == "stay") return read_stay(column, plan.stay);
  if (key == "end") return plan.with_parent = true, column == "with-parent";
  if (key == "notice") return read_signal(column, plan);
  return key == "cpus" || key == "expect" || key == "part" || key == "granted";
}

/// Takes "C*N" off the front of `layout`, a rest of the plan's. False: there is none.
constexpr bool take_run(const Plan& plan, Text& layout, int& node_class, int& nodes) {
  Text run;
  cut(layout, '/', run);
  return take_number(run, node_class) && node_class < plan.classes && run.size > 1 &&
         is_number(run.from(1), nodes);
}

/// Number of ranks in the plan.
constexpr long long world_size(const Plan& plan) {
  Text rest = plan.layout;
  long long ranks = 0;
  int node_class = 0;
  int nodes = 0;
  while (take_run(plan, rest, node_class, nodes) && ranks < kMaxNumber)
    ranks += static_cast<long long>(nodes) * plan.class_ranks[node_class];
  return ranks;
}

/// Reads HPCLAUNCH_PLAN. `rank_name` is filled before the checksum is compared, so that also a damaged plan is
/// reported by one rank.
constexpr Fault read_plan(Text wire, Plan& plan) {
  constexpr Text kVersion = "hl2.";
  if (wire.size < kVersion.size || !(Text{wire.at, kVersion.size} == kVersion))
    return {"unknown version", wire};
  Text rest = wire.from(kVersion.size);
  Text checksum;
  if (cut(rest, ':', checksum)) plan.fields = {rest.at - 1, rest.size + 1};
  Text key;
  Text column;
  rest = plan.fields;
  if (take_field(rest, key, column)) read_directive(key, column, plan);
  if (checksum.size != kValueMark || !is_mark_of(checksum, fnv1a(plan.fields, true)))
    return {"cut short or changed on its way", wire};
  while (take_field(rest, key, column))
    if (is_directive(key) && !read_directive(key, column, plan))
      return {"unknown directive", {key.at, key.size + 1 + column.size}};
  return {};
}

/// Finds the node of place.rank, and fills the rest of `place`. Ranks are distributed in blocks, node
/// after node. False: the rank is beyond the plan.
constexpr bool locate(const Plan& plan, Place& place) {
  Text rest = plan.layout;
  long long left = place.rank;
  place.node = 0;
  int nodes = 0;
  while (take_run(plan, rest, place.node_class, nodes)) {
    place.local_size = plan.class_ranks[place.node_class];
    const long long run = static_cast<long long>(nodes) * place.local_size;
    if (left < run) {
      place.node += static_cast<int>(left / place.local_size);
      place.local = static_cast<int>(left % place.local_size);
      return true;
    }
    left -= run;
    place.node += nodes;
  }
  return false;
}

/// True where the output of the rank is not shown.
constexpr bool is_hidden(const Plan& plan, const Place& place) {
  Mask shown;
  return plan.shown.size > 0 && read_list(plan.shown, shown) && !shown.has(place.local);
}

}  // namespace hpclaunch::shim
