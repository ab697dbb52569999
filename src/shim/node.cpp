// hpclaunch-node MARKER FOLDER
// hpclaunch-node check
//
// Starts the ranks of one node for the launcher "ssh", each with a shim, and passes on their output and how they ended. stdin is
// the life line: at its end all that runs here ends. FOLDER has this program and the shim.
#include "node.h"

namespace {

using namespace hpclaunch::shim;

constinit Node this_node;

}  // namespace

[[noreturn]] static void run(int argc, char** argv, char** environment) {
  if (argc == 2 && Text(argv[1]) == "check") leave(0);
  if (argc != 3) {
    Line("usage: hpclaunch-node MARKER FOLDER (the launcher ssh starts it)").print();
    leave(kFailed);
  }
  this_node.run(argv[1], argv[2], environment);
}

#ifdef HPCLAUNCH_FREESTANDING
/// `stack`: argc, the arguments, a null pointer, the environment.
extern "C" [[noreturn, gnu::used]] void hpclaunch_start(char** stack) {
  const int argc = static_cast<int>(reinterpret_cast<long>(stack[0]));
  run(argc, stack + 1, stack + argc + 2);
}
#else
int main(int argc, char** argv, char** environment) { run(argc, argv, environment); }
#endif
