#pragma once
// The parts of a profile, one reader each. All report into the context and give what could be read.
#include <string>
#include <vector>

#include "hpclaunch/json_reader.h"
#include "hpclaunch/profile.h"
#include "names.h"

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

NodeModel parse_node(Context& context, const Item& at);
Stack parse_stack(Context& context, const Item& at);
DeviceMode parse_mode(Context& context, const Item& at);
Binding parse_binding(Context& context, const Item& at);
Rule parse_rule(Context& context, const Item& at);
Signal parse_signal(Context& context, const Item& at);
Case parse_case(Context& context, const Item& at);

/// Every entry of a list, names unique.
template <class Entry>
std::vector<Entry> parse_list(Object& object, const char* key,
                              Entry (*parse)(Context&, const Item&), std::string Entry::*name,
                              const char* name_key) {
  const std::vector<Item> items = object.elements(key, "objects");
  std::vector<Entry> entries;
  entries.reserve(items.size());
  for (const Item& item : items) entries.push_back(parse(object.context(), item));
  object.context().unique(items, entries, name, name_key);
  return entries;
}

}  // namespace hpclaunch::profile
