// Expands lists of hosts for tests/model/hostlist_test.py.
//
// usage: hostlist_driver < LISTS      each list ends with a zero byte; for each one: "+" and the hosts,
//                                     or "-" and the message, a line each, and a zero byte
//        hostlist_driver bench LIST   how long it takes, in microseconds: best of 20
#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "hpclaunch/hosts.h"

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc == 3 && std::string(argv[1]) == "bench") {
    double best = 1e9;
    std::size_t hosts = 0;
    for (int round = 0; round < 20; ++round) {
      const auto start = Clock::now();
      const auto expanded = hpclaunch::expand_hostlist(argv[2]);
      const std::chrono::duration<double, std::micro> took = Clock::now() - start;
      if (!expanded) return 1;
      hosts = expanded->size();
      best = took.count() < best ? took.count() : best;
    }
    std::printf("%zu hosts in %.0f us\n", hosts, best);
    return 0;
  }
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\0', at);
    if (end == std::string::npos) return 2;
    const auto expanded = hpclaunch::expand_hostlist(std::string_view(text).substr(at, end - at));
    at = end + 1;
    std::cout << (expanded ? "+" : "-");
    if (!expanded) std::cout << '\n' << expanded.error().message;
    if (expanded)
      for (const std::string& host : *expanded) std::cout << '\n' << host;
    std::cout << '\0';
  }
  return 0;
}
