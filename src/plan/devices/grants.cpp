// What a driver counts before any mask, and what of that is the job's. Facts: Slurm gres.html and sbatch(1), output
// environment variables (ids of SLURM_JOB_GPUS and SLURM_STEP_GPUS are the node's, also inside a device control group,
// where CUDA_VISIBLE_DEVICES counts from 0); NVIDIA container toolkit (NVIDIA_VISIBLE_DEVICES).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "hpclaunch/text.h"
#include "plan/devices/filters.h"
#include "plan/devices/masks.h"

namespace hpclaunch {

namespace {

using Numbers = std::vector<int>;

constexpr const char* kOtherNode =
    "hpclaunch topo shows this node's devices; --topology or --node-type plan for another";

bool has(const Numbers& all, int one) { return std::ranges::count(all, one) > 0; }

// Numbers of the node's devices, ascending; nullopt where the variable has anything else.
std::optional<Numbers> parse_list(const EnvSnapshot& env, const std::string& name) {
  const Result<CpuSet> set = CpuSet::parse(trim(env.get(name)));
  return set ? std::optional(set->to_vector()) : std::nullopt;
}

class Grants {
 public:
  Grants(const PlanInput& input, const DeviceVendor& vendor, const MaskEntries& entries,
         Counted& counted, std::vector<Diagnostic>& reports)
      : input_(input),
        node_(input.node),
        env_(input.env),
        vendor_(vendor),
        entries_(entries),
        out_(counted),
        reports_(reports) {
    for (const Device& device : node_.devices) all_.push_back(device.index);
    find_mask();
    if (vendor_.keeps_order() && !counts_whole(env_)) find_cards();
  }

  void apply() {
    const bool split = has_split(node_);
    const bool masked = !mask_.empty();
    if (count_open()) {
      if (split && !masked) count_instances();
      return;
    }
    if (count_by_name()) return;
    for (const char* name : kSlurmGpuLists)
      if (const auto list = read_list(name)) {
        if (list->size() < node_.devices.size()) count_list(name, *list);
        return;
      }
    if (count_container() || masked) return;
    split ? count_instances() : count_number();
  }

 private:
  std::string exported(const std::string& name) const {
    return name + "=" + std::string(trim(env_.get(name)));
  }

  void warn(const char* id, std::string message, std::string fix) {
    reports_.push_back({id, Severity::warning, std::move(message), std::move(fix)});
  }

  void alone(const Numbers& devices) { count_anew(node_, devices, entries_, out_); }

  // The first mask that is set, with its numbers where it has nothing else.
  void find_mask() {
    for (const auto& [name, kind] : vendor_.filters)
      if (kind != DeviceFilter::container && mask_.empty() && env_.has(name)) mask_ = name;
    const MaskSyntax syntax = vendor_.syntax;
    const std::string text = env_.get(mask_);
    for (std::string_view entry : split(text, ',')) {
      if (mask_.empty()) return;
      if (vendor_.keeps_order())
        entry = entry.substr(0, entry.find('.'));  // of X.Y, X is the device
      const auto number = mask_number(entry, syntax);
      // CUDA's list ends at the first entry of another form.
      if (!number && syntax == MaskSyntax::cuda && !numbers_.empty()) return;
      if (!number) return numbers_.clear();
      numbers_.push_back(static_cast<int>(*number));
    }
  }

  // A list that this node can have. Where devices are split, each instance is a resource of its own and is counted
  // as one.
  std::optional<Numbers> read_list(const std::string& name) {
    std::optional<Numbers> listed = parse_list(env_, name);
    if (!listed || has_split(node_)) return std::nullopt;
    const auto missing =
        std::ranges::find_if(*listed, [&](int device) { return !has(all_, device); });
    if (missing == listed->end()) return listed;
    warn("grant-contradicts",
         fmt::format("ignoring {}: it names device {}, and the node has {}", exported(name),
                     *missing, counted(node_.devices.size(), "device")),
         kOtherNode);
    return std::nullopt;
  }

  void report_unclear(const std::string& list, const std::string& message) {
    warn("grant-unclear", fmt::format("{}: {}", exported(list), message),
         "keep the batch system's device mask, or plan on the node with its vendor's library "
         "installed, "
         "which gives devices their names");
  }

  // Less than the node has can be opened here: drivers count these alone.
  bool count_open() {
    Numbers there = all_;
    const std::size_t all = there.size();
    if (input_.reachable)
      std::erase_if(there, [&](int device) { return !has(*input_.reachable, device); });
    if (there.size() == all) return false;
    if (input_.grant > 0)
      there = input_.grants[static_cast<std::size_t>(input_.grant)].devices.value_or(there);
    alone(there);
    out_.by = "this process";
    out_.why = fmt::format("this process can open {} of the node's {}; drivers count only these",
                           there.size(), counted(all, "device"));
    return true;
  }

