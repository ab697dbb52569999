// Look-ups in the compiled catalogue.
#include <algorithm>
#include <array>

#include "hpclaunch/knowledge.h"
#include "knowledge/table.h"

namespace hpclaunch::knowledge {

namespace {

std::string_view text(Text at) { return kTable.text + at; }

// The row called `name` among `size` sorted ones; nullptr when there is none.
template <class AnyRow>
const AnyRow* find_row(const AnyRow* rows, std::size_t size, Text AnyRow::*key,
                       std::string_view name) {
  const AnyRow* end = rows + size;
  const AnyRow* row = std::lower_bound(
      rows, end, name, [key](const AnyRow& r, std::string_view n) { return text(r.*key) < n; });
  return row != end && text(row->*key) == name ? row : nullptr;
}

// Copies the texts of a row to these members.
template <class Entry, std::size_t size>
void take(const Text (&texts)[size], std::string_view Entry::*const (&members)[size],
          Entry& entry) {
  for (std::size_t i = 0; i < size; ++i) entry.*members[i] = text(texts[i]);
}

Library library_of(const LibraryRow& row) {
  Library library;
  take(row.texts,
       {&Library::name, &Library::title, &Library::parser, &Library::truths, &Library::falsehoods,
        &Library::suffixes, &Library::number_words, &Library::bad_boolean, &Library::bad_number,
        &Library::bad_word},
       library);
  library.booleans_any_case = row.booleans_any_case != 0;
  library.words_any_case = row.words_any_case != 0;
  library.c_numbers = row.c_numbers != 0;
  return library;
}

Variable variable_of(const Row& row) {
  Variable v;
  take(row.texts,
       {&Variable::values, &Variable::unit, &Variable::lowest, &Variable::highest,
        &Variable::standard, &Variable::standards, &Variable::since, &Variable::removed,
        &Variable::successor, &Variable::reader, &Variable::syntax, &Variable::needs,
        &Variable::what, &Variable::note},
       v);
  v.name = text(row.name);
  v.library = library_of(kTable.libraries[row.library]);
  v.type = static_cast<Type>(row.type);
  v.confidence = static_cast<Confidence>(row.confidence_and_direction % 4);
  v.direction = static_cast<Direction>(row.confidence_and_direction / 4);
  v.closed = (row.flags & kClosed) != 0;
  v.internal = (row.flags & kInternal) != 0;
  v.any_case = (row.flags & kAnyCase) != 0;
  v.numbers = (row.flags & kNumbers) != 0;
  return v;
}

Misspelling misspelling_of(const MisspellingRow& row) {
  return {text(row.wrong), text(row.meant), text(row.note), row.certain != 0};
}

// '*' matches any text, also none.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  for (std::size_t skip = star; skip <= name.size(); ++skip)
    if (matches(pattern.substr(star + 1), name.substr(skip))) return true;
  return false;
}

}  // namespace

std::optional<Variable> find(std::string_view name) {
  const Row* row = find_row(kTable.rows, kTable.row_count, &Row::name, name);
  if (row == nullptr) return std::nullopt;
  return variable_of(*row);
}

std::size_t count() { return kTable.row_count; }

Variable at(std::size_t index) { return variable_of(kTable.rows[index]); }

std::optional<Misspelling> find_misspelling(std::string_view name) {
  const MisspellingRow* row =
      find_row(kTable.misspellings, kTable.misspelling_count, &MisspellingRow::wrong, name);
  if (row == nullptr) return std::nullopt;
  return misspelling_of(*row);
}

std::size_t count_misspellings() { return kTable.misspelling_count; }

Misspelling misspelling_at(std::size_t index) { return misspelling_of(kTable.misspellings[index]); }

std::optional<Family> find_family(std::string_view name) {
  const FamilyRow* best = nullptr;
  for (std::size_t i = 0; i < kTable.family_count; ++i) {
    const FamilyRow& row = kTable.families[i];
    if (!matches(text(row.pattern), name)) continue;
    if (best == nullptr || text(row.pattern).size() > text(best->pattern).size()) best = &row;
  }
  if (best == nullptr) return std::nullopt;
  return Family{text(best->pattern), text(best->library),
                static_cast<Family::Unknown>(best->unknown), text(best->stands_for),
                text(best->rule)};
}

std::string_view to_string(Type type) {
  constexpr std::array<std::string_view, 13> kNames = {
      "yes or no", "integer", "size",          "time",         "number", "word",     "list",
      "text",      "path",    "list of paths", "list of CPUs", "range",  "algorithm"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view to_string(Confidence confidence) {
  constexpr std::array<std::string_view, 3> kNames = {
      "read in the source", "from the documentation",
      "from scripts, strings in programs, or hearsay"};
  return kNames[static_cast<std::size_t>(confidence)];
}

}  // namespace hpclaunch::knowledge
