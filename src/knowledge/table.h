#pragma once
// The shape of the compiled catalogue. Texts are offsets into one block of bytes, 0 for "": a row
// with pointers would have to be relocated at every start of the program.
#include <array>
#include <cstdint>
#include <span>

#include "hpclaunch/knowledge.h"

namespace hpclaunch::knowledge {

template <class Entry>
struct Row {
  std::array<std::uint32_t, kTexts<Entry>.size() + kLists<Entry>.size()> texts;
  std::array<std::uint8_t, sizeof(typename Entry::Traits)> traits;
  std::uint8_t library;  ///< of a variable: its position among the libraries
};

/// Variables, misspellings, cautions and known issues are sorted by name, byte by byte. Defined in the file that hpclaunch-catalogue writes.
struct Table {
  const char* text;
  std::span<const Row<Library>> libraries;
  std::span<const Row<Variable>> variables;
  std::span<const Row<Misspelling>> misspellings;
  std::span<const Row<Family>> families;
  std::span<const Row<Caution>> cautions;
  std::span<const Row<KnownIssue>> known_issues;
};

extern const Table kTable;

/// All of Caution::with or KnownIssue::with.
/// "with A=1 without B": these for people, `lead` before each; "" without any.
std::string conditions_text(TextList with, std::string_view lead);
bool conditions_hold(TextList with, const Lookup& others);

}  // namespace hpclaunch::knowledge
