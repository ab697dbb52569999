// Reads the files of profiles/variables/ with the JSON reader of the model, one by one, then checks them together.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "catalogue.h"
#include "hpclaunch/json_reader.h"
#include "hpclaunch/text.h"

namespace hpclaunch::catalogue {

namespace {

using json_reader::Item;
using json_reader::Json;
using Words = std::vector<std::string_view>;

// In the order of knowledge::Type, ::Confidence, ::Direction, Family::Unknown and Caution::Kind.
const Words kTypes = {"bool",   "int",  "size",      "time",     "float", "enum",     "list",
                      "string", "path", "path-list", "cpu-list", "range", "algorithm"};
const Words kConfidences = {"source", "docs", "secondary"};
const Words kDirections = {"input", "output", "both"};
const Words kUnknown = {"suspect", "near-miss", "open"};
const Words kCases = {"exact", "any"};
const Words kNumbers = {"decimal", "c"};
const Words kSentences = {"optional", "required"};
const Words kItems = {"word", "int"};
const Words kKinds = {"slow", "debug", "harmful", "unneeded", "no-effect"};

std::string_view ascii(const Item& at, const std::string& value) {
  if (!std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; }))
    at.fault("a character is not printable ASCII");
  return keep(value);
}

std::string_view text(const Item& at) { return ascii(at, at.text()); }

/// A number, true, false or a string, as one would export it.
std::string_view scalar(const Item& at) {
  switch (at->kind) {
    case Json::Kind::boolean:
      return at->truth ? "true" : "false";
    case Json::Kind::integer:
    case Json::Kind::number:
    case Json::Kind::string:
      return ascii(at, at->text);
    default:
      at.fault(fmt::format("\"{}\" must be a string, a number, true or false", at->key));
      return "";
  }
}

std::string_view integer(const Item& at) {
  if (at->kind != Json::Kind::integer) at.fault(fmt::format("\"{}\" must be an integer", at->key));
  return keep(at->text);
}

/// Strings, each once, joined by `separator`, which none may contain.
std::string_view words(const Item& at, std::string_view separator) {
  if (at->kind == Json::Kind::string && separator == ", ") return text(at);
  Words all;
  for (const Item& item : at.elements("words")) {
    all.push_back(text(item));
    if (all.back().find(separator) != std::string::npos)
      item.fault(fmt::format("\"{}\" contains \"{}\"", at->key, separator));
    if (std::ranges::count(all, all.back()) > 1)
      item.fault(fmt::format("\"{}\" has \"{}\" twice", at->key, all.back()));
  }
  return keep(joined(all, separator));
}

/// By the position of a word among `known`.
template <class Value>
Value choice(const Item& at, const Words& known, Value otherwise) {
  const std::string word = at.choice(known);
  if (word.empty()) return otherwise;
  return static_cast<Value>(std::ranges::find(known, word) - known.begin());
}

knowledge::Library read_parsing(const Item& head) {
  knowledge::Library library;
  library.name = text(head.need("library"));
  library.title = text(head.need("title"));
  library.truths = "1|true|yes|on|y|t|enable|enabled";
  library.falsehoods = "0|false|no|off|n|f|disable|disabled";
  const Item rules = head["parsing"];
  library.parser = text(rules["source"]);
  const std::string_view truths = words(rules["true"], "|");
  const std::string_view falsehoods = words(rules["false"], "|");
  const bool integers = rules["booleans_are_integers"].truth();
  if (integers || !truths.empty()) {
    library.truths = truths;
    library.falsehoods = falsehoods;
  }
  if (truths.empty() != falsehoods.empty() || (integers && !truths.empty()))
    rules.fault("give words for both \"true\" and \"false\", or \"booleans_are_integers\"");
  library.booleans_any_case = choice(rules["boolean_case"], kCases, true);
  library.words_any_case = choice(rules["word_case"], kCases, false);
  library.c_numbers = choice(rules["numbers"], kNumbers, true);
  library.number_words = words(rules["number_words"], "|");
  library.suffixes = text(rules["suffixes"]);
  library.bad_boolean = text(rules["bad_boolean"]);
  library.bad_number = text(rules["bad_number"]);
  library.bad_word = text(rules["bad_word"]);
  return library;
}

