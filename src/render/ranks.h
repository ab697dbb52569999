#pragma once
// The table ranks -> CPUs of a plan.
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/render.h"
#include "hpclaunch/topology.h"
#include "render/subject.h"

namespace hpclaunch::render {

/// "n[01-64],gpu1"; what is wider than `width` is cut with the number of nodes.
std::string host_list(const HostNames& hosts, int width);

/// Ascending numbers: "3", "0 4", "0 4 8 12"; longer ones "0 4 ... 508" when the steps are equal,
/// else with their count, "0 4 ... 55 (14 ranks)".
std::string number_list(const std::vector<int>& numbers, const Style& style,
                        std::string_view separator = " ");

/// "24 ranks on 2 nodes".
std::string plan_title(const Plan& plan);

/// One picture for each kind, with its hosts and global ranks as the title.
std::vector<Subject> subjects_of(const Plan& plan, const Topology& node, const PictureMarks& marks);

}  // namespace hpclaunch::render
