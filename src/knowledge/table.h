#pragma once
// The shape of the compiled catalogue. Texts are offsets into one block of bytes, 0 for "": a row
// with pointers would have to be relocated at every start of the program.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hpclaunch::knowledge {

using Text = std::uint32_t;

/// The texts of a row stand in one order in find.cpp and in src/catalogue/emit.cpp.
struct LibraryRow {
  Text texts[10];
  std::uint8_t booleans_any_case, words_any_case, c_numbers;
};

enum Flag : std::uint8_t { kClosed = 1, kInternal = 2, kAnyCase = 4, kNumbers = 8 };

struct Row {
  Text name;
  Text texts[14];
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

}  // namespace hpclaunch::knowledge
