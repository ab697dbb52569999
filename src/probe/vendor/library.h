#pragma once
#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::probe::vendor {

/// A shared library that is opened at run time and stays open until the process ends: vendors'
/// libraries start threads and keep drivers open, and unloading them is what breaks.
class Library {
 public:
  /// The first of `names` (sonames or paths) that opens. Errors: `not_found` when none of them is
  /// there, which is no fault; `system` when one is there and cannot be loaded (what dlopen says).
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
