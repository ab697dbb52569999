#pragma once
// The parts of a profile that have readers of their own. All report into the context and give what could be read.
#include <string>
#include <vector>

#include "hpclaunch/json_reader.h"
#include "profile/fields.h"

namespace hpclaunch::profile {

using json_reader::Context;
using json_reader::is_word;
using json_reader::Item;
using json_reader::Json;
using json_reader::noun;
using json_reader::shown;
using json_reader::suggestion;
using json_reader::suggestion_or_all;

When parse_when(const Item& at, const Allowed& allowed);

/// Not empty, dollars well formed, facts known and allowed.
std::string parse_template(const Item& at, const Allowed& allowed);

/// `at` is the object that `text` was read from; `problems_before`: of the context, before that.
NodeModel build_node(const Item& at, NodeText text, std::size_t problems_before);

// What several keys of an object say together.
void check(const Item& at, const Origin& origin);
void check(const Item& at, const Signal& signal);
void check(const Item& at, const Share& share);
void check(const Item& at, const JobNeeds& job);
void check(const Item& at, const Modules& modules);
void check(const Item& at, const NicText& nic);
void check(const Item& at, const Binding::Role& role);
void check(const Item& at, const Binding& binding);
void check(const Item& at, const Rule& rule);
void check(const Item& at, const Case& one);
void check(const Item& at, Profile& profile);
/// `problems_before`: of the context, before the shape was read.
void check(const Item& at, NodeShape& shape, std::size_t problems_before);

}  // namespace hpclaunch::profile
