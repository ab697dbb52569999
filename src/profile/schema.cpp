// The JSON Schema of a profile, from the list of its fields and that of the facts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "hpclaunch/profile_format.h"
#include "profile/facts.h"
#include "profile/fields.h"

namespace hpclaunch {
namespace profile {
namespace {

using Schema = nlohmann::ordered_json;

Schema reference(std::string_view definition) {
  return {{"$ref", fmt::format("#/definitions/{}", definition)}};
}

Schema any_of(std::vector<Schema> schemas) { return {{"anyOf", std::move(schemas)}}; }
Schema all_of(std::vector<Schema> schemas) { return {{"allOf", std::move(schemas)}}; }
Schema required(std::string_view key) { return {{"required", {key}}}; }
Schema closed() { return {{"type", "object"}, {"additionalProperties", false}}; }

/// One line without control characters; nothing is said of an empty one.
const Schema kOneLine = {{"type", "string"}, {"not", {{"pattern", "[\\x00-\\x1f\\x7f]"}}}};

Schema line(const char* pattern = "") {
  Schema schema = kOneLine;
  schema["minLength"] = 1;
  if (*pattern != '\0') schema["pattern"] = pattern;
  return schema;
}

Schema list_of(Schema item) {
  return {{"type", "array"}, {"minItems", 1}, {"items", std::move(item)}};
}

Schema map_of(Schema value, Schema names = {}) {
  Schema schema = {{"type", "object"}, {"minProperties", 1}};
  if (!names.is_null()) schema["propertyNames"] = std::move(names);
  schema["additionalProperties"] = std::move(value);
  return schema;
}

const char* const kVariablePattern = "^[^=$ ]+$";

// ---- facts -------------------------------------------------------------------------------------------

/// Tests of a fact that has such values, and such ones where they are compared.
Schema tests_of(const Schema& value, const Schema& ordered) {
  const Schema pattern = {
      {"type", "string"}, {"minLength", 1}, {"maxLength", kMaxPattern}, {"not", kOneLine["not"]}};
  const auto one_or_more = [](const Schema& one) { return any_of({one, list_of(one)}); };
  Schema tests = closed();
  tests["minProperties"] = 1;
  for (const Operator& one : kOperators)
    tests["properties"][one.name] = one.kind == Operator::Kind::equal   ? one_or_more(value)
                                    : one.kind == Operator::Kind::order ? ordered
                                    : one.kind == Operator::Kind::pattern
                                        ? one_or_more(pattern)
                                        : Schema{{"type", "boolean"}};
  return any_of({value, list_of(value), tests});
}

Schema tests_of(const FactInfo& fact) {
  const Schema whole = {{"type", "integer"}};
  const Schema order = any_of({whole, line("^[0-9]")});
  switch (fact.kind) {
    case FactInfo::Kind::number:
    case FactInfo::Kind::count: {
      const Schema natural = {{"type", "integer"}, {"minimum", 0}};
      return tests_of(any_of({natural, {{"type", "string"}, {"pattern", "^[0-9]*$"}}}),
                      any_of({natural, line("^[0-9]+$")}));
    }
    case FactInfo::Kind::word: {
      std::vector<std::string_view> words(fact.words.begin(), fact.words.end());
      words.emplace_back();
      return tests_of({{"enum", words}}, order);
    }
    case FactInfo::Kind::version:
      return tests_of(
          any_of(
              {whole, all_of({kOneLine, {{"not", {{"pattern", "^(!?=|[<>]=?)[ \\t]*[0-9]"}}}}})}),
          order);
    default:
      return tests_of(any_of({whole, kOneLine}), order);
  }
}

/// "tests_of_number", "tests_of_yes_no"
std::string tests_name(const FactInfo& fact) {
  constexpr const char* kNames[] = {"text", "version", "", "number", "number"};
  return fmt::format("tests_of_{}", fact.words.empty()
                                        ? kNames[static_cast<std::size_t>(fact.kind)]
                                        : fmt::format("{}", fmt::join(fact.words, "_")));
}

Schema condition() {
  Schema schema = closed();
  schema["minProperties"] = 1;
  for (const FactInfo& fact : known_facts()) {
    if (is_rank_fact(fact)) continue;
    const std::string name(fact.name);
    if (name.ends_with('.'))
      schema["patternProperties"][fmt::format("^{}\\..", name.substr(0, name.size() - 1))] =
          reference(tests_name(fact));
    else
      schema["properties"][name] = reference(tests_name(fact));
  }
  return schema;
}

/// Text with ${...} of these facts.
std::string template_pattern(const Allowed& allowed) {
  std::vector<std::string> names;
  for (const FactInfo& fact : known_facts()) {
    const bool unit = allowed.unit && fact.name == "unit";
    if (is_rank_fact(fact) && !allowed.rank && !unit) continue;
    if (fact.scope == FactInfo::Scope::late && !allowed.late) continue;
    std::string name;
    for (const char c : fact.name) name += c == '.' ? "\\." : std::string(1, c);
    names.push_back(name + (fact.name.ends_with('.') ? "[^}]+" : ""));
  }
  return fmt::format("^([^$]|\\$\\$|\\$\\{{({})\\}})*$", fmt::join(names, "|"));
}

/// "rank_template"; "early_rank_template" without value.NAME
std::string template_name(const Allowed& allowed) {
  return fmt::format("{}{}_template", allowed.late ? "" : "early_",
                     allowed.rank   ? "rank"
                     : allowed.unit ? "unit"
                                    : "job");
}

Schema definitions() {
  Schema all = {{"condition", condition()}};
  for (const FactInfo& fact : known_facts())
    if (!is_rank_fact(fact)) all[tests_name(fact)] = tests_of(fact);
  for (const bool late : {false, true})
    for (const Allowed& one : {Allowed{.late = late}, Allowed{.rank = true, .late = late},
                               Allowed{.unit = true, .late = late}})
      all[template_name(one)] = line(template_pattern(one).c_str());
  return all;
}

// ---- kinds -------------------------------------------------------------------------------------------

/// A part to ask for its fields: all that could be allowed is.
template <class Part>
Part sample() {
  Part part;
  if constexpr (std::is_same_v<Part, Rule>) part.when = {{"value.X", Test::Op::is_set, {}}};
  return part;
}
/// What `fields` visits becomes the properties of `object`.
struct Writer {
  Schema& object;

