#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"

namespace hpclaunch {
namespace {

constexpr std::size_t kMaxLevels = 4;

/// Profiles in the order in which they are merged: what is extended first, each once, so that a base
/// that two others share does not undo what one of them changed.
class Collector {
 public:
  explicit Collector(const ProfileLookup& find) : find_(find) {}

  Status add(const Profile& profile) {
    chain_.push_back(profile.name);
    for (std::size_t i = 0; i < profile.extends.size(); ++i) {
      const SourceRef where = place(profile, fmt::format("/extends/{}", i));
      if (Status ok = add_base(profile.extends[i], where); !ok) return ok;
    }
    chain_.pop_back();
    done_.push_back(profile.name);
    order.push_back(profile);
    return Done{};
  }

  static SourceRef place(const Profile& profile, const std::string& pointer) {
    const auto found = profile.places.find(pointer);
    return found == profile.places.end() ? profile.where : found->second;
  }

  std::vector<Profile> order;

 private:
  Status add_base(const std::string& name, const SourceRef& where) {
    if (std::find(chain_.begin(), chain_.end(), name) != chain_.end()) {
      return Error{ErrorKind::invalid,
                   fmt::format("profiles extend one another in a circle: {} -> {}",
                               fmt::join(chain_, " -> "), name),
                   "take one of these \"extends\" away", where};
    }
    if (chain_.size() > kMaxLevels) {
      return Error{ErrorKind::invalid,
                   fmt::format("more than {} levels of \"extends\": {} -> {}", kMaxLevels,
                               fmt::join(chain_, " -> "), name),
                   "extend fewer profiles, or name them side by side", where};
    }
    if (std::find(done_.begin(), done_.end(), name) != done_.end()) return Done{};
    Result<Profile> base = find_(name);
    if (!base) {
      Error error = base.error();
      if (!error.where) error.where = where;
      return error;
    }
    // A look-up by another spelling must not open a way around the search for circles.
    base = [&] {
      Profile named = *std::move(base);
      named.name = name;
      return named;
    }();
    return add(*base);
  }

  const ProfileLookup& find_;
  std::vector<std::string> chain_;
  std::vector<std::string> done_;
};

template <class Entry>
void merge(std::vector<Entry>& into, const std::vector<Entry>& from, std::string Entry::*name) {
  for (const Entry& entry : from) {
    const auto same = std::find_if(into.begin(), into.end(), [&](const Entry& earlier) {
      return earlier.*name == entry.*name;
    });
    if (same == into.end()) {
      into.push_back(entry);
    } else {
      *same = entry;
    }
  }
}

void merge_text(std::string& into, const std::string& from) {
  if (!from.empty()) into = from;
}

void merge_profile(Profile& into, const Profile& from) {
  merge_text(into.launcher, from.launcher);
  merge_text(into.scheduler, from.scheduler);
  if (from.lsf_launch_node) into.lsf_launch_node = from.lsf_launch_node;
  if (from.ranks_per_device != 0) into.ranks_per_device = from.ranks_per_device;
  merge_text(into.gpu_view, from.gpu_view);
  merge_text(into.device_mode, from.device_mode);
  merge_text(into.stack, from.stack);
  merge_text(into.fill, from.fill);
  merge(into.nodes, from.nodes, &NodeModel::name);
  merge(into.stacks, from.stacks, &Stack::name);
  merge(into.device_modes, from.device_modes, &DeviceMode::name);
  merge(into.bindings, from.bindings, &Binding::id);
  merge(into.rules, from.rules, &Rule::id);
  merge(into.notes, from.notes, &Note::id);
}

/// The profile without what `merge_profile` collects.
Profile head_of(const Profile& profile) {
  Profile head;
  head.name = profile.name;
  head.doc = profile.doc;
  head.part = profile.part;
  head.extends = profile.extends;
  head.retired = profile.retired;
  head.detect = profile.detect;
  head.expect = profile.expect;
  head.where = profile.where;
  head.places = profile.places;
  return head;
}

template <class Entry>
std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

Error unknown(std::string_view what, const std::string& name, const std::vector<std::string>& known,
              const SourceRef& where) {
  const auto meant = nearest(name, known);
  std::string hint = meant           ? fmt::format("did you mean \"{}\"?", *meant)
                     : known.empty() ? fmt::format("the profile has no {}", what)
                                     : fmt::format("known here: {}", fmt::join(known, ", "));
  return {ErrorKind::invalid, fmt::format("no {} is named \"{}\"", what, name), std::move(hint),
          where};
}

/// A test for a name that no list has would never hold. Where the profile has no such list, the names
/// are somebody else's.
Status check_tests(const Profile& profile, const When& when, const Origin& origin) {
  if (origin.profile != profile.name) return Done{};
  for (const Test& test : when) {
    const bool stack = test.fact == "stack";
    const bool mode = test.fact == "device_mode";
    const bool node = test.fact == "node_type";
    if ((!stack && !mode && !node) || (test.op != Test::Op::eq && test.op != Test::Op::ne))
      continue;
    std::vector<std::string> known = stack  ? names_of(profile.stacks)
                                     : mode ? names_of(profile.device_modes)
                                            : names_of(profile.nodes);
    if (known.empty()) continue;
    if (node) known.emplace_back("live");
    for (const std::string& value : test.values) {
      if (!value.empty() && std::find(known.begin(), known.end(), value) == known.end())
        return unknown(stack  ? "stack"
                       : mode ? "device mode"
                              : "node type",
                       value, known, origin.where);
    }
  }
  return Done{};
}

Status check_references(const Profile& profile, const ProfileLookup& find) {
  if (!profile.part && !profile.stack.empty() && profile.find_stack(profile.stack) == nullptr) {
    return unknown("stack", profile.stack, names_of(profile.stacks),
                   Collector::place(profile, "/defaults/stack"));
  }
  if (!profile.part && !profile.device_mode.empty() &&
      profile.find_mode(profile.device_mode) == nullptr) {
    return unknown("device mode", profile.device_mode, names_of(profile.device_modes),
                   Collector::place(profile, "/defaults/device_mode"));
  }
  for (const Rule& rule : profile.rules) {
    if (profile.part) break;
    if (Status ok = check_tests(profile, rule.when, rule.origin); !ok) return ok;
  }
  for (const Binding& binding : profile.bindings) {
    if (profile.part) break;
    if (Status ok = check_tests(profile, binding.when, binding.origin); !ok) return ok;
  }
  if (!profile.retired || profile.retired->successor.empty()) return Done{};
  const Result<Profile> successor = find(profile.retired->successor);
  if (successor) return Done{};
  Error error = successor.error();
  if (!error.where) error.where = Collector::place(profile, "/retired/successor");
  return error;
}

}  // namespace

Result<Profile> resolve_profile(const Profile& profile, const ProfileLookup& find) {
  Collector collector(find);
  if (Status ok = collector.add(profile); !ok) return ok.error();
  Profile resolved = head_of(profile);
  for (const Profile& one : collector.order) merge_profile(resolved, one);
  if (Status ok = check_references(resolved, find); !ok) return ok.error();
  return resolved;
}

}  // namespace hpclaunch
