// supervised_driver [--layout 4,4 | --nodes COUNT] [--launcher NAME] [--here] [--grace SECONDS] [--start-timeout SECONDS]
//                   [--end-timeout SECONDS] [--log-dir DIR] [--out FILE] [--pause FIFO] [--daemon NAME]
//                   LAUNCHER [ARGS...]
//
// What stays beside a launcher, without the rest of hpclaunch, for tests/sys/supervised_test.py. --here: the first
// node is this machine; --nodes: with a rank each; --daemon: a program of the batch system's. FILE gets what would go
// to --report.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "hpclaunch/launcher.h"
#include "hpclaunch/sys.h"
#include "support/pause.h"

extern char** environ;

namespace {

std::string shown(const hpclaunch::sys::Ending& ending) {
  std::string text = "ok " + std::to_string(ending.ok) + " failed " +
                     std::to_string(ending.failed) + " ended " + std::to_string(ending.ended);
  for (const auto& node : ending.silent) text += " silent " + node.host + ":" + node.ranks;
  if (ending.launcher_exit) text += " launcher-exit " + std::to_string(*ending.launcher_exit);
  if (ending.launcher_signal) text += " launcher-signal " + std::to_string(*ending.launcher_signal);
  if (ending.passed_on != 0) text += " passed-on " + std::to_string(ending.passed_on);
  if (ending.first) text += " first " + std::to_string(ending.first->rank);
  return text + "\n";
}

}  // namespace

int main(int argc, char** argv) {
  hpclaunch::Plan plan;
  plan.launch.launcher = "other";
  plan.supervision.supervise = true;
  std::string layout = "2";
  std::string out;
  std::string fifo;
  int nodes = 0;
  hpclaunch::sys::ChannelPlace place;
  place.addresses = {"127.0.0.1"};
  plan.hosts.first_is_here = false;
  hpclaunch::sys::Asking asking;
  int at = 1;
  for (; at + 1 < argc && argv[at][0] == '-'; ++at) {
    const std::string option = argv[at];
    if (option == "--here") {
      plan.hosts.first_is_here = true;
      continue;
    }
    const char* value = argv[++at];
    if (option == "--layout") layout = value;
    if (option == "--nodes") nodes = std::atoi(value);
    if (option == "--daemon") asking.batch_daemons = {value};
    if (option == "--launcher") plan.launch.launcher = value;
    if (option == "--grace") plan.supervision.output.grace_seconds = std::atof(value);
    if (option == "--out") out = value;
    if (option == "--log-dir") plan.supervision.output.log_dir = value;
    if (option == "--pause") fifo = value;
    if (option == "--end-timeout") plan.supervision.output.end_seconds = std::atoi(value);
    if (option == "--start-timeout") plan.supervision.output.start_seconds = std::atoi(value);
  }
  if (const auto* known = hpclaunch::find_launcher(plan.launch.launcher))
    plan.supervision.termination = known->traits.termination;
  if (nodes > 0) {
    layout.clear();
    plan.placement.layout.push_back({0, nodes});
    plan.placement.classes.emplace_back().ranks.resize(1);
    for (int node = 1; node <= nodes; ++node)
      plan.hosts.names.push_back("n" + std::to_string(node));
  }
  for (const char* next = layout.c_str(); *next != '\0';) {
    char* end = nullptr;
    const auto ranks = std::strtoul(next, &end, 10);
    plan.placement.layout.push_back({static_cast<int>(plan.placement.classes.size()), 1});
    plan.placement.classes.emplace_back();
    plan.placement.classes.back().ranks.resize(ranks);
    plan.hosts.names.push_back("n" + std::to_string(plan.hosts.names.size() + 1));
    next = *end == ',' ? end + 1 : end;
  }
  const std::vector<std::string> launcher(argv + at, argv + argc);
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  const auto ending = hpclaunch::sys::run_supervised(
      plan, launcher, hpclaunch::EnvSnapshot(entries), place, asking);
  hpclaunch::test::pause_at(fifo);
  if (!ending) {
    std::fprintf(stderr, "error: %s\n", ending.error().message.c_str());
    return 125;
  }
  if (!out.empty()) {
    std::FILE* file = std::fopen(out.c_str(), "w");
    if (file == nullptr) return 125;
    std::fputs(shown(*ending).c_str(), file);
    std::fclose(file);
  }
  return ending->status;
}
