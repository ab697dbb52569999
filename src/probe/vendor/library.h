#pragma once
#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::probe::vendor {

/// A shared library opened at run time and never closed: vendors' libraries start threads and keep drivers
/// open, and unloading them crashes.
class Library {
 public:
  /// The first of `names` (sonames or paths) that opens. Errors: `not_found` when none of them
  /// exists; `system` when one exists and cannot be loaded (dlopen's message).
  static Result<Library> open(const std::vector<std::string>& names);

  const std::string& name() const { return name_; }

  /// The function of the first of these names that the library has; a null pointer when it has none.
  template <class Function, class... Names>
  Function* find(const char* name, Names... older) const {
    if (auto* found = reinterpret_cast<Function*>(symbol(name)); found != nullptr) return found;
    if constexpr (sizeof...(older) > 0) return find<Function>(older...);
    return nullptr;
  }

 private:
  Library(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  void* symbol(const char* name) const;

  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace hpclaunch::probe::vendor
