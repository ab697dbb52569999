#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "catalogue.h"
#include "hpclaunch/text.h"
#include "lines.h"

namespace hpclaunch::catalogue {

namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

// In the order of knowledge::Type, ::Confidence, ::Direction and Family::Unknown.
const Words kTypes = {"bool",   "int",  "size",      "time",     "float", "enum",     "list",
                      "string", "path", "path-list", "cpu-list", "range", "algorithm"};
const Words kConfidences = {"source", "docs", "secondary"};
const Words kDirections = {"input", "output", "both"};
const Words kUnknown = {"suspect", "near-miss", "open"};
const Words kCases = {"exact", "any"};
const Words kNumbers = {"decimal", "c"};
const Words kSentences = {"optional", "required"};

// An object whose members are asked for one by one. What nobody asked for is an error.
class Object {
 public:
  Object(const Document& document, const json& object, std::string path, std::vector<Error>& errors)
      : document_(document), object_(object), path_(std::move(path)), errors_(errors) {
    if (!object_.is_object()) fault("", "an object is wanted here");
  }

  void fault(const std::string& member, const std::string& message, const std::string& hint = "") {
    errors_.push_back({ErrorKind::invalid, message, hint,
                       document_.where(member.empty() ? path_ : path_ + "/" + member)});
  }

  const json* find(const char* member) {
    asked_.emplace_back(member);
    const auto at = object_.is_object() ? object_.find(member) : object_.end();
    return at == object_.end() ? nullptr : &*at;
  }

  std::string text(const char* member, bool required = false) {
    const json* value = find(member);
    if (value == nullptr) {
      if (required) fault("", fmt::format("\"{}\" is missing", member));
      return "";
    }
    if (!value->is_string() || value->get<std::string>().empty()) {
      fault(member, fmt::format("\"{}\" is a text that is not empty", member));
      return "";
    }
    return printable(member, value->get<std::string>());
  }

  /// A number, truth or text as the text that one would export.
  std::string scalar(const char* member) {
    const json* value = find(member);
    if (value == nullptr) return "";
    if (value->is_string()) return printable(member, value->get<std::string>());
    if (value->is_boolean()) return value->get<bool>() ? "true" : "false";
    if (value->is_number()) return value->dump();
    fault(member, fmt::format("\"{}\" is a text, a number, true or false", member));
    return "";
  }

  std::string integer(const char* member) {
    const json* value = find(member);
    if (value == nullptr) return "";
    if (!value->is_number_integer()) fault(member, fmt::format("\"{}\" is a whole number", member));
    return value->dump();
  }

  bool truth(const char* member) {
    const json* value = find(member);
    if (value != nullptr && !value->is_boolean())
      fault(member, fmt::format("\"{}\" is true or false", member));
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }

  /// Texts, each once; joined by `separator`, which none may contain.
  std::string words(const char* member, const std::string& separator) {
    const json* value = find(member);
    if (value == nullptr) return "";
    if (value->is_string() && separator == ", ") return text(member);
    Words items;
    if (!value->is_array() || value->empty())
      fault(member, fmt::format("\"{}\" is a list that is not empty", member));
    else
      for (const json& item : *value) {
        const std::string word = item.is_string() ? item.get<std::string>() : "";
        if (word.empty() || word.find(separator) != std::string::npos)
          fault(member, fmt::format("\"{}\" has an item {} that is no word", member, item.dump()));
        else if (std::find(items.begin(), items.end(), word) != items.end())
          fault(member, fmt::format("\"{}\" has \"{}\" twice", member, word));
        items.push_back(printable(member, word));
      }
    return fmt::format("{}", fmt::join(items, separator));
  }

  /// The place of a word among `known`; `otherwise` when absent (-1: it must be there).
  int choice(const char* member, const Words& known, int otherwise) {
    const std::string word = text(member, otherwise < 0);
    if (word.empty()) return std::max(otherwise, 0);
    const auto at = std::find(known.begin(), known.end(), word);
    if (at != known.end()) return static_cast<int>(at - known.begin());
    fault(member, fmt::format("\"{}\" is not one of {}", word, fmt::join(known, ", ")),
          nearest(word, known).value_or(""));
    return 0;
  }

