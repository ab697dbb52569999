#pragma once
// Platforms that start one program on each node: rows of profiles/programs/platforms.json.
#include "hpclaunch/rows.h"

namespace hpclaunch {

/// Who starts one program on each node, and where it says which node this is: a row of profiles/programs/platforms.json.
/// A source is a variable, or "WORD VARIABLE": list (JSON), lines, hostlist (Slurm's), pools (CLUSTER_SPEC of Vertex), slots (of
/// a host file that the variable names), or "json FILE KEY"; of a number also "position VARIABLE" among the hosts, "pool
/// VARIABLE", "ratio VARIABLE VARIABLE"; of an address also "{NAME}-0".
struct Platform {
  std::string_view name;
  std::string_view title;       ///< "Kubeflow"
  bool step = false;            ///< tasks of a launcher's step: only where each is to be a node
  Words set = {};               ///< variables that are there, all of them
  Words any = {};               ///< and one of these
  Words unset = {};             ///< and none of these
  Words is = {};                ///< "NAME=VALUE", or "NAME=OTHER" for the value of a variable
  Words files = {};             ///< that are there
  std::string_view nodes = {};  ///< how many; "": as many as hosts, else --nodes
  std::string_view node = {};   ///< which one this is, from 0
  std::string_view hosts = {};
  std::string_view counts = {};  ///< ranks of each node
  Words ranks = {};    ///< ranks of a node; the first that is a number, or torchrun's word
  Words address = {};  ///< of node 0, the first that is there; none: the first host
  std::string_view port = {};
  int default_port = 0;          ///< 0: torchrun's
  std::string_view says = {};    ///< what to know about it
  std::string_view refuse = {};  ///< why nothing can start here
  std::string_view instead = {};
};
void fields(Platform& row, auto&& field) {
  field("name", row.name, Field::unique);
  field("title", row.title, Field::required);
  field("step", row.step);
  field("set", row.set);
  field("any", row.any);
  field("unset", row.unset);
  field("is", row.is);
  field("files", row.files);
  field("nodes", row.nodes);
  field("node", row.node);
  field("hosts", row.hosts);
  field("counts", row.counts);
  field("ranks", row.ranks);
  field("address", row.address);
  field("port", row.port);
  field("default_port", row.default_port);
  field("says", row.says);
  field("refuse", row.refuse);
  field("instead", row.instead);
}
template <>
std::span<const Platform> rows<Platform>();

}  // namespace hpclaunch
