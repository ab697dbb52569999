#include <fmt/format.h>

#include <algorithm>

#include "catalogue.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"

namespace hpclaunch::catalogue {

namespace {

void fault(std::vector<Error>& errors, const SourceRef& where, std::string message,
           std::string hint = "") {
  errors.push_back({ErrorKind::invalid, std::move(message), std::move(hint), where});
}

// The look-up's view of a variable: defaults are judged by the rules for users' values.
knowledge::Variable view(const Variable& v, const Library& library) {
  knowledge::Variable out;
  out.name = v.name;
  out.library.truths = library.texts.get("truths");
  out.library.falsehoods = library.texts.get("falsehoods");
  out.library.booleans_any_case = library.booleans_any_case;
  out.library.words_any_case = library.words_any_case;
  out.library.c_numbers = library.c_numbers;
  out.library.suffixes = library.texts.get("suffixes");
  out.library.number_words = library.texts.get("number_words");
  out.type = static_cast<knowledge::Type>(v.type);
  out.closed = v.closed;
  out.any_case = v.any_case;
  out.numbers = v.numbers;
  out.values = v.texts.get("values");
  out.lowest = v.texts.get("lowest");
  out.highest = v.texts.get("highest");
  return out;
}

// true and false become the word that the library itself reads.
std::string exported_default(const Variable& v, const Library& library) {
  const std::string& standard = v.texts.get("standard");
  if (standard != "true" && standard != "false") return standard;
  if (v.type != static_cast<int>(knowledge::Type::boolean)) return standard;
  const std::string& words = library.texts.get(standard == "true" ? "truths" : "falsehoods");
  if (words.empty()) return standard == "true" ? "1" : "0";
  return std::string(split(words, '|').front());
}

void settle_defaults(Catalogue& catalogue, std::vector<Error>& errors) {
  for (Variable& v : catalogue.variables) {
    const Library& library = catalogue.libraries[v.library];
    std::string& standard = v.texts["standard"];
    standard = exported_default(v, library);
    if (const auto bad = knowledge::find_fault(view(v, library), standard))
      fault(errors, v.where,
            fmt::format("the default of {}, \"{}\", {}", v.name, standard, bad->what));
    const std::string& note = v.texts.get("default_note");
    if (!note.empty()) standard += standard.empty() ? note : fmt::format(" ({})", note);
  }
}

bool has(const Catalogue& catalogue, const std::string& name) {
  return std::ranges::binary_search(catalogue.variables, name, {}, &Variable::name);
}

void check_references(const Catalogue& catalogue, std::vector<Error>& errors) {
  for (const Variable& v : catalogue.variables) {
    const std::string& newer = v.texts.get("successor");
    if (!newer.empty() && (!has(catalogue, newer) || newer == v.name))
      fault(errors, v.where,
            fmt::format("{} is renamed to {}, which is not another variable", v.name, newer));
  }
  for (const Misspelling& m : catalogue.misspellings) {
    if (has(catalogue, m.wrong))
      fault(errors, m.where, fmt::format("{} is a variable, not a misspelling", m.wrong));
    if (!m.meant.empty() && !has(catalogue, m.meant))
      fault(errors, m.where, fmt::format("{} is not a variable", m.meant));
    if (m.meant.empty() && m.note.empty())
      fault(errors, m.where, fmt::format("{}: \"meant\" or \"note\" is required", m.wrong));
  }
}

}  // namespace

std::vector<Error> finish(Catalogue& catalogue) {
  std::vector<Error> errors;
  std::ranges::stable_sort(catalogue.variables, {}, &Variable::name);
  std::ranges::sort(catalogue.misspellings, {}, &Misspelling::wrong);
  for (std::size_t i = 1; i < catalogue.variables.size(); ++i) {
    const SourceRef& first = catalogue.variables[i - 1].where;
    if (catalogue.variables[i].name == catalogue.variables[i - 1].name)
      fault(
          errors, catalogue.variables[i].where,
          fmt::format("{} is also in {}:{}", catalogue.variables[i].name, first.file, first.line));
  }
  if (catalogue.libraries.size() > 255)
    fault(errors, {}, "more than 255 libraries do not fit into a row");
  settle_defaults(catalogue, errors);
  check_references(catalogue, errors);
  return errors;
}

}  // namespace hpclaunch::catalogue
