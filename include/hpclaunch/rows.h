#pragma once
// Rows of data. The lists of profiles/programs/ and of other files are compiled to constant arrays by hpclaunch-catalogue
// (src/catalogue/rows.cpp), so that a start reads, splits and searches no text. A kind of row is
//
//   struct Engine { std::string_view name; Words programs; };
//   void fields(Engine& row, auto&& field) {
//     field("name", row.name, Field::unique);
//     field("programs", row.programs, Field::required);
//   }
//   template <> std::span<const Engine> rows<Engine>();
//
// and a line in kKinds of src/catalogue/rows.cpp. `fields` has all members, in their order. A member is a text, a bool, an
// int, an enumeration (with the names of its values), a function (that the header of its kind declares), Words, a struct
// with `fields`, or a span of these.
#include <span>
#include <string_view>
#include <type_traits>

namespace hpclaunch {

using Words = std::span<const std::string_view>;

/// A member of an object of lists: {"flux": ["run", "submit"]}.
struct NamedWords {
  std::string_view name;
  Words words;
};

/// Of one of `all`; none where it is not there.
constexpr Words words_of(std::span<const NamedWords> all, std::string_view name) {
  for (const NamedWords& one : all)
    if (one.name == name) return one.words;
  return {};
}

enum class Field {
  optional,
  required,
  unique,   ///< required, and no two rows have the same
  command,  ///< words of a command line: optional, one may be there twice
};

/// All rows of a kind, in the order of their file.
template <class Row>
std::span<const Row> rows();

/// The first row with this name; nullptr: there is none.
template <class Row>
const Row* find_row(std::string_view name) {
  for (const Row& row : rows<Row>())
    if (row.name == name) return &row;
  return nullptr;
}

constexpr bool has_word(Words words, std::string_view word) {
  for (const std::string_view one : words)
    if (one == word) return true;
  return false;
}

void fields(NamedWords& row, auto&& field) {
  field("name", row.name, Field::unique);
  field("words", row.words, Field::required);
}
template <>
std::span<const NamedWords> rows<NamedWords>();
/// A list of profiles/programs/words.json.
inline Words words_named(std::string_view name) { return words_of(rows<NamedWords>(), name); }

/// In what is compiled: a value of any enumeration.
struct Choice {
  int value;
  template <class Enum>
  requires std::is_enum_v<Enum>
  constexpr operator Enum() const {  // NOLINT(google-explicit-constructor)
    return static_cast<Enum>(value);
  }
};

}  // namespace hpclaunch
