#pragma once
// What the value of a key can be, as data: fields.h says it once for every key, and reader, schema and manual each
// have one function per kind. A kind's member may be a reference to the member of a profile or a tuple of references.
#include <array>
#include <span>
#include <string_view>
#include <type_traits>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/json_reader.h"
#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/profile.h"

namespace hpclaunch::profile {

/// P is T or const T.
template <class P, class T>
concept Same = std::is_same_v<std::remove_const_t<P>, T>;

enum class Need { may, must };
using enum Need;

// The words where a choice is closed.
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
inline constexpr std::array<std::string_view, 2> kQueueOptions = {"-q", "-p"};
inline constexpr std::array<std::string_view, 2> kEach = {"rank", "unit"};

inline constexpr int kMaxOffset = 4095;            ///< of a core, anywhere in a profile
inline constexpr std::size_t kMaxPattern = 256;    ///< bytes of an fnmatch(3) pattern
inline constexpr int kMostMemory = 1'000'000'000;  ///< in MiB
inline constexpr int kMostNodes = 1'000'000;

/// src/profile/definitions.json: the schema of kinds that are always the same.
extern const char* const kDefinitions;

/// Which facts a condition or a template may use besides those of the whole job and of groups.
struct Allowed {
  bool rank = false;            ///< one value per rank, and role.NAME
  bool unit = false;            ///< ${unit} as a count
  bool late = false;            ///< value.NAME
  std::string_view never = {};  ///< the fact that is being decided here
};

/// A text of one line. `pattern` says the same as `good` to a JSON Schema.
struct Form {
  const char* what;                          ///< "a date"
  bool (*good)(std::string_view) = nullptr;  ///< none: any text
  const char* hint = "";
  const char* pattern = "";
};
struct Variable {};  ///< name of an environment variable
struct Flag {};
struct Whole {
  int min = 0, max = kMaxOffset;
  long scale = 1;  ///< the member has this many for each
};
struct Choice {
  std::span<const std::string_view> words;
  std::size_t yes = 1;  ///< which word is true, where the member is a bool
};
struct Templated {
  Allowed allowed;
  bool path = false;  ///< absolute, and without ".."
};
struct Condition {
  Allowed allowed;
};
struct Cores {};  ///< "0-3,8"
struct Width {};  ///< "low-high" of a tuple
struct Range {    ///< [least, most] of a tuple, most null or 0: no limit
  int most;
  long scale = 1;
};
template <class Kind>
struct List {
  Kind of;
  const char* what;
  bool once = false;  ///< none of them twice
  bool none = false;  ///< may be empty
};
template <class Kind>
struct OneOrList {  ///< one value stands for a list of one
  Kind of;
};
struct Object {};         ///< the member has fields
struct Entries {          ///< a list of objects
  std::string_view name;  ///< key that differs between them; "" for none
};
struct Inline {         ///< the fields of the member are keys of this object
  bool reasons = true;  ///< "why" and "disputed" as well
};
struct
    Reasons {  ///< a text about all that the object does, or an object of texts by variable and action
  Form of;
};
struct Tree {};       ///< a topology, as `hpclaunch topo --json` prints it
struct Ignored {};    ///< a text that is for editors
struct Version {};    ///< 1
struct Bridges {};    ///< PCI: a root's bus, then bridges
struct Bases {};      ///< a list of numbers, or a list of such lists
struct Variables {};  ///< texts by the name of a variable
struct Named {};      ///< names, or texts by name
struct Roles {};      ///< objects by name
struct Values {       ///< templates, or lists made from one, by the name of a variable
  bool late = false;
};
struct ReportOf {
  Allowed allowed;
};
struct Words {  ///< lists of templates by a known name
  std::span<const std::string_view> known;
  Allowed allowed;
};

/// Container engines that can run ranks.
std::span<const std::string_view> engine_names();

bool is_date(std::string_view text);
bool is_url(std::string_view text);
bool is_core_limit(std::string_view text);
bool is_module(std::string_view text);
bool is_folder(std::string_view text);
bool is_option_value(std::string_view text);
bool is_engine_option(std::string_view text);
bool are_lists(std::string_view text);
bool is_pci_root(std::string_view text);

inline constexpr Form kLine{"a text"};
inline constexpr Form kSentence{"a sentence without a full stop", nullptr, "", "[^.]$"};
inline constexpr Form kPattern{"a pattern of fnmatch(3)"};
inline constexpr Form kWord{
    "a valid name", json_reader::is_word,
    "use letters, digits, '-', '.', '_' and '+'; the first is a letter or a digit",
    "^[A-Za-z0-9][A-Za-z0-9._+-]*$"};
inline constexpr Form kProfileName{"a profile name", is_profile_name,
                                   "use letters, digits, '-' and '.'; name profiles, not files: "
                                   "not \"none\", no \".json\" at the end",
                                   "^(?!none$)(?!.*\\.json$)[A-Za-z0-9][A-Za-z0-9.-]*$"};
inline constexpr Form kDate{"a date", is_date, "write YYYY-MM-DD",
                            "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"};
inline constexpr Form kUrl{"a URL", is_url, "start it with https://", "^https?://[^ ]+$"};
inline constexpr Form kCoreLimit{"a core file limit", is_core_limit,
                                 "write \"0\", a number of bytes, or \"unlimited\"",
                                 "^(unlimited|0|[1-9][0-9]{0,17})$"};
inline constexpr Form kModule{"a module", is_module, "write NAME or NAME/VERSION, without options",
                              "^[A-Za-z0-9._+/=][A-Za-z0-9._+/=-]*$"};
inline constexpr Form kConda{"an environment's name or path", is_module, "write NAME or /PATH",
                             "^[A-Za-z0-9._+/=][A-Za-z0-9._+/=-]*$"};
inline constexpr Form kFolder{"an absolute directory", is_folder, "start it with '/'",
                              "^/[A-Za-z0-9._+/=,:@%-]*$"};
inline constexpr Form kBind{"an absolute path", is_folder,
                            "write /SRC or /SRC:/DST, without variables",
                            "^/[A-Za-z0-9._+/=,:@%-]*$"};
inline constexpr Form kOptionValue{
    "an option's value", is_option_value, "leave out quotes, $ and a leading '-'",
    "^[A-Za-z0-9._+/=:,@%&|()* \\[\\]][A-Za-z0-9._+/=:,@%&|()* \\[\\]-]*$"};
inline constexpr Form kEngineOption{"an option", is_engine_option,
                                    "start it with '-', and join its value with '='", "^-"};
inline constexpr Form kLists{
    "a list of numbers", are_lists, "write one list per rank, ':' between them: \"0-3:4-7\"",
    "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*(:[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)*$"};
inline constexpr Form kPci{"a PCI address", is_pci_address,
                           "write it like \"0000:18:00.0\", in small letters",
                           "^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]$"};

}  // namespace hpclaunch::profile
