#pragma once
// The parts of a profile, one reader each. All report into the context and give what could be read.
#include <array>
#include <string>
#include <vector>

#include "hpclaunch/json_reader.h"
#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/profile.h"

namespace hpclaunch::profile {

using json_reader::Context;
using json_reader::is_word;
using json_reader::Item;
using json_reader::Json;
using json_reader::Member;
using json_reader::Need;
using json_reader::noun;
using json_reader::Object;
using json_reader::shown;
using json_reader::step;
using json_reader::suggestion;
using json_reader::suggestion_or_all;

// The words where a choice is closed. profiles/schema.json lists the same.
inline constexpr std::array<std::string_view, 6> kSchedulers = {"pbs", "slurm",  "flux",
                                                                "lsf", "cobalt", "sge"};
inline constexpr std::array<std::string_view, 3> kGpuViews = {"own", "all", "launcher"};
inline constexpr std::array<std::string_view, 2> kFills = {"spread", "compact"};
inline constexpr std::array<std::string_view, 3> kVendors = {"nvidia", "amd", "intel"};
/// Of a network interface (docs/reference/topology.md).
inline constexpr std::array<std::string_view, 6> kNicKinds = {
    "slingshot", "infiniband", "roce", "efa", "omni-path", "ethernet"};
inline constexpr std::array<std::string_view, 2> kUnits = {"device", "subdevice"};
inline constexpr std::array<std::string_view, 2> kUses = {"model", "live"};
inline constexpr std::array<std::string_view, 2> kSiblings = {"after-all-cores", "adjacent"};
inline constexpr std::array<std::string_view, 4> kGroups = {"node", "package", "numa", "l3"};
inline constexpr std::array<std::string_view, 2> kRoleOrigins = {"base", "group"};
inline constexpr std::array<std::string_view, 3> kSeverities = {"note", "warning", "error"};
inline constexpr std::array<std::string_view, 2> kEach = {"rank", "unit"};

inline constexpr int kMaxOffset = 4095;  ///< of a core, anywhere in a profile

/// Which facts a condition or a template may use besides those of the whole job and of groups.
struct Allowed {
  bool rank = false;            ///< one value per rank, and role.NAME
  bool unit = false;            ///< ${unit} as a count
  bool late = false;            ///< value.NAME
  std::string_view never = {};  ///< the fact that is being decided here
};

When parse_when(Context& context, const Item& at, const Allowed& allowed);

/// The member "when".
When parse_when(Object& object, const Allowed& allowed);

/// Not empty, dollars well formed, facts known and allowed.
std::string parse_template(Context& context, const Item& at, const Allowed& allowed);

/// why, source, checked, printed, printed_why, disputed.
Origin parse_origin(Object& object, Need why);

/// YYYY-MM-DD.
std::string parse_date(Object& object, const char* key, Need need);

/// The member "core_limit": "0", a number of bytes, or "unlimited".
std::optional<std::string> parse_core_limit(Object& object);

NodeModel parse_node(Object& object);
Binding parse_binding(Object& object);
Rule parse_rule(Object& object);
Case parse_case(Object& object);

/// Every entry of a list, names unique.
template <class Entry>
std::vector<Entry> parse_list(Object& object, const char* key, Entry (*parse)(Object&),
                              std::string Entry::*name, const char* name_key) {
  std::vector<Entry> entries;
  const std::vector<Item> items =
      object.objects(key, [&](Object& one) { entries.push_back(parse(one)); });
  object.context().unique(items, entries, name, name_key);
  return entries;
}

}  // namespace hpclaunch::profile