  // What the batch system grants on this host, by the node's own numbers.
  bool count_by_name() {
    if (input_.grants.empty()) return false;
    const auto& list = input_.grants[static_cast<std::size_t>(input_.grant)].devices;
    if (!list) return false;
    out_.by = input_.grants_by;
    out_.mine = *list;
    out_.why = fmt::format("{} grants them{}", out_.by,
                           input_.grants.size() > 1 ? ", and others on other nodes" : "");
    return true;
  }

  // X.Y: whatever is counted, X is a device.
  bool mask_has_parts() const { return env_.get(mask_).find('.') != std::string::npos; }

  // Slurm's list of cards, where ZE_AFFINITY_MASK was written from it. Slurm knows no tiles, whatever the driver counts:
  // it writes the numbers of its list, ascending, or 0 to k-1 where a device control group has the driver count these k
  // alone (gres_common.c, use_local_dev_index; "intel_gpu_env" of gres.conf(5)).
  void find_cards() {
    for (const char* name : kSlurmGpuLists) {
      const std::optional<Numbers> list = parse_list(env_, name);
      if (!list) continue;
      Numbers anew(list->size());
      std::iota(anew.begin(), anew.end(), 0);
      if (!numbers_.empty() && !mask_has_parts() && (numbers_ == anew || numbers_ == *list) &&
          std::ranges::all_of(*list, [&](int device) { return has(all_, device); }))
        out_.cards = exported(name);
      return;
    }
  }

  // What the mask would hold for all of the list where the driver counts all of the node: the devices' numbers, or
  // those of their tiles where ZE_AFFINITY_MASK counts tiles and says no X.Y. Ascending.
  Numbers entries_of(const Numbers& list) const {
    const bool by_tile =
        vendor_.keeps_order() && !counts_whole(env_) && !mask_has_parts() && out_.cards.empty();
    std::set<int> entries;
    for (const Slot& slot : numbered(node_, out_, by_tile))
      if (has(list, slot.device)) entries.insert(slot.unit);
    return {entries.begin(), entries.end()};
  }

  // A list of the node's numbers beside a mask that may count these alone.
  void count_list(const std::string& name, const Numbers& list) {
    const Numbers entries = entries_of(list);
    const auto count = static_cast<int>(entries.size());
    const bool among = std::ranges::all_of(numbers_, [&](int n) { return has(entries, n); });
    const bool low = std::ranges::all_of(numbers_, [&](int n) { return n < count; });
    const bool group = low && !among;  // a device control group has the driver count the list alone
    // All can be opened: no control group has the driver count anew.
    const bool open = input_.reachable && input_.reachable->size() == node_.devices.size();
    const std::string set = mask_ + "=" + env_.get(mask_);
    out_.by = name;
    out_.mine = list;
    if (entries.back() == count - 1 || (open && !group)) {
      out_.why = exported(name) + " lists them";
    } else if (numbers_.empty()) {  // a mask of names needs no numbers
      if (mask_.empty()) count_without_mask(name, list);
    } else if (among && !low) {
      out_.why = fmt::format("{} has the node's own numbers, as {} does", set, exported(name));
    } else if (group) {
      out_.mine.reset();
      alone(list);
      out_.why = fmt::format("{} counts the devices of {} only, as inside a device control group",
                             set, exported(name));
    } else {
      out_.mine.reset();
      out_.unplaced = true;
      if (among)
        return report_unclear(name, set +
                                        " counts either these or all devices of the node; the plan "
                                        "keeps its entries, and device locality is unknown");
      warn("grant-contradicts",
           fmt::format("{} contradicts {}: it names other devices, and is not an index into these "
                       "{}; the plan keeps its entries, and device locality is unknown",
                       set, exported(name), count),
           fmt::format("unset {}, or restore the batch system's value", mask_));
    }
  }

  // A list and no mask: whether the driver counts the list alone is not known.
  void count_without_mask(const std::string& name, const Numbers& list) {
    const auto uuid = [&](int device) { return node_.find_device(device)->uuid; };
    const bool named = std::ranges::all_of(list, [&](int d) { return !uuid(d).empty(); });
    if (!vendor_.keeps_order() && named && !spans_nodes(input_)) {
      for (Slot& slot : out_.slots)
        if (!uuid(slot.device).empty()) slot.entry = uuid(slot.device);
      out_.why = exported(name) +
                 " lists them; masks use their UUIDs, which are the same inside and outside of a "
                 "device control group";
      return;
    }
    out_.why = exported(name) + " lists them, by the node's own numbers";
    report_unclear(name,
                   "no device mask is set, so the driver's numbers are not known; masks use the "
                   "node's numbers, which reach granted devices or none");
  }

