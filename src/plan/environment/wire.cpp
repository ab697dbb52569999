#include "hpclaunch/wire.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/late.h"
#include "hpclaunch/text.h"
#include "plan/environment/settings.h"

namespace hpclaunch {
namespace {

std::string escape_byte(unsigned char byte) { return fmt::format("%{:02X}", byte); }

/// Escaped so that it cannot be taken for a directive.
std::string escape_key(std::string_view name) {
  if (name.front() < 'a' || name.front() > 'z') return wire_escape(name);
  return escape_byte(static_cast<unsigned char>(name.front())) + wire_escape(name.substr(1));
}

bool all_equal(const std::vector<std::string>& items) {
  return std::ranges::adjacent_find(items, std::ranges::not_equal_to()) == items.end();
}

// A stand-in is between two '^', where a shell puts its value.
std::string item(std::string_view value) {
  std::string text;
  for (const LatePart& part : late_parts(value))
    text += part.late ? "^" + part.text + "^" : wire_escape(part.text);
  return text;
}

std::string field(std::string_view key, const std::vector<std::string>& values) {
  std::string text = fmt::format(":{}={}", key, item(values.front()));
  if (!all_equal(values))
    for (std::size_t i = 1; i < values.size(); ++i) text += "/" + item(values[i]);
  return text;
}

// A constant that enters an image.
std::string constant(std::string_view key, const Setting& setting, const Plan& plan) {
  const std::string& text = std::get<std::string>(setting.value());
  const Layer layer = setting.history.back().layer;
  if (!plan.hosts.later || layer == Layer::environment || layer == Layer::command_line)
    return fmt::format(":{}={}", key, wire_escape(text));
  return field(key, {with_first_host(text, plan.hosts.names.front())});
}

// What a shell puts in does not count.
std::string checksum(std::string_view wire) {
  std::string text;
  bool late = false;
  for (const char c : wire) {
    if (c == '^') late = !late;
    if (c == '^' || !late) text += c;
  }
  return wire_mark(text, 5);
}

/// Does a constant enter a container in the wire? There the image's ENV would override what is inherited. Secrets are
/// named to the engine; a search path of the host's programs and libraries stays outside.
bool enters_image(const Plan& plan, const Setting& setting) {
  const auto* text = std::get_if<std::string>(&setting.value());
  if (plan.launch.image.empty() || text == nullptr || is_secret(setting.name, *text)) return false;
  const bool search = setting.name == "PATH" || setting.name.starts_with("LD_");
  return std::ranges::count(plan.environment.launcher_only, setting.name) == 0 &&
         (!search || setting.history.back().layer == Layer::command_line);
}

/// A constant device mask that the shim sets once more. Slurm's steps have masks of their own, or with --gpu-bind=none
/// none, whatever was exported, and so have the ranks of launchers that start their daemons as a step.
bool is_reset(const Setting& setting, const RankVariables& names) {
  return names.resets_masks && std::holds_alternative<std::string>(setting.value()) &&
         std::ranges::count(device_masks(), setting.name) > 0;
}

/// The settings that belong into the wire.
std::vector<const Setting*> wire_settings(const Plan& plan, const RankVariables& names) {
  std::vector<const Setting*> out;
  for (const Setting& setting : plan.environment.settings)
    if (std::holds_alternative<PerRank>(setting.value()) ||
        std::holds_alternative<RankFact>(setting.value()) || enters_image(plan, setting) ||
        is_reset(setting, names))
      out.push_back(&setting);
  return out;
}

/// Fields by name, so that an error can say what takes most room.
struct Payload {
  std::string text;
  std::map<std::string, std::size_t> bytes;
  void add(const std::string& name, const std::string& piece) {
    text += piece;
    bytes[name] += piece.size();
  }
};

void add_stay(const Plan& plan, Payload& out) {
  if (plan.supervision.supervise || plan.find_env(kStartFolder) != nullptr) {
    out.add("stay", !plan.supervision.termination.fails_fast ? ":stay=kill" : ":stay=exit");
    const TimeLimitSignal& notice = plan.supervision.time_limit_signal;
    if (notice.signal > 0)
      out.add("notice", fmt::format(":notice={}*{}", notice.signal,
                                    notice.after > 0 ? fmt::format("^+{}^", notice.after)
                                                     : std::to_string(notice.at)));
    if (!plan.supervision.output.shown_ranks.empty())
      out.add("shown", ":shown=" + plan.supervision.output.shown_ranks);
    if (!plan.supervision.output.log_dir.empty())
      out.add("the directory of logs", field("log", {plan.supervision.output.log_dir}));
  }
  if (plan.supervision.termination.ranks_outlive_launcher) out.add("end", ":end=with-parent");
}

void add_header(const Plan& plan, const RankVariables& names, bool report, Payload& out) {
  out.add("rank", ":rank=" + names.rank);
  if (!names.local_rank.empty()) out.add("local", ":local=" + names.local_rank);
  if (const int first = plan.own_ranks().first; first > 0)
    out.add("first", fmt::format(":first={}", first));
  out.add("verify",
          fmt::format(":verify={}", report ? "report" : to_string(plan.supervision.verify)));
  if (!plan.launch.image.empty()) out.add("the image", field("image", {plan.launch.image}));
  if (!plan.launch.directory.empty())
    out.add("the working directory", field("cwd", {plan.launch.directory}));
  if (!plan.environment.core_limit.empty()) out.add("core", ":core=" + plan.environment.core_limit);
  if (!plan.environment.make_dirs.empty())
    out.add("directories to create", field("dir", plan.environment.make_dirs));
  add_stay(plan, out);
  std::vector<std::string> runs;
  for (const NodeRun& run : plan.placement.layout)
    runs.push_back(fmt::format("{}*{}", run.node_class, run.nodes));
  out.add("the node layout", fmt::format(":layout={}", fmt::join(runs, "/")));
  std::vector<std::string> counted;
  for (const CoreRun& run : plan.placement.counted)
    counted.push_back(
        fmt::format("{}*{}*{}*{}*{}", run.first, run.cores, run.step, run.threads, run.stride));
  if (!counted.empty())
    out.add("the numbers of cores", fmt::format(":counted={}", fmt::join(counted, "/")));
}

void add_cpus(const Plan& plan, const NodeClass& node_class, Payload& out) {
  const bool expect = plan.placement.bind_via == BindVia::launcher;
  if (plan.placement.bind_via == BindVia::none ||
      (expect && plan.supervision.verify == Verify::off))
    return;
  const bool by_part = node_class.ranks.front().part_first >= 0;
  std::vector<std::string> lists;
  std::vector<std::string> parts;
  for (const RankPlan& rank : node_class.ranks) {
    lists.push_back(rank.cpus.to_list());
    parts.push_back(fmt::format("{}-{}", rank.part_first, rank.part_last));
  }
  const bool named = !all_equal(lists) || !lists.front().empty();
  if (named) out.add("the CPU lists", field(expect ? "expect" : "cpus", lists));
  if (!by_part) return;
  if (node_class.granted > 0)
    out.add("granted",
            fmt::format(":granted={}", plan.placement.counted.empty() ? node_class.granted
                                                                      : node_class.granted_cores));
  out.add("the parts of ranks", field("part", parts));
}

// One mark per node. Not for names that a host does not call itself. For many nodes one character has to do: it
// tells whether a host is the right one, where the first host calls itself as the plan does, not which one it is.
std::string host_marks(const Plan& plan) {
  const bool many = plan.nodes() > kMaxWireHosts;
  const int size = many ? 1 : 3;
  std::string marks = many ? ":order=" : ":hosts=";
  for (const std::string& host : plan.hosts.names) {
    const std::string name = short_host(host);
    const bool known = !is_address(host) && name != "localhost";
    marks += known ? wire_mark(name, size) : std::string(static_cast<std::size_t>(size), '.');
  }
  return marks;
}

// Before its job runs: the job's own variables count before defaults, and there are stand-ins for what only it knows.
bool may_differ(const Plan& plan, const Setting& setting, const std::string& value) {
  const Hosts& hosts = plan.hosts;
  const bool yields = hosts.later && setting.history.back().layer < Layer::profile_require;
  const bool host =
      hosts.invented && value.find(short_host(hosts.names.front())) != std::string::npos;
  return yields || host || (hosts.later && has_late(value));
}

std::string constant_marks(const Plan& plan, const RankVariables& names) {
  std::string marks;
  if (!plan.launch.image.empty()) return marks;
  for (const Setting& setting : plan.environment.settings) {
    const auto* text = std::get_if<std::string>(&setting.value());
    // Launchers put directories of their own in front of lists of paths.
    const bool paths = setting.name == "PATH" || setting.name == "LD_LIBRARY_PATH";
    if (text == nullptr || !is_identifier(setting.name) || is_secret(setting.name, *text) ||
        paths || is_reset(setting, names) ||
        std::ranges::count(plan.environment.launcher_only, setting.name) > 0)
      continue;
    if (may_differ(plan, setting, *text)) continue;
    marks +=
        fmt::format("{}{}*{}", marks.empty() ? ":same=" : "/", setting.name, wire_mark(*text, 5));
  }
  return marks;
}

// Rank 0 listens where hpclaunch chose the rendezvous; an address that was given may be another host's.
std::string rendezvous_port(const Plan& plan) {
  const Setting* address = plan.find_env("MASTER_ADDR");
  const Setting* port = plan.find_env("MASTER_PORT");
  if (address == nullptr || port == nullptr) return {};
  const auto* number = std::get_if<std::string>(&port->value());
  const bool ours = address->history.back().layer == Layer::builtin;
  const bool valid = number != nullptr && number->size() <= 5 && parse_natural(*number);
  return ours && valid ? ":port=" + *number : "";
}

// What only checks, as far as there is room; `rest` is what the wire has without it.
std::string checks(const Plan& plan, const RankVariables& names, std::size_t rest,
                   std::vector<std::string>* left_out) {
  if (plan.supervision.verify == Verify::off) return {};
  std::string text = rendezvous_port(plan);
  const auto add = [&](const std::string& more, bool possible, const char* what) {
    if (possible && rest + text.size() + more.size() <= kMaxCheckedWireBytes)
      text += more;
    else if (left_out != nullptr)
      left_out->emplace_back(what);
  };
  add(constant_marks(plan, names), true, "constant variables");
  if (plan.nodes() > 1 && !plan.hosts.invented && plan.hosts.own < 0) {
    const bool possible = (plan.nodes() <= kMaxWireHosts || plan.hosts.first_is_here) &&
                          plan.nodes() < kMaxCheckedWireBytes;
    add(possible ? host_marks(plan) : "", possible, "their host");
  }
  return text;
}

Error too_long(std::size_t size, const Payload& payload) {
  const auto largest =
      std::ranges::max_element(payload.bytes, {}, [](const auto& one) { return one.second; });
  return Error{
      ErrorKind::unsupported,
      fmt::format(
          "HPCLAUNCH_PLAN would have {} bytes, the limit is {}; the largest part is {} ({})", size,
          kMaxWireBytes, largest->first, largest->second),
      "use fewer ranks per node, nodes that are more alike, or shorter values"};
}

// What the shim has room for, and directories that a profile's facts or the user made up.
Status check_limits(const Plan& plan, std::size_t variables) {
  if (variables > kMaxWireVariables)
    return Error{ErrorKind::unsupported, fmt::format("{} variables for one rank, the limit is {}",
                                                     variables, kMaxWireVariables)};
  if (plan.placement.classes.size() > kMaxWireClasses)
    return Error{ErrorKind::unsupported,
                 fmt::format("the plan has {} kinds of nodes, the limit is {}",
                             plan.placement.classes.size(), kMaxWireClasses)};
  constexpr std::size_t kMaxPath = 4095;
  std::vector<std::string> paths = plan.environment.make_dirs;
  if (plan.supervision.supervise && !plan.supervision.output.log_dir.empty())
    paths.push_back(plan.supervision.output.log_dir);
  for (const std::string& path : paths)
    if (!(path.starts_with('/') || (has_late(path) && late_parts(path).front().late)) ||
        path.size() > kMaxPath)
      return Error{ErrorKind::invalid,
                   fmt::format("directory to create: \"{}\" is not an absolute path", path)};
  return Done{};
}

}  // namespace

std::string wire_escape(std::string_view text) {
  constexpr std::string_view kReserved = "%:/=@\\^";  // a container engine evaluates "\u000A"
  std::string out;
  for (const char c : text) {
    const bool plain = c > ' ' && c <= '~' && kReserved.find(c) == std::string_view::npos;
    out += plain ? std::string(1, c) : escape_byte(static_cast<unsigned char>(c));
  }
  return out;
}

std::string wire_mark(std::string_view text, int size) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::uint32_t hash = fnv1a(text);
  hash ^= hash >> 17;
  std::string mark;
  for (int i = 0; i < size; ++i, hash >>= 6) mark += kDigits[hash & 63u];
  return mark;
}

