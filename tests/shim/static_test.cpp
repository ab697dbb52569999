// What the compiler can check of the wire: all of it is constexpr.
#include "shim/decode.h"
#include "support/catch.h"

namespace hpclaunch::shim {
namespace {

constexpr bool item_is(Text column, int position, Text want) {
  Text item;
  return pick(column, position, item) && item == want;
}
static_assert(item_is("a/b/c", 2, "c") && item_is("a", 7, "a") && item_is("/b", 0, ""));
static_assert(item_is("a/", 1, "") && item_is("", 3, "") && !item_is("a/b", 2, ""));

constexpr bool number_is(Text text, int want) {
  int number = -1;
  return is_number(text, number) && number == want;
}
static_assert(number_is("0", 0) && number_is("2147483647", kMaxNumber) && number_is("007", 7));
static_assert(!number_is("2147483648", 0) && !number_is("", 0) && !number_is("-1", -1));
static_assert(!number_is("1 ", 1) && !number_is("99999999999999999999", 0));

constexpr bool bytes_are(Text text, unsigned long long want) {
  unsigned long long number = 0;
  return is_bytes(text, number) && number == want;
}
static_assert(bytes_are("0", 0) && bytes_are("999999999999999999", 999999999999999999ULL));
static_assert(!bytes_are("1000000000000000000", 0) && !bytes_are("", 0) && !bytes_are("-1", 0));
static_assert(valid_path("%2F") && valid_path("%2Ftmp%2Fa%20b") && !valid_path(""));
static_assert(!valid_path("tmp") && !valid_path("/tmp") && !valid_path("%2Fa%00"));

static_assert(valid_name("%68ttp_proxy") && !valid_name("") && !valid_name("A%3DB"));
static_assert(!valid_name("A%00") && !valid_name("A%2") && !valid_name("%2f") &&
              !valid_name("A B"));
static_assert(is_identifier("PMI_RANK2") && !is_identifier("2A") && !is_identifier("A%42"));
static_assert(valid_list("0-3,8") && valid_list("8191") && valid_list(""));
static_assert(valid_part("0-0") && valid_part("3-8191") && !valid_part("3-2") && !valid_part("3"));
static_assert(!valid_part("3-8192") && !valid_part("-1-2") && !valid_part("1-2x"));

constexpr bool part_is(Text of, int first, int last, Text want) {
  Mask all;
  Mask part;
  Mask wanted;
  return read_list(of, all) && read_list(want, wanted) && take_part(all, first, last, part) &&
         part == wanted && part.count() == last - first + 1;
}
static_assert(part_is("2-3,8,64-65", 1, 3, "3,8,64") && part_is("8191", 0, 0, "8191"));
static_assert(!part_is("2-3", 1, 2, "3"));
static_assert(valid_mark("aZ9-_", 5) && !valid_mark("aZ9-", 5) && !valid_mark("aZ9.", 4));
static_assert(!valid_list("8192") && !valid_list("3-2") && !valid_list("1,") && !valid_list("1-"));

static_assert(valid_item("") && valid_item("a%2Fb") && valid_item("%FF") && valid_item("@.node"));
static_assert(!valid_item("%00") && !valid_item("a=b") && !valid_item("a b"));
static_assert(!valid_item("@.hosts") && !valid_item("a@.rank") && !valid_item("@"));

constexpr int kUnread = -2;
constexpr int node_of(Text wire, int rank) {
  Plan plan;
  Place place;
  place.rank = rank;
  if (read_plan(wire, plan).what != nullptr) return kUnread;
  return locate(plan, place) ? place.node * 100 + place.local : -1;
}
constexpr Text kTwoClasses = "hl1.53:rank=R:layout=0*2/1*1:class=3:cpus=0/1/2:class=2:A=x";
static_assert(node_of(kTwoClasses, 0) == 0 && node_of(kTwoClasses, 5) == 102);
static_assert(node_of(kTwoClasses, 6) == 200 && node_of(kTwoClasses, 7) == 201);
static_assert(node_of(kTwoClasses, 8) == -1);
static_assert(node_of({kTwoClasses.at, kTwoClasses.size - 1}, 0) == kUnread);
static_assert(node_of("hl1.38:rank=R:layout=0*1:class=3:cpus=0/1:B=", 0) == kUnread);
static_assert(node_of("hl1.38:rank=R:layout=0*1:class=2147483647:A=", 0) == 0);
static_assert(node_of("hl1.38:rank=R:layout=0*2:class=2147483647:A=", 0) == kUnread);

}  // namespace
}  // namespace hpclaunch::shim
