#pragma once
// HPCLAUNCH_PLAN, read without a heap or a library. The grammar is in docs/reference/shim.md.
//
// Every rank checks the whole plan, also the parts that are not its own: a damaged plan is then a
// fault that all ranks share, and rank 0 alone can report it. All of it is constexpr;
// tests/shim/static_test.cpp lets the compiler check it.

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

constexpr bool valid_item(Text item) {
  int ignored = 0;
  if (item.size > 0 && item.at[0] == '@') return fact(item, {}, ignored);
  while (item.size > 0) {
    if (take_byte(item) < 0) return false;
  }
  return true;
}

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
  Text hosts;        ///< a mark of kHostMark characters for each node; empty: not compared
  Text order;    ///< the same with marks of one character, of hosts that are named as in the plan
  Text same;     ///< NAME*MARK with '/' between; empty: none
  Text absent;   ///< names with '/' between; empty: none
  Text present;  ///< the same, set to anything
  Text show;     ///< names, or their beginnings with '*', whose values a report has
  Text devices;  ///< VENDOR*FILE with '/' between: a stem in /dev, or a PCI id of render nodes
  Text gpus;     ///< PCI addresses as escaped paths, "/0000:18:00.0"
  Text usual;    ///< mark of what most reports have in common
  bool import = false;  ///< argv imports a Python module first
  int port = 0;         ///< 0: none
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

/// `items` 1, or one for each of the `ranks` of a class; every one of them valid.
constexpr Fault check_column(Text key, Text column, int ranks, bool (*valid)(Text)) {
  const Text all = column;
  Text item;
  int items = 0;
  for (bool more = true; more; ++items) {
    more = cut(column, '/', item);
    if (!valid(item)) return {"malformed value", {key.at, key.size + 1 + all.size}};
  }
  if (items == 1 || items == ranks) return {};
  return {"not one value for each rank of the node", key};
}

constexpr bool read_verify(Text word, Verify& verify) {
  if (word == "off") return verify = Verify::off, true;
  if (word == "warn") return verify = Verify::warn, true;
  if (word == "strict") return verify = Verify::strict, true;
  if (word == "report") return verify = Verify::report, true;
  return false;
}

constexpr bool read_core(Text word, Plan& plan) {
  unsigned long long ignored = 0;
  return plan.core = word, word == "unlimited" || is_bytes(word, ignored);
}

/// Every piece between '/' is valid; unlike a column's there may be any number.
constexpr bool all_valid(Text list, bool (*valid)(Text)) {
  Text item;
  for (bool more = true; more;) {
    more = cut(list, '/', item);
    if (!valid(item)) return false;
  }
  return true;
}

constexpr int kHostMark = 3;
constexpr int kValueMark = 5;
constexpr int kMaxPort = 65535;
constexpr int kMaxSignal = 64;

/// "NAME*MARK"
constexpr bool valid_same(Text item) {
  Text name;
  return cut(item, '*', name) && is_identifier(name) && valid_mark(item, kValueMark);
}

/// "NAME", "NAME*"
constexpr bool valid_pattern(Text item) {
  const bool open = item.size > 0 && item.at[item.size - 1] == '*';
  return is_identifier({item.at, item.size - (open ? 1 : 0)});
}

/// "NAME*FILE"
constexpr bool valid_device(Text item) {
  Text name;
  return cut(item, '*', name) && is_identifier(name) && item.size > 0;
}

constexpr bool read_hosts(Text marks, Plan& plan) {
  plan.hosts = marks;
  for (int i = 0; i + kHostMark <= marks.size; i += kHostMark) {
    const Text mark(marks.at + i, kHostMark);
    if (!(mark == "...") && !valid_mark(mark, kHostMark)) return false;
  }
  return marks.size > 0 && marks.size % kHostMark == 0;
}

constexpr bool read_order(Text marks, Plan& plan) {
  plan.order = marks;
  for (int i = 0; i < marks.size; ++i)
    if (marks.at[i] != '.' && !valid_mark({marks.at + i, 1}, 1)) return false;
  return marks.size > 0;
}

constexpr bool read_stay(Text word, Stay& stay) {
  if (word == "exit") return stay = Stay::exit, true;
  if (word == "kill") return stay = Stay::kill, true;
  return false;
}

constexpr bool read_signal(Text text, Plan& plan) {
  return take_number(text, plan.signal) && plan.signal > 0 && plan.signal <= kMaxSignal &&
         text.size > 1 && text.at[0] == '*' && is_bytes(text.from(1), plan.signal_at);
}

