// What needs all files of the catalogue: order, names that refer to one another, defaults by their own rules.
#include <fmt/format.h>

#include <algorithm>

#include "catalogue.h"
#include "hpclaunch/text.h"

namespace hpclaunch::catalogue {

namespace {

void fault(std::vector<Error>& errors, const SourceRef& where, std::string message,
           std::string hint = "") {
  errors.push_back({ErrorKind::invalid, std::move(message), std::move(hint), where});
}

// true and false become the word that the library itself reads.
std::string_view exported_default(const Variable& v) {
  if (v.type != knowledge::Type::boolean || (v.standard != "true" && v.standard != "false"))
    return v.standard;
  const bool truth = v.standard == "true";
  const knowledge::TextList words = truth ? v.library.truths : v.library.falsehoods;
  if (words.empty()) return truth ? "1" : "0";
  return words.front();
}

void settle_defaults(Catalogue& catalogue, std::vector<Error>& errors) {
  for (Variable& v : catalogue.variables) {
    v.standard = exported_default(v);
    if (const auto bad = knowledge::find_fault(v, v.standard))
      fault(errors, v.where,
            fmt::format("the default of {}, \"{}\", {}", v.name, v.standard, bad->what));
    if (v.standard.empty())
      v.standard = v.default_note;
    else if (!v.default_note.empty())
      v.standard = keep(fmt::format("{} ({})", v.standard, v.default_note));
  }
}

bool has(const Catalogue& catalogue, std::string_view name) {
  return std::ranges::binary_search(catalogue.variables, name, {}, &Variable::name);
}

// The name that a condition is about.
std::string_view name_in(std::string_view condition) {
  if (condition.starts_with('!')) condition.remove_prefix(1);
  return condition.substr(0, condition.find('='));
}

void check_conditions(const Catalogue& catalogue, knowledge::TextList with, const SourceRef& where,
                      std::vector<Error>& errors) {
  for (const std::string_view one : with.all())
    if (!has(catalogue, name_in(one)))
      fault(errors, where, fmt::format("{} is not a variable", name_in(one)));
}

void check_known_issues(const Catalogue& catalogue, std::vector<Error>& errors) {
  for (std::size_t i = 0; i < catalogue.known_issues.size(); ++i) {
    const KnownIssue& one = catalogue.known_issues[i];
    check_conditions(catalogue, one.with, one.where, errors);
    if (i > 0 && catalogue.known_issues[i - 1].id == one.id)
      fault(errors, one.where, fmt::format("{} is there twice", one.id));
  }
}

void check_cautions(const Catalogue& catalogue, std::vector<Error>& errors) {
  for (const Caution& c : catalogue.cautions) {
    const auto variable =
        std::ranges::lower_bound(catalogue.variables, c.name, {}, &Variable::name);
    if (variable == catalogue.variables.end() || variable->name != c.name) {
      fault(errors, c.where, fmt::format("{} is not a variable", c.name));
      continue;
    }
    for (const std::string_view value : c.values.all())
      if (const auto bad = knowledge::find_fault(*variable, value))
        fault(errors, c.where, fmt::format("the value \"{}\" of {} {}", value, c.name, bad->what));
    check_conditions(catalogue, c.with, c.where, errors);
  }
}

void check_references(const Catalogue& catalogue, std::vector<Error>& errors) {
  for (const Variable& v : catalogue.variables) {
    if (!v.successor.empty() && (!has(catalogue, v.successor) || v.successor == v.name))
      fault(errors, v.where,
            fmt::format("{} is renamed to {}, which is not another variable", v.name, v.successor));
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
  std::ranges::stable_sort(catalogue.cautions, {}, &Caution::name);
  std::ranges::stable_sort(catalogue.known_issues, {}, &KnownIssue::id);
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
  check_cautions(catalogue, errors);
  check_known_issues(catalogue, errors);
  return errors;
}

}  // namespace hpclaunch::catalogue
