// A profile as JSON, by the list of its fields: what parse_profile reads back.
#include <nlohmann/json.hpp>

#include "hpclaunch/profile_format.h"
#include "profile/facts.h"
#include "profile/fields.h"

namespace hpclaunch {
namespace profile {
namespace {

using Json = nlohmann::ordered_json;

/// The node as its parts were read; cores by their place, a topology in place of counts.
NodeText text_of(const NodeModel& node) {
  const auto cores_of = [&](const CpuSet& pus) {
    CpuSet numbers;
    for (std::size_t i = 0; i < node.topology.cores.size(); ++i)
      if (pus.intersects(node.topology.cores[i].pus)) numbers.add(static_cast<int>(i));
    return numbers;
  };
  NodeText text;
  text.model = node;
  text.topology = node.topology;
  if (!node.reserved.empty())
    text.reserved = ReservedText{cores_of(node.reserved), node.reserved_why};
  for (const ServiceCores& one : node.services)
    text.services.push_back({one.name, cores_of(one.pus), one.why, one.when});
  return text;
}

Json as_json(const When& when) {
  Json object = Json::object();
  for (const Test& test : when)
    for (const Operator& one : kOperators) {
      const bool set = one.kind == Operator::Kind::set;
      if (one.op != test.op && !(set && test.op == Test::Op::is_unset)) continue;
      object[test.fact][one.name] = set                       ? Json(test.op == one.op)
                                    : test.values.size() == 1 ? Json(test.values.front())
                                                              : Json(test.values);
    }
  return object;
}

Json as_json(const Template& value) {
  if (value.each == Template::Each::once) return value.text;
  return {{"each", kEach[value.each == Template::Each::rank ? 0 : 1]},
          {"item", value.text},
          {"join", value.join}};
}

/// What `fields` visits becomes the members of `object`, but for what is as usual.
struct JsonWriter {
  Json& object;
  const Json& usual;

  template <class Member, class Kind>
  void operator()(const char* key, const Member& member, const Kind& kind, Need need,
                  const char* /*meaning*/) const {
    if constexpr (requires { member.has_value(); }) {
      if (member) object[key] = of(*member, kind);
    } else {
      put(key, of(member, kind), need == may && !std::is_same_v<Kind, Choice>);
    }
  }
  /// `usual_too`: also left out where it is as usual.
  void put(const char* key, Json value, bool usual_too) const {
    const bool empty = value.is_null() || (value.is_structured() && value.empty()) || value == "";
    const bool same = usual_too && usual.contains(key) && usual[key] == value;
    if (!empty && !same) object[key] = std::move(value);
  }
  void operator()(const char* /*key*/, const Origin& origin, Inline kind, Need why,
                  const char* /*meaning*/) const {
    fields(origin, *this, why, kind.reasons);
    object["origin"] = {{"profile", origin.profile},
                        {"file", origin.where.file},
                        {"line", origin.where.line},
                        {"column", origin.where.column}};
  }
  /// A topology stands in its place.
  void operator()(const char* /*key*/, const NodeShape& /*shape*/, Inline /*kind*/, Need /*need*/,
                  const char* /*meaning*/) const {}
  void operator()(const char* /*key*/, const PlaceText& /*place*/, Inline /*kind*/, Need /*need*/,
                  const char* /*meaning*/) const {}
  void operator()(const char* /*key*/, const std::vector<Case>& /*cases*/, const Entries& /*kind*/,
                  Need /*need*/, const char* /*meaning*/) const {}

