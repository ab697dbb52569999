#include "plan/environment/settings.h"

#include <algorithm>

namespace hpclaunch {

Decision decided(Layer layer, Value value, SourceRef where, std::string why) {
  Decision decision;
  decision.layer = layer;
  decision.value = std::move(value);
  decision.where = std::move(where);
  decision.why = std::move(why);
  return decision;
}

Setting choice(std::string name, Layer layer, std::string value, SourceRef where, std::string why) {
  return Setting{std::move(name),
                 {decided(layer, std::move(value), std::move(where), std::move(why))}};
}

void EnvSettings::add(const std::string& name, Layer layer, Value value, SourceRef where,
                      std::string why) {
  add(name, decided(layer, std::move(value), std::move(where), std::move(why)));
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
    if (d->layer == Layer::profile_require) return text;
    if (d->layer == Layer::profile_default && weak == nullptr) weak = text;
  }
  return exported != nullptr ? exported : weak;
}

std::vector<Setting> EnvSettings::finish() const {
  std::vector<Setting> result;
  for (const auto& [name, decisions] : settings_) {
    std::vector<Decision> history = decisions;
    if (const std::string* exported = env_.find(name)) {
      history.push_back(
          decided(Layer::environment, *exported, kEnvironment, "exported before the start"));
    }
    std::stable_sort(history.begin(), history.end(),
                     [](const Decision& a, const Decision& b) { return a.layer < b.layer; });
    result.push_back(Setting{name, std::move(history)});
  }
  return result;
}

}  // namespace hpclaunch