  /// Complains about members that nobody asked for.
  void finish() {
    if (!object_.is_object()) return;
    for (const auto& member : object_.items())
      if (std::find(asked_.begin(), asked_.end(), member.key()) == asked_.end())
        fault(member.key(), fmt::format("no member \"{}\" is known here", member.key()),
              nearest(member.key(), asked_).value_or(""));
  }

 private:
  std::string printable(const char* member, const std::string& value) {
    const bool plain =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (!plain)
      fault(member, fmt::format("\"{}\" has a character that is not printable ASCII", member));
    return value;
  }

  const Document& document_;
  const json& object_;
  std::string path_;
  std::vector<Error>& errors_;
  Words asked_;
};

Library read_parsing(Object& head, const Document& document, std::vector<Error>& errors) {
  Library library;
  library.texts["name"] = head.text("library", true);
  library.texts["title"] = head.text("title", true);
  library.texts["truths"] = "1|true|yes|on|y|t|enable|enabled";
  library.texts["falsehoods"] = "0|false|no|off|n|f|disable|disabled";
  const json* parsing = head.find("parsing");
  if (parsing == nullptr) return library;
  Object rules(document, *parsing, "/parsing", errors);
  library.texts["parser"] = rules.text("source");
  const std::string truths = rules.words("true", "|");
  const std::string falsehoods = rules.words("false", "|");
  const bool integers = rules.truth("booleans_are_integers");
  if (integers || !truths.empty()) library.texts["truths"] = truths;
  if (integers || !truths.empty()) library.texts["falsehoods"] = falsehoods;
  if (truths.empty() != falsehoods.empty() || (integers && !truths.empty()))
    rules.fault("", "give words for both \"true\" and \"false\", or \"booleans_are_integers\"");
  library.booleans_any_case = rules.choice("boolean_case", kCases, 1) == 1;
  library.words_any_case = rules.choice("word_case", kCases, 0) == 1;
  library.c_numbers = rules.choice("numbers", kNumbers, 1) == 1;
  library.texts["suffixes"] = rules.text("suffixes");
  library.texts["number_words"] = rules.words("number_words", "|");
  library.texts["bad_boolean"] = rules.text("bad_boolean");
  library.texts["bad_number"] = rules.text("bad_number");
  library.texts["bad_word"] = rules.text("bad_word");
  rules.finish();
  return library;
}

std::string defaults_by_version(Object& object, const Document& document, const std::string& path,
                                std::vector<Error>& errors) {
  const json* list = object.find("defaults");
  if (list == nullptr) return "";
  std::string text;
  for (const json& item : *list) {
    Object one(document, item, path + "/defaults", errors);
    const std::string since = one.text("since", true);
    text += fmt::format("{}{} since {}", text.empty() ? "" : ", ", one.scalar("value"), since);
    one.finish();
  }
  return text;
}

void check_sentence(Object& object, const char* member, const std::string& sentence) {
  if (sentence.empty()) return;
  const char first = sentence.front();
  if (first >= 'a' && first <= 'z')
    object.fault(member, fmt::format("\"{}\" begins with a small letter", member));
  if (sentence.back() != '.')
    object.fault(member, fmt::format("\"{}\" ends without a full stop", member));
}

Variable read_variable(const std::string& name, const json& value, const Document& document,
                       const Library& library, bool sentences, int confidence,
                       std::vector<Error>& errors) {
  const std::string path = "/variables/" + name;
  Object object(document, value, path, errors);
  Variable v;
  v.name = name;
  v.where = document.where(path);
  v.type = object.choice("type", kTypes, -1);
  const auto& type = kTypes[static_cast<std::size_t>(v.type)];
  v.confidence = object.choice("confidence", kConfidences, confidence);
  v.direction = object.choice("direction", kDirections, 0);
  v.texts["values"] = object.words("values", "|");
  const bool open = object.truth("open");
  const bool closed = object.truth("closed");
  v.closed = closed || (!open && !v.texts["values"].empty() && type != "list" && type != "string");
  if ((open || closed) && v.texts["values"].empty())
    object.fault("", "\"open\" and \"closed\" are said of \"values\"");
  v.any_case = object.choice("case", kCases, library.words_any_case ? 1 : 0) == 1;
  v.internal = object.truth("internal");
  v.numbers = object.choice("items", {"word", "int"}, 0) == 1;
  v.texts["lowest"] = object.integer("min");
  v.texts["highest"] = object.integer("max");
  v.texts["standard"] = object.scalar("default");
  v.texts["default_note"] = object.text("default_note");
  v.texts["standards"] = defaults_by_version(object, document, path, errors);
  v.texts["successor"] = object.text("renamed");
  v.texts["reader"] = object.words("read_by", ", ");
  for (const char* field : {"unit", "since", "removed", "syntax", "needs", "what", "note"})
    v.texts[field] = object.text(field);
  if (v.texts["reader"].empty()) object.fault("", "\"read_by\" is missing");
  if (sentences && v.texts["what"].empty() && v.texts["removed"].empty())
    object.fault("", fmt::format("{} has no sentence \"what\", which this file requires", name));
  check_sentence(object, "what", v.texts["what"]);
  object.finish();
  return v;
}

bool is_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), allowed);
}

