#pragma once
// HPCLAUNCH_PLAN, read without a heap or a library. The grammar is in docs/shim.md.
//
// Every rank checks the whole plan, also the parts that are not its own: a damaged plan is then a
// fault that all ranks share, and rank 0 alone can report it. All of it is constexpr; the compiler
// runs the assertions at the end of this file.

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

enum class Verify { off, warn, strict };

/// What all ranks agree on.
struct Plan {
  Text rank_name;   ///< variable that holds the global rank; empty until known
  Text local_name;  ///< empty when the launcher has none
  Text layout;
  Text fields;  ///< all that follows the length
  Verify verify = Verify::warn;
  Text core;         ///< "unlimited" or bytes; empty: the limit stays
  Text directories;  ///< escaped paths, '/' between; empty: none
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
  return false;
}

constexpr bool read_core(Text word, Plan& plan) {
  unsigned long long ignored = 0;
  return plan.core = word, word == "unlimited" || is_bytes(word, ignored);
}

/// As many as there are, unlike the columns, every one of them an absolute path.
constexpr bool read_directories(Text column, Plan& plan) {
  plan.directories = column;
  Text item;
  for (bool more = true; more;) {
    more = cut(column, '/', item);
    if (!valid_path(item)) return false;
  }
  return true;
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
  if (inside) return {"unknown directive", key};
  if (key == "local") return is_identifier(plan.local_name = column) ? Fault{} : malformed;
  if (key == "verify") return read_verify(column, plan.verify) ? Fault{} : malformed;
  if (key == "core") return read_core(column, plan) ? Fault{} : malformed;
  if (key == "dir") return read_directories(column, plan) ? Fault{} : malformed;
  if (key == "layout") return plan.layout = column, Fault{};
  return {"unknown directive", key};
}

/// Takes "C*N" off the front of the layout. `more`: another run follows.
constexpr bool take_run(Text& layout, int classes, int& node_class, int& nodes, bool& more) {
  Text run;
  more = cut(layout, '/', run);
  if (!take_number(run, node_class) || node_class >= classes) return false;
  return run.size > 1 && run.at[0] == '*' && is_number(run.from(1), nodes) && nodes > 0;
}

/// Number of ranks in the plan; 0 when the layout is malformed or the number is too large.
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
  return static_cast<int>(ranks);
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

/// Finds the node of place.rank, and fills the rest of `place`. Ranks are dealt in blocks, node
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

enum class Binding { none, bind, expect };

/// What one rank does before it starts the program.
struct Task {
  Binding binding = Binding::none;
  Mask mask;
  int count = 0;
  char* set[kMaxSet] = {};  ///< NAME=VALUE, zero-terminated, in `arena`
  int name_size[kMaxSet] = {};
  char* arena = nullptr;  ///< given by the caller
  int arena_size = 0;
  int used = 0;

  constexpr bool put(int byte) {
    if (used == arena_size) return false;
    arena[used++] = static_cast<char>(byte);
    return true;
  }
  constexpr bool put_text(Text escaped) {
    while (escaped.size > 0) {
      if (!put(take_byte(escaped))) return false;
    }
    return true;
  }
  constexpr bool put_number(int number) {
    return (number < 10 || put_number(number / 10)) && put('0' + number % 10);
  }
};

/// Adds NAME=VALUE. False: no room. Name and item have been checked by read_plan.
constexpr bool assign(Text name, Text item, const Place& place, Task& task) {
  if (task.count == kMaxSet) return false;
  const int start = task.used;
  if (!task.put_text(name)) return false;
  const int name_size = task.used - start;
  int number = 0;
  const bool is_fact = item.size > 0 && item.at[0] == '@' && fact(item, place, number);
  if (!task.put('=') || !(is_fact ? task.put_number(number) : task.put_text(item))) return false;
  if (!task.put('\0')) return false;
  task.set[task.count] = task.arena + start;
  task.name_size[task.count++] = name_size;
  return true;
}

/// Collects what concerns `place` from a plan that read_plan has accepted.
constexpr Fault read_task(const Plan& plan, const Place& place, Task& task) {
  Text rest = plan.fields;
  Text key;
  Text column;
  Text item;
  int node_class = -1;
  while (take_field(rest, key, column)) {
    if (key == "class") ++node_class;
    const bool binds = key == "cpus" || key == "expect";
    if (is_directive(key) && !binds) continue;
    if (node_class >= 0 && node_class != place.node_class) continue;
    pick(column, place.local, item);
    if (!binds) {
      if (!assign(key, item, place, task)) return {"too many variables, or too long", key};
    } else if (item.size > 0) {
      task.binding = key == "cpus" ? Binding::bind : Binding::expect;
      task.mask = {};
      read_list(item, task.mask);
    }
  }
  return {};
}

// ---- the compiler's tests -----------------------------------------------------------------------

static_assert(valid_item("") && valid_item("a%2Fb") && valid_item("%FF") && valid_item("@.node"));
static_assert(!valid_item("%00") && !valid_item("a=b") && !valid_item("a b"));
static_assert(!valid_item("@.hosts") && !valid_item("a@.rank") && !valid_item("@"));

constexpr int kUnread = -2;
constexpr int node_of(Text wire, int rank) {
  Plan plan;
  Place place;
  place.rank = rank;
  if (read_plan(wire, plan).what != nullptr) return kUnread;
  return locate(plan, place) ? place.node * 100 + place.local : -1;
}
constexpr Text kTwoClasses = "hl1.53:rank=R:layout=0*2/1*1:class=3:cpus=0/1/2:class=2:A=x";
static_assert(node_of(kTwoClasses, 0) == 0 && node_of(kTwoClasses, 5) == 102);
static_assert(node_of(kTwoClasses, 6) == 200 && node_of(kTwoClasses, 7) == 201);
static_assert(node_of(kTwoClasses, 8) == -1);
static_assert(node_of({kTwoClasses.at, kTwoClasses.size - 1}, 0) == kUnread);
static_assert(node_of("hl1.38:rank=R:layout=0*1:class=3:cpus=0/1:B=", 0) == kUnread);
static_assert(node_of("hl1.38:rank=R:layout=0*1:class=2147483647:A=", 0) == 0);
static_assert(node_of("hl1.38:rank=R:layout=0*2:class=2147483647:A=", 0) == kUnread);

}  // namespace hpclaunch::shim
