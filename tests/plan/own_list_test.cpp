// Lists of CPUs as launchers write them (parse_cpu_lists).
#include <string>
#include <vector>

#include "plan/cores/cores.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

std::string read(std::string_view text) {
  const Result<std::vector<CpuSet>> lists = parse_cpu_lists(text);
  if (!lists) return lists.error().message;
  std::string all;
  for (const CpuSet& list : *lists) all += (all.empty() ? "" : ":") + list.to_list();
  return all;
}

}  // namespace

TEST_CASE("lists of CPUs in the launchers' notations", "[binding]") {
  struct Row {
    const char *text, *lists;
  };
  for (const Row& row : {Row{"0-3:8-11", "0-3:8-11"},
                         {"list:0-3:8-11", "0-3:8-11"},
                         {"verbose,list:1,3,5:7", "1,3,5:7"},
                         {" v,list:4 ", "4"},
                         {"0xf,0xF0", "0-3:4-7"},
                         {"0x1:0x100", "0:8"},
                         {"mask_cpu:fe000000000000,0xfe", "49-55:1-7"},
                         {"verbose,mask_cpu:3", "0-1"},
                         {"map_cpu:0,8,16", "0:8:16"},
                         {"5,7", "5,7"}}) {
    INFO(row.text);
    CHECK(read(row.text) == row.lists);
  }
}

TEST_CASE("what is not a list of CPUs is quoted", "[binding]") {
  for (const char* text : {"depth", "", "list:", "1-4:", "4-1", "1-4:x", "none", "map_cpu:a"}) {
    INFO(text);
    CHECK(read(text).ends_with("is not a list of CPUs"));
  }
  for (const char* text : {"mask_cpu:", "0x", "0x0", "0xg", "mask_cpu:f,,f"}) {
    INFO(text);
    CHECK(read(text).ends_with("is not a mask of CPUs"));
  }
  CHECK(read("0x" + std::string(1025, 'f')).ends_with("is not a mask of CPUs"));
  CHECK(read("0x1" + std::string(1023, '0')) == "4092");
}
