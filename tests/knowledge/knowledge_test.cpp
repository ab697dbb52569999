#include "hpclaunch/knowledge.h"

#include <algorithm>
#include <set>
#include <type_traits>

#include "hpclaunch/text.h"
#include "knowledge/table.h"
#include "support/catch.h"

using namespace hpclaunch;
using namespace hpclaunch::knowledge;

// What the compiler can be made to promise: rows are bytes, so the table lies in the program as it is.
static_assert(std::is_trivially_destructible_v<Table> && std::is_standard_layout_v<Row<Variable>>);
static_assert(sizeof(Row<Variable>) == 68);

namespace {

// "" for a correct assignment
std::string grade(const std::string& name, const std::string& value) {
  const Diagnostic found = check(name, value);
  if (found.id.empty()) return "";
  return found.severity == Severity::error     ? "error"
         : found.severity == Severity::warning ? "warning"
                                               : "note";
}

std::string suggestion(const std::string& name, const std::string& value) {
  return check(name, value).fix;
}

Variable of(Type type, TextList values = {}) {
  Variable v;
  v.name = "NAME";
  v.type = type;
  v.values = values;
  v.closed = !values.empty();
  return v;
}

bool good(const Variable& v, std::string_view value) { return !find_fault(v, value).has_value(); }

}  // namespace

TEST_CASE("names ascend, each once, and each is found", "[knowledge]") {
  REQUIRE(count() > 6000);
  for (std::size_t i = 0; i < count(); ++i) {
    const Variable v = at(i);
    INFO(v.name);
    if (i > 0) REQUIRE(at(i - 1).name < v.name);
    const auto found = find(v.name);
    REQUIRE(found);
    REQUIRE(found->name == v.name);
    REQUIRE_FALSE(v.reader.empty());
    REQUIRE_FALSE(v.library.title.empty());
  }
  for (const char* name :
       {"", "A", "NCCL", "NCCL_DEBU", "NCCL_DEBUGX", "nccl_debug", "zzz", "\xff"})
    CHECK_FALSE(find(name));
}

TEST_CASE("defaults and values satisfy their own rules", "[knowledge]") {
  for (std::size_t i = 0; i < count(); ++i) {
    const Variable v = at(i);
    INFO(v.name);
    std::set<std::string_view> seen;
    if (v.values.empty()) continue;
    for (const std::string_view value : v.values.all()) {
      REQUIRE(seen.insert(value).second);
      REQUIRE(good(v, value));
    }
    if (v.standard.find('(') == std::string_view::npos &&
        v.standard.find(' ') == std::string_view::npos)
      CHECK(good(v, v.standard));
  }
}

TEST_CASE("what hpclaunch sets itself is known and described", "[knowledge]") {
  for (const char* name : {"RANK",
                           "LOCAL_RANK",
                           "WORLD_SIZE",
                           "LOCAL_WORLD_SIZE",
                           "GROUP_RANK",
                           "NODE_RANK",
                           "CROSS_RANK",
                           "CROSS_SIZE",
                           "LOCAL_SIZE",
                           "GROUP_WORLD_SIZE",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "OMP_NUM_THREADS",
                           "MKL_NUM_THREADS",
                           "BLIS_NUM_THREADS",
                           "OPENBLAS_NUM_THREADS",
                           "NUMEXPR_NUM_THREADS",
                           "NUMEXPR_MAX_THREADS",
                           "PYTHONUNBUFFERED",
                           "HPCLAUNCH_LOCAL_RANK",
                           "HPCLAUNCH_LOCAL_SIZE",
                           "HPCLAUNCH_NODE",
                           "HPCLAUNCH_PLAN"}) {
    const auto v = find(name);
    INFO(name);
    REQUIRE(v);
    CHECK_FALSE(v->what.empty());
  }
}

TEST_CASE("misspellings lead to variables, and newer names exist", "[knowledge]") {
  REQUIRE(count_misspellings() > 0);
  for (std::size_t i = 0; i < count_misspellings(); ++i) {
    const Misspelling m = misspelling_at(i);
    INFO(m.wrong);
    CHECK_FALSE(find(m.wrong));
    if (!m.meant.empty()) CHECK(find(m.meant));
    CHECK(find_misspelling(m.wrong)->meant == m.meant);
    const Diagnostic verdict = check(m.wrong, "1");
    CHECK(verdict.severity == (m.certain ? Severity::error : Severity::warning));
    CHECK(verdict.id == kUnknownVariable);
  }
  for (std::size_t i = 0; i < count(); ++i)
    if (!at(i).successor.empty()) CHECK(find(at(i).successor));
}

