// Jobs with some CPUs of a node that nothing confines: answers as qstat and pbsnodes of OpenPBS 23.06 print them.
#include <string>

#include "plan/jobs.h"
#include "support/catch.h"
#include "world/node.h"

using namespace hpclaunch;
using namespace hpclaunch::job;

namespace {

std::string qstat(const std::string& places, const std::string& place = "free") {
  return "Job Id: 12.pbs\n    Job_Name = train\n    job_state = R\n    exec_host = " + places +
         "\n    exec_vnode = (pn1:ncpus=1)\n    Resource_List.place = " + place + "\n";
}

std::string pbsnodes(int cpus, const std::string& state = "free") {
  return "pn1\n     Mom = pn1.hpc.test\n     ntype = PBS\n     state = " + state +
         "\n     pcpus = 64\n     resources_available.host = pn1\n"
         "     resources_available.ncpus = " +
         std::to_string(cpus) +
         "\n     resources_assigned.ncpus = 2\n     sharing = default_shared\n";
}

// 8 cores with 2 hardware threads each.
Topology smt_machine() {
  Topology node = test::even_machine(1, 2, 4);
  for (Core& core : node.cores) core.pus.add(core.pus.first() + 8);
  for (NumaNode& numa : node.numa_nodes)
    for (const Core& core : node.cores)
      if (core.pus.intersects(numa.pus)) numa.pus |= core.pus;
  node.allowed = node.all_pus();
  return node;
}

CpuQuota counted(const std::string& job, const std::string& node, HostNames hosts = {"pn1"}) {
  World world;
  world.find_program = [](const std::string& name, std::string_view) -> Result<std::string> {
    return name;
  };
  world.capture = [&](const std::vector<std::string>& words, double,
                      const EnvSnapshot*) -> Result<sys::Captured> {
    CHECK(words == std::vector<std::string>{"pbsnodes", "-H", "pn1"});
    return sys::Captured{node.empty() ? 1 : 0, node, ""};
  };
  Site site;
  site.batch.scheduler = find_row<Scheduler>("pbs");
  site.batch.said = job;
  site.hosts.names = std::move(hosts);
  return counted_cpus(world, site, smt_machine());
}

}  // namespace

TEST_CASE("a part of a node is counted where nothing confines the job", "[grants]") {
  const CpuQuota one = counted(qstat("pn1/0"), pbsnodes(16));
  CHECK(one.cpus == 1);
  CHECK(one.by == "PBS");
  CHECK(one.why == "exec_host=pn1/0, place=free");
  CHECK(one.fix == "-l place=scatter:excl");
  CHECK(counted(qstat("pn1/1*3"), pbsnodes(16)).cpus == 3);
  CHECK(counted(qstat("pn1/0*2+pn1/1*3"), pbsnodes(16)).cpus == 5);
  CHECK(counted(qstat("pn1/0-3"), "").cpus == 4);           // Torque
  CHECK(counted(qstat("pn1/0*2"), pbsnodes(8)).cpus == 4);  // it counts cores
  CHECK(counted(qstat("pn1/0*2"), "").cpus == 4);           // as far as is known
  CHECK(counted(qstat("pn1/0*4+pn2/0*3"), pbsnodes(16), {"pn1.hpc.test", "pn2.hpc.test"}).cpus ==
        3);
  CHECK(counted(qstat("pn1/0*4+pn2/0*3"), pbsnodes(16)).cpus == 4);
}

TEST_CASE("whole nodes, and jobs of which nothing is known, have no such count", "[grants]") {
  CHECK(counted(qstat("pn1/0*16"), pbsnodes(16)).cpus == 0);
  CHECK(counted(qstat("pn1/0*8"), pbsnodes(8)).cpus == 0);
  CHECK(counted(qstat("pn1/0*8"), "").cpus == 0);
  CHECK(counted(qstat("pn1/0", "scatter:excl"), pbsnodes(16)).cpus == 0);
  CHECK(counted(qstat("pn1/0", "exclhost"), pbsnodes(16)).cpus == 0);
  CHECK(counted(qstat("pn1/0"), pbsnodes(16, "job-exclusive")).cpus == 0);
  CHECK(counted(qstat("pn1/0"), pbsnodes(16, "job-busy")).cpus == 1);
  CHECK(counted(qstat("pn1/0*2"), pbsnodes(1) + pbsnodes(1)).cpus == 0);  // virtual nodes
  CHECK(counted("", pbsnodes(16)).cpus == 0);
  CHECK(counted("Job Id: 12.pbs\n    job_state = R\n", pbsnodes(16)).cpus == 0);
  CHECK(counted(qstat("pn7/0"), pbsnodes(16)).cpus == 0);
  CHECK(counted(qstat("pn1/0"), pbsnodes(16), {"pn1", "elsewhere"}).cpus == 0);
}

TEST_CASE("where the job is confined here, other nodes have what is counted for them", "[grants]") {
  const auto others = [](const std::string& places, const std::string& here) {
    Site site;
    site.batch.scheduler = find_row<Scheduler>("pbs");
    site.batch.said = qstat(places);
    site.hosts.names = HostNames{"pn1", "pn2"};
    JobNode node;
    node.topology = smt_machine();
    return count_others(site, *CpuSet::parse(here), node) ? node.granted : std::vector<int>();
  };
  CHECK(others("pn1/0*4+pn2/0*6", "0-3") == std::vector<int>{4, 6});
  CHECK(others("pn1/0*2+pn2/0*3", "0-1,8-9") == std::vector<int>{4, 6});  // it counts cores
  CHECK(others("pn1/0+pn2/0*3", "0-3").empty());                          // a CPU is no 4 threads
  CHECK(others("pn1/0*16+pn2/0*16", "1-15").empty());  // some CPUs are kept from every job
  CHECK(others("pn1/0*4", "0-3").empty());
}
