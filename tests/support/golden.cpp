#include "support/golden.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/catch.h"

namespace hpclaunch::test {

namespace fs = std::filesystem;

std::string source_file(const std::string& relative_path) {
  const fs::path path = fs::path(HPCLAUNCH_SOURCE_DIR) / relative_path;
  std::ifstream in(path, std::ios::binary);
  INFO("reading " << path);
  REQUIRE(in);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void check_golden(const std::string& name, const std::string& got) {
  const std::string relative = "tests/golden/" + name;
  const char* mode = std::getenv("HPCLAUNCH_GOLDEN");
  if (mode != nullptr && std::string(mode) == "update") {
    const fs::path path = fs::path(HPCLAUNCH_SOURCE_DIR) / relative;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << got;
    WARN("wrote " << relative);
    return;
  }
  INFO("golden file " << relative << " (HPCLAUNCH_GOLDEN=update rewrites it)");
  CHECK(got == source_file(relative));
}

}  // namespace hpclaunch::test