TEST_CASE("names: known, nearly known, and the user's own", "[knowledge]") {
  CHECK(suggestion("FI_CXI_OVFLOW_BUF_SIZE", "8") == "FI_CXI_OFLOW_BUF_SIZE=8");
  CHECK(grade("FI_CXI_OVFLOW_BUF_SIZE", "8") == "error");
  CHECK(suggestion("NCCL_SOKET_IFNAME", "hsn0") == "NCCL_SOCKET_IFNAME=hsn0");
  CHECK(grade("NCCL_SOKET_IFNAME", "hsn0") == "warning");
  CHECK(grade("NCCL_OF_ANOTHER_PLANET", "1") == "warning");  // a closed set
  CHECK(suggestion("NCCL_OF_ANOTHER_PLANET", "1").empty());
  CHECK(suggestion("HIP_VISIBLE_DEVICE", "0") == "HIP_VISIBLE_DEVICES=0");
  CHECK(suggestion("MASTER_ADRR", "n1") == "MASTER_ADDR=n1");
  for (const char* own : {"NCCL_ROOT_DIR", "NCCL_VERSION", "HOROVOD_HOME", "FOO", "EPOCHS", "WORLD",
                          "CUDA_IS_FUN", "SLURM_MY_NOTE", "OMPI_MCA_btl", "MY_NCCL_DEBUG",
                          "SLURM_SPANK_X", "EBROOTGCC", "A", "_", "NCCL", "RANKS"})
    CHECK(grade(own, "anything at all") == "");
}

