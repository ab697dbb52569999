// The Plan as JSON. docs/reference/plan.md, "The plan as JSON", is the contract.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "hpclaunch/plan.h"
#include "hpclaunch/secret.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

using Json = nlohmann::ordered_json;

bool is_utf8(std::string_view text) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), ascii)) return true;
  try {
    (void)Json(text).dump();  // the writer throws for what readers refuse
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < have ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= have ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

Json text(std::string_view value) {
  if (is_utf8(value)) return value;
  return Json{{"bytes", base64(value)}};
}

Json text_or_null(const std::string& value) { return value.empty() ? Json(nullptr) : text(value); }

template <class Items, class Make>
Json list(const Items& items, Make make) {
  Json made = Json::array();
  for (const auto& item : items) made.push_back(make(item));
  return made;
}

template <class Texts>
Json texts(const Texts& values) {
  return list(values, text);
}

Json value_json(const Value& value) {
  if (std::holds_alternative<Unset>(value)) return nullptr;
  if (const auto* constant = std::get_if<std::string>(&value)) return text(*constant);
  if (const auto* fact = std::get_if<RankFact>(&value))
    return Json{{"fact", std::string(to_string(*fact))}};
  return Json{{"per_rank", list(std::get<PerRank>(value).items, texts<std::vector<std::string>>)}};
}

Json where_json(const SourceRef& where) {
  if (where == SourceRef{}) return nullptr;
  Json out = {{"file", text(where.file)}};
  if (where.line > 0) out["line"] = where.line;
  if (where.column > 0) out["column"] = where.column;
  if (!where.pointer.empty()) out["pointer"] = text(where.pointer);
  return out;
}

Json decision_json(const std::string& name, const Decision& decision) {
  Json out;
  out["layer"] = std::string(to_string(decision.layer));
  out["value"] = is_hidden(name, decision) ? Json{{"hidden", true}} : value_json(decision.value);
  out["where"] = where_json(decision.where);
  out["why"] = text(decision.why);
  const std::pair<const char*, const std::string*> said[] = {{"rule", &decision.rule},
                                                             {"profile", &decision.profile},
                                                             {"source", &decision.source},
                                                             {"checked", &decision.checked},
                                                             {"condition", &decision.condition},
                                                             {"printed", &decision.printed},
                                                             {"printed_why", &decision.printed_why},
                                                             {"disputed", &decision.disputed}};
  for (const auto& [key, value] : said)
    if (!value->empty()) out[key] = text(*value);
  return out;
}

Json settings_json(const std::vector<Setting>& settings) {
  return list(settings, [](const Setting& setting) {
    Json history = list(setting.history, [&](const Decision& decision) {
      return decision_json(setting.name, decision);
    });
    Json one;
    one["name"] = text(setting.name);
    one["value"] = history.empty() ? Json(nullptr) : history.back()["value"];
    one["history"] = std::move(history);
    return one;
  });
}

Json known(int os_index) { return os_index < 0 ? Json(nullptr) : Json(os_index); }

Json rank_json(const RankPlan& rank, std::size_t local_rank) {
  Json one;
  one["local_rank"] = local_rank;
  one["cpus"] = text_or_null(rank.cpus.to_list());
  one["part"] = rank.part_first < 0 ? Json(nullptr)
                                    : Json{{"first", rank.part_first}, {"last", rank.part_last}};
  one["cores"] = rank.cores;
  one["package"] = known(rank.package);
  one["numa"] = known(rank.numa);
  const auto unit_json = [](const Slot& unit) {
    return Json{{"unit", known(unit.unit)},
                {"device", known(unit.device)},
                {"subdevice", known(unit.part)}};
  };
  std::vector<Slot> units = rank.slots;
  if (units.empty()) units.emplace_back();
  one.update(unit_json(units.front()));
  units.erase(units.begin());
  one["more_units"] = list(units, unit_json);
  one["nic"] = known(rank.nic);
  return one;
}

Json class_json(const NodeClass& node) {
  std::size_t local_rank = 0;
  Json one;
  one["granted"] = node.granted == 0 ? Json(nullptr) : Json(node.granted);
  one["granted_cores"] = node.granted == 0 ? Json(nullptr) : Json(node.granted_cores);
  one["ranks"] =
      list(node.ranks, [&](const RankPlan& rank) { return rank_json(rank, local_rank++); });
  return one;
}

Json layout_json(const Placement& placement) {
  int node = 0;
  int rank = 0;
  return list(placement.layout, [&](const NodeRun& run) {
    const int per_node = static_cast<int>(placement.of(run).ranks.size());
    Json one;
    one["node_class"] = run.node_class;
    one["nodes"] = run.nodes;
    one["first_node"] = std::exchange(node, node + run.nodes);
    one["first_rank"] = std::exchange(rank, rank + run.nodes * per_node);
    one["ranks_per_node"] = per_node;
    return one;
  });
}

Json report_json(const Diagnostic& report) {
  return Json{{"id", text(report.id)},
              {"severity", std::string(to_string(report.severity))},
              {"message", text(report.message)},
              {"fix", text_or_null(report.fix)}};
}

void add(const Hosts& hosts, Json& out) {
  out["nodes"] = hosts.count();
  out["hosts"] = texts(hosts.names);
  out["node_rank"] = hosts.own >= 0 ? Json(hosts.own) : Json(nullptr);
}

void add(const Placement& placement, Json& out) {
  out["world_size"] = placement.world_size();
  out["max_local_size"] = placement.max_local_size();
  out["gpu_view"] = text_or_null(placement.gpu_view);
  out["bind_via"] = std::string(to_string(placement.bind_via));
  out["layout"] = layout_json(placement);
  out["classes"] = list(placement.classes, class_json);
}

void add(const Environment& environment, Json& out) {
  out["core_limit"] = text_or_null(environment.core_limit);
  out["make_dirs"] = texts(environment.make_dirs);
  out["env"] = settings_json(environment.settings);
  out["wire"] = text(environment.wire);
}

void add(const Launch& launch, Json& out) {
  out["program"] = launch.command.empty() ? Json(nullptr) : text(launch.command[0]);
  out["command"] = texts(without_secrets(launch.command));
  out["launcher"] = text(launch.launcher);
  out["profile_args"] = texts(launch.profile_args);
  out["launcher_args"] = texts(without_secrets(launch.launcher_args));
  out["batch"] = texts(launch.batch);
}

void add(const Supervision& supervision, Json& out) {
  const OutputOptions& output = supervision.output;
  const TimeLimitSignal& sent = supervision.time_limit_signal;
  out["verify"] = std::string(to_string(supervision.verify));
  out["output"] =
      Json{{"label", output.label},
           {"log_dir", text_or_null(output.log_dir)},
           {"grace_seconds", output.grace_seconds},
           {"start_seconds", output.start_seconds ? Json(*output.start_seconds) : Json(nullptr)},
           {"lost_seconds", output.lost_seconds.value_or(kLostSeconds)},
           {"end_seconds", output.end_seconds ? Json(*output.end_seconds) : Json(nullptr)},
           {"report", text_or_null(output.report)}};
  if (output.stall_seconds) {
    out["output"]["stall_seconds"] =
        *output.stall_seconds == kLearned ? Json("auto") : Json(*output.stall_seconds);
    out["output"]["on_stall"] = text_or_null(output.on_stall);
  }
  if (!output.shown_ranks.empty()) out["output"]["local_ranks_filter"] = text(output.shown_ranks);
  out["supervise"] = supervision.supervise;
  if (sent.signal != 0)
    out["time_limit_signal"] =
        Json{{"signal", time_limit_signal_name(sent.signal)}, {"at", sent.at}};
}

void add(const Explanation& explanation, Json& out) {
  out["reports"] = list(explanation.reports, report_json);
  out["choices"] = settings_json(explanation.choices);
}

}  // namespace

bool is_hidden(std::string_view name, const Decision& decision) {
  const bool given = decision.layer == Layer::environment || decision.layer == Layer::command_line;
  const auto* value = std::get_if<std::string>(&decision.value);
  return given && is_secret(name, value == nullptr ? "" : *value) &&
         !std::holds_alternative<Unset>(decision.value);
}

std::string plan_to_json(const Plan& plan) {
  Json out;
  for (const std::string_view key :
       split("schema program command world_size nodes max_local_size hosts node_rank launcher "
             "profile_args launcher_args gpu_view batch core_limit make_dirs reports bind_via "
             "verify output "
             "supervise time_limit_signal layout "
             "classes choices env wire",
             ' '))
    out[std::string(key)] = nullptr;  // the order of the contract, not of the parts
  out["schema"] = 1;
  add(plan.hosts, out);
  add(plan.placement, out);
  add(plan.environment, out);
  add(plan.launch, out);
  add(plan.supervision, out);
  add(plan.explanation, out);
  return out.dump(2) + "\n";
}

}  // namespace hpclaunch
