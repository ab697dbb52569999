// Merges a profile with those that it extends.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "hpclaunch/json_reader.h"
#include "hpclaunch/profile.h"

namespace hpclaunch {
namespace {

constexpr std::size_t kMaxLevels = 4;

SourceRef place(const Profile& profile, const std::string& pointer) {
  const auto found = profile.places.find(pointer);
  return found == profile.places.end() ? profile.where : found->second;
}

/// Profiles in the order of merging: bases first, each once, so that a base shared by two others does not
/// undo what one of them changed. A depth-first search; `chain` are the profiles being visited.
struct Order {
  const ProfileLookup& find;
  std::vector<std::string> chain = {};
  std::vector<Profile> done = {};

  Status add(Profile profile) {
    chain.push_back(profile.name);
    for (std::size_t i = 0; i < profile.extends.size(); ++i) {
      const SourceRef where = place(profile, fmt::format("/extends/{}", i));
      if (Status ok = add_base(profile.extends[i], where); !ok) return ok;
    }
    chain.pop_back();
    done.push_back(std::move(profile));
    return Done{};
  }

  Status add_base(const std::string& name, const SourceRef& where) {
    const std::string way = fmt::format("{} -> {}", fmt::join(chain, " -> "), name);
    if (std::find(chain.begin(), chain.end(), name) != chain.end())
      return Error{ErrorKind::invalid, "profiles extend one another in a circle: " + way,
                   "remove one of these \"extends\"", where};
    if (chain.size() > kMaxLevels)
      return Error{ErrorKind::invalid,
                   fmt::format("more than {} levels of \"extends\": {}", kMaxLevels, way),
                   "extend fewer profiles, or list them side by side", where};
    if (std::any_of(done.begin(), done.end(), [&](const Profile& one) { return one.name == name; }))
      return Done{};
    Result<Profile> base = find(name);
    if (!base) return located(base.error(), where);
    Profile named = *std::move(base);
    named.name = name;  // another spelling must not hide a circle
    return add(std::move(named));
  }

  static Error located(Error error, const SourceRef& where) {
    if (!error.where) error.where = where;
    return error;
  }
};

template <class Entry>
void merge(std::vector<Entry>& into, std::vector<Entry>& from, std::string Entry::*name) {
  if (into.empty()) return into.swap(from);
  for (Entry& entry : from) {
    const auto same = std::ranges::find(into, entry.*name, name);
    if (same == into.end())
      into.push_back(std::move(entry));
    else
      *same = std::move(entry);
  }
}

/// What is merged entry by entry.
auto lists_of(Profile& profile) {
  return std::tie(profile.nodes, profile.stacks, profile.device_modes, profile.bindings,
                  profile.rules, profile.containers, profile.notes);
}

/// Takes the lists out of `from`.
void merge_profile(Profile& into, Profile& from) {
  for (std::string Profile::*text :
       {&Profile::launcher, &Profile::scheduler, &Profile::example_host, &Profile::gpu_view,
        &Profile::device_mode, &Profile::stack, &Profile::fill, &Profile::mps})
    if (!(from.*text).empty()) into.*text = from.*text;
  for (std::string JobNeeds::*text :
       {&JobNeeds::account, &JobNeeds::filesystems, &JobNeeds::constraint, &JobNeeds::local})
    if (!(from.job.*text).empty()) into.job.*text = from.job.*text;
  if (!from.job.queues.empty()) into.job.queues = from.job.queues;
  if (from.lsf_launch_node) into.lsf_launch_node = from.lsf_launch_node;
  if (from.ranks_per_device != 0) into.ranks_per_device = from.ranks_per_device;
  merge(into.nodes, from.nodes, &NodeModel::name);
  merge(into.stacks, from.stacks, &Stack::name);
  merge(into.device_modes, from.device_modes, &DeviceMode::name);
  merge(into.bindings, from.bindings, &Binding::id);
  merge(into.rules, from.rules, &Rule::id);
  merge(into.containers, from.containers, &SiteContainer::name);
  merge(into.notes, from.notes, &Note::id);
}

/// What "defaults" and conditions refer to by name.
struct Names {
  std::string_view what;
  std::string_view fact;
  std::vector<std::string> known;

