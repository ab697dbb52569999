#include "plan/environment/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

const SourceRef kCommandLine{"<command line>"};

SourceRef source_of(Layer layer) {
  if (layer == Layer::command_line) return kCommandLine;
  return SourceRef{layer == Layer::environment ? "<environment>" : "hpclaunch"};
}

}  // namespace

Decision decided(Layer layer, Value value, std::string why) {
  Decision decision;
  decision.layer = layer;
  decision.value = std::move(value);
  decision.where = source_of(layer);
  decision.why = std::move(why);
  return decision;
}

Setting choice(std::string name, Layer layer, std::string value, std::string why) {
  return Setting{std::move(name), {decided(layer, std::move(value), std::move(why))}};
}

Error request_error(std::string message, std::string hint, ErrorKind kind) {
  return Error{kind, std::move(message), std::move(hint), kCommandLine};
}

std::string suggest(const char* option, const std::string& name,
                    const std::vector<std::string>& known) {
  const auto near = nearest(name, known);
  return near ? fmt::format("did you mean {} {}?", option, *near)
              : fmt::format("one of {}", fmt::join(known, ", "));
}

Value constant_or_per_rank(PerRank values) {
  const std::string first = values.items.front().front();
  const auto same = [&](const auto& items) {
    return std::all_of(items.begin(), items.end(),
                       [&](const std::string& item) { return item == first; });
  };
  if (std::all_of(values.items.begin(), values.items.end(), same)) return first;
  return values;
}

void EnvSettings::add(const std::string& name, Layer layer, Value value, std::string why) {
  add(name, decided(layer, std::move(value), std::move(why)));
}

void EnvSettings::add(const std::string& name, Decision decision) {
  settings_[name].push_back(std::move(decision));
}

void EnvSettings::keep_export(const std::string& name) {
  if (env_.has(name)) settings_[name];
}

const std::string* EnvSettings::so_far(const std::string& name) const {
  const std::string* exported = env_.find(name);
  const auto found = settings_.find(name);
  if (found == settings_.end()) return exported;
  const std::string* weak = nullptr;
  for (auto d = found->second.rbegin(); d != found->second.rend(); ++d) {
    const auto* text = std::get_if<std::string>(&d->value);
    if (d->layer == Layer::command_line || d->layer == Layer::profile_require) return text;
    if (d->layer == Layer::profile_default && weak == nullptr) weak = text;
  }
  return exported != nullptr ? exported : weak;
}

std::vector<Setting> EnvSettings::finish() const {
  std::vector<Setting> result;
  for (const auto& [name, decisions] : settings_) {
    std::vector<Decision> history = decisions;
    if (const std::string* exported = env_.find(name)) {
      history.push_back(decided(Layer::environment, *exported, "exported before the start"));
    }
    std::stable_sort(history.begin(), history.end(),
                     [](const Decision& a, const Decision& b) { return a.layer < b.layer; });
    result.push_back(Setting{name, std::move(history)});
  }
  return result;
}

}  // namespace hpclaunch
