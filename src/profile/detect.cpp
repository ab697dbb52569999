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

SiteMatch look(const SiteSignals& site, const EnvSnapshot& env,
               std::span<const std::string> hosts) {
  SiteMatch found{site.profile, {}, {}};
  for (const Signal& signal : site.detect) {
    std::string text = matched(signal, env, hosts);
    if (!text.empty()) (signal.proves ? found.proofs : found.support).push_back(std::move(text));
  }
  return found;
}

}  // namespace

Detection detect_site(std::span<const SiteSignals> sites, const EnvSnapshot& env,
                      std::span<const std::string> hosts) {
  Detection detection;
  for (const SiteSignals& site : sites) {
    SiteMatch found = look(site, env, hosts);
    if (!found.proofs.empty())
      detection.rivals.push_back(std::move(found));
    else if (!found.support.empty())
      detection.hints.push_back(std::move(found));
  }
  if (detection.rivals.size() != 1) return detection;
  static_cast<SiteMatch&>(detection) = std::move(detection.rivals.front());
  detection.rivals.clear();
  return detection;
}

}  // namespace hpclaunch
