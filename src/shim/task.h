#pragma once
// What one rank has to do, collected from a plan that read_plan has accepted.

#include "decode.h"

namespace hpclaunch::shim {

enum class Binding { none, bind, expect, part };

/// What one rank does before it starts the program.
struct Task {
  Binding binding = Binding::none;
  Mask mask;
  int part_first = 0;  ///< of a part, as part_last
  int part_last = 0;
  int granted = 0;       ///< cores that must be found for a part to hold; 0: any number
  Text counted;          ///< Plan::counted
  bool outside = false;  ///< the CPUs are not all among those that the rank was started with
  Mask given;            ///< which are these then
  Text named;   ///< the lists of all ranks of a node that may have these CPUs; empty: a part alone
  Text absent;  ///< Plan::absent
  int count = 0;
  char* set[kMaxSet] = {};  ///< NAME=VALUE, zero-terminated, in `arena`
  int name_size[kMaxSet] = {};
  char* arena = nullptr;  ///< given by the caller
  int arena_size = 0;
  int used = 0;
  Text address;  ///< of the node; given by the caller where wants_address() says so

  constexpr bool put(char byte) {
    if (used == arena_size) return false;
    arena[used++] = byte;
    return true;
  }
  constexpr bool put_text(Text escaped) {
    char byte = 0;
    while (take_byte(escaped, byte)) {
      if (!put(byte)) return false;
    }
    return true;
  }
  constexpr bool put_number(int number) {
    return (number < 10 || put_number(number / 10)) && put("0123456789"[number % 10]);
  }
};

/// Adds NAME=VALUE. False: no room.
constexpr bool assign(Text name, Text item, const Place& place, Task& task) {
  if (task.count == kMaxSet) return false;
  const int start = task.used;
  if (!task.put_text(name)) return false;
  const int name_size = task.used - start;
  int number = 0;
  if (item == kNodeAddress) {
    if (task.address.size == 0) return task.used = start, true;
    item = task.address;
  }
  const bool is_fact = item.size > 0 && item.at[0] == '@' && fact(item, place, number);
  if (!task.put('=') || !(is_fact ? task.put_number(number) : task.put_text(item))) return false;
  if (!task.put('\0')) return false;
  task.set[task.count] = task.arena + start;
  task.name_size[task.count++] = name_size;
  return true;
}

constexpr bool wants_address(const Plan& plan) {
  Text rest = plan.fields;
  Text key;
  Text column;
  while (take_field(rest, key, column))
    if (column == kNodeAddress) return true;
  return false;
}

/// Collects what concerns `place` from a plan that read_plan has accepted.
constexpr Fault read_task(const Plan& plan, const Place& place, Task& task) {
  Text rest = plan.fields;
  Text key;
  Text column;
  Text item;
  int node_class = -1;
  task.absent = plan.absent;
  task.counted = plan.counted;
  while (take_field(rest, key, column)) {
    if (key == "class") ++node_class;
    if (node_class >= 0 && node_class != place.node_class) continue;
    pick(column, place.local, item);
    if (!is_directive(key)) {
      if (!assign(key, item, place, task)) return {"too many variables, or too long", key};
    } else if (key == "granted") {
      is_number(item, task.granted);
    } else if (key == "part") {
      task.binding = Binding::part;
      read_part(item, task.part_first, task.part_last);
    } else if ((key == "cpus" || key == "expect") && item.size > 0) {
      task.binding = key == "cpus" ? Binding::bind : Binding::expect;
      task.named = column;
      task.mask = {};
      read_list(item, task.mask);
    }
  }
  return {};
}

/// Task::mask for a part: the CPUs that the plan names, where this node has those of all its ranks, else as many counted
/// through `found`. `many`: cores, or CPUs, that are there. False: another number than granted.
constexpr bool choose_part(const Mask& found, Task& task, int& many) {
  Mask part;
  many = task.counted.size > 0
             ? take_cores(found, task.counted, task.part_first, task.part_last, part)
             : take_part(found, task.part_first, task.part_last, part);
  if ((task.granted > 0 && many != task.granted) || many <= task.part_last) return false;
  Mask named;
  each_piece(task.named, [&](Text list) { read_list(list, named); });
  if (task.named.size == 0 || !found.contains(named)) task.mask = part;
  return true;
}

}  // namespace hpclaunch::shim