std::string_view defaults_by_version(const Item& at) {
  std::vector<std::string> list;
  for (const Item& one : at.elements("objects"))
    list.push_back(fmt::format("{} since {}", scalar(one["value"]), text(one.need("since"))));
  return keep(joined(list, ", "));
}

void check_sentence(const Item& at) {
  const std::string& sentence = at->text;
  if (sentence.empty()) return;
  if (sentence.front() >= 'a' && sentence.front() <= 'z')
    at.fault("\"what\" must start with a capital letter");
  if (sentence.back() != '.') at.fault("\"what\" must end with a full stop");
}

/// What a file says for all of its variables.
struct Common {
  knowledge::Library library;
  std::size_t number = 0;  ///< of the library
  bool sentences = false;
  std::optional<knowledge::Confidence> confidence;
};

Variable read_variable(const Item& at, const Common& common) {
  using knowledge::Type;
  Variable v;
  v.name = keep(at->key);
  v.where = at.where();
  v.library = common.library;
  v.number = common.number;
  v.type = choice(at.need("type"), kTypes, Type::boolean);
  v.confidence = choice(common.confidence ? at["confidence"] : at.need("confidence"), kConfidences,
                        common.confidence.value_or(knowledge::Confidence::source));
  v.direction = choice(at["direction"], kDirections, knowledge::Direction::input);
  v.values = words(at["values"], "|");
  const bool open = at["open"].truth();
  const bool closed = at["closed"].truth();
  v.closed = closed || (!open && !v.values.empty() && v.type != Type::list && v.type != Type::text);
  if ((open || closed) && v.values.empty()) at.fault("\"open\" and \"closed\" need \"values\"");
  v.any_case = choice(at["case"], kCases, common.library.words_any_case);
  v.internal = at["internal"].truth();
  v.numbers = choice(at["items"], kItems, false);
  v.lowest = integer(at["min"]);
  v.highest = integer(at["max"]);
  v.standard = scalar(at["default"]);
  v.default_note = text(at["default_note"]);
  v.standards = defaults_by_version(at["defaults"]);
  v.successor = text(at["renamed"]);
  v.reader = words(at["read_by"], ", ");
  constexpr std::pair<const char*, std::string_view Variable::*> kTexts[] = {
      {"unit", &Variable::unit},   {"since", &Variable::since}, {"removed", &Variable::removed},
      {"needs", &Variable::needs}, {"what", &Variable::what},   {"syntax", &Variable::syntax},
      {"note", &Variable::note}};
  for (const auto& [key, field] : kTexts) v.*field = text(at[key]);
  if (v.reader.empty()) at.fault("\"read_by\" is missing");
  if (common.sentences && v.what.empty() && v.removed.empty())
    at.fault(fmt::format("{} has no sentence \"what\", which this file requires", v.name));
  check_sentence(at["what"]);
  return v;
}

/// The members of a section: sorted, and named as variables are unless they are patterns.
std::vector<Item> section(const Item& at, bool patterns) {
  std::vector<Item> all = at.members("entries");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!patterns && !is_identifier(all[i]->key))
      all[i].fault(fmt::format("\"{}\" is not a variable name", all[i]->key));
    if (i > 0 && all[i]->key < all[i - 1]->key)
      all[i].fault(fmt::format("{} comes after {}", all[i]->key, all[i - 1]->key),
                   "sort the names");
  }
  return all;
}

void read_library(const Item& head, Catalogue& catalogue) {
  Common common{read_parsing(head),
                catalogue.libraries.size(),
                choice(head["sentences"], kSentences, false),
                {}};
  if (const Item at = head["confidence"])
    common.confidence = choice(at, kConfidences, knowledge::Confidence::source);
  for (const Item& at : section(head["variables"], false))
    catalogue.variables.push_back(read_variable(at, common));
  catalogue.libraries.push_back(common.library);
}

Misspelling read_misspelling(const Item& at) {
  Misspelling m;
  m.wrong = keep(at->key);
  m.meant = text(at["meant"]);
  m.note = text(at["note"]);
  m.certain = !at["doubtful"].truth();
  m.where = at.where();
  words(at["seen_in"], ", ");
  return m;
}

