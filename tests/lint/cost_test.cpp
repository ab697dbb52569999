// What a long script costs, in allocations.
#include <string>

#include "hpclaunch/lint.h"
#include "support/allocations.h"
#include "support/catch.h"

namespace {

long allocations_of(const std::string& text) {
  const long before = hpclaunch::test::allocations();
  const auto findings = hpclaunch::lint::check_text(text, "job.sh");
  CHECK_FALSE(findings.empty());
  return hpclaunch::test::allocations() - before;
}

std::string script(int lines, const std::string& line) {
  std::string text = "#!/bin/bash\n#SBATCH -N 2\n";
  for (int i = 0; i < lines; ++i) {
    std::string one = line;
    if (const std::size_t at = one.find('%'); at != std::string::npos)
      one.replace(at, 1, std::to_string(i));
    text += one + "\n";
  }
  return text + "export NCCL_IB_DISABLE=true\nsrun x\n";
}

}  // namespace

TEST_CASE("the cost of a script is linear in its lines", "[lint]") {
  for (const char* line :
       {"export CCL_NAME_%=1", "export NCCL_DEBUG=INFO", "A%=$((A + 1))", "srun -n % python x.py",
        "if [ -n \"$A\" ]; then B=1; fi", "cat <<EOF\n$SLURM_PROCID\nEOF", "module load m/%",
        "mkdir -p /tmp/x%", "#SBATCH --comment=%\nexport MASTER_PORT=1\nsrun python x.py"}) {
    INFO(line);
    (void)allocations_of(script(10, line));  // tables are made once
    const long some = allocations_of(script(200, line));
    const long more = allocations_of(script(800, line));
    CHECK(more < some * 5);
    CHECK(more < 800 * 250);
  }
}

TEST_CASE("an unknown name does not copy all known ones", "[lint]") {
  (void)allocations_of(script(10, "export CCL_NAME_%=1"));
  const long known = allocations_of(script(300, "export CCL_LOG_LEVEL=warn"));
  const long unknown = allocations_of(script(300, "export CCL_LOK_LEVEL%=warn"));
  CHECK(unknown - known < 300 * 1200);  // 400 names of the family, three rows for each comparison
}
