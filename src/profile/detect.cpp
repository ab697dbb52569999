#include <fmt/format.h>
#include <fnmatch.h>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"

namespace hpclaunch {
namespace {

bool host_matches(const std::string& pattern, const std::string& host) {
  const std::string name = to_lower(host);
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
         fnmatch(pattern.c_str(), name.substr(0, name.find('.')).c_str(), 0) == 0;
}

/// What matched, as a sentence; "" when nothing did.
std::string matched(const Signal& signal, const EnvSnapshot& env,
                    std::span<const std::string> hosts) {
  if (!signal.env.empty()) {
    const std::string* value = env.find(signal.env);
    if (value == nullptr || fnmatch(signal.like.c_str(), value->c_str(), 0) != 0) return "";
    return fmt::format("{}={} matches {}", signal.env, *value, signal.like);
  }
  const std::string pattern = to_lower(signal.like);
  for (const std::string& host : hosts) {
    if (!host.empty() && host_matches(pattern, host))
      return fmt::format("host {} matches {}", host, signal.like);
  }
  return "";
}

/// All signals of one site that match.
Detection look(const SiteSignals& site, const EnvSnapshot& env,
               std::span<const std::string> hosts) {
  Detection found;
  found.profile = site.profile;
  for (const Signal& signal : site.detect) {
    std::string text = matched(signal, env, hosts);
    if (!text.empty()) (signal.proves ? found.proofs : found.support).push_back(std::move(text));
  }
  return found;
}

}  // namespace

Detection detect_site(std::span<const SiteSignals> sites, const EnvSnapshot& env,
                      std::span<const std::string> hosts) {
  std::vector<Detection> proved;
  Detection detection;
  for (const SiteSignals& site : sites) {
    Detection found = look(site, env, hosts);
    if (!found.proofs.empty()) {
      proved.push_back(std::move(found));
      continue;
    }
    for (std::string& text : found.support)
      detection.hints.emplace_back(site.profile, std::move(text));
  }
  if (proved.size() == 1) {
    proved[0].hints = std::move(detection.hints);
    return proved[0];
  }
  for (const Detection& found : proved)
    for (const std::string& text : found.proofs) detection.rivals.emplace_back(found.profile, text);
  return detection;
}

}  // namespace hpclaunch
