#include "parse.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"

namespace hpclaunch {
namespace profile {
namespace {

constexpr int kSchema = 1;
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

void parse_schema(Object& object) {
  object.text("$schema");
  const Item schema = object.find("schema", Need::required);
  if (schema.json->kind == Json::Kind::integer && schema.json->whole == kSchema) return;
  object.context().fault(schema, fmt::format("this program reads schema {}", kSchema),
                         "write \"schema\": 1");
}

/// A name of another profile; its place is kept for errors that need that profile.
std::string parse_reference(Context& context, const Item& at, Profile& profile, const char* hint) {
  profile.places[at.pointer] = context.place(at);
  return context.text_of(at, "a profile name", is_profile_name, hint);
}

void parse_extends(Object& object, Profile& profile) {
  for (const Item& item : object.elements("extends", "names")) {
    std::string name = parse_reference(object.context(), item, profile, "name profiles, not files");
    if (std::find(profile.extends.begin(), profile.extends.end(), name) != profile.extends.end())
      object.context().fault(item, fmt::format("{} appears twice", shown(name)),
                             "name each profile once");
    profile.extends.push_back(std::move(name));
  }
}

void parse_retired(Object& retired, Profile& profile) {
  Retirement& retirement = profile.retired.emplace();
  retirement.date = parse_date(retired, "date", Need::required);
  if (const Item successor = retired.find("successor"))
    retirement.successor =
        parse_reference(retired.context(), successor, profile, "use letters, digits, '-' and '.'");
  retirement.origin = parse_origin(retired, Need::optional);
}

void parse_defaults(Object& defaults, Profile& profile) {
  constexpr int kMostRanks = 1024;
  if (const Item ranks = defaults.find("ranks_per_device"))
    profile.ranks_per_device = defaults.context().whole(ranks, 1, kMostRanks);
  profile.gpu_view = defaults.choice("gpu_view", kGpuViews);
  profile.device_mode = defaults.word("device_mode");
  profile.stack = defaults.word("stack");
  profile.fill = defaults.choice("fill", kFills);
  for (const char* key : {"device_mode", "stack"})
    if (const Item place = defaults.find(key))
      profile.places[place.pointer] = defaults.context().place(place);
}

Note parse_note(Object& object) {
  Note note;
  note.id = object.word("id", Need::required);
  note.title = object.text("title", Need::required);
  note.text = object.text("text", Need::required);
  note.origin = parse_origin(object, Need::optional);
  return note;
}

Stack parse_stack(Object& object) {
  Stack stack;
  stack.name = object.word("name", Need::required);
  stack.doc = object.text("doc");
  for (const Item& item : object.elements("when", "conditions"))
    stack.when.push_back(parse_when(object.context(), item, {.never = "stack"}));
  stack.origin = parse_origin(object, Need::optional);
  return stack;
}

DeviceMode parse_mode(Object& object) {
  Context& context = object.context();
  DeviceMode mode;
  mode.name = object.word("name", Need::required);
  mode.doc = object.text("doc");
  mode.subdevices = object.choice("unit", kUnits, Need::required) == "subdevice";
  const Item mask = object.find("mask");
  mode.mask = context.variable_name(mask, context.text(mask));
  mode.mask_item = parse_template(context, object.find("mask_item"), {.rank = true});
  mode.origin = parse_origin(object, Need::optional);
  return mode;
}

Signal parse_signal(Object& object) {
  constexpr std::size_t kMaxPattern = 256;
  Context& context = object.context();
  const Item& at = object.at();
  Signal signal;
  const Item env = object.find("env");
  const Item host = object.find("host");
  const Item like = object.find("like", env ? Need::required : Need::optional);
  if (const Item proves = object.find("proves")) signal.proves = context.truth(proves);
  signal.env = context.variable_name(env, context.text(env));
  if (env && like) signal.like = context.text(like);
  if (host) {
    const std::string pattern = context.text(host);
    if (!env) signal.like = pattern;
    if (env) context.fault(host, "\"host\" and \"env\" are both given", "make it two entries");
    if (like && !env) object.refuse("like", "\"host\" is the pattern", "remove it");
    if (signal.proves && pattern.find_first_not_of("*?") == std::string::npos && !pattern.empty())
      context.fault(host, fmt::format("{} matches every machine", shown(pattern)),
                    "name what only this site has");
  } else if (!env && at.json->kind == Json::Kind::object) {
    context.fault(at, "neither \"env\" nor \"host\" is given",
                  R"(write {"env": "NAME", "like": "pattern"} or {"host": "pattern"})");
  }
  if (signal.like.size() > kMaxPattern)
    context.fault(at, fmt::format("the pattern has more than {} bytes", kMaxPattern));
  return signal;
}

void parse_detect(Object& object, Profile& profile) {
  object.objects("detect", [&](Object& one) { profile.detect.push_back(parse_signal(one)); });
  if (profile.part)
    object.refuse("detect", "a part matches no site", "remove \"detect\" or \"part\"");
}

void parse_members(Object& object, Profile& profile) {
  profile.where = object.context().place(object.at());
  profile.name =
      object.text_of("name", "a profile name", is_profile_name,
                     "use letters, digits, '-' and '.'; not \"none\", and no \".json\" at the end",
                     Need::required);
  object.context().subject = profile.name;
  parse_schema(object);
  profile.doc = object.text("doc");
  profile.part = object.truth("part");
  parse_extends(object, profile);
  object.object("retired", [&](Object& retired) { parse_retired(retired, profile); });
  profile.launcher = object.choice("launcher", kLauncherNames);
  profile.scheduler = object.choice("scheduler", kSchedulers);
  if (const Item launch_node = object.find("lsf_launch_node"))
    profile.lsf_launch_node = object.context().truth(launch_node);
  profile.submit = object.text("submit");
  profile.example_host = object.text("example_host");
  object.object("defaults", [&](Object& defaults) { parse_defaults(defaults, profile); });
  parse_detect(object, profile);
  profile.nodes = parse_list(object, "nodes", parse_node, &NodeModel::name, "name");
  profile.stacks = parse_list(object, "stacks", parse_stack, &Stack::name, "name");
  profile.device_modes = parse_list(object, "device_modes", parse_mode, &DeviceMode::name, "name");
  profile.bindings = parse_list(object, "bindings", parse_binding, &Binding::id, "id");
  profile.rules = parse_list(object, "rules", parse_rule, &Rule::id, "id");
  profile.notes = parse_list(object, "notes", parse_note, &Note::id, "id");
  profile.expect = parse_list(object, "expect", parse_case, &Case::name, "name");
}

}  // namespace

std::string parse_date(Object& object, const char* key, Need need) {
  return object.text_of(key, "a date", is_date, "write YYYY-MM-DD", need);
}

std::optional<std::string> parse_core_limit(Object& object) {
  if (!object.find("core_limit")) return std::nullopt;
  return object.text_of("core_limit", "a core file limit", is_core_limit,
                        "write \"0\", a number of bytes, or \"unlimited\"");
}

Origin parse_origin(Object& object, Need why) {
  Context& context = object.context();
  Origin origin;
  origin.profile = context.subject;
  origin.where = context.place(object.at());
  origin.why = object.text("why", why);
  if (origin.why.ends_with('.'))
    context.fault(object.find("why"), "\"why\" ends with a full stop", "remove the full stop");
  origin.source = object.text_of("source", "a URL", is_url, "start it with https://");
  origin.checked = parse_date(object, "checked", Need::optional);
  origin.printed = object.text("printed");
  origin.printed_why = object.text("printed_why");
  origin.disputed = object.text("disputed");
  if (!object.has("printed"))
    object.refuse("printed_why", "\"printed\" is missing", "add \"printed\", or remove this");
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

ParsedProfile parse_profile(std::string_view text, const std::string& file) {
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
  const std::optional<profile::Json> tree = json_reader::parse_tree(text, context);
  if (tree)
    profile::Object::inside(context, {&*tree}, [&](profile::Object& object) {
      profile::parse_members(object, parsed.profile);
    });
  parsed.problems = context.take();
  return parsed;
}

}  // namespace hpclaunch