knowledge::Family read_family(const Item& at) {
  using Unknown = knowledge::Family::Unknown;
  knowledge::Family f;
  f.pattern = keep(at->key);
  f.library = text(at.need("library"));
  f.unknown = choice(at.need("unknown"), kUnknown, Unknown::suspect);
  f.rule = text(at["rule"]);
  const Item stands_for = at["stands_for"];  // "": the prefix is dropped
  f.stands_for = stands_for->kind == Json::Kind::string ? keep(stands_for->text) : "-";
  return f;
}

void read_cautions(const Item& at, Catalogue& catalogue) {
  for (const Item& one : at.elements("objects")) {
    Caution c;
    c.name = keep(at->key);
    c.kind = choice(one.need("kind"), kKinds, Caution::Kind::slow);
    c.between_nodes = one["between_nodes"].truth();
    c.values = words(one["values"], "|");
    c.with = words(one["with"], "|");
    c.since = text(one["since"]);
    c.why = text(one.need("why"));
    c.source = text(one.need("source"));
    c.where = one.where();
    catalogue.cautions.push_back(c);
  }
}

void read_head(const Item& head, Catalogue& catalogue) {
  (void)head["$schema"];
  for (const Item& at : section(head["misspellings"], false))
    catalogue.misspellings.push_back(read_misspelling(at));
  for (const Item& at : section(head["families"], true))
    catalogue.families.push_back(read_family(at));
  for (const Item& at : section(head["cautions"], false)) read_cautions(at, catalogue);
  if (head["variables"])
    read_library(head, catalogue);
  else if (!head["misspellings"] && !head["families"] && !head["cautions"])
    head.fault("none of \"variables\", \"misspellings\", \"families\" and \"cautions\" is present");
  head.finish();
}

// ---- what needs all files -------------------------------------------------------------------------------

void fault(std::vector<Error>& errors, const SourceRef& where, std::string message,
           std::string hint = "") {
  errors.push_back({ErrorKind::invalid, std::move(message), std::move(hint), where});
}

// true and false become the word that the library itself reads.
std::string_view exported_default(const Variable& v) {
  if (v.type != knowledge::Type::boolean || (v.standard != "true" && v.standard != "false"))
    return v.standard;
  const bool truth = v.standard == "true";
  const std::string_view words = truth ? v.library.truths : v.library.falsehoods;
  if (words.empty()) return truth ? "1" : "0";
  return split(words, '|').front();
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

void check_cautions(const Catalogue& catalogue, std::vector<Error>& errors) {
  for (const Caution& c : catalogue.cautions) {
    const auto variable =
        std::ranges::lower_bound(catalogue.variables, c.name, {}, &Variable::name);
    if (variable == catalogue.variables.end() || variable->name != c.name) {
      fault(errors, c.where, fmt::format("{} is not a variable", c.name));
      continue;
    }
    for (const std::string_view value : split(c.values, '|'))
      if (const auto bad = knowledge::find_fault(*variable, value))
        fault(errors, c.where, fmt::format("the value \"{}\" of {} {}", value, c.name, bad->what));
    for (const std::string_view one : split(c.with, '|'))
      if (!one.empty() && !has(catalogue, name_in(one)))
        fault(errors, c.where, fmt::format("{} is not a variable", name_in(one)));
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

std::string_view keep(const std::string& text) {
  static std::set<std::string, std::less<>> kept;
  return *kept.insert(text).first;
}

std::vector<Error> read_file(const std::string& file, const std::string& content,
                             Catalogue& catalogue) {
  json_reader::Context context(content, file);
  if (const Item head = context.root()) read_head(head, catalogue);
  return context.take();
}

std::vector<Error> finish(Catalogue& catalogue) {
  std::vector<Error> errors;
  std::ranges::stable_sort(catalogue.variables, {}, &Variable::name);
  std::ranges::sort(catalogue.misspellings, {}, &Misspelling::wrong);
  std::ranges::stable_sort(catalogue.cautions, {}, &Caution::name);
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
  return errors;
}

}  // namespace hpclaunch::catalogue
