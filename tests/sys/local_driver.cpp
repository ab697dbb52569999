// local_driver [-n RANKS] [--label] [--log-dir DIR] [--grace SECONDS] [--shim PATH] [--pause FIFO]
// PROGRAM [ARGS...]
//
// The local launcher without the rest of hpclaunch, for tests/sys/local_test.py and the benchmark.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "hpclaunch/sys.h"
#include "support/pause.h"
#include "support/wire.h"

extern char** environ;

namespace {

// The least plan with which the shim starts a rank.
std::string wire(int ranks) {
  return hpclaunch::test::wire_of(
      ":rank=HPCLAUNCH_LOCAL_RANK:verify=off:layout=0*1:RANK=@.rank:class=" +
      std::to_string(ranks));
}

const char* name(hpclaunch::ErrorKind kind) {
  switch (kind) {
    case hpclaunch::ErrorKind::program_not_found:
      return "program_not_found";
    case hpclaunch::ErrorKind::not_executable:
      return "not_executable";
    case hpclaunch::ErrorKind::system:
      return "system";
    default:
      return "unexpected";
  }
}

}  // namespace

int main(int argc, char** argv) {
  hpclaunch::Plan plan;
  plan.hosts.names = {"this-node"};
  plan.placement.classes.resize(1);
  std::size_t ranks = 1;
  std::string shim = HPCLAUNCH_TEST_SHIM;
  std::string fifo;
  int at = 1;
  for (; at + 1 < argc && argv[at][0] == '-'; ++at) {
    const std::string option = argv[at];
    if (option == "--label") {
      plan.supervision.output.label = true;
      continue;
    }
    const char* value = argv[++at];
    if (option == "-n") ranks = std::strtoul(value, nullptr, 10);
    if (option == "--log-dir") plan.supervision.output.log_dir = value;
    if (option == "--grace") plan.supervision.output.grace_seconds = std::atof(value);
    if (option == "--shim") shim = value;
    if (option == "--pause") fifo = value;
  }
  plan.placement.classes[0].ranks.resize(ranks);
  plan.placement.layout.resize(1);
  for (; at < argc; ++at) plan.launch.command.emplace_back(argv[at]);

  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  entries.push_back("HPCLAUNCH_PLAN=" + wire(static_cast<int>(ranks)));
  const auto status = hpclaunch::sys::run_local(plan, hpclaunch::EnvSnapshot(entries), shim, {});
  hpclaunch::test::pause_at(fifo);
  if (status) return status->status;
  std::fprintf(stderr, "%s: %s\n", name(status.error().kind), status.error().message.c_str());
  return 125;
}
