#include "plan/environment/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

const SourceRef kCommandLine{"<command line>"};

}  // namespace

Decision decided(Layer layer, Value value, std::string why) {
  const SourceRef where = layer == Layer::command_line ? kCommandLine
                          : layer == Layer::environment || layer == Layer::batch_system
                              ? SourceRef{"<environment>"}
                              : SourceRef{"hpclaunch"};
  return {layer, std::move(value), where, std::move(why)};
}

Setting choice(std::string name, Layer layer, Value value, std::string why) {
  return Setting{std::move(name), {decided(layer, std::move(value), std::move(why))}};
}

Error request_error(std::string message, std::string hint, ErrorKind kind) {
  return Error{kind, std::move(message), std::move(hint), kCommandLine};
}

std::string suggest(const char* option, const std::string& name,
                    const std::vector<std::string>& known) {
  const auto near = nearest(name, known);
  return near ? fmt::format("{} {}", option, *near)
              : fmt::format("{} with one of {}", option, fmt::join(known, ", "));
}

bool same_everywhere(const PerRank& values) {
  const std::string& first = values.items.front().front();
  return std::ranges::all_of(values.items, [&](const auto& items) {
    return std::ranges::count(items, first) == std::ssize(items);
  });
}

Value constant_or_per_rank(PerRank values) {
  if (same_everywhere(values)) return values.items.front().front();
  return values;
}

void EnvSettings::add(const std::string& name, Layer layer, Value value, std::string why) {
  add(name, decided(layer, std::move(value), std::move(why)));
}

void EnvSettings::add(const std::string& name, Decision decision) {
  settings_[name].push_back(std::move(decision));
}

Decision EnvSettings::exported_as(const std::string& name, const std::string& value) const {
  const auto batch = of_batch_.find(name);
  return batch == of_batch_.end() ? decided(Layer::environment, value, "from the environment")
                                  : decided(Layer::batch_system, value, batch->second);
}

void EnvSettings::keep_export(const std::string& name) {
  if (env_.has(name)) settings_[name];
}

const std::string* EnvSettings::so_far(const std::string& name) const {
  const std::string* exported = env_.find(name);
  const auto found = settings_.find(name);
  if (found == settings_.end()) return exported;
  const auto last = [&](Layer layer) {
    const auto at = std::find_if(found->second.rbegin(), found->second.rend(),
                                 [&](const Decision& one) { return one.layer == layer; });
    return at == found->second.rend() ? nullptr : &at->value;
  };
  for (const Layer layer : {Layer::command_line, Layer::profile_require})
    if (const Value* strong = last(layer)) return std::get_if<std::string>(strong);
  const auto* by_default = std::get_if<std::string>(last(Layer::profile_default));
  const bool yields = exported == nullptr || of_batch_.contains(name);
  return yields && by_default != nullptr ? by_default : exported;
}

std::vector<Setting> EnvSettings::finish() const& { return EnvSettings(*this).finish(); }

std::vector<Setting> EnvSettings::finish() && {
  std::vector<Setting> result;
  result.reserve(settings_.size());
  for (auto& [name, history] : settings_) {
    if (const std::string* exported = env_.find(name))
      history.push_back(exported_as(name, *exported));
    std::ranges::stable_sort(history, {}, &Decision::layer);
    result.push_back(Setting{name, std::move(history)});
  }
  return result;
}

}  // namespace hpclaunch