TEST_CASE("old names are told from names that still work", "[knowledge]") {
  const Diagnostic gone = check("NCCL_IB_CUDA_SUPPORT", "1");
  CHECK(gone.severity == Severity::warning);
  CHECK(gone.id == kOldVariable);
  CHECK(gone.fix == "NCCL_NET_GDR_LEVEL");
  const Diagnostic older = check("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
  CHECK(older.severity == Severity::note);
  CHECK(older.fix == "PYTORCH_ALLOC_CONF");
  for (const auto& [old_name, name] : {std::pair{"NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS"},
                                       {"NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS"},
                                       {"SLURM_JOBID", "SLURM_JOB_ID"},
                                       {"SLURM_STEPID", "SLURM_STEP_ID"}}) {
    const Diagnostic renamed = check(old_name, "4");
    CHECK(renamed.severity == Severity::note);
    CHECK(renamed.fix == name);
  }
  CHECK(check("MPIR_PARAM_ENABLE_GPU", "True").id == kBadValue);  // read as MPIR_CVAR_ENABLE_GPU
  CHECK(grade("MPIR_PARAM_ENABLE_GPU", "1") == "");
}

TEST_CASE("values are judged as each library reads them", "[knowledge]") {
  CHECK(grade("NCCL_IB_DISABLE", "true") == "error");  // strtoll makes it 0
  CHECK(suggestion("NCCL_IB_DISABLE", "true") == "NCCL_IB_DISABLE=1");
  CHECK(grade("NCCL_IB_DISABLE", "0x1") == "");
  CHECK(grade("FI_CXI_ODP", "True") == "");  // any case in libfabric
  CHECK(grade("FI_CXI_ODP", "y") == "error");
  CHECK(grade("CCL_ATL_SHM", "true") == "error");
  CHECK(suggestion("CCL_ATL_SHM", "off") == "CCL_ATL_SHM=0");
  CHECK(grade("CCL_LOG_LEVEL", "WARN") == "");  // lower-cased by oneCCL
  CHECK(grade("ZE_FLAT_DEVICE_HIERARCHY", "flat") == "error");
  CHECK(suggestion("ZE_FLAT_DEVICE_HIERARCHY", "flat") == "ZE_FLAT_DEVICE_HIERARCHY=FLAT");
  CHECK(grade("TORCH_NCCL_BLOCKING_WAIT", "Yes") == "");
  CHECK(grade("TORCH_NCCL_BLOCKING_WAIT", "on") == "error");
  CHECK(suggestion("FI_CXI_OFLOW_BUF_SIZE", "8M") == "FI_CXI_OFLOW_BUF_SIZE=8388608");
  CHECK(grade("FI_CXI_CQ_FILL_PERCENT", "101") == "error");
  CHECK(grade("FI_CXI_CQ_FILL_PERCENT", "100") == "");
  CHECK(grade("UCX_RNDV_THRESH", "inf") == "");
  CHECK(grade("OMP_NUM_THREADS", "4,2") == "");
  CHECK(grade("OMP_NUM_THREADS", "4,none") == "warning");  // no source was read for it
  CHECK(grade("OMP_PROC_BIND", "SPREAD,close") == "");
  CHECK(grade("NCCL_DEBUG_SUBSYS", "^NET,INIT") == "");
  CHECK(grade("CCL_ALLREDUCE_SCALEOUT", "direct:0-1048576;rabenseifner:1048577-max") == "");
  CHECK(grade("CCL_ALLREDUCE", "topo;") == "");
  CHECK(grade("CCL_ALLREDUCE", "tree") == "error");
  CHECK(grade("NCCL_NET", "AWS Libfabric") == "");
  for (const char* name : {"NCCL_IB_DISABLE", "NCCL_DEBUG", "OMP_NUM_THREADS", "CCL_ALLREDUCE"})
    CHECK(grade(name, "") == "");
}

TEST_CASE("messages are one printable line, and suggestions can be typed", "[knowledge]") {
  const std::string nasty = "\x1b[31m\n\xff" + std::string(5000, 'x') + ";rm -rf";
  for (const char* name : {"NCCL_DEBUG", "NCCL_IB_DISABLE", "OMP_NUM_THREADS", "OMP_PROC_BIND",
                           "CCL_ALLREDUCE", "UCX_DC_FC_HARD_REQ_TIMEOUT", "FI_CXI_OVFLOW_BUF_SIZE",
                           "NCCL_SOKET_IFNAME", "CCL_WORKER_AFFINITY"})
    for (const std::string& value :
         {nasty, "1," + nasty, "1" + nasty, "topo:" + nasty, "topo;" + nasty}) {
      const Diagnostic verdict = check(name, value);
      INFO(name);
      CHECK(verdict.message.size() < 900);
      for (const std::string& text : {verdict.message, verdict.fix})
        CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
      CHECK(verdict.fix.find(';') == std::string::npos);
    }
  CHECK(suggestion("FI_CXI_OVFLOW_BUF_SIZE", "$(reboot)") == "FI_CXI_OFLOW_BUF_SIZE=...");
}

TEST_CASE("each type refuses what it is not", "[knowledge]") {
  Variable v = of(Type::integer);
  v.lowest = "-1";
  v.highest = "64";
  for (const char* value : {"-1", "0", "64", "+3", "0x40", "007"}) CHECK(good(v, value));
  for (const char* value : {"-2", "65", "x", "1x", "1 ", "-", "0x41", "99999999999999999999999"})
    CHECK_FALSE(good(v, value));
  v.library.c_numbers = false;
  CHECK(good(v, "010"));  // ten
  CHECK_FALSE(good(v, "0x40"));

  Variable time = of(Type::time);
  CHECK(good(time, "1.5"));
  CHECK_FALSE(good(time, "5s"));
  time.library.suffixes = "k";
  CHECK(good(time, "140ns"));
  CHECK_FALSE(good(time, "140lightyears"));

  const Variable real = of(Type::real);
  CHECK(good(real, "0.25"));
  CHECK_FALSE(good(real, "a quarter"));
  const Variable cpus = of(Type::cpu_list);
  for (const char* value : {"0-3,8", "0-6:2 9", "auto"}) CHECK(good(cpus, value));
  CHECK_FALSE(good(cpus, "0-3;8"));

  Variable word = of(Type::word, {"a\0b\0c\0"});
  CHECK(good(word, "b"));
  CHECK_FALSE(good(word, "B"));
  CHECK(find_fault(word, "B")->meant == "b");
  word.closed = false;
  CHECK(good(word, "d"));
}

TEST_CASE("what is known can be told", "[knowledge]") {
  const auto has = [](const std::string& name, const std::string& label, const std::string& part) {
    const auto facts = describe(name);
    return std::any_of(facts.begin(), facts.end(), [&](const auto& fact) {
      return fact.first == label && fact.second.find(part) != std::string::npos;
    });
  };
  CHECK(has("NCCL_DEBUG", "library", "nccl"));
  CHECK(has("NCCL_DEBUG", "read by", "NVIDIA/nccl:"));
  CHECK(has("FI_CXI_OFLOW_BUF_SIZE", "default", "2097152 since 1.21.0"));
  CHECK(has("FI_CXI_OVFLOW_BUF_SIZE", "meant", "FI_CXI_OFLOW_BUF_SIZE"));
  CHECK(has("MPIR_PARAM_ENABLE_GPU", "stands for", "MPIR_CVAR_ENABLE_GPU"));
  CHECK(has("OMPI_MCA_btl", "family", "OMPI_MCA_*"));
  CHECK(has("SLURM_CPUS_PER_TASK_HET_GROUP_2", "family", "SLURM_*_HET_GROUP_*"));
  CHECK(describe("MY_OWN").empty());
  CHECK(describe("").empty());
}

namespace {

std::vector<std::string> issues(
    const Versions& versions, const Lookup& environment = [](auto) { return std::nullopt; }) {
  std::vector<std::string> ids;
  for (const KnownIssue& one : known_issues(versions, environment)) ids.emplace_back(one.id);
  return ids;
}

bool has(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::count(ids, id) > 0;
}

}  // namespace

TEST_CASE("known issues hold for the versions that they name, and for no others") {
  CHECK(issues({}).empty());
  CHECK(issues({{"rocm", "6.2.4"}}).empty());  // the other component is not known
  CHECK(has(issues({{"rccl", "2.22.3"}, {"rocm", "6.4.0"}}), "rccl-2.22.3-proxy-hang"));
  CHECK_FALSE(has(issues({{"rccl", "2.22.3"}, {"rocm", "6.4.1"}}), "rccl-2.22.3-proxy-hang"));
  CHECK_FALSE(has(issues({{"rccl", "2.22.4"}, {"rocm", "6.4.0"}}), "rccl-2.22.3-proxy-hang"));
  CHECK(has(issues({{"rccl", "v2.22.3+hip6.2"}, {"rocm", "6.2.41133-dd7f95766"}}),
            "rccl-2.22.3-proxy-hang"));
  CHECK(has(issues({{"cuda", "13.0"}, {"nvidia-driver", "575.57.08"}}), "cuda-13-driver"));
  CHECK_FALSE(has(issues({{"cuda", "13.0"}, {"nvidia-driver", "580.65.06"}}), "cuda-13-driver"));
  CHECK_FALSE(has(issues({{"cuda", "12.8"}, {"nvidia-driver", "575.57.08"}}), "cuda-13-driver"));
}

TEST_CASE("a version in short is not taken for one that it may not be") {
  CHECK_FALSE(has(issues({{"rccl", "2.22.3"}, {"rocm", "6.4"}}),
                  "rccl-2.22.3-proxy-hang"));  // 6.4.1 has no such fault
  CHECK(has(issues({{"rccl", "2.22.3"}, {"rocm", "6.3"}}), "rccl-2.22.3-proxy-hang"));
  CHECK_FALSE(has(issues({{"rccl", "2.22"}, {"rocm", "6.3"}}), "rccl-2.22.3-proxy-hang"));
  CHECK(has(issues({{"cuda", "13"}, {"nvidia-driver", "570"}}), "cuda-13-driver"));
  CHECK(issues({{"rccl", "unknown"}, {"rocm", ""}}).empty());
}

TEST_CASE("known issues with a condition on the environment") {
  const Versions versions = {{"rccl", "2.22.3"}};
  CHECK(has(issues(versions), "rccl-2.22.3-comm-split"));
  CHECK_FALSE(has(issues(versions,
                         [](std::string_view name) {
                           return name == "RCCL_MSCCL_ENABLE" ? std::optional<std::string>("0")
                                                              : std::nullopt;
                         }),
                  "rccl-2.22.3-comm-split"));
}

TEST_CASE("each known issue can be met by the oldest version that it names, and says what to do") {
  for (std::size_t i = 0; i < count_known_issues(); ++i) {
    const KnownIssue one = known_issue_at(i);
    INFO(one.id);
    CHECK_FALSE(one.fix.empty());
    CHECK_FALSE(one.why.ends_with('.'));
    Versions versions;  // a bound that the test includes, else one just beside it
    const std::vector<std::string_view> tests = one.versions.all();
    REQUIRE(tests.size() % 3 == 0);
    for (std::size_t at = 0; at < tests.size(); at += 3) {
      std::string& version = versions[std::string(tests[at])];
      if (tests[at + 1] == "gt")
        version = std::string(tests[at + 2]) + ".1";
      else if (tests[at + 1] == "lt")
        version = version.empty() ? "0.0.0" : version;
      else if (tests[at + 1] != "le" || version.empty())
        version = tests[at + 2];
    }
    std::map<std::string, std::string, std::less<>> set;
    for (const std::string_view with : one.with.all())
      if (!with.starts_with('!'))
        set[std::string(with.substr(0, with.find('=')))] =
            with.find('=') == with.npos ? "x" : with.substr(with.find('=') + 1);
    if (!one.gpus.empty()) versions[kGpu] = std::string(one.gpus.front()) + "X";
    CHECK(has(issues(versions,
                     [&](std::string_view name) {
                       const auto found = set.find(name);
                       return found == set.end() ? std::nullopt : std::optional(found->second);
                     }),
              std::string(one.id)));
    CHECK(sentence(one, versions).find(one.why) != std::string::npos);
  }
}

TEST_CASE("a known issue of one GPU is not reported for another") {
  const auto of = [](const char* component, const char* version, const char* gpus) {
    return issues({{component, version}, {kGpu, gpus}});
  };
  for (const char* gpus : {"GH200", "NVIDIA GH200 120GB", "gh200:4, gpu"})
    CHECK(has(of("cray-mpich", "8.1.28", gpus), "cray-mpich-thread-multiple-gh200"));
  for (const char* gpus : {"", "Instinct MI250X", "amd-gfx90a", "GH2000", "A100-SXM4-40GB"})
    CHECK_FALSE(has(of("cray-mpich", "8.1.28", gpus), "cray-mpich-thread-multiple-gh200"));
  CHECK_FALSE(has(issues({{"cray-mpich", "8.1.28"}}), "cray-mpich-thread-multiple-gh200"));
  for (const char* gpus : {"Instinct MI250X/MI250", "MI210", "amd-gfx90a", "A100, Instinct MI250X"})
    CHECK(has(of("rocm", "7.13.0", gpus), "rccl-scratch-reclaim-mi200"));
  CHECK_FALSE(has(of("rocm", "7.13.0", "Instinct MI300A"), "rccl-scratch-reclaim-mi200"));
  CHECK_FALSE(has(of("rocm", "7.2.0", "Instinct MI250X"), "rccl-scratch-reclaim-mi200"));
}

TEST_CASE("libraries that overwrite the mask of a rank") {
  for (const char* version : {"2.29.2", "2.29.3", "2.29.7"}) {
    CHECK(has(issues({{"nccl", version}}), "nccl-2.29-cpu-mask"));
    CHECK(has(issues({{"rccl", version}}), "rccl-2.29-cpu-mask"));
  }
  for (const char* version : {"2.28.9", "2.30.3", "2.30.7"})
    CHECK_FALSE(has(issues({{"nccl", version}}), "nccl-2.29-cpu-mask"));
  CHECK(has(issues({{"rocm", "10.0.0"}}), "rocm-10.0-cpu-mask"));
  CHECK_FALSE(has(issues({{"rocm", "7.2.0"}}), "rocm-10.0-cpu-mask"));
}

TEST_CASE("modules bring components") {
  Versions versions;
  CHECK(add_module("cudatoolkit/12.4", versions) == "cuda");
  CHECK(add_module("OpenMPI/4.1.5-GCC-12.3.0", versions) == "openmpi");
  CHECK(add_module("PrgEnv-gnu", versions).empty());
  CHECK(add_module("nccl/cuda-12/2.21.5", versions) == "nccl");
  CHECK(add_module("rocm/default", versions).empty());
  CHECK(versions == Versions{{"cuda", "12.4"}, {"openmpi", "4.1.5"}, {"nccl", "2.21.5"}});
}

TEST_CASE("an unknown name is not known up to a version, and a note where a newer one is here") {
  const Diagnostic plain = check("NCCL_FOO_BAR", "1");
  CHECK(plain.id == kUnknownVariable);
  CHECK(plain.severity == Severity::warning);
  CHECK(plain.message.starts_with("NCCL_FOO_BAR is not known up to NCCL 2."));
  CHECK(check("NCCL_FOO_BAR", "1", {{"nccl", "2.19"}}).severity == Severity::warning);
  CHECK(check("NCCL_FOO_BAR", "1", {{"rccl", "99.1"}}).severity == Severity::warning);
  const Diagnostic newer = check("NCCL_FOO_BAR", "1", {{"nccl", "v99.1.2+cuda13"}});
  CHECK(newer.severity == Severity::note);
  CHECK(newer.message.ends_with(", and nccl v99.1.2+cuda13 is here"));
  CHECK(check("NCCL_IB_DISABEL", "1", {{"nccl", "99"}}).fix == "NCCL_IB_DISABLE=1");

  const auto facts = describe("FI_FOO_BAR");
  REQUIRE_FALSE(facts.empty());
  CHECK(facts.front().first == "unknown");
  CHECK(facts.front().second.starts_with("FI_FOO_BAR is not known up to libfabric "));
}

TEST_CASE("every library says when it was read") {
  REQUIRE(count_libraries() > 40);
  for (std::size_t i = 0; i < count_libraries(); ++i) {
    INFO(library_at(i).name);
    CHECK(library_at(i).read_on.size() == 10);
  }
  CHECK(newer_than_read({{"nccl", "2.4.8"}}).empty());
  CHECK(newer_than_read({{"libfabric", "99.0"}}).size() > 1);  // each provider is a file of its own
}