Result<std::string> encode_wire(const Plan& plan, const RankVariables& names,
                                std::vector<std::string>* left_out, std::string_view report) {
  const std::vector<const Setting*> settings = wire_settings(plan, names);
  if (const Status checked = check_limits(plan, settings.size()); !checked) return checked.error();

  Payload out;
  add_header(plan, names, !report.empty(), out);
  for (const Setting* setting : settings) {
    const std::string key = escape_key(setting->name);
    if (const RankFact* fact = std::get_if<RankFact>(&setting->value())) {
      out.add(setting->name, fmt::format(":{}=@.{}", key, to_string(*fact)));
    } else if (std::holds_alternative<std::string>(setting->value())) {
      out.add(setting->name, constant(key, *setting, plan));
    } else if (const auto& value = std::get<PerRank>(setting->value()); same_everywhere(value)) {
      out.add(setting->name, field(key, value.items.front()));
    }
  }
  for (std::size_t c = 0; c < plan.placement.classes.size(); ++c) {
    out.add("the node classes", fmt::format(":class={}", plan.placement.classes[c].ranks.size()));
    for (const Setting* setting : settings) {
      const PerRank* value = std::get_if<PerRank>(&setting->value());
      if (value == nullptr || same_everywhere(*value)) continue;
      out.add(setting->name, field(escape_key(setting->name), value->items[c]));
    }
    add_cpus(plan, plan.placement.classes[c], out);
  }

  // The checks are for all classes, so they go before the first one.
  std::string more;
  for (const std::string& name : plan.environment.removed)
    if (is_identifier(name)) more += (more.empty() ? ":absent=" : "/") + name;
  more += report.empty() ? checks(plan, names, out.text.size() + more.size(), left_out)
                         : std::string(report);
  const std::size_t first_class = out.text.find(":class=");
  out.text.insert(first_class, more);
  const std::string wire = fmt::format("hl2.{}{}", checksum(out.text), out.text);
  if (wire.size() > kMaxWireBytes) return too_long(wire.size(), out);
  return wire;
}

}  // namespace hpclaunch
