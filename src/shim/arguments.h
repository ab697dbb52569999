#pragma once
// The program's words, with names in braces filled in: --master_addr={MASTER_ADDR}. docs/reference/shim.md.
#include "environment.h"

namespace hpclaunch::shim {

constexpr int kArgumentBytes = 64 * 1024;  // words that were changed, together

/// A name in a word, "{RANK}" or "{{RANK}}".
struct Braced {
  int at = -1;  ///< its first brace; -1: there is none
  int end = 0;  ///< behind the last one
  Text name;
  bool doubled = false;
};

/// Words that are changed move to `bytes`; the others stay where they are.
struct Arguments {
  char bytes[kArgumentBytes] = {};
  int used = 0;
  bool full = false;
  Text missing;  ///< a name that has no value

  constexpr void add(Text text) {
    for (int i = 0; i < text.size; ++i) {
      if (used == kArgumentBytes) {
        full = true;
        return;
      }
      bytes[used++] = text.at[i];
    }
  }
};

/// What differs from rank to rank, and where the ranks meet.
constexpr bool is_filled(Text name) {
  constexpr Text kFilled[] = {"MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "NODE_RANK"};
  for (const Text one : kFilled)
    if (name == one) return true;
  return false;
}

/// The name in `braces` braces that begins at `at`.
constexpr Braced name_at(Text word, int at, int braces) {
  const auto all = [&](int from, char what) {
    for (int i = from; i < from + braces; ++i)
      if (i >= word.size || word.at[i] != what) return false;
    return true;
  };
  if (!all(at, '{')) return {};
  const int begin = at + braces;
  int end = begin;
  while (end < word.size && word.at[end] != '{' && word.at[end] != '}') ++end;
  const Text name = {word.at + begin, end - begin};
  if (!is_filled(name) || !all(end, '}')) return {};
  return {at, end + braces, name, braces == 2};
}

/// Behind the brace that closes the one at `at`.
constexpr int behind_braces(Text word, int at) {
  int open = 0;
  for (int i = at; i < word.size; ++i) {
    if (word.at[i] == '{') ++open;
    if (word.at[i] == '}' && --open == 0) return i + 1;
  }
  return word.size;
}

/// The next name at `from` or behind it. What other braces enclose is none ({"rank": {RANK}}), nor is a shell's ${RANK}.
constexpr Braced next_name(Text word, int from) {
  for (int i = from; i < word.size;) {
    if (word.at[i] != '{') {
      ++i;
      continue;
    }
    Braced found = name_at(word, i, 2);
    if (found.at < 0) found = name_at(word, i, 1);
    if (found.at >= 0 && (i == 0 || word.at[i - 1] != '$')) return found;
    i = behind_braces(word, i);
  }
  return {};
}

/// nullptr: nothing is filled in.
constexpr char* filled(Text word, const char* const* environment, Arguments& out) {
  const int start = out.used;
  int done = 0;
  for (Braced one = next_name(word, 0); one.at >= 0; one = next_name(word, one.end)) {
    out.add({word.at + done, one.at - done});
    done = one.end;
    const Text value = find(environment, one.name);
    if (one.doubled)
      out.add({one.name.at - 1, one.name.size + 2});
    else if (value.at != nullptr)
      out.add(value);
    else
      out.missing = one.name;
  }
  if (done == 0) return nullptr;
  out.add(word.from(done));
  out.add({"", 1});
  return out.bytes + start;
}

/// `argv`: the program's, up to a null pointer. `environment`: what the program gets.
constexpr void fill_arguments(char** argv, const char* const* environment, Arguments& out) {
  for (++argv; *argv != nullptr && !out.full && out.missing.size == 0; ++argv)
    if (char* word = filled(Text(*argv), environment, out)) *argv = word;
}

}  // namespace hpclaunch::shim
