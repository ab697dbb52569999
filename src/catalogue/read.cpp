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
using knowledge::TextList;
using Words = std::vector<std::string_view>;

// In the order of knowledge::Type, ::Confidence, ::Direction, Family::Unknown, Caution::Kind and KnownIssue::Effect.
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
const Words kEffects = {"no-start", "crash", "hang", "wrong-result", "slow"};
const Words kOrders = {"eq", "ne", "lt", "le", "gt", "ge"};

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

/// Strings, each once.
Words words(const Item& at) {
  Words all;
  for (const Item& item : at.elements("words")) {
    all.push_back(text(item));
    if (std::ranges::count(all, all.back()) > 1)
      item.fault(fmt::format("\"{}\" has \"{}\" twice", at->key, all.back()));
  }
  return all;
}

TextList list(const Words& all) {
  std::string bytes;
  for (const std::string_view one : all) bytes.append(one).push_back('\0');
  return {keep(bytes).data()};
}

TextList list(const Item& at) { return list(words(at)); }

/// A string, or several: "a, b".
std::string_view sentence_part(const Item& at) {
  return at->kind == Json::Kind::string ? text(at) : keep(joined(words(at), ", "));
}

/// By the position of a word among `known`.
template <class Value>
Value choice(const Item& at, const Words& known, Value otherwise) {
  const std::string word = at.choice(known);
  if (word.empty()) return otherwise;
  return static_cast<Value>(std::ranges::find(known, word) - known.begin());
}

// "read": {"up_to": "NCCL 2.31.2", "on": "2026-11-28", "component": "nccl"}
void read_release(const Item& at, knowledge::Library& library) {
  library.release = text(at["up_to"]);  // none: read in documents without versions
  library.read_on = text(at.need("on"));
  library.component = at["component"] ? text(at["component"]) : library.name;
  const std::string_view on = library.read_on;
  const bool digits =
      std::ranges::all_of(on, [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
  if (on.size() != 10 || !digits) at.fault(fmt::format("\"{}\" is not a date, YYYY-MM-DD", on));
}

knowledge::Library read_parsing(const Item& head) {
  knowledge::Library library;
  library.name = text(head.need("library"));
  library.title = text(head.need("title"));
  read_release(head.need("read"), library);
  library.truths = list({"1", "true", "yes", "on", "y", "t", "enable", "enabled"});
  library.falsehoods = list({"0", "false", "no", "off", "n", "f", "disable", "disabled"});
  const Item rules = head["parsing"];
  library.parser = text(rules["source"]);
  const TextList truths = list(rules["true"]);
  const TextList falsehoods = list(rules["false"]);
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
  library.number_words = list(rules["number_words"]);
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
  v.values = list(at["values"]);
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
  v.reader = sentence_part(at["read_by"]);
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
  sentence_part(at["seen_in"]);
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
    c.launched = one["launched"].truth();
    c.values = list(one["values"]);
    c.with = list(one["with"]);
    c.since = text(one["since"]);
    c.why = text(one.need("why"));
    c.source = text(one.need("source"));
    c.where = one.where();
    catalogue.cautions.push_back(c);
  }
}

// {"rccl": {"ge": "2.21.5", "le": "2.22.3"}, "rocm": {"lt": "6.4.1"}}
TextList version_tests(const Item& at) {
  Words tests;
  for (const Item& component : at.members("components"))
    for (const Item& test : component.members("tests")) {
      if (std::ranges::count(kOrders, test->key) == 0)
        test.fault(fmt::format("\"{}\" is none of {}", test->key, joined(kOrders, ", ")));
      tests.insert(tests.end(), {keep(component->key), keep(test->key), text(test)});
      if (!compare_versions(text(test), "1"))
        test.fault(fmt::format("\"{}\" is not a version", text(test)));
    }
  if (tests.empty()) at.fault("\"when\" is empty");
  return list(tests);
}

KnownIssue read_known_issue(const Item& at) {
  KnownIssue issue;
  issue.id = text(at.need("id"));
  issue.versions = version_tests(at.need("when"));
  issue.gpus = list(at["gpu"]);
  issue.with = list(at["with"]);
  issue.options = list(at["options"]);
  issue.effect = choice(at.need("effect"), kEffects, KnownIssue::Effect::crash);
  issue.why = text(at.need("why"));
  issue.fix = text(at.need("fix"));
  issue.source = text(at.need("source"));
  text(at.need("checked"));
  issue.where = at.where();
  return issue;
}

void read_head(const Item& head, Catalogue& catalogue) {
  (void)head["$schema"];
  for (const Item& at : section(head["misspellings"], false))
    catalogue.misspellings.push_back(read_misspelling(at));
  for (const Item& at : section(head["families"], true))
    catalogue.families.push_back(read_family(at));
  for (const Item& at : section(head["cautions"], false)) read_cautions(at, catalogue);
  for (const Item& at : head["known_issues"].elements("objects"))
    catalogue.known_issues.push_back(read_known_issue(at));
  if (head["variables"])
    read_library(head, catalogue);
  else if (!head["misspellings"] && !head["families"] && !head["cautions"] && !head["known_issues"])
    head.fault(
        "none of \"variables\", \"misspellings\", \"families\", \"cautions\" and \"known_issues\" "
        "is present");
  head.finish();
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

}  // namespace hpclaunch::catalogue