  // What NVIDIA_VISIBLE_DEVICES says of a container: names, or numbers.
  bool count_container() {
    std::string name;
    for (const auto& [variable, kind] : vendor_.filters)
      if (kind == DeviceFilter::container) name = variable;
    const std::string text(trim(env_.get(name)));
    if (name.empty() || text.empty()) return false;
    const bool instances = text.find("MIG-") != std::string::npos;
    if (instances || text.find("GPU-") != std::string::npos) {
      std::vector<Slot> named = read_mask(node_, out_.slots, text, MaskSyntax::rocm).slots;
      std::ranges::stable_sort(named, {}, [](const Slot& slot) {
        return std::pair(slot.device, slot.part);
      });  // inside they are counted by address again
      for (std::size_t i = 0; i < named.size(); ++i)
        named[i].unit =
            i == 0 ? 0 : named[i - 1].unit + (instances || named[i].device != named[i - 1].device);
      if (!named.empty()) {
        out_.slots = std::move(named);
        out_.by = name;
        out_.why = name + " names the container's devices";
        return true;
      }
    }
    const auto list = read_list(name);
    if (!list || list->size() == node_.devices.size()) return list.has_value();
    if (!numbers_.empty()) {
      count_list(name, *list);
      return true;
    }
    alone(*list);
    out_.by = name;
    out_.why = exported(name) + " lists the container's devices; its drivers count only these";
    return true;
  }

  // How many GPUs Slurm grants: here, else what was asked for on each node ("2", "a100:1,h100:1"), which is all that
  // is known beside the job's nodes.
  std::pair<std::string, long> slurm_count() const {
    for (const std::string name : {kSlurmGpuCount, "SLURM_GPUS_PER_NODE"}) {
      const std::string text = env_.get(name);
      long count = 0;
      for (const std::string_view one : split(text, ','))
        count += parse_natural(trim(one.substr(one.rfind(':') + 1))).value_or(0);
      if (count > 0) return {name, count};
    }
    return {};
  }

  // A number of devices; which ones is not known.
  void count_number() {
    const auto [name, count] = slurm_count();
    Numbers first = all_;
    if (count == 0 || count >= std::ssize(first)) return;
    first.resize(static_cast<std::size_t>(count));
    out_.by = name;
    out_.why = exported(name) + " gives a number of devices, not which ones";
    std::erase_if(out_.slots, [&](const Slot& slot) { return !has(first, slot.device); });
    out_.unplaced = true;
    report_unclear(name,
                   "which devices of the node these are is not known; the plan counts them from 0, "
                   "and their locality is unknown");
  }

  // Instances of split devices in place of devices, when no mask names them. Slurm has asked NVML: an instance is a
  // resource of its own, a split device without any is none. It counts them by the names of their device files
  // (_sort_gpu_by_file in its gres_gpu plugin), which is the order of the devices, and of the instances of each as long
  // as their numbers have as many digits.
  void count_instances() {
    auto [name, number] = slurm_count();
    std::optional<Numbers> list;
    for (const char* one : kSlurmGpuLists)
      if (!list && (list = parse_list(env_, one))) name = one;
    const auto count = list ? list->size() : static_cast<std::size_t>(number);
    std::vector<Slot> here;
    std::vector<Slot> listed;
    int place = 0;
    for (const Slot& part : count_all(node_, vendor_, entries_).slots) {
      if (part.entry.empty()) continue;
      const int at = place++;
      const auto found = std::ranges::find_if(out_.slots, [&](const Slot& slot) {
        return slot.device == part.device && slot.part == part.part;
      });
      if (found == out_.slots.end()) continue;
      here.push_back(*found);
      const std::string& uuid = node_.find_device(part.device)->uuid;
      if (part.part < 0 && !uuid.empty()) here.back().entry = uuid;
      if (list && has(*list, at)) listed.push_back(here.back());
    }
    if (count == 0 || count == here.size()) return;  // no part of what is here
    if (count > here.size())
      return warn("grant-contradicts",
                  fmt::format("ignoring {}: it grants {}, {} found", exported(name),
                              counted(count, "instance"), here.size()),
                  kOtherNode);
    const bool placed = listed.size() == count;
    out_.by = name;
    out_.slots = placed ? listed : here;
    out_.slots.resize(count);
    out_.why = exported(name) + " counts instances of split devices (MIG)";
    report_unclear(name,
                   placed ? "no mask names the instances; the plan counts them in the order of "
                            "their devices"
                          : "no mask names the instances; which ones these are is not known, and "
                            "the plan takes the first ones");
  }

  const PlanInput& input_;
  const Topology& node_;
  const EnvSnapshot& env_;
  const DeviceVendor& vendor_;
  const MaskEntries& entries_;
  Counted& out_;
  std::vector<Diagnostic>& reports_;
  Numbers all_;       // Device::index
  std::string mask_;  // the first one that is set
  Numbers numbers_;   // its
};

}  // namespace

void apply_grants(const PlanInput& input, const DeviceVendor& vendor, const MaskEntries& entries,
                  Counted& counted, std::vector<Diagnostic>& reports) {
  Grants(input, vendor, entries, counted, reports).apply();
}

}  // namespace hpclaunch