/// What all classes share. False: malformed; `known` false: none of these.
constexpr bool read_common(Text key, Text column, Plan& plan, bool& known) {
  known = true;
  if (key == "local") return is_identifier(plan.local_name = column);
  if (key == "verify") return read_verify(column, plan.verify);
  if (key == "core") return read_core(column, plan);
  if (key == "dir") return all_valid(plan.directories = column, valid_path);
  if (key == "log") return valid_path(plan.logs = column);
  if (key == "layout") return plan.layout = column, true;
  if (key == "port") return is_number(column, plan.port) && plan.port > 0 && plan.port <= kMaxPort;
  if (key == "same") return all_valid(plan.same = column, valid_same);
  if (key == "absent") return all_valid(plan.absent = column, is_identifier);
  if (key == "present") return all_valid(plan.present = column, is_identifier);
  if (key == "show") return all_valid(plan.show = column, valid_pattern);
  if (key == "devices") return all_valid(plan.devices = column, valid_device);
  if (key == "gpus") return all_valid(plan.gpus = column, valid_path);
  if (key == "usual") return valid_mark(plan.usual = column, kValueMark);
  if (key == "import") return plan.import = true, column == "first";
  if (key == "hosts") return read_hosts(column, plan);
  if (key == "order") return read_order(column, plan);
  if (key == "stay") return read_stay(column, plan.stay);
  if (key == "end") return plan.with_parent = true, column == "with-parent";
  if (key == "notice") return read_signal(column, plan);
  return known = false, true;
}

constexpr Fault read_directive(Text key, Text column, Plan& plan) {
  const bool inside = plan.classes > 0;
  const int ranks = inside ? plan.class_ranks[plan.classes - 1] : 1;
  const Fault malformed = {"malformed value", {key.at, key.size + 1 + column.size}};
  if (key == "class") {
    if (plan.classes == kMaxClasses) return {"too many node classes", key};
    if (!is_number(column, plan.class_ranks[plan.classes++])) return malformed;
    return plan.class_ranks[plan.classes - 1] > 0 ? Fault{} : malformed;
  }
  if (key == "cpus" || key == "expect") {
    return inside ? check_column(key, column, ranks, valid_list) : Fault{"not in a class", key};
  }
  int granted = 0;
  if (inside && key == "part") return check_column(key, column, ranks, valid_part);
  if (inside && key == "granted")
    return is_number(column, granted) && granted > 0 ? Fault{} : malformed;
  if (inside) return {"unknown directive", key};
  bool known = false;
  if (!read_common(key, column, plan, known)) return malformed;
  return known ? Fault{} : Fault{"unknown directive", key};
}

/// Takes "C*N" off the front of the layout. `more`: another run follows.
constexpr bool take_run(Text& layout, int classes, int& node_class, int& nodes, bool& more) {
  Text run;
  more = cut(layout, '/', run);
  if (!take_number(run, node_class) || node_class >= classes) return false;
  return run.size > 1 && run.at[0] == '*' && is_number(run.from(1), nodes) && nodes > 0;
}

/// Number of ranks in the plan; 0 when the layout is malformed, the number is too large, or there are
/// marks for another number of hosts.
constexpr int world_size(const Plan& plan) {
  Text rest = plan.layout;
  long long ranks = 0;
  long long all_nodes = 0;
  int node_class = 0;
  int nodes = 0;
  for (bool more = true; more;) {
    if (!take_run(rest, plan.classes, node_class, nodes, more)) return 0;
    ranks += static_cast<long long>(nodes) * plan.class_ranks[node_class];
    all_nodes += nodes;
    if (ranks > kMaxNumber || all_nodes > kMaxNumber) return 0;
  }
  const bool marked = (plan.hosts.size == 0 || plan.hosts.size == kHostMark * all_nodes) &&
                      (plan.order.size == 0 || plan.order.size == all_nodes);
  return marked ? static_cast<int>(ranks) : 0;
}

/// Reads and checks all of HPCLAUNCH_PLAN. `rank_name` is filled as early as possible, so that also
/// a damaged plan is reported by one rank.
constexpr Fault read_plan(Text wire, Plan& plan) {
  int bytes = 0;
  if (wire.size < 4 || !(Text{wire.at, 4} == "hl1.")) return {"unknown version", wire};
  Text rest = wire.from(4);
  if (!take_number(rest, bytes)) return {"no length", wire};
  plan.fields = rest;
  Text key;
  Text column;
  if (!take_field(rest, key, column) || !(key == "rank") || !is_identifier(column)) {
    return {bytes == plan.fields.size ? "does not begin with rank=" : "cut short", wire};
  }
  plan.rank_name = column;
  if (bytes != plan.fields.size) return {"cut short or changed on its way", wire};
  while (rest.size > 0) {
    const Text here = rest;
    if (!take_field(rest, key, column)) return {"malformed field", here};
    Fault fault;
    if (is_directive(key)) {
      fault = read_directive(key, column, plan);
    } else if (!valid_name(key)) {
      fault = {"malformed variable name", key};
    } else {
      const int ranks = plan.classes > 0 ? plan.class_ranks[plan.classes - 1] : 1;
      fault = check_column(key, column, ranks, valid_item);
    }
    if (fault.what != nullptr) return fault;
  }
  if (world_size(plan) == 0) return {"malformed layout", plan.layout};
  return {};
}

/// Finds the node of place.rank, and fills the rest of `place`. Ranks are distributed in blocks, node
/// after node. False: the rank is beyond the plan.
constexpr bool locate(const Plan& plan, Place& place) {
  Text rest = plan.layout;
  long long left = place.rank;
  place.node = 0;
  int nodes = 0;
  for (bool more = true; more;) {
    if (!take_run(rest, plan.classes, place.node_class, nodes, more)) return false;
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

}  // namespace hpclaunch::shim
