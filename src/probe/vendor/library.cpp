#include "probe/vendor/library.h"

#include <dlfcn.h>

#include <string_view>

namespace hpclaunch::probe::vendor {

Result<Library> Library::open(const std::vector<std::string>& names) {
  std::string fault;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return Library(name, handle);
    }
    const char* said = dlerror();
    const std::string_view words = said == nullptr ? "" : said;
    // glibc begins with the name of what it could not open: the library itself, or one it needs.
    const bool absent = words.substr(0, name.size()) == name &&
                        words.find("No such file") != std::string_view::npos;
    if (!absent && fault.empty()) fault = words.empty() ? name + " cannot be loaded" : words;
  }
  if (!fault.empty()) return Error{ErrorKind::system, "cannot be loaded: " + fault};
  return Error{ErrorKind::not_found, "no such library"};
}

void* Library::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace hpclaunch::probe::vendor
