#include <fmt/format.h>

#include "catalogue.h"

namespace hpclaunch::catalogue {

namespace {

// One block of NUL-terminated texts, each kept once; offset 0 is "".
class Block {
 public:
  std::size_t offset(const std::string& text) {
    const auto [at, added] = offsets_.emplace(text, size_);
    if (added) {
      literals_ += "    \"" + escaped(text) + "\\0\"\n";
      size_ += text.size() + 1;
    }
    return at->second;
  }
  const std::string& literals() const { return literals_; }

 private:
  static std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == '"' || c == '\\' || c == '?') out += '\\';  // "??" would begin a trigraph
      out += c;
    }
    return out;
  }
  std::map<std::string, std::size_t> offsets_ = {{"", 0}};
  std::string literals_ = "    \"\\0\"\n";
  std::size_t size_ = 1;
};

std::string library_row(const Library& library, Block& block) {
  std::string row = "    {{";
  for (const char* field : {"name", "title", "parser", "truths", "falsehoods", "suffixes",
                            "number_words", "bad_boolean", "bad_number", "bad_word"})
    row += fmt::format("{}, ", block.offset(library.texts.get(field)));
  return row + fmt::format("}}, {}, {}, {}}},\n", +library.booleans_any_case,
                           +library.words_any_case, +library.c_numbers);
}

std::string row(const Variable& v, Block& block) {
  std::string text = fmt::format("    {{{}, {{", block.offset(v.name));
  for (const char* field : {"values", "unit", "lowest", "highest", "standard", "standards", "since",
                            "removed", "successor", "reader", "syntax", "needs", "what", "note"})
    text += fmt::format("{}, ", block.offset(v.texts.get(field)));
  const int flags = +v.closed + 2 * +v.internal + 4 * +v.any_case + 8 * +v.numbers;
  return text + fmt::format("}}, {}, {}, {}, {}}},\n", v.library, v.type,
                            v.confidence + 4 * v.direction, flags);
}

}  // namespace

std::string emit(const Catalogue& catalogue) {
  Block block;
  std::string libraries;
  std::string rows;
  std::string misspellings;
  std::string families;
  for (const Library& library : catalogue.libraries) libraries += library_row(library, block);
  for (const Variable& v : catalogue.variables) rows += row(v, block);
  for (const Misspelling& m : catalogue.misspellings)
    misspellings += fmt::format("    {{{}, {}, {}, {}}},\n", block.offset(m.wrong),
                                block.offset(m.meant), block.offset(m.note), +m.certain);
  for (const Family& f : catalogue.families)
    families += fmt::format("    {{{}, {}, {}, {}, {}}},\n", block.offset(f.pattern),
                            block.offset(f.library), block.offset(f.stands_for),
                            block.offset(f.rule), f.unknown);
  // constexpr and constinit make the compiler refuse anything that would have to run at start.
  return fmt::format(
      "// Written by hpclaunch-catalogue from profiles/variables/; edit those files.\n"
      "#include \"knowledge/table.h\"\n\n"
      "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
      "namespace hpclaunch::knowledge {{\n"
      "namespace {{\n\n"
      "constexpr char kText[] =\n{};\n\n"
      "constexpr LibraryRow kLibraries[] = {{\n{}}};\n\n"
      "constexpr Row kRows[] = {{\n{}}};\n\n"
      "constexpr MisspellingRow kMisspellings[] = {{\n{}}};\n\n"
      "constexpr FamilyRow kFamilies[] = {{\n{}}};\n\n"
      "}}  // namespace\n\n"
      "constinit const Table kTable = {{kText, kLibraries, kRows, {}, kMisspellings, {}, "
      "kFamilies, {}}};\n\n"
      "}}  // namespace hpclaunch::knowledge\n",
      block.literals(), libraries, rows, misspellings, families, catalogue.variables.size(),
      catalogue.misspellings.size(), catalogue.families.size());
}

}  // namespace hpclaunch::catalogue
