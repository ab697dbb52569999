#include "parse.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"

namespace hpclaunch {
namespace profile {
namespace {

constexpr std::size_t kMaxText = 1'048'576;

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto year = parse_natural(text.substr(0, 4));
  const auto month = parse_natural(text.substr(5, 2));
  const auto day = parse_natural(text.substr(8, 2));
  if (!year || !month || !day || *year < 1970 || *month < 1 || *month > 12) return false;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (*year % 4 == 0 && *year % 100 != 0) || *year % 400 == 0;
  return *day >= 1 && *day <= kDays[*month - 1] + (leap && *month == 2 ? 1 : 0);
}

bool is_core_limit(std::string_view text) {
  constexpr std::size_t kDigits = 18;  // what the shim reads
  return text == "unlimited" || text == "0" ||
         (text.size() <= kDigits && text[0] != '0' &&
          text.find_first_not_of("0123456789") == std::string_view::npos);
}

bool is_url(std::string_view text) {
  return (text.starts_with("https://") || text.starts_with("http://")) &&
         text.find(' ') == std::string_view::npos;
}

/// A name of another profile; its place is kept for errors that need that profile.
std::string parse_reference(const Item& at, Profile& profile, const char* hint) {
  const SourceRef where = at.where();
  profile.places[where.pointer] = where;
  return at.text_of("a profile name", is_profile_name, hint);
}

void parse_extends(const Item& at, Profile& profile) {
  for (const Item& item : at.elements("names")) {
    std::string name = parse_reference(item, profile, "name profiles, not files");
    if (std::ranges::find(profile.extends, name) != profile.extends.end())
      item.fault(fmt::format("{} appears twice", shown(name)), "name each profile once");
    profile.extends.push_back(std::move(name));
  }
}

std::string parse_date(const Item& at) { return at.text_of("a date", is_date, "write YYYY-MM-DD"); }

void parse_retired(const Item& at, Profile& profile) {
  if (!at) return;
  Retirement& retirement = profile.retired.emplace();
  retirement.date = parse_date(at.need("date"));
  if (const Item successor = at["successor"])
    retirement.successor = parse_reference(successor, profile, "use letters, digits, '-' and '.'");
  retirement.origin = parse_origin(at);
}

void parse_defaults(const Item& at, Profile& profile) {
  constexpr int kMostRanks = 1024;
  if (const Item ranks = at["ranks_per_device"])
    profile.ranks_per_device = ranks.whole(1, kMostRanks);
  profile.gpu_view = at["gpu_view"].choice(kGpuViews);
  profile.device_mode = at["device_mode"].word();
  profile.stack = at["stack"].word();
  profile.fill = at["fill"].choice(kFills);
  profile.mps = at["mps"].choice(kOnOff);
  for (const char* key : {"device_mode", "stack"})
    if (const Item place = at[key]) profile.places[place.where().pointer] = place.where();
}

Note parse_note(const Item& at) {
  return {at.need("id").word(), at.need("title").text(), at.need("text").text(), parse_origin(at)};
}

Stack parse_stack(const Item& at) {
  return {at.need("name").word(), at["doc"].text(), parse_whens(at["when"], {.never = "stack"}),
          parse_modules(at["modules"]), parse_origin(at)};
}

DeviceMode parse_mode(const Item& at) {
  return {.name = at.need("name").word(),
          .doc = at["doc"].text(),
          .subdevices = at.need("unit").choice(kUnits) == "subdevice",
          .mask = at["mask"].variable(at["mask"].text()),
          .mask_item = parse_template(at["mask_item"], {.rank = true}),
          .origin = parse_origin(at)};
}

Signal parse_signal(const Item& at) {
  constexpr std::size_t kMaxPattern = 256;
  Signal signal;
  const Item env = at["env"];
  const Item host = at["host"];
  const Item like = env ? at.need("like") : at["like"];
  signal.proves = at["proves"].truth(true);
  signal.env = env.variable(env.text());
  signal.like = (env ? like : host).text();
  if (host) {
    if (env) host.fault("\"host\" and \"env\" are both given", "make it two entries");
    if (!env) at.refuse("like", "\"host\" is the pattern", "remove it");
    if (signal.proves && host->text.find_first_not_of("*?") == std::string::npos &&
        !host->text.empty())
      host.fault(fmt::format("{} matches every machine", shown(host->text)),
                 "name what only this site has");
  } else if (!env && at->kind == Json::Kind::object) {
    at.fault("neither \"env\" nor \"host\" is given",
             R"(write {"env": "NAME", "like": "pattern"} or {"host": "pattern"})");
  }
  if (signal.like.size() > kMaxPattern)
    at.fault(fmt::format("the pattern has more than {} bytes", kMaxPattern));
  return signal;
}

void parse_detect(const Item& at, Profile& profile) {
  for (const Item& one : at["detect"].elements("objects"))
    profile.detect.push_back(parse_signal(one));
  if (profile.part) at.refuse("detect", "a part matches no site", "remove \"detect\" or \"part\"");
}

void parse_members(const Item& at, Cases cases, Profile& profile) {
  profile.where = at.where();
  profile.name = at.need("name").text_of(
      "a profile name", is_profile_name,
      "use letters, digits, '-' and '.'; not \"none\", and no \".json\" at the end");
  at.context().subject = profile.name;
  at["$schema"].text();
  json_reader::need_schema(at);
  profile.doc = at["doc"].text();
  profile.part = at["part"].truth();
  parse_extends(at["extends"], profile);
  parse_retired(at["retired"], profile);
  profile.launcher = at["launcher"].choice(kLauncherNames);
  profile.scheduler = at["scheduler"].choice(kSchedulerNames);
  if (const Item launch_node = at["lsf_launch_node"]) profile.lsf_launch_node = launch_node.truth();
  profile.job = parse_job(at["job"]);
  profile.example_host = at["example_host"].text();
  parse_defaults(at["defaults"], profile);
  parse_detect(at, profile);
  profile.nodes = parse_list(at["nodes"], parse_node, "name");
  profile.stacks = parse_list(at["stacks"], parse_stack, "name");
  profile.device_modes = parse_list(at["device_modes"], parse_mode, "name");
  profile.bindings = parse_list(at["bindings"], parse_binding, "id");
  profile.rules = parse_list(at["rules"], parse_rule, "id");
  profile.containers = parse_list(at["containers"], parse_container, "engine");
  profile.notes = parse_list(at["notes"], parse_note, "id");
  if (const Item expect = at["expect"]; cases == Cases::read)
    profile.expect = parse_list(expect, parse_case, "name");
  at.finish();
}

}  // namespace

std::optional<std::string> parse_core_limit(const Item& at) {
  if (!at) return std::nullopt;
  return at.text_of("a core file limit", is_core_limit,
                    "write \"0\", a number of bytes, or \"unlimited\"");
}

Origin parse_origin(const Item& at, Why why) {
  Origin origin;
  origin.profile = at.context().subject;
  origin.where = at.where();
  origin.why = (why == Why::required ? at.need("why") : at["why"]).text();
  if (origin.why.ends_with('.'))
    at["why"].fault("\"why\" ends with a full stop", "remove the full stop");
  origin.source = at["source"].text_of("a URL", is_url, "start it with https://");
  origin.checked = parse_date(at["checked"]);
  origin.printed = at["printed"].text();
  origin.printed_why = at["printed_why"].text();
  origin.disputed = at["disputed"].text();
  if (!at["printed"])
    at.refuse("printed_why", "\"printed\" is missing", "add \"printed\", or remove this");
  return origin;
}

}  // namespace profile

bool is_pci_address(std::string_view text) {
  return text.find(':') == 4 && is_pci_place(text, false) && text.back() <= '7';
}

bool is_profile_name(std::string_view text) {
  return json_reader::is_word(text) && text.find_first_of("_+") == std::string_view::npos &&
         text != "none" && !text.ends_with(".json");
}

ParsedProfile parse_profile(std::string_view text, const std::string& file, Cases cases) {
  ParsedProfile parsed;
  parsed.profile.where = SourceRef{file, 0, 0, ""};
  if (text.size() > profile::kMaxText) {
    parsed.problems.push_back(
        {ErrorKind::invalid,
         fmt::format("the file has {} bytes, the limit is {}", text.size(), profile::kMaxText),
         "split the profile and use \"extends\"", SourceRef{file, 1, 1, ""}});
    return parsed;
  }
  profile::Context context(text, file);
  if (const profile::Item root = context.root())
    profile::parse_members(root, cases, parsed.profile);
  parsed.problems = context.take();
  return parsed;
}

}  // namespace hpclaunch
