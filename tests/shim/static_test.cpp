// What the compiler can check of the wire: all of it is constexpr.
#include "shim/arguments.h"
#include "shim/decode.h"
#include "shim/task.h"
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

constexpr bool path_is(Text item, Text want) {
  char path[kMaxPath] = {};
  read_path(item, path);
  return Text(path) == want;
}
static_assert(path_is("%2F", "/") && path_is("%2Ftmp%2Fa%20b", "/tmp/a b") &&
              path_is("%2Fa%2", "/a%2") && path_is("^%2Fx^%2F^y^", "/x/y") && path_is("^^", ""));
static_assert(fnv1a("a^b^c", true) == fnv1a("a^^c") && fnv1a("a^b^c") != fnv1a("a^^c"));

constexpr bool part_is(Text of, int first, int last, Text want) {
  Mask all;
  Mask part;
  Mask wanted;
  return read_list(of, all) && read_list(want, wanted) &&
         take_part(all, first, last, part) == all.count() && part == wanted;
}
static_assert(part_is("2-3,8,64-65", 1, 3, "3,8,64") && part_is("8191", 0, 0, "8191"));
static_assert(part_is("2-3", 1, 2, "3"));

constexpr int cores_in(Text of, Text runs, int first, int last, Text want) {
  Mask all;
  Mask part;
  Mask wanted;
  const bool good = read_list(of, all) && read_list(want, wanted);
  const int cores = take_cores(all, runs, first, last, part);
  return good && part == wanted ? cores : -1;
}
// Siblings 56 apart, packages in turn; one of a core's threads is enough.
static_assert(cores_in("4-7,60-63", "0*28*2*2*56/1*28*2*2*56", 1, 2, "5-6,61-62") == 4);
static_assert(cores_in("4,60,61", "0*56*1*2*56", 0, 1, "4,60-61") == 2);
static_assert(cores_in("0-7", "0*4*4*4*1", 1, 1, "4-7") == 2);
static_assert(cores_in("0-7", "8190*9*9*9*9/0*1*1*1*1", 0, 0, "0") == 1);  // beyond all CPUs
static_assert(cores_in("0-1", "0*1/1*1*1*1*1/x", 0, 0, "1") == 1);  // what is no run has none

constexpr bool fills(const char* word, Text want) {
  constexpr const char* kEnvironment[] = {"RANK=12", "LOCAL_RANK=", "MASTER_ADDR=n{RANK}", nullptr};
  Arguments out;
  const char* done = filled(word, kEnvironment, out);
  return Text(done == nullptr ? word : done) == want && out.missing.size == 0 && !out.full;
}
static_assert(fills("{RANK}", "12") && fills("a{RANK}-{RANK}b", "a12-12b") && fills("", ""));
static_assert(fills("--a={MASTER_ADDR}:1", "--a=n{RANK}:1"));  // a value is not filled in again
static_assert(fills("{LOCAL_RANK}", "") && fills("{{RANK}}", "{RANK}"));
static_assert(fills("{{RANK}}{RANK}", "{RANK}12") && fills("{x}{RANK}", "{x}12"));
static_assert(fills("${RANK} {RANK}", "${RANK} 12"));
// Other text of braces stays whole, also where a brace is not closed.
static_assert(fills(R"({"rank": {RANK}})", R"({"rank": {RANK}})") && fills("{ {RANK}", "{ {RANK}"));
static_assert(fills("{{{RANK}}}", "{{{RANK}}}") && fills("{rank}{}", "{rank}{}"));
static_assert(fills("{RANK", "{RANK") && fills("{WORLD_SIZE}", "{WORLD_SIZE}") &&
              fills("}{RANK}", "}12"));
static_assert(!fills("{NODE_RANK}", "") && !fills("{MASTER_PORT}", ""));

// Two ranks of 2 cores with 2 threads. The first node had CPUs 0-3 and 8-11.
constexpr Text kCounted = "0*8*1*2*8";
constexpr bool chosen(Text of, bool named, Text want, int cores) {
  Mask found;
  Mask wanted;
  Task task;
  task.counted = kCounted;
  task.granted = 4;
  task.part_first = 2;
  task.part_last = 3;
  if (named) task.named = "0,2,8,10/1,3,9,11";
  const bool good =
      read_list(of, found) && read_list(want, wanted) && read_list("1,3,9,11", task.mask);
  int many = 0;
  const bool holds = choose_part(found, task, many);
  return good && many == cores && holds == (cores == 4) && (!holds || task.mask == wanted);
}
static_assert(chosen("0-3,8-11", true, "1,3,9,11", 4));    // the same CPUs as there
static_assert(chosen("2-5,10-13", true, "4-5,12-13", 4));  // others
static_assert(chosen("0-3,8-11", false, "2-3,10-11", 4));  // nobody knows any
static_assert(chosen("0-7,8-15", true, "0", 8));           // more than granted: not the job's alone

constexpr bool is_list(Text list) {
  Mask mask;
  return read_list(list, mask);
}
static_assert(is_list("0-3,8") && is_list("8191") && !is_list("8192") && !is_list("3-2"));
static_assert(!is_list("") && !is_list("1,") && !is_list("1-") && !is_list("0x3"));

constexpr int kUnread = -2;
template <int kSize>
constexpr int node_of(const char (&fields)[kSize], int rank, int damaged = 0) {
  char wire[kSize + 9] = {'h', 'l', '2', '.'};
  unsigned hash = fnv1a(fields);
  hash ^= hash >> 17;
  for (int i = 0; i < kValueMark; ++i, hash >>= 6) wire[4 + i] = mark_digit(hash);
  for (int i = 0; i < kSize; ++i) wire[9 + i] = fields[i];
  wire[damaged] = damaged > 0 ? '!' : wire[damaged];
  Plan plan;
  Place place;
  place.rank = rank;
  if (read_plan(wire, plan).what != nullptr) return kUnread;
  return locate(plan, place) ? place.node * 100 + place.local : -1;
}
constexpr char kTwoClasses[] = ":rank=R:layout=0*2/1*1:class=3:cpus=0/1/2:class=2:A=x";
static_assert(node_of(kTwoClasses, 0) == 0 && node_of(kTwoClasses, 5) == 102);
static_assert(node_of(kTwoClasses, 6) == 200 && node_of(kTwoClasses, 7) == 201);
static_assert(node_of(kTwoClasses, 8) == -1);
static_assert(node_of(kTwoClasses, 0, 1) == kUnread && node_of(kTwoClasses, 0, 5) == kUnread);
static_assert(node_of(kTwoClasses, 0, 9) == kUnread && node_of(kTwoClasses, 0, 60) == kUnread);
static_assert(node_of(":rank=R:layout=0*1:class=2147483647:A=", 0) == 0);

}  // namespace
}  // namespace hpclaunch::shim
