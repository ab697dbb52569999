#include <nlohmann/json.hpp>

#include "authoring/show.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::authoring {

namespace {

using Json = nlohmann::ordered_json;

void put(Json& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

template <class List>
void put_list(Json& object, const char* key, const List& values) {
  if (!values.empty()) object[key] = values;
}

Json as_json(const When& when) {
  constexpr const char* kNames[] = {"eq", "ne", "lt", "le", "gt", "ge", "like", "unlike"};
  Json object = Json::object();
  for (const Test& test : when) {
    if (test.op == Test::Op::is_set || test.op == Test::Op::is_unset) {
      object[test.fact]["set"] = test.op == Test::Op::is_set;
      continue;
    }
    const Json value = test.values.size() == 1 ? Json(test.values.front()) : Json(test.values);
    object[test.fact][kNames[static_cast<std::size_t>(test.op)]] = value;
  }
  return object;
}

void put_origin(Json& object, const Origin& origin) {
  put(object, "why", origin.why);
  put(object, "source", origin.source);
  put(object, "checked", origin.checked);
  put(object, "printed", origin.printed);
  put(object, "printed_why", origin.printed_why);
  put(object, "disputed", origin.disputed);
  object["origin"] = {{"profile", origin.profile},
                      {"file", origin.where.file},
                      {"line", origin.where.line},
                      {"column", origin.where.column}};
}

void put_when(Json& object, const When& when) {
  if (!when.empty()) object["when"] = as_json(when);
}

Json as_json(const NodeModel& node) {
  Json object = {{"name", node.name}};
  put(object, "doc", node.doc);
  if (node.count > 0) object["count"] = node.count;
  object["use"] = node.live ? "live" : "model";
  put_when(object, node.when);
  if (!node.reserved.empty())
    object["reserved"] = {{"cpus", node.reserved.to_list()}, {"why", node.reserved_why}};
  for (const ServiceCores& service : node.services)
    object["services"].push_back(
        {{"name", service.name}, {"cpus", service.pus.to_list()}, {"why", service.why}});
  object["topology"] = Json::parse(topology_to_json(node.topology), nullptr, false);
  put_origin(object, node.origin);
  return object;
}

Json as_json(const Stack& stack) {
  Json object = {{"name", stack.name}};
  put(object, "doc", stack.doc);
  for (const When& when : stack.when) object["when"].push_back(as_json(when));
  put_origin(object, stack.origin);
  return object;
}

Json as_json(const DeviceMode& mode) {
  Json object = {{"name", mode.name}};
  put(object, "doc", mode.doc);
  object["unit"] = mode.subdevices ? "subdevice" : "device";
  put(object, "mask", mode.mask);
  put(object, "mask_item", mode.mask_item);
  put_origin(object, mode.origin);
  return object;
}

Json as_json(const Binding& binding) {
  constexpr const char* kPer[] = {"node", "package", "numa", "l3"};
  Json object = {{"id", binding.id}};
  put_when(object, binding.when);
  object["per"] = kPer[static_cast<std::size_t>(binding.per)];
  object["first"] = binding.first;
  if (binding.split) {
    object["split"] = true;
  } else {
    if (binding.at.empty())
      object["stride"] = binding.stride;
    else
      object["at"] = binding.at;
    object["cores"] = std::to_string(binding.low) + "-" + std::to_string(binding.high);
    object["at_least"] = binding.at_least;
  }
  object["siblings"] = binding.siblings;
  put_list(object, "groups", binding.groups);
  object["interleave"] = binding.interleave;
  for (const Binding::Role& role : binding.roles) {
    object["roles"][role.name] = {{"from", role.from_base ? "base" : "group"},
                                  {"first", role.first}};
    if (!role.from_base) object["roles"][role.name]["stride"] = role.stride;
  }
  put_origin(object, binding.origin);
  return object;
}

void put_assignments(Json& object, const char* verb, const std::vector<Assignment>& assignments) {
  for (const Assignment& one : assignments) {
    if (one.value.each == Template::Each::once)
      object[verb][one.name] = one.value.text;
    else
      object[verb][one.name] = {{"each", one.value.each == Template::Each::rank ? "rank" : "unit"},
                                {"item", one.value.text},
                                {"join", one.value.join}};
  }
}

Json as_json(const Rule& rule) {
  Json object = {{"id", rule.id}};
  put_when(object, rule.when);
  put_assignments(object, "default", rule.defaults);
  put_assignments(object, "require", rule.require);
  put_assignments(object, "prepend", rule.prepend);
  put_list(object, "unset", rule.unset);
  put_list(object, "launch", rule.launch);
  put_list(object, "batch", rule.batch);
  if (rule.core_limit) object["core_limit"] = *rule.core_limit;
  put_list(object, "make_dirs", rule.make_dirs);
  if (rule.report)
    object["report"] = {{"severity", rule.report->severity},
                        {"message", rule.report->message},
                        {"fix", rule.report->fix}};
  put_origin(object, rule.origin);
  return object;
}

Json as_json(const Note& note) {
  Json object = {{"id", note.id}, {"title", note.title}, {"text", note.text}};
  put_origin(object, note.origin);
  return object;
}

Json as_json(const Signal& signal) {
  Json object = Json::object();
  if (signal.env.empty())
    object["host"] = signal.like;
  else
    object = {{"env", signal.env}, {"like", signal.like}};
  object["proves"] = signal.proves;
  return object;
}

template <class Entry>
Json all(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(as_json(entry));
  return list;
}

}  // namespace

Json profile_object(const Profile& profile, const std::string& file) {
  Json object = {{"name", profile.name}, {"file", file}, {"doc", profile.doc}};
  object["part"] = profile.part;
  object["extends"] = profile.extends;
  if (profile.retired) {
    object["retired"] = {{"date", profile.retired->date}};
    put(object["retired"], "successor", profile.retired->successor);
    put_origin(object["retired"], profile.retired->origin);
  }
  put(object, "launcher", profile.launcher);
  put(object, "scheduler", profile.scheduler);
  if (profile.lsf_launch_node) object["lsf_launch_node"] = *profile.lsf_launch_node;
  Json defaults = Json::object();
  if (profile.ranks_per_device > 0) defaults["ranks_per_device"] = profile.ranks_per_device;
  put(defaults, "gpu_view", profile.gpu_view);
  put(defaults, "device_mode", profile.device_mode);
  put(defaults, "stack", profile.stack);
  put(defaults, "fill", profile.fill);
  object["defaults"] = std::move(defaults);
  object["detect"] = all(profile.detect);
  object["nodes"] = all(profile.nodes);
  object["stacks"] = all(profile.stacks);
  object["device_modes"] = all(profile.device_modes);
  object["bindings"] = all(profile.bindings);
  object["rules"] = all(profile.rules);
  object["notes"] = all(profile.notes);
  object["cases"] = profile.expect.size();
  return object;
}

}  // namespace hpclaunch::authoring
