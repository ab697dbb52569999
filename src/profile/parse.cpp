#include "parse.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"

namespace hpclaunch {
namespace profile {
namespace {

constexpr int kSchema = 1;
constexpr std::size_t kMaxText = 1'048'576;

bool is_profile_name(std::string_view text) {
  return is_word(text) && text.find_first_of("_+") == std::string_view::npos && text != "none" &&
         !text.ends_with(".json");
}

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

void parse_name(Object& object, Profile& profile) {
  const Item name = object.find("name", Need::required);
  Context& context = object.context();
  profile.name = context.text(name);
  context.subject = profile.name;
  if (!profile.name.empty() && !is_profile_name(profile.name)) {
    context.fault(name, fmt::format("{} cannot be the name of a profile", shown(profile.name)),
                  "use letters, digits, '-' and '.'; not \"none\", and no \".json\" at the end");
  }
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
  std::string name = context.text(at);
  if (!name.empty() && !is_profile_name(name))
    context.fault(at, fmt::format("{} is not a profile name", shown(name)), hint);
  profile.places[at.pointer] = context.place(at);
  return name;
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

void parse_retired(Object& object, Profile& profile) {
  const Item at = object.find("retired");
  if (!at) return;
  Object retired(object.context(), at);
  Retirement& retirement = profile.retired.emplace();
  retirement.date = parse_date(retired, "date", Need::required);
  if (const Item successor = retired.find("successor"))
    retirement.successor =
        parse_reference(object.context(), successor, profile, "use letters, digits, '-' and '.'");
  retirement.origin = parse_origin(retired, Need::optional);
  retired.finish();
}

void parse_defaults(Object& object, Profile& profile) {
  constexpr int kMostRanks = 1024;
  const Item at = object.find("defaults");
  if (!at) return;
  Object defaults(object.context(), at);
  if (const Item ranks = defaults.find("ranks_per_device"))
    profile.ranks_per_device = object.context().whole(ranks, 1, kMostRanks);
  profile.gpu_view = defaults.choice("gpu_view", kGpuViews);
  profile.device_mode = defaults.word("device_mode");
  profile.stack = defaults.word("stack");
  profile.fill = defaults.choice("fill", kFills);
  for (const char* key : {"device_mode", "stack"})
    if (const Item place = defaults.find(key))
      profile.places[place.pointer] = object.context().place(place);
  defaults.finish();
}

Note parse_note(Context& context, const Item& at) {
  Object object(context, at);
  Note note;
  note.id = object.word("id", Need::required);
  note.title = object.text("title", Need::required);
  note.text = object.text("text", Need::required);
  note.origin = parse_origin(object, Need::optional);
  object.finish();
  return note;
}

void parse_detect(Object& object, Profile& profile) {
  for (const Item& item : object.elements("detect", "signals"))
    profile.detect.push_back(parse_signal(object.context(), item));
  if (profile.part)
    object.refuse("detect", "a part matches no site", "remove \"detect\" or \"part\"");
}

void parse_members(Context& context, const Item& root, Profile& profile) {
  Object object(context, root);
  profile.where = context.place(root);
  parse_name(object, profile);
  parse_schema(object);
  profile.doc = object.text("doc");
  profile.part = object.truth("part");
  parse_extends(object, profile);
  parse_retired(object, profile);
  profile.launcher = object.choice("launcher", kLauncherNames);
  profile.scheduler = object.choice("scheduler", kSchedulers);
  if (const Item launch_node = object.find("lsf_launch_node"))
    profile.lsf_launch_node = context.truth(launch_node);
  profile.submit = object.text("submit");
  profile.example_host = object.text("example_host");
  parse_defaults(object, profile);
  parse_detect(object, profile);
  profile.nodes = parse_list(object, "nodes", parse_node, &NodeModel::name, "name");
  profile.stacks = parse_list(object, "stacks", parse_stack, &Stack::name, "name");
  profile.device_modes = parse_list(object, "device_modes", parse_mode, &DeviceMode::name, "name");
  profile.bindings = parse_list(object, "bindings", parse_binding, &Binding::id, "id");
  profile.rules = parse_list(object, "rules", parse_rule, &Rule::id, "id");
  profile.notes = parse_list(object, "notes", parse_note, &Note::id, "id");
  profile.expect = parse_list(object, "expect", parse_case, &Case::name, "name");
  object.finish();
}

template <class Entry>
const Entry* find_named(const std::vector<Entry>& entries, std::string_view wanted) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.name == wanted; });
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace

std::string parse_date(Object& object, const char* key, Need need) {
  std::string date = object.text(key, need);
  if (!date.empty() && !is_date(date))
    object.context().fault(object.find(key), fmt::format("{} is not a date", shown(date)),
                           "write YYYY-MM-DD");
  return date;
}

std::optional<std::string> parse_core_limit(Object& object) {
  constexpr std::size_t kDigits = 19;
  const Item at = object.find("core_limit");
  if (!at) return std::nullopt;
  std::string limit = object.context().text(at);
  const bool number = limit.size() <= kDigits &&
                      limit.find_first_not_of("0123456789") == std::string::npos &&
                      (limit == "0" || limit[0] != '0');
  if (!limit.empty() && limit != "unlimited" && !number) {
    object.context().fault(at, fmt::format("{} is not a core file limit", shown(limit)),
                           "write \"0\", a number of bytes, or \"unlimited\"");
  }
  return limit;
}

Origin parse_origin(Object& object, Need why) {
  Context& context = object.context();
  Origin origin;
  origin.profile = context.subject;
  origin.where = context.place(object.at());
  origin.why = object.text("why", why);
  if (origin.why.ends_with('.'))
    context.fault(object.find("why"), "\"why\" ends with a full stop", "remove the full stop");
  origin.source = object.text("source");
  const bool url = origin.source.starts_with("https://") || origin.source.starts_with("http://");
  if (!origin.source.empty() && (!url || origin.source.find(' ') != std::string::npos))
    context.fault(object.find("source"), fmt::format("{} is not a URL", shown(origin.source)),
                  "start it with https://");
  origin.checked = parse_date(object, "checked", Need::optional);
  origin.printed = object.text("printed");
  origin.printed_why = object.text("printed_why");
  origin.disputed = object.text("disputed");
  if (!object.has("printed"))
    object.refuse("printed_why", "\"printed\" is missing", "add \"printed\", or remove this");
  return origin;
}

}  // namespace profile

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
  if (tree) profile::parse_members(context, {&*tree}, parsed.profile);
  parsed.problems = context.take();
  return parsed;
}

std::vector<Signal> parse_signals(std::string_view json) {
  std::vector<Signal> signals;
  profile::Context context("", "");
  const std::optional<profile::Json> tree = json_reader::parse_tree(json, context);
  if (!tree) return signals;
  for (const profile::Json& item : tree->items) {
    profile::Context own("", "");
    Signal signal = profile::parse_signal(own, {&item});
    if (own.count() == 0) signals.push_back(std::move(signal));
  }
  return signals;
}

const Stack* Profile::find_stack(std::string_view wanted) const {
  return profile::find_named(stacks, wanted);
}

const DeviceMode* Profile::find_mode(std::string_view wanted) const {
  return profile::find_named(device_modes, wanted);
}

const NodeModel* Profile::find_node(std::string_view wanted) const {
  return profile::find_named(nodes, wanted);
}

}  // namespace hpclaunch
