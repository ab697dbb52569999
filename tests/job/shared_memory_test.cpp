// /dev/shm as /proc/self/mounts shows it.
#include "support/catch.h"
#include "world/node.h"

using namespace hpclaunch;
using namespace hpclaunch::job;

namespace {

Diagnostics said_of(const std::string& mounts) {
  World world;
  world.read_file = [mounts](const std::string& path, std::size_t) -> Result<std::string> {
    if (path != "/proc/self/mounts") return Error{ErrorKind::not_found, path};
    return mounts;
  };
  Diagnostics said;
  check_shared_memory(world, said);
  return said;
}

}  // namespace

TEST_CASE("the size of /dev/shm that containers have by default", "[shm]") {
  const std::string small =
      "shm /dev/shm tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k,inode64 0 0\n";
  const Diagnostics said = said_of("overlay / overlay rw 0 0\n" + small);
  REQUIRE(said.size() == 1);
  CHECK(said[0].id == "shm-small");
  CHECK(said[0].message.starts_with("/dev/shm has 64 MiB"));
  CHECK(said_of("tmpfs /dev/shm tmpfs rw,nosuid,nodev,inode64 0 0\n").empty());
  CHECK(said_of("tmpfs /dev/shm tmpfs rw,size=24684092k 0 0\n").empty());
  CHECK(said_of(small + "tmpfs /dev/shm tmpfs rw,size=8388608k 0 0\n").empty());  // mounted over it
  CHECK(said_of("shm /dev/shmem tmpfs rw,size=65536k 0 0\n").empty());
  CHECK(said_of("shm /dev/shm tmpfs rw,size=-1k,sizes=65536k 0 0\n").empty());
  CHECK(said_of("").empty());
}
