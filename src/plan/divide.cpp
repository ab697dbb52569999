#include "plan/divide.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>

namespace hpclaunch {

namespace {

// Sets that cut another one, and those inside of them.
std::vector<std::size_t> those_that_cut(const std::vector<CoreSet>& sets) {
  std::vector<bool> cuts(sets.size(), false);
  for (std::size_t a = 0; a < sets.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (cut_one_another(sets[a], sets[b])) cuts[a] = cuts[b] = true;
  std::vector<std::size_t> members;
  for (std::size_t s = 0; s < sets.size(); ++s) {
    bool inside = cuts[s];
    for (std::size_t around = 0; around < sets.size() && !inside; ++around)
      inside = cuts[around] && sets[around].contains(sets[s]);
    if (inside && !sets[s].empty()) members.push_back(s);
  }
  return members;
}

// Cores that the same sets claim.
struct Atom {
  std::vector<int> cores;              // ascending
  std::vector<std::size_t> claimants;  // that have ranks
  std::vector<int> given;              // how many of the cores, by claimant
};

class Division {
 public:
  Division(const std::vector<CoreSet>& sets, const std::vector<std::size_t>& members,
           const std::vector<int>& ranks)
      : sets_(sets), ranks_(ranks), have_(sets.size(), 0), claimed_(sets.size()) {
    CoreSet all;
    for (const std::size_t s : members) all |= sets[s];
    std::map<std::vector<std::size_t>, std::vector<int>> alike;
    for (const int core : all.to_vector()) {
      std::vector<std::size_t> claimants;
      for (const std::size_t s : members)
        if (ranks[s] > 0 && sets[s].has(core)) claimants.push_back(s);
      if (!claimants.empty()) alike[claimants].push_back(core);
    }
    for (auto& [claimants, cores] : alike) {
      for (const std::size_t s : claimants) claimed_[s].push_back(atoms_.size());
      atoms_.push_back({cores, claimants, std::vector<int>(claimants.size(), 0)});
    }
  }

  std::vector<CoreSet> run() {
    for (Atom& atom : atoms_)
      for (std::size_t i = 0; i < atom.cores.size(); ++i) give_to_poorest(atom);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < sets_.size(); ++s)
        if (ranks_[s] > 0) moved = feed(s) || moved;
    }
    return hand_out();
  }

 private:
  struct Step {
    std::size_t to = 0;    // the set that gets a core
    std::size_t atom = 0;  // of this atom
  };

  // What the set's worst-off rank has with `cores` cores.
  int each(std::size_t set, int cores) const { return cores / ranks_[set]; }

  int& given(Atom& atom, std::size_t set) {
    const auto at = std::find(atom.claimants.begin(), atom.claimants.end(), set);
    return atom.given[static_cast<std::size_t>(at - atom.claimants.begin())];
  }

  void give_to_poorest(Atom& atom) {
    const auto poorest = std::min_element(
        atom.claimants.begin(), atom.claimants.end(),
        [&](std::size_t a, std::size_t b) { return each(a, have_[a]) < each(b, have_[b]); });
    ++given(atom, *poorest);
    ++have_[*poorest];
  }

  // One core for the set from one whose ranks have at least two more, by way of others if need be.
  bool feed(std::size_t poor) {
    std::map<std::size_t, Step> way;  // from each set that was reached
    std::vector<std::size_t> queue{poor};
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const std::size_t to = queue[next];
      for (const std::size_t a : claimed_[to]) {
        for (const std::size_t from : atoms_[a].claimants) {
          if (from == poor || way.count(from) > 0 || given(atoms_[a], from) == 0) continue;
          way.emplace(from, Step{to, a});
          if (each(from, have_[from] - 1) > each(poor, have_[poor])) {
            pass_on(from, poor, way);
            return true;
          }
          queue.push_back(from);
        }
      }
    }
    return false;
  }

  void pass_on(std::size_t from, std::size_t poor, const std::map<std::size_t, Step>& way) {
    --have_[from];
    ++have_[poor];
    while (from != poor) {
      const Step& step = way.at(from);
      --given(atoms_[step.atom], from);
      ++given(atoms_[step.atom], step.to);
      from = step.to;
    }
  }

  // Neighbouring cores, to the sets in the order in which these lie.
  std::vector<CoreSet> hand_out() {
    std::vector<double> middle(sets_.size(), 0);
    for (std::size_t s = 0; s < sets_.size(); ++s) {
      const std::vector<int> cores = sets_[s].to_vector();
      if (!cores.empty())
        middle[s] =
            std::accumulate(cores.begin(), cores.end(), 0.0) / static_cast<double>(cores.size());
    }
    std::vector<CoreSet> parts(sets_.size());
    for (Atom& atom : atoms_) {
      std::vector<std::size_t> order = atom.claimants;
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return middle[a] < middle[b]; });
      auto core = atom.cores.begin();
      for (const std::size_t s : order)
        for (int i = given(atom, s); i > 0; --i) parts[s].add(*core++);
    }
    return parts;
  }

  const std::vector<CoreSet>& sets_;
  const std::vector<int>& ranks_;
  std::vector<int> have_;
  std::vector<Atom> atoms_;
  std::vector<std::vector<std::size_t>> claimed_;  // atoms that each set claims
};

}  // namespace

bool nest(const std::vector<Crowd>& crowds) {
  std::vector<const CoreSet*> sets;  // each once
  for (const Crowd& crowd : crowds)
    for (const CoreSet& set : crowd.within)
      if (std::none_of(sets.begin(), sets.end(), [&](const CoreSet* one) { return *one == set; }))
        sets.push_back(&set);
  for (std::size_t a = 0; a < sets.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (cut_one_another(*sets[a], *sets[b])) return false;
  return true;
}

bool cut_one_another(const CoreSet& a, const CoreSet& b) {
  return a.intersects(b) && !a.contains(b) && !b.contains(a);
}

std::vector<CoreSet> divide(std::vector<CoreSet> sets, const std::vector<int>& ranks) {
  const std::vector<std::size_t> members = those_that_cut(sets);
  if (members.empty()) return sets;
  const std::vector<CoreSet> parts = Division(sets, members, ranks).run();
  for (const std::size_t s : members) sets[s] = parts[s];
  return sets;
}

std::vector<Crowd> divided(std::vector<Crowd> crowds, const std::vector<int>& ranks) {
  std::vector<CoreSet> near;
  near.reserve(crowds.size());
  for (const Crowd& crowd : crowds) near.push_back(crowd.within.front());
  const std::vector<CoreSet> parts = divide(near, ranks);
  for (std::size_t c = 0; c < crowds.size(); ++c) {
    const std::vector<CoreSet> before = crowds[c].within;
    std::vector<CoreSet>& within = crowds[c].within;
    within.front() = parts[c];
    for (std::size_t far = 1; far < within.size(); ++far) {
      const bool is_cut = std::any_of(parts.begin(), parts.end(), [&](const CoreSet& part) {
        return cut_one_another(part, within[far]);
      });
      if (is_cut || before[far] == before[far - 1]) within[far] = within[far - 1];
    }
  }
  return crowds;
}

}  // namespace hpclaunch