  template <class Kind>
  static Json of(const std::string& text, const Kind& /*kind*/) {
    return text;
  }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  static Json of(const Number& number, const Whole& kind) {
    return static_cast<long>(number) / kind.scale;
  }
  static Json of(const bool& truth, Flag /*kind*/) { return truth; }
  template <class Member>
  requires std::is_same_v<Member, bool> || std::is_enum_v<Member>
  static Json of(const Member& member, const Choice& kind) {
    if constexpr (std::is_enum_v<Member>)
      return kind.words[static_cast<std::size_t>(member)];
    else
      return kind.words[member == (kind.yes == 1) ? 1 : 0];
  }
  static Json of(const When& when, const Condition& /*kind*/) { return as_json(when); }
  static Json of(const CpuSet& cores, Cores /*kind*/) { return cores.to_list(); }
  static Json of(const auto& ends, Width /*kind*/) {
    const auto [low, high] = ends;
    return low == 0 && high == 0 ? "0" : std::to_string(low) + "-" + std::to_string(high);
  }
  static Json of(const auto& ends, const Range& kind) {
    const auto [least, most] = ends;
    if (least == 0 && most == 0) return {};
    return {least / kind.scale, most == 0 ? Json() : Json(most / kind.scale)};
  }
  static Json of(const Topology& node, Tree /*kind*/) {
    return Json::parse(topology_to_json(node), nullptr, false);
  }
  static Json of(const auto& /*member*/, Ignored /*kind*/) { return {}; }
  static Json of(const auto& /*member*/, Version /*kind*/) { return 1; }
  template <class T, class Kind>
  static Json of(const std::vector<T>& list, const List<Kind>& kind) {
    Json all = Json::array();
    for (const T& one : list) all.push_back(of(one, kind.of));
    return all;
  }
  static Json of(const auto& list, Bases /*kind*/) { return list; }
  static Json of(const auto& list, Bridges /*kind*/) { return list; }
  static Json of(const auto& /*list*/, const OneOrList<Whole>& /*kind*/) { return {}; }
  template <class Part>
  static Json of(const std::vector<Part>& list, const Entries& /*kind*/) {
    Json all = Json::array();
    for (const Part& one : list) all.push_back(of(one, Object{}));
    return all;
  }
  template <class Part>
  static Json of(const Part& part, Object /*kind*/) {
    return of_fields(part);
  }
  template <class Part>
  static Json of_fields(const Part& part) {
    Json all = Json::object();
    Json none = Json::object();
    if constexpr (std::is_default_constructible_v<Part>) {
      const Part plain{};
      fields(plain, JsonWriter{none, all});
    }
    fields(part, JsonWriter{all, none});
    return all;
  }
  static Json of(const Signal& signal, Object /*kind*/) {
    Json all = of_fields(signal);
    all.erase(signal.env.empty() ? "like" : "host");
    return all;
  }
  static Json of(const Binding& binding, Object /*kind*/) {
    Json all = of_fields(binding);
    if (!binding.split) all["cores"] = of(std::tie(binding.low, binding.high), Width{});
    return all;
  }
  static Json of(const NodeModel& node, Object kind) { return of(text_of(node), kind); }
  static Json of(const Report& report, const ReportOf& kind) {
    Json all = Json::object();
    fields(report, kind.allowed, JsonWriter{all, all});
    return all;
  }
  static Json of(const std::map<std::string, std::string>& texts, auto /*kind*/) { return texts; }
  static Json of(const auto& reasons, const Reasons& /*kind*/) {
    const auto& [one, each] = reasons;
    return each.empty() ? Json(one) : Json(each);
  }
  static Json of(const std::vector<Binding::Role>& roles, Roles /*kind*/) {
    Json all = Json::object();
    for (const Binding::Role& role : roles) all[role.name] = of(role, Object{});
    return all;
  }
  static Json of(const std::vector<Assignment>& values, const Values& /*kind*/) {
    Json all = Json::object();
    for (const Assignment& one : values) all[one.name] = as_json(one.value);
    return all;
  }
  static Json of(const std::map<std::string, std::vector<std::string>>& lists,
                 const Words& /*kind*/) {
    return lists;
  }
};

}  // namespace
}  // namespace profile

nlohmann::ordered_json profile_json(const Profile& profile) {
  return profile::JsonWriter::of(profile, profile::Object{});
}

}  // namespace hpclaunch