  bool has(const std::string& name) const {
    return std::find(known.begin(), known.end(), name) != known.end();
  }
  Error unknown(const std::string& name, const SourceRef& where) const {
    return {ErrorKind::invalid, fmt::format("unknown {} \"{}\"", what, name),
            known.empty() ? fmt::format("the profile has no {}", what)
                          : json_reader::suggestion_or_all(name, known),
            where};
  }
};

struct Condition {
  const When* when;
  const Origin* origin;
  int index = -1;    // in a list of conditions
  int service = -1;  // of a node

  /// The line is the entry's; the pointer leads to the test, and `profile validate` finds its line.
  SourceRef place(const Test& test) const {
    SourceRef where = origin->where;
    if (service >= 0) where.pointer += fmt::format("/services/{}", service);
    where.pointer += "/when/" + (index < 0 ? "" : std::to_string(index) + "/") + test.fact;
    return where;
  }
};

/// A test for an unknown name never holds. A part does not know the lists of profiles that extend it.
Status check_tests(const Profile& profile, const std::vector<Names>& all, const Condition& one) {
  if (one.origin->profile != profile.name) return Done{};
  for (const Test& test : *one.when)
    for (const Names& names : all) {
      if (test.fact != names.fact || (names.known.empty() && profile.part) ||
          (test.op != Test::Op::eq && test.op != Test::Op::ne))
        continue;
      for (const std::string& value : test.values)
        if (!value.empty() && !names.has(value) && (value != "live" || test.fact != "node_type"))
          return names.unknown(value, one.place(test));
    }
  return Done{};
}

Status check_names(const Profile& profile) {
  const std::vector<Names> all = {{"stack", "stack", names_of(profile.stacks)},
                                  {"device mode", "device_mode", names_of(profile.device_modes)},
                                  {"node type", "node_type", names_of(profile.nodes)}};
  if (!profile.part && !profile.stack.empty() && !all[0].has(profile.stack))
    return all[0].unknown(profile.stack, place(profile, "/defaults/stack"));
  if (!profile.part && !profile.device_mode.empty() && !all[1].has(profile.device_mode))
    return all[1].unknown(profile.device_mode, place(profile, "/defaults/device_mode"));
  for (const Queue& queue : profile.job.queues)
    for (const std::string& type : queue.node_types)
      if (!profile.part && !all[2].has(type)) return all[2].unknown(type, queue.origin.where);
  std::vector<Condition> conditions;
  const auto add = [&](const auto& entries) {
    for (const auto& entry : entries) conditions.push_back({&entry.when, &entry.origin});
  };
  const auto add_list = [&](const std::vector<When>& list, const Origin& origin, int service) {
    for (const When& when : list)
      conditions.push_back({&when, &origin, static_cast<int>(&when - list.data()), service});
  };
  add(profile.rules);
  add(profile.bindings);
  add(profile.nodes);
  for (const Stack& stack : profile.stacks) add_list(stack.when, stack.origin, -1);
  for (const NodeModel& node : profile.nodes)
    for (const ServiceCores& service : node.services)
      add_list(service.when, node.origin, static_cast<int>(&service - node.services.data()));
  for (const Condition& one : conditions)
    if (Status ok = check_tests(profile, all, one); !ok) return ok;
  return Done{};
}

}  // namespace

Result<Profile> resolve_profile(Profile profile, const ProfileLookup& find) {
  Order order{find};
  if (Status ok = order.add(std::move(profile)); !ok) return ok.error();
  Profile& own = order.done.back();
  Profile
      lists;  // of the profile itself, while the rest of it is copied: what is not merged is its own
  auto own_lists = lists_of(own);
  auto held = lists_of(lists);
  held.swap(own_lists);
  Profile resolved = own;
  held.swap(own_lists);
  for (Profile& one : order.done) merge_profile(resolved, one);
  if (Status ok = check_names(resolved); !ok) return ok.error();
  if (resolved.retired && !resolved.retired->successor.empty())
    if (const Result<Profile> successor = find(resolved.retired->successor); !successor)
      return Order::located(successor.error(), place(resolved, "/retired/successor"));
  return resolved;
}

}  // namespace hpclaunch
