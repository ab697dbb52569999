#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hpclaunch/topology.h"
#include "probe/vendor/vendor.h"

namespace hpclaunch::test {

using probe::vendor::Libraries;

constexpr double kPatience =
    60;  ///< for what must not run into the limit, on a machine of any load

/// What a fake library has to do (tests/vendor/fake.h), while this is in scope.
class Behaviour {
 public:
  explicit Behaviour(const std::map<std::string, std::string>& variables);
  ~Behaviour();
  Behaviour(const Behaviour&) = delete;
  Behaviour& operator=(const Behaviour&) = delete;

 private:
  std::vector<std::string> names_;
};

/// An empty XDG_RUNTIME_DIR, while this is in scope.
class RuntimeFolder {
 public:
  RuntimeFolder();
  ~RuntimeFolder();
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;

 private:
  std::string path_;
};

/// Two packages, two NUMA nodes, 8 cores of one PU, and a device at each of these addresses.
Topology machine(const std::string& vendor, const std::vector<std::string>& addresses);

/// What came of it, after the laws were checked.
struct Enriched {
  Topology topology;
  std::vector<Diagnostic> notes;

  /// All notes, a line each: "NVML: what".
  std::string said() const;
};

/// enrich() on a copy, with the fake's behaviour; checks that the result is lawful.
Enriched enriched(const Topology& base, const Libraries& which,
                  const std::map<std::string, std::string>& behaviour = {});

/// A copy of a library without these names: their strings are changed where the linker looks them up.
/// Removed with the object.
class Without {
 public:
  Without(const std::string& library, const std::vector<std::string>& names);
  ~Without();
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A library of one vendor, and how to ask it.
struct Case {
  std::string file;                                        ///< the fake
  std::vector<std::string> names;                          ///< every function that we look up
  Topology base;                                           ///< what is known before
  std::function<Libraries(const std::string&)> libraries;  ///< to ask this file
};

/// Each call in turn fails, is absent, crashes, exits, hangs. Whatever happens: the topology is lawful,
/// its devices are still there, and either all is known or a note says what is not. `required` are the
/// calls without which nothing is known; `spare` those that an older version stands in for when they are
/// absent, or that are called only then.
void try_each_call(const Case& vendor, const std::vector<std::string>& required,
                   const std::vector<std::string>& spare);

}  // namespace hpclaunch::test
