#pragma once
// The shape of the compiled catalogue. Texts are offsets into one block of bytes, 0 for "": a row
// with pointers would have to be relocated at every start of the program.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hpclaunch::knowledge {

using Text = std::uint32_t;

struct LibraryRow {
  Text name, title, parser, truths, falsehoods, suffixes, number_words, bad_boolean, bad_number,
      bad_word;
  std::uint8_t booleans_any_case, words_any_case, c_numbers;
};

enum Flag : std::uint8_t { kClosed = 1, kInternal = 2, kAnyCase = 4, kNumbers = 8 };

struct Row {
  Text name, values, unit, lowest, highest, standard, standards, since, removed, successor, reader,
      syntax, needs, what, note;
  std::uint8_t library, type, confidence_and_direction, flags;
};

struct MisspellingRow {
  Text wrong, meant, note;
  std::uint8_t certain;
};

struct FamilyRow {
  Text pattern, library, stands_for, rule;
  std::uint8_t unknown;
};

/// Both sorted by name, byte by byte. Defined in the file that hpclaunch-catalogue writes.
struct Table {
  const char* text;
  const LibraryRow* libraries;
  const Row* rows;
  std::size_t row_count;
  const MisspellingRow* misspellings;
  std::size_t misspelling_count;
  const FamilyRow* families;
  std::size_t family_count;
};

extern const Table kTable;

/// A value in a message: one line of printable ASCII, cut when long.
std::string shown(std::string_view value);

}  // namespace hpclaunch::knowledge
