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

Schema line(std::string_view pattern) {
  Schema schema = all_of({reference("line")});
  if (!pattern.empty()) schema["pattern"] = pattern;
  return schema;
}

Schema list_of(Schema item) {
  return {{"type", "array"}, {"minItems", 1}, {"items", std::move(item)}};
}

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
  Schema all = Schema::parse(kDefinitions);
  all["condition"] = condition();
  for (const FactInfo& fact : known_facts())
    if (!is_rank_fact(fact)) all[tests_name(fact)] = tests_of(fact);
  for (const bool late : {false, true})
    for (const Allowed& one : {Allowed{.late = late}, Allowed{.rank = true, .late = late},
                               Allowed{.unit = true, .late = late}})
      all[template_name(one)] = line(template_pattern(one));
  return all;
}

/// The key of what stands in definitions.json.
const char* name_of(Variable) { return "variable"; }
const char* name_of(Cores) { return "cores"; }
const char* name_of(Width) { return "width"; }
const char* name_of(Range) { return "range"; }
const char* name_of(Tree) { return "topology"; }
const char* name_of(Ignored) { return "line"; }
const char* name_of(Version) { return "version"; }
const char* name_of(Bridges) { return "bridges"; }
const char* name_of(Bases) { return "bases"; }
const char* name_of(Variables) { return "variables"; }
const char* name_of(Named) { return "named"; }
const char* name_of(Values) { return "values"; }
const char* name_of(const Reasons&) { return "reasons"; }

/// The definition of what several keys of an object say together; nullptr: nothing.
template <class Part>
constexpr const char* kTogether = nullptr;
template <>
constexpr const char* kTogether<Signal> = "signal";
template <>
constexpr const char* kTogether<NicText> = "nic";
template <>
constexpr const char* kTogether<Binding> = "binding";
template <>
constexpr const char* kTogether<Binding::Role> = "role";
template <>
constexpr const char* kTogether<Profile> = "profile";

// ---- kinds -------------------------------------------------------------------------------------------

/// A part to ask for its fields: all that could be allowed is.
template <class Part>
Part sample() {
  Part part;
  if constexpr (std::is_same_v<Part, Rule>) part.when = {{"value.X", Test::Op::is_set, {}}};
  return part;
}
/// What `fields` visits becomes the properties of `object`.
struct SchemaWriter {
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
    Schema counts = Schema::object();
    fields(shape, SchemaWriter{counts});
    std::vector<Schema> others;
    for (const auto& [name, schema] : counts["properties"].items())
      others.push_back(required(name));
    for (const char* name : {"numa_memory_mb", "memory_only_numa", "devices", "nics"})
      others.push_back(required(name));
    object["dependencies"]["topology"] = {{"not", any_of(std::move(others))}};
    object["anyOf"] = {required("topology"), {{"required", counts["required"]}}};
    object["properties"].update(counts["properties"]);
  }

  template <class Kind>
  requires requires(const Kind& kind) { name_of(kind); }
  static Schema of(const auto& /*member*/, const Kind& kind) {
    return all_of({reference(name_of(kind))});
  }
  static Schema of(const auto& /*member*/, const Form& form) {
    Schema schema = line(form.pattern);
    schema["title"] = form.what;
    if (form.what == kPattern.what) schema["maxLength"] = kMaxPattern;
    return schema;
  }
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
  template <class Member>
  static Schema of(const Member& member, const Choice& kind) {
    Schema schema = {{"enum", kind.words}};
    if constexpr (std::is_same_v<Member, bool>)
      schema["default"] = kind.words[member == (kind.yes == 1) ? 1 : 0];
    else if constexpr (std::is_enum_v<Member>)
      schema["default"] = kind.words[static_cast<std::size_t>(member)];
    return schema;
  }
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
    fields(part, SchemaWriter{schema});
    if constexpr (!std::empty(kOneOf<Part>))
      for (const char* key : kOneOf<Part>) schema["anyOf"].push_back(required(key));
    if constexpr (std::is_same_v<Part, Case>) {  // what a refused case compares is its first key
      std::vector<Schema> others(schema["anyOf"].begin() + 1, schema["anyOf"].end());
      schema["dependencies"]["refused"] = {{"not", any_of(std::move(others))}};
    }
    if constexpr (kTogether<Part> != nullptr)
      schema["allOf"] = Schema::array({reference(kTogether<Part>)});
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
    fields(report, kind.allowed, SchemaWriter{schema});
    return schema;
  }
  static Schema of(const auto& /*member*/, Roles /*kind*/) {
    Schema schema = {{"type", "object"}, {"minProperties", 1}};
    schema["propertyNames"] = line(kWord.pattern);
    schema["additionalProperties"] = of_fields(Binding::Role{});
    schema["title"] = "objects by name";
    return schema;
  }
  static Schema of(const auto& /*member*/, const Words& kind) {
    Schema schema = closed();
    schema["minProperties"] = 1;
    const Schema list = list_of(of(std::ignore, Templated{kind.allowed}));
    for (const std::string_view name : kind.known) {
      schema["properties"][name] = list;
      schema["properties"][name]["description"] = "For this one";
    }
    schema["title"] = "lists of templates by name";
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
  schema.update(profile::SchemaWriter::of_fields(Profile{}));
  schema["definitions"] = profile::definitions();
  return schema.dump(1) + "\n";
}

}  // namespace hpclaunch
