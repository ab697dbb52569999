// The program: what was typed goes to run_words().
#include <cstdio>
#include <exception>
#include <string_view>

#include "cli/command.h"

int main(int argc, char** argv) {
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    const std::string_view name = argc > 0 ? argv[0] : "";
    if (name.substr(name.rfind('/') + 1) == "torchrun-hpclaunch")
      words.insert(
          words.begin() + (words.size() > 1 && words[0] == "complete" && words[1] == "--" ? 2 : 0),
          "torchrun");
    return hpclaunch::cli::run_words(words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hpclaunch: internal error: %s\n", error.what());
    return 125;
  }
}
