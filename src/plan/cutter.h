#pragma once
// From numbers of cores to cores: quotas cut into the shares of their ranks.
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "plan/domains.h"
#include "plan/quotas.h"
#include "plan/share.h"

namespace hpclaunch {

/// Cuts quotas of one node. A search for the best quotas cuts the same cores for as many ranks again and
/// again; each of these is worked out once.
class Cutter {
 public:
  /// Shares of exactly `width` cores; as many as there are where it is 0. Both arguments must stay.
  Cutter(const Topology& node, const std::vector<UsableCore>& cores, int width);

  /// Shares by crowd, near ones first.
  std::vector<std::vector<Share>> shares(const Quotas& quotas, std::size_t crowds);

  /// Cores of every share, in no order that means anything.
  std::vector<int> sizes(const Quotas& quotas);

 private:
  struct Cut {
    CoreSet from;
    std::vector<Share> shares;
    CoreSet used;
  };

  /// The quotas in the order in which they are cut, each with what it gets.
  template <class Take>
  void cut_all(const Quotas& quotas, Take take);
  const Cut& cut(const CoreSet& from, int ranks);

  const Topology& node_;
  const std::vector<UsableCore>& cores_;
  int width_;
  CoreSet all_;
  std::map<std::tuple<int, int, int>, std::vector<Cut>> known_;  // first core, last core, ranks
};

}  // namespace hpclaunch
