// Reads one file of profiles/variables/ with the JSON reader of the model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "catalogue.h"
#include "hpclaunch/json_reader.h"
#include "hpclaunch/text.h"

namespace hpclaunch::catalogue {

namespace {

using json_reader::Context;
using json_reader::Item;
using json_reader::Json;
using json_reader::Need;
using json_reader::Object;
using Words = std::vector<std::string_view>;

// In the order of knowledge::Type, ::Confidence, ::Direction and Family::Unknown.
const Words kTypes = {"bool",   "int",  "size",      "time",     "float", "enum",     "list",
                      "string", "path", "path-list", "cpu-list", "range", "algorithm"};
const Words kConfidences = {"source", "docs", "secondary"};
const Words kDirections = {"input", "output", "both"};
const Words kUnknown = {"suspect", "near-miss", "open"};
const Words kCases = {"exact", "any"};
const Words kNumbers = {"decimal", "c"};
const Words kSentences = {"optional", "required"};
const Words kItems = {"word", "int"};

std::string ascii(Context& context, const Item& at, const std::string& value) {
  if (!std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; }))
    context.fault(at, "a character is not printable ASCII");
  return value;
}

std::string text(Object& object, const char* key, Need need = Need::optional) {
  const Item at = object.find(key, need);
  return ascii(object.context(), at, object.context().text(at));
}

/// A number, true, false or a string, as one would export it.
std::string scalar(Object& object, const char* key) {
  const Item at = object.find(key);
  if (!at) return "";
  switch (at.json->kind) {
    case Json::Kind::integer:
    case Json::Kind::number:
      return at.json->text;
    case Json::Kind::boolean:
      return at.json->truth ? "true" : "false";
    case Json::Kind::string:
      return ascii(object.context(), at, at.json->text);
    default:
      object.context().fault(at,
                             fmt::format("\"{}\" must be a string, a number, true or false", key));
      return "";
  }
}

std::string integer(Object& object, const char* key) {
  const Item at = object.find(key);
  if (at.json->kind != Json::Kind::integer)
    object.context().fault(at, fmt::format("\"{}\" must be an integer", key));
  return at.json->text;
}

/// Strings, each once, joined by `separator`, which none may contain.
std::string words(Object& object, const char* key, const std::string& separator) {
  const Item at = object.find(key);
  Context& context = object.context();
  if (at.json->kind == Json::Kind::string && separator == ", ")
    return ascii(context, at, context.text(at));
  std::vector<std::string> all;
  for (const Item& item : context.elements(at, "words")) {
    all.push_back(ascii(context, item, context.text(item)));
    if (all.back().find(separator) != std::string::npos)
      context.fault(item, fmt::format("\"{}\" contains \"{}\"", key, separator));
    if (std::count(all.begin(), all.end(), all.back()) > 1)
      context.fault(item, fmt::format("\"{}\" has \"{}\" twice", key, all.back()));
  }
  return fmt::format("{}", fmt::join(all, separator));
}

/// The position of a word among `known`; `otherwise` when absent (-1: it is required).
int choice(Object& object, const char* key, const Words& known, int otherwise) {
  const std::string word =
      object.choice(key, known, otherwise < 0 ? Need::required : Need::optional);
  if (word.empty()) return std::max(otherwise, 0);
  return static_cast<int>(std::find(known.begin(), known.end(), word) - known.begin());
}

Library read_parsing(Object& head) {
  Library library;
  library.texts["name"] = text(head, "library", Need::required);
  library.texts["title"] = text(head, "title", Need::required);
  library.texts["truths"] = "1|true|yes|on|y|t|enable|enabled";
  library.texts["falsehoods"] = "0|false|no|off|n|f|disable|disabled";
  const Item parsing = head.find("parsing");
  if (!parsing) return library;
  Object rules(head.context(), parsing);
  library.texts["parser"] = text(rules, "source");
  const std::string truths = words(rules, "true", "|");
  const std::string falsehoods = words(rules, "false", "|");
  const bool integers = rules.truth("booleans_are_integers");
  if (integers || !truths.empty()) {
    library.texts["truths"] = truths;
    library.texts["falsehoods"] = falsehoods;
  }
  if (truths.empty() != falsehoods.empty() || (integers && !truths.empty()))
    rules.context().fault(
        parsing, "give words for both \"true\" and \"false\", or \"booleans_are_integers\"");
  library.booleans_any_case = choice(rules, "boolean_case", kCases, 1) == 1;
  library.words_any_case = choice(rules, "word_case", kCases, 0) == 1;
  library.c_numbers = choice(rules, "numbers", kNumbers, 1) == 1;
  library.texts["number_words"] = words(rules, "number_words", "|");
  for (const char* key : {"suffixes", "bad_boolean", "bad_number", "bad_word"})
    library.texts[key] = text(rules, key);
  rules.finish();
  return library;
}

std::string defaults_by_version(Object& object) {
  std::string list;
  object.objects("defaults", [&](Object& one) {
    const std::string since = text(one, "since", Need::required);
    list += fmt::format("{}{} since {}", list.empty() ? "" : ", ", scalar(one, "value"), since);
  });
  return list;
}

