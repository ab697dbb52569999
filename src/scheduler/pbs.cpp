// What PBS grants of nodes: it counts CPUs, and unless the site has its control groups nothing confines a job to any.
// Sources: qstat(1B), pbsnodes(8B) and pbs_job_attributes(7B) of OpenPBS; Torque's qstat, whose exec_host lists slots.
#include <algorithm>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

namespace {

// CPUs of "n1/0*4" (OpenPBS; "n1/0" is one), "n1/0-3,8" (Torque).
int cpus_of(std::string_view place) {
  constexpr long kMost = CpuSet::kCapacity;
  if (const std::size_t star = place.find('*'); star != place.npos)
    return static_cast<int>(parse_natural(place.substr(star + 1), kMost).value_or(0));
  const Result<CpuSet> slots = CpuSet::parse(std::string(place));
  return slots ? slots->count() : 0;
}

}  // namespace

std::optional<JobGrants> pbs_grants(std::string_view text) {
  JobGrants grants;
  grants.why = pbs_value(text, "exec_host");
  if (grants.why.empty()) return std::nullopt;
  const std::string place = pbs_value(text, "Resource_List.place");
  for (const std::string_view word : split(place, ':'))
    grants.whole = grants.whole || word == "excl" || word == "exclhost";
  for (const std::string_view one : split(grants.why, '+')) {
    const std::size_t slash = std::min(one.find('/'), one.size());
    grants.cpus[std::string(one.substr(0, slash))] +=
        cpus_of(one.substr(std::min(slash + 1, one.size())));
  }
  grants.why = "exec_host=" + grants.why + (place.empty() ? "" : ", place=" + place);
  return grants;
}

bool asked_for(std::string_view description, std::string_view resource) {
  const std::string select = pbs_value(description, "Resource_List.select");
  return select.find(":" + std::string(resource) + "=") != select.npos ||
         !pbs_value(description, "Resource_List." + std::string(resource)).empty();
}

// A host may be several virtual nodes.
NodeShare pbs_node(std::string_view text) {
  NodeShare node;
  for (const std::string_view part : split(text, '\n')) {
    const std::string_view line = trim(part);
    const std::size_t equals = std::min(line.find(" = "), line.size());
    const std::string_view key = line.substr(0, equals);
    const std::string_view value = line.substr(std::min(equals + 3, line.size()));
    if (key == "resources_available.ncpus")
      node.cpus += static_cast<int>(parse_natural(value, CpuSet::kCapacity).value_or(0));
    if (key == "state")
      node.exclusive = node.exclusive || value.find("job-exclusive") != value.npos;
  }
  return node;
}

}  // namespace hpclaunch
