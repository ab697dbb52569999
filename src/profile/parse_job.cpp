// What a batch job of the site needs: queues, account, file systems, modules.
#include <fmt/format.h>

#include <array>
#include <tuple>
#include <utility>

#include "hpclaunch/text.h"
#include "parse.h"

namespace hpclaunch::profile {
namespace {

constexpr std::array<std::string_view, 2> kQueueOptions = {"-q", "-p"};

bool is_module(std::string_view text) {
  return !text.starts_with('-') && consists_of(text, "._+-/=");
}

bool is_folder(std::string_view text) {
  return text.starts_with('/') && consists_of(text, "._+-/=,:@%");
}

// A value of a directive.
bool is_value(std::string_view text) {
  return !text.starts_with('-') && consists_of(text, "._+-/=:,@%&|[]()* ");
}

std::string value(const Item& at) {
  return at.text_of("an option's value", is_value, "leave out quotes, $ and a leading '-'");
}

/// [least, most], with null for no limit.
std::pair<int, int> parse_range(const Item& at, int most) {
  const std::vector<Item> ends = at.items();
  if (!at) return {0, 0};
  if (at->kind != Json::Kind::array || ends.size() != 2) {
    at.fault("a range has two ends", "write [1, 64], or [1, null] without an upper limit");
    return {0, 0};
  }
  const std::size_t problems_before = at.context().count();
  const int low = ends[0].whole(0, most);
  const int high = ends[1]->kind == Json::Kind::null ? 0 : ends[1].whole(1, most);
  if (high != 0 && high < low && at.context().count() == problems_before)
    at.fault(fmt::format("{} is above {}", low, high), "write the smaller one first");
  return {low, high};
}

Queue parse_queue(const Item& at) {
  constexpr int kMostNodes = 1'000'000;
  constexpr int kMostMinutes = 1'000'000;
  constexpr long kMinute = 60;
  Queue queue;
  queue.name = value(at["name"]);
  queue.option = at["option"].choice(kQueueOptions);
  std::tie(queue.least_nodes, queue.most_nodes) = parse_range(at["nodes"], kMostNodes);
  const auto [least, most] = parse_range(at["minutes"], kMostMinutes);
  queue.least_seconds = least * kMinute;
  queue.most_seconds = most * kMinute;
  for (const Item& one : at["node_types"].elements("node types")) {
    const std::string type = one.word();
    if (std::ranges::count(queue.node_types, type) > 0)
      one.fault(fmt::format("{} is there twice", type));
    queue.node_types.push_back(type);
  }
  if (const Item share = at["share"]) queue.share = parse_share(share, CpuSet::kCapacity);
  queue.origin = parse_origin(at);
  return queue;
}

}  // namespace

Share parse_share(const Item& at, int most_devices) {
  constexpr int kMostMemory = 1'000'000'000;  // in MiB
  Share share;
  share.cores = at["cores"].whole(1, CpuSet::kCapacity, 0);
  share.exact = at["exact"].truth();
  share.memory_mb = at["memory_mb"].whole(1, kMostMemory, 0);
  share.core_memory_mb = at["core_memory_mb"].whole(1, kMostMemory, 0);
  for (const Item& one : at["devices"].elements("numbers"))
    share.counts.push_back(one.whole(1, std::max(most_devices, 1)));
  at.need_one_of({"cores", "core_memory_mb"}, "nothing is shared");
  return share;
}

Modules parse_modules(const Item& at) {
  Modules modules;
  if (!at) return modules;
  modules.purge = at["purge"].truth();
  for (const Item& one : at["use"].elements("directories"))
    modules.use.push_back(one.text_of("an absolute directory", is_folder, "start it with '/'"));
  for (const Item& one : at["load"].elements("modules"))
    modules.load.push_back(
        one.text_of("a module", is_module, "write NAME or NAME/VERSION, without options"));
  modules.conda =
      at["conda"].text_of("an environment's name or path", is_module, "write NAME or /PATH");
  at.need_one_of({"purge", "use", "load", "conda"}, "\"modules\" is empty");
  return modules;
}

JobNeeds parse_job(const Item& at) {
  JobNeeds job;
  if (!at) return job;
  job.account = value(at["account"]);
  job.filesystems = value(at["filesystems"]);
  job.constraint = value(at["constraint"]);
  job.local = parse_template(at["local"], {});
  if (!job.local.empty() && !job.local.starts_with('/'))
    at["local"].fault("not an absolute directory", "start it with '/'");
  for (const Item& one : at["queues"].elements("objects")) job.queues.push_back(parse_queue(one));
  at.need_one_of({"account", "filesystems", "constraint", "local", "queues"}, "\"job\" is empty");
  return job;
}

SiteContainer parse_container(const Item& at) {
  SiteContainer container;
  container.name = at.need("engine").choice(kEngines);
  for (const Item& one : at["options"].elements("options"))
    container.options.push_back(one.text_of(
        "an option", [](std::string_view text) { return text.starts_with('-'); },
        "start it with '-', and join its value with '='"));
  for (const Item& one : at["binds"].elements("directories"))
    container.binds.push_back(
        one.text_of("an absolute path", is_folder, "write /SRC or /SRC:/DST, without variables"));
  container.origin = parse_origin(at, Why::required);
  return container;
}

}  // namespace hpclaunch::profile
