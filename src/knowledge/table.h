#pragma once
// The shape of the compiled catalogue. Texts are offsets into one block of bytes, 0 for "": a row
// with pointers would have to be relocated at every start of the program.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "hpclaunch/knowledge.h"

namespace hpclaunch::knowledge {

template <class Entry, std::size_t size>
using Texts = std::array<std::string_view Entry::*, size>;

/// The members of an entry that are texts, in the order of its row; the first is its name.
template <class Entry>
inline constexpr Texts<Entry, 0> kTexts = {};
template <>
inline constexpr Texts<Library, 10> kTexts<Library> = {
    &Library::name,       &Library::title,    &Library::parser,       &Library::truths,
    &Library::falsehoods, &Library::suffixes, &Library::number_words, &Library::bad_boolean,
    &Library::bad_number, &Library::bad_word};
template <>
inline constexpr Texts<Variable, 15> kTexts<Variable> = {
    &Variable::name,    &Variable::values,    &Variable::unit,      &Variable::lowest,
    &Variable::highest, &Variable::standard,  &Variable::standards, &Variable::since,
    &Variable::removed, &Variable::successor, &Variable::reader,    &Variable::syntax,
    &Variable::needs,   &Variable::what,      &Variable::note};
template <>
inline constexpr Texts<Misspelling, 3> kTexts<Misspelling> = {
    &Misspelling::wrong, &Misspelling::meant, &Misspelling::note};
template <>
inline constexpr Texts<Family, 4> kTexts<Family> = {&Family::pattern, &Family::library,
                                                    &Family::stands_for, &Family::rule};

template <class Entry>
struct Row {
  std::array<std::uint32_t, kTexts<Entry>.size()> texts;
  std::array<std::uint8_t, sizeof(typename Entry::Traits)> traits;
  std::uint8_t library;  ///< of a variable: its position among the libraries
};

/// Variables and misspellings are sorted by name, byte by byte. Defined in the file that hpclaunch-catalogue writes.
struct Table {
  const char* text;
  std::span<const Row<Library>> libraries;
  std::span<const Row<Variable>> variables;
  std::span<const Row<Misspelling>> misspellings;
  std::span<const Row<Family>> families;
};

extern const Table kTable;

}  // namespace hpclaunch::knowledge
