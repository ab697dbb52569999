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
using json_reader::noun;
using json_reader::shown;
using json_reader::suggestion;
using json_reader::suggestion_or_all;

// The words where a choice is closed. profiles/schema.json lists the same.
inline constexpr std::array<std::string_view, 3> kGpuViews = {"own", "all", "launcher"};
inline constexpr std::array<std::string_view, 2> kFills = {"spread", "compact"};
inline constexpr std::array<std::string_view, 2> kOnOff = {"on", "off"};
inline constexpr std::array<std::string_view, 3> kVendors = {"nvidia", "amd", "intel"};
inline constexpr std::array<std::string_view, 2> kUnits = {"device", "subdevice"};
inline constexpr std::array<std::string_view, 2> kUses = {"model", "live"};
inline constexpr std::array<std::string_view, 2> kSiblings = {"after-all-cores", "adjacent"};
inline constexpr std::array<std::string_view, 4> kGroups = {"node", "package", "numa", "l3"};
inline constexpr std::array<std::string_view, 2> kRoleOrigins = {"base", "group"};
inline constexpr std::array<std::string_view, 3> kSeverities = {"note", "warning", "error"};
inline constexpr std::array<std::string_view, 11> kEngines = {
    "apptainer", "singularity",  "podman-hpc", "podman",  "pyxis", "ce",
    "enroot",    "charliecloud", "bubblewrap", "shifter", "sarus"};
inline constexpr std::array<std::string_view, 2> kEach = {"rank", "unit"};

inline constexpr int kMaxOffset = 4095;  ///< of a core, anywhere in a profile

/// Which facts a condition or a template may use besides those of the whole job and of groups.
struct Allowed {
  bool rank = false;            ///< one value per rank, and role.NAME
  bool unit = false;            ///< ${unit} as a count
  bool late = false;            ///< value.NAME
  std::string_view never = {};  ///< the fact that is being decided here
};

When parse_when(const Item& at, const Allowed& allowed);

/// A list of conditions.
std::vector<When> parse_whens(const Item& at, const Allowed& allowed);

/// Not empty, dollars well formed, facts known and allowed.
std::string parse_template(const Item& at, const Allowed& allowed);

enum class Why { optional, required };

/// The members why, source, checked, printed, printed_why and disputed of an entry.
Origin parse_origin(const Item& at, Why why = Why::optional);

/// "0", a number of bytes, or "unlimited".
std::optional<std::string> parse_core_limit(const Item& at);

/// "modules" of a stack.
Modules parse_modules(const Item& at);
JobNeeds parse_job(const Item& at);
Share parse_share(const Item& at, int most_devices);
SiteContainer parse_container(const Item& at);
NodeModel parse_node(const Item& at);
Binding parse_binding(const Item& at);
Rule parse_rule(const Item& at);
Case parse_case(const Item& at);

/// Every entry of a list, names unique.
template <class Entry>
std::vector<Entry> parse_list(const Item& list, Entry (*parse)(const Item&), const char* name) {
  std::vector<Entry> entries;
  for (const Item& one : list.entries(name)) entries.push_back(parse(one));
  return entries;
}

}  // namespace hpclaunch::profile
