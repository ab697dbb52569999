// What a site offers to choose from, and how it is recognised.
#include <fmt/format.h>

#include <algorithm>

#include "facts.h"
#include "parse.h"

namespace hpclaunch::profile {

Stack parse_stack(Context& context, const Item& at) {
  Object object(context, at);
  Stack stack;
  stack.name = object.word("name", Need::required);
  stack.doc = object.text("doc");
  for (const Item& item : object.elements("when", "conditions"))
    stack.when.push_back(parse_when(context, item, {.never = "stack"}));
  stack.origin = parse_origin(object, Need::optional);
  object.finish();
  return stack;
}

DeviceMode parse_mode(Context& context, const Item& at) {
  Object object(context, at);
  DeviceMode mode;
  mode.name = object.word("name", Need::required);
  mode.doc = object.text("doc");
  mode.subdevices = object.choice("unit", kUnits, Need::required) == "subdevice";
  const Item mask = object.find("mask");
  mode.mask = context.variable_name(mask, context.text(mask));
  mode.mask_item = parse_template(context, object.find("mask_item"), {.rank = true});
  mode.origin = parse_origin(object, Need::optional);
  object.finish();
  return mode;
}

Signal parse_signal(Context& context, const Item& at) {
  constexpr std::size_t kMaxPattern = 256;
  Object object(context, at);
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
  object.finish();
  return signal;
}

}  // namespace hpclaunch::profile