  template <class Member, class Kind>
  void operator()(const char* key, const Member& member, const Kind& kind, Need need,
                  const char* meaning) const {
    Schema schema = of(member, kind);
    schema["description"] = meaning;
    object["properties"][key] = std::move(schema);
    if (need == must) object["required"].push_back(key), object["properties"][key].erase("default");
  }
  void operator()(const char* /*key*/, const Origin& origin, Inline kind, Need why,
                  const char* /*meaning*/) const {
    fields(origin, *this, why, kind.reasons);
    object["dependencies"]["printed_why"] = {"printed"};
  }
  void operator()(const char* /*key*/, const PlaceText& place, Inline /*kind*/, Need /*need*/,
                  const char* /*meaning*/) const {
    fields(place, *this);
  }
  /// Or "topology" in its place.
  void operator()(const char* /*key*/, const NodeShape& shape, Inline /*kind*/, Need /*need*/,
                  const char* /*meaning*/) const {
    Schema needed = Schema::array();
    needed.swap(object["required"]);
    fields(shape, *this);
    needed.swap(object["required"]);
    object["anyOf"] = {required("topology"), {{"required", needed}}};
  }

  static Schema of(const auto& /*member*/, const Form& form) {
    Schema schema = line(form.pattern);
    schema["title"] = form.what;
    if (form.what == kPattern.what) schema["maxLength"] = kMaxPattern;
    return schema;
  }
  static Schema of(const auto& /*member*/, Variable /*kind*/) { return line(kVariablePattern); }
  static Schema of(const auto& member, Flag /*kind*/) {
    Schema schema = {{"type", "boolean"}};
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, bool>)
      schema["default"] = member;
    return schema;
  }
  static Schema of(const auto& member, const Whole& kind) {
    Schema schema = {{"type", "integer"}, {"minimum", kind.min}, {"maximum", kind.max}};
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(member)>>)
      if (const auto usual = static_cast<long>(member) / kind.scale; usual >= kind.min)
        schema["default"] = usual;
    return schema;
  }
  static Schema of(const auto& /*member*/, const Choice& kind) { return {{"enum", kind.words}}; }
  static Schema of(const auto& /*member*/, const Templated& kind) {
    Schema schema = all_of({reference(template_name(kind.allowed))});
    schema["title"] = "a template";
    if (kind.path) {
      schema["allOf"].push_back({{"pattern", "^(/|\\$\\{)"}});
      schema["allOf"].push_back({{"not", {{"pattern", "(^|/)\\.\\.(/|$)"}}}});
    }
    return schema;
  }
  static Schema of(const auto& /*member*/, const Condition& kind) {
    std::vector<Schema> parts = {reference("condition")};
    if (!kind.allowed.late)
      parts.push_back({{"propertyNames", {{"not", {{"pattern", "^value\\."}}}}}});
    if (!kind.allowed.never.empty()) parts.push_back({{"not", required(kind.allowed.never)}});
    return all_of(std::move(parts));
  }
  static Schema of(const auto& /*member*/, Cores /*kind*/) {
    Schema schema = line("^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$");
    schema["examples"] = {"0-3,8"};
    return schema;
  }
  static Schema of(const auto& /*member*/, Width /*kind*/) {
    Schema schema = line("^[0-9]+(-[0-9]+)?$");
    schema["examples"] = {"0-3"};
    return schema;
  }
  static Schema of(const auto& /*member*/, const Range& kind) {
    const Schema least = {{"type", "integer"}, {"minimum", 0}, {"maximum", kind.most}};
    const Schema most = {{"type", "integer"}, {"minimum", 1}, {"maximum", kind.most}};
    return {{"type", "array"},
            {"minItems", 2},
            {"maxItems", 2},
            {"items", Schema::array({least, any_of({most, {{"type", "null"}}})})},
            {"examples", Schema::array({Schema::array({1, 64})})}};
  }
  template <class Kind>
  static Schema of(const auto& /*member*/, const List<Kind>& kind) {
    Schema schema = list_of(of(std::ignore, kind.of));
    if (kind.none) schema.erase("minItems");
    if (kind.once) schema["uniqueItems"] = true;
    return schema;
  }
  template <class Kind>
  static Schema of(const auto& /*member*/, const OneOrList<Kind>& kind) {
    const Schema one = of(std::ignore, kind.of);
    return any_of({one, list_of(one)});
  }
  template <class Part>
  static Schema of_fields(const Part& part) {
    Schema schema = closed();
    fields(part, Writer{schema});
    if constexpr (!std::empty(kOneOf<Part>))
      for (const char* key : kOneOf<Part>) schema["anyOf"].push_back(required(key));
    return schema;
  }
  template <class Part>
  static Schema of(const Part& part, Object /*kind*/) {
    return of_fields(part);
  }
  template <class Part>
  static Schema of(const std::optional<Part>& /*member*/, Object /*kind*/) {
    return of_fields(sample<Part>());
  }
  template <class Part>
  static Schema of(const std::vector<Part>& /*member*/, const Entries& /*kind*/) {
    return list_of(of_fields(sample<Part>()));
  }
  static Schema of(const std::vector<NodeModel>& /*member*/, const Entries& /*kind*/) {
    return list_of(of_fields(NodeText{}));
  }
  static Schema of(const auto& /*member*/, const ReportOf& kind) {
    Schema schema = closed();
    const Report report;
    fields(report, kind.allowed, Writer{schema});
    return schema;
  }
  static Schema of(const auto& /*member*/, Tree /*kind*/) {
    return {{"type", "object"},
            {"required", {"schema", "cores"}},
            {"additionalProperties", Schema::object()}};
  }
  static Schema of(const auto& /*member*/, Ignored /*kind*/) { return line(); }
  static Schema of(const auto& /*member*/, Version /*kind*/) {
    return {{"type", "integer"}, {"const", 1}};
  }
  static Schema of(const auto& /*member*/, Bridges /*kind*/) {
    return {{"type", "array"},
            {"minItems", 1},
            {"items", Schema::array({line("^[0-9a-f]{4}:[0-9a-f]{2}$")})},
            {"additionalItems", line(kPci.pattern)},
            {"examples", Schema::array({Schema::array({"0000:c0", "0000:c0:01.1"})})}};
  }
  static Schema of(const auto& /*member*/, Bases /*kind*/) {
    const Schema bases = list_of({{"type", "integer"}, {"minimum", 0}, {"maximum", kMaxOffset}});
    return any_of({bases, list_of(bases)});
  }
  static Schema of(const auto& /*member*/, const Reasons& kind) {
    const Schema one = line(kind.of.pattern);
    return any_of({one, map_of(one, line(kVariablePattern))});
  }
  static Schema of(const auto& /*member*/, Variables /*kind*/) {
    return map_of(kOneLine, line(kVariablePattern));
  }
  static Schema of(const auto& /*member*/, Named /*kind*/) {
    return any_of({list_of(line()), map_of({{"type", "string"}})});
  }
  static Schema of(const auto& /*member*/, Roles /*kind*/) {
    return map_of(of_fields(Binding::Role{}), line(kWord.pattern));
  }
  /// A template, or a list built from one.
  static Schema of(const auto& /*member*/, const Values& /*kind*/) {
    const auto list = [](const char* each, const char* meaning, Allowed allowed) {
      Schema schema = closed();
      schema["properties"] = {{"each", {{"enum", {each}}, {"description", meaning}}},
                              {"item", of(std::ignore, Templated{allowed})},
                              {"join", line()}};
      schema["properties"]["item"]["description"] = "One item";
      schema["properties"]["join"]["description"] = "Stands between items; a comma without it";
      schema["required"] = {"each", "item"};
      return schema;
    };
    const Schema one =
        all_of({kOneLine, {{"pattern", template_pattern({.rank = true, .late = true})}}});
    return map_of(any_of({one, list("rank", "Once per local rank", {.rank = true, .late = true}),
                          list("unit", "Once per unit of the node; `${unit}` counts from 0",
                               {.unit = true, .late = true})}),
                  line(kVariablePattern));
  }
  static Schema of(const auto& /*member*/, const Words& kind) {
    Schema schema = closed();
    schema["minProperties"] = 1;
    const Schema list = list_of(of(std::ignore, Templated{kind.allowed}));
    for (const std::string_view name : kind.known) {
      schema["properties"][name] = list;
      schema["properties"][name]["description"] = "For this one";
    }
    return schema;
  }
};

}  // namespace
}  // namespace profile

std::string profile_schema() {
  profile::Schema schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                            {"title", "A profile of hpclaunch"},
                            {"description", "What hpclaunch knows about a site."},
                            {"allowComments", true}};
  schema.update(profile::Writer::of_fields(Profile{}));
  schema["definitions"] = profile::definitions();
  return schema.dump(1) + "\n";
}

}  // namespace hpclaunch
