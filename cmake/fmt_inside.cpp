// The fmt library as a static one, where the system has a shared one only. The shared one would load the
// shared C++ library too, and both together take a millisecond of every start. fmt's header-only form
// defines all of it inline; this file, compiled with -fkeep-inline-functions, keeps those definitions
// for the rest of the program, which is compiled without that form and so stays quick to compile.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

#include <string>

namespace hpclaunch {

// One use of each kind of argument: templates are kept only where somebody asks for them.
std::string every_kind_of_argument(const std::string& text, double number, const void* address);

std::string every_kind_of_argument(const std::string& text, double number, const void* address) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", text, "text", 'c', true, 1, 1u, 1ll, 1ull,
                     number, static_cast<float>(number), address);
}

}  // namespace hpclaunch