void check_sentence(Object& object, const std::string& sentence) {
  const Item at = object.find("what");
  if (sentence.empty()) return;
  if (sentence.front() >= 'a' && sentence.front() <= 'z')
    object.context().fault(at, "\"what\" must start with a capital letter");
  if (sentence.back() != '.') object.context().fault(at, "\"what\" must end with a full stop");
}

/// What a file says for all of its variables.
struct Common {
  std::size_t number = 0;  ///< of the library
  bool words_any_case = false;
  bool sentences = false;
  int confidence = -1;
};

Variable read_variable(Object& object, const std::string& name, const Common& common) {
  Context& context = object.context();
  const Item& at = object.at();
  Variable v;
  v.name = name;
  v.where = context.place(at);
  v.library = common.number;
  v.type = choice(object, "type", kTypes, -1);
  const std::string_view type = kTypes[static_cast<std::size_t>(v.type)];
  v.confidence = choice(object, "confidence", kConfidences, common.confidence);
  v.direction = choice(object, "direction", kDirections, 0);
  v.texts["values"] = words(object, "values", "|");
  const bool open = object.truth("open");
  const bool closed = object.truth("closed");
  v.closed = closed || (!open && !v.texts["values"].empty() && type != "list" && type != "string");
  if ((open || closed) && v.texts["values"].empty())
    context.fault(at, "\"open\" and \"closed\" need \"values\"");
  v.any_case = choice(object, "case", kCases, common.words_any_case ? 1 : 0) == 1;
  v.internal = object.truth("internal");
  v.numbers = choice(object, "items", kItems, 0) == 1;
  v.texts["lowest"] = integer(object, "min");
  v.texts["highest"] = integer(object, "max");
  v.texts["standard"] = scalar(object, "default");
  v.texts["default_note"] = text(object, "default_note");
  v.texts["standards"] = defaults_by_version(object);
  v.texts["successor"] = text(object, "renamed");
  v.texts["reader"] = words(object, "read_by", ", ");
  for (const char* key : {"unit", "since", "removed", "syntax", "needs", "what", "note"})
    v.texts[key] = text(object, key);
  if (v.texts["reader"].empty()) context.fault(at, "\"read_by\" is missing");
  if (common.sentences && v.texts["what"].empty() && v.texts["removed"].empty())
    context.fault(at, fmt::format("{} has no sentence \"what\", which this file requires", name));
  check_sentence(object, v.texts["what"]);
  return v;
}

/// Reads the members of a section: sorted, and named as variables are unless they are patterns.
template <class Entry, class... More>
void section(Object& head, const char* key, bool patterns, std::vector<Entry>& entries,
             Entry (*read)(Object&, const std::string&, More...), More... more) {
  std::string before;
  for (const auto& [name, item] : head.members(key, "entries")) {
    if (!patterns && !is_identifier(name))
      head.context().fault(item, fmt::format("\"{}\" is not a variable name", name));
    if (name < before)
      head.context().fault(item, fmt::format("{} comes after {}", name, before), "sort the names");
    before = name;
    Object::inside(head.context(), item, [&, &name = name](Object& object) {
      entries.push_back(read(object, name, more...));
    });
  }
}

void read_library(Object& head, Catalogue& catalogue) {
  const Library library = read_parsing(head);
  const Common common = {catalogue.libraries.size(), library.words_any_case,
                         choice(head, "sentences", kSentences, 0) == 1,
                         head.has("confidence") ? choice(head, "confidence", kConfidences, 0) : -1};
  head.find("confidence");
  section<Variable, const Common&>(head, "variables", false, catalogue.variables, read_variable,
                                   common);
  catalogue.libraries.push_back(library);
}

Misspelling read_misspelling(Object& object, const std::string& name) {
  Misspelling m;
  m.wrong = name;
  m.meant = text(object, "meant");
  m.note = text(object, "note");
  m.certain = !object.truth("doubtful");
  m.where = object.context().place(object.at());
  words(object, "seen_in", ", ");
  return m;
}

Family read_family(Object& object, const std::string& pattern) {
  Family f;
  f.pattern = pattern;
  f.library = text(object, "library", Need::required);
  f.unknown = choice(object, "unknown", kUnknown, -1);
  f.rule = text(object, "rule");
  const Item stands_for = object.find("stands_for");  // "": the prefix is dropped
  f.stands_for = stands_for.json->kind == Json::Kind::string ? stands_for.json->text : "-";
  return f;
}

}  // namespace

std::vector<Error> read_file(const std::string& file, const std::string& content,
                             Catalogue& catalogue) {
  Context context(content, file);
  const std::optional<Json> tree = json_reader::parse_tree(content, context);
  if (!tree) return context.take();
  Object head(context, {&*tree, ""});
  head.find("$schema");
  section(head, "misspellings", false, catalogue.misspellings, read_misspelling);
  section(head, "families", true, catalogue.families, read_family);
  if (head.has("variables"))
    read_library(head, catalogue);
  else if (!head.has("misspellings") && !head.has("families"))
    context.fault(head.at(),
                  "neither \"variables\" nor \"misspellings\" nor \"families\" is present");
  head.finish();
  return context.take();
}

}  // namespace hpclaunch::catalogue