void check_order(const Document& document, const char* section, std::vector<Error>& errors) {
  const std::string path = fmt::format("/{}", section);
  const auto at = document.order.find(path);
  if (at == document.order.end()) return;
  for (std::size_t i = 0; i < at->second.size(); ++i) {
    const std::string& name = at->second[i];
    const SourceRef where = document.where(fmt::format("{}/{}", path, name));
    if (!is_name(name) && section != std::string("families"))
      errors.push_back(
          {ErrorKind::invalid, fmt::format("\"{}\" is no name of a variable", name), "", where});
    if (i > 0 && name < at->second[i - 1])
      errors.push_back({ErrorKind::invalid,
                        fmt::format("{} stands after {}", name, at->second[i - 1]),
                        "sort the names", where});
  }
}

void read_library(const Document& document, Object& head, Catalogue& catalogue,
                  std::vector<Error>& errors) {
  const Library library = read_parsing(head, document, errors);
  const bool sentences = head.choice("sentences", kSentences, 0) == 1;
  const int confidence =
      head.find("confidence") == nullptr ? -1 : head.choice("confidence", kConfidences, 0);
  for (const auto& item : head.find("variables")->items()) {
    Variable v =
        read_variable(item.key(), item.value(), document, library, sentences, confidence, errors);
    v.library = catalogue.libraries.size();
    catalogue.variables.push_back(std::move(v));
  }
  catalogue.libraries.push_back(library);
}

void read_misspellings(const Document& document, const json& list, Catalogue& catalogue,
                       std::vector<Error>& errors) {
  for (const auto& item : list.items()) {
    const std::string path = "/misspellings/" + item.key();
    Object object(document, item.value(), path, errors);
    Misspelling m;
    m.wrong = item.key();
    m.meant = object.text("meant");
    m.note = object.text("note");
    m.certain = !object.truth("doubtful");
    m.where = document.where(path);
    object.words("seen_in", ", ");
    object.finish();
    catalogue.misspellings.push_back(std::move(m));
  }
}

void read_families(const Document& document, const json& list, Catalogue& catalogue,
                   std::vector<Error>& errors) {
  for (const auto& item : list.items()) {
    Object object(document, item.value(), "/families/" + item.key(), errors);
    Family f;
    f.pattern = item.key();
    f.library = object.text("library", true);
    f.unknown = object.choice("unknown", kUnknown, -1);
    f.rule = object.text("rule");
    const json* stands_for = object.find("stands_for");  // "" means that the beginning falls away
    f.stands_for =
        stands_for != nullptr && stands_for->is_string() ? stands_for->get<std::string>() : "-";
    object.finish();
    catalogue.families.push_back(std::move(f));
  }
}

}  // namespace

std::vector<Error> read_file(const std::string& file, const std::string& text,
                             Catalogue& catalogue) {
  Result<Document> document = parse(file, text);
  if (!document) return {document.error()};
  std::vector<Error> errors;
  Object head(*document, document->root, "", errors);
  head.find("$schema");
  for (const char* section : {"variables", "misspellings", "families"})
    check_order(*document, section, errors);
  const json* misspellings = head.find("misspellings");
  const json* families = head.find("families");
  if (misspellings != nullptr) read_misspellings(*document, *misspellings, catalogue, errors);
  if (families != nullptr) read_families(*document, *families, catalogue, errors);
  if (head.find("variables") != nullptr)
    read_library(*document, head, catalogue, errors);
  else if (misspellings == nullptr && families == nullptr)
    head.fault("", "neither \"variables\" nor \"misspellings\" nor \"families\" is here");
  head.finish();
  return errors;
}

}  // namespace hpclaunch::catalogue
