#include "parse.h"

#include <fmt/format.h>

#include <algorithm>

namespace hpclaunch {
namespace profile {
namespace {

constexpr int kSchema = 1;

void parse_name(Object& object, Profile& profile) {
  const Item name = object.find("name", Need::required);
  if (!name) return;
  Context& context = object.context();
  profile.name = context.text(name);
  context.profile = profile.name;
  if (!profile.name.empty() && !is_profile_name(profile.name)) {
    context.fault(name, fmt::format("{} cannot be the name of a profile", shown(profile.name)),
                  "use letters, digits, '-' and '.'; not \"none\", and no \".json\" at the end");
  }
}

void parse_schema(Object& object) {
  const Item reference = object.find("$schema");
  if (reference) object.context().text(reference);
  const Item schema = object.find("schema", Need::required);
  if (!schema) return;
  if (schema.json->kind == Json::Kind::integer && schema.json->whole == kSchema) return;
  object.context().fault(schema, fmt::format("this program reads schema {}", kSchema),
                         "write \"schema\": 1");
}

void parse_extends(Object& object, Profile& profile) {
  std::vector<Item> items = object.elements("extends", "names");
  for (const Item& item : items) {
    std::string name = object.context().text(item);
    if (!name.empty() && !is_profile_name(name)) {
      object.context().fault(item, fmt::format("{} is not a profile name", shown(name)),
                             "name profiles, not files");
    }
    if (std::find(profile.extends.begin(), profile.extends.end(), name) != profile.extends.end())
      object.context().fault(item, fmt::format("{} appears twice", shown(name)),
                             "name each profile once");
    profile.places[item.pointer] = object.context().place(item);
    profile.extends.push_back(std::move(name));
  }
}

void parse_retired(Object& object, Profile& profile) {
  const Item at = object.find("retired");
  if (!at) return;
  Object retired(object.context(), at);
  Retirement retirement;
  const Item date = retired.find("date", Need::required);
  if (date) retirement.date = object.context().text(date);
  if (!retirement.date.empty() && !is_date(retirement.date)) {
    object.context().fault(date, fmt::format("{} is not a date", shown(retirement.date)),
                           "write YYYY-MM-DD");
  }
  const Item successor = retired.find("successor");
  if (successor) {
    retirement.successor = object.context().text(successor);
    profile.places[successor.pointer] = object.context().place(successor);
    if (!retirement.successor.empty() && !is_profile_name(retirement.successor)) {
      object.context().fault(successor,
                             fmt::format("{} is not a profile name", shown(retirement.successor)),
                             "use letters, digits, '-' and '.'");
    }
  }
  retirement.origin = retired.origin(Need::optional);
  retired.finish();
  profile.retired = std::move(retirement);
}

void parse_defaults(Object& object, Profile& profile) {
  constexpr int kMostRanks = 1024;
  const Item at = object.find("defaults");
  if (!at) return;
  Object defaults(object.context(), at);
  if (defaults.has("ranks_per_device"))
    profile.ranks_per_device = defaults.whole("ranks_per_device", 1, kMostRanks, 1);
  defaults.find("ranks_per_device");
  profile.gpu_view = defaults.choice("gpu_view", kGpuViews);
  profile.device_mode = defaults.word("device_mode");
  profile.stack = defaults.word("stack");
  profile.fill = defaults.choice("fill", kFills);
  for (const char* key : {"device_mode", "stack"}) {
    const Item place = defaults.find(key);
    if (place) profile.places[place.pointer] = object.context().place(place);
  }
  defaults.finish();
}

Note parse_note(Context& context, const Item& at) {
  Object object(context, at);
  Note note;
  note.id = object.word("id", Need::required);
  note.title = object.text("title", Need::required);
  note.text = object.text("text", Need::required);
  note.origin = object.origin(Need::optional);
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
  profile.part = object.truth("part", false);
  parse_extends(object, profile);
  parse_retired(object, profile);
  profile.launcher = object.choice("launcher", kLauncherNames);
  profile.scheduler = object.choice("scheduler", kSchedulers);
  if (object.has("lsf_launch_node"))
    profile.lsf_launch_node = object.truth("lsf_launch_node", false);
  object.find("lsf_launch_node");
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
}  // namespace profile

ParsedProfile parse_profile(std::string_view text, const std::string& file) {
  const bool fits = text.size() <= profile::kMaxText;
  profile::Problems problems(fits ? text : std::string_view(), file);
  ParsedProfile parsed;
  parsed.profile.where = SourceRef{file, 0, 0, ""};
  const std::optional<profile::Json> tree = profile::parse_tree(text, problems);
  if (tree) {
    profile::Context context(problems);
    profile::parse_members(context, {&*tree, ""}, parsed.profile);
  }
  parsed.problems = problems.take();
  return parsed;
}

std::vector<Signal> parse_signals(std::string_view json) {
  std::vector<Signal> signals;
  profile::Problems problems("", "");
  const std::optional<profile::Json> tree = profile::parse_tree(json, problems);
  if (!tree) return signals;
  for (std::size_t i = 0; i < tree->items.size(); ++i) {
    profile::Problems own("", "");
    profile::Context context(own);
    Signal signal = profile::parse_signal(context, {&tree->items[i], profile::step(i)});
    if (own.list().empty()) signals.push_back(std::move(signal));
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
