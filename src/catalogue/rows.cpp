// Rows of data (hpclaunch/rows.h): reads each list by the fields of its kind, and writes it as a constant array.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "catalogue.h"
#include "hpclaunch/json_reader.h"
#include "hpclaunch/lint.h"
#include "hpclaunch/platforms.h"
#include "hpclaunch/programs.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"

namespace hpclaunch::catalogue {

namespace {

using json_reader::Item;
using json_reader::Json;

// The list in a file, the type of its rows, the header that has it.
#define HPCLAUNCH_KINDS(KIND)                                \
  KIND("grammars", Grammar, "hpclaunch/programs.h")          \
  KIND("launchers", StartingProgram, "hpclaunch/programs.h") \
  KIND("options", ForeignOptions, "hpclaunch/programs.h")    \
  KIND("mpi", MpiNames, "hpclaunch/programs.h")              \
  KIND("wrappers", Wrapper, "hpclaunch/programs.h")          \
  KIND("engines", ContainerEngine, "hpclaunch/programs.h")   \
  KIND("gpus", GpuModels, "hpclaunch/programs.h")            \
  KIND("pci_models", PciModel, "hpclaunch/programs.h")       \
                                                             \
  KIND("frameworks", Framework, "hpclaunch/programs.h")      \
  KIND("reads", FrameworkReads, "hpclaunch/programs.h")      \
  KIND("exclusions", Exclusion, "hpclaunch/programs.h")      \
  KIND("needs", Need, "hpclaunch/programs.h")                \
  KIND("inherited", Inherited, "hpclaunch/programs.h")       \
  KIND("submission", Submission, "hpclaunch/programs.h")     \
  KIND("waits", KnownWait, "hpclaunch/programs.h")           \
  KIND("platforms", Platform, "hpclaunch/platforms.h")       \
  KIND("batch_systems", Scheduler, "scheduler/rows.h")       \
  KIND("rules", LintRule, "hpclaunch/lint.h")                \
  KIND("retired", RetiredName, "hpclaunch/lint.h")           \
  /* parts of rows */                                        \
  KIND(nullptr, Directives, "hpclaunch/scheduler.h")         \
  KIND(nullptr, StateQuestion, "hpclaunch/scheduler.h")      \
  KIND(nullptr, OwnVariable, "hpclaunch/scheduler.h")        \
  KIND(nullptr, SubmitHint, "hpclaunch/scheduler.h")         \
  KIND(nullptr, Option, "hpclaunch/programs.h")              \
  KIND(nullptr, LaunchFault, "hpclaunch/lint.h")             \
  KIND("words", NamedWords, "hpclaunch/rows.h")

// As it stands in the C++ that is written: "StartingProgram".
template <class Row>
constexpr const char* kType = nullptr;
template <>
constexpr const char* kType<std::string_view> = "std::string_view";
template <>
constexpr const char* kType<Words> = "Words";
#define HPCLAUNCH_KIND(list, type, header) \
  template <>                              \
  constexpr const char* kType<type> = #type;
HPCLAUNCH_KINDS(HPCLAUNCH_KIND)
#undef HPCLAUNCH_KIND

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte > '~' || c == '"' || c == '\\' || c == '?')
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "\"";
}

template <class T>
concept Struct = requires(T& row, void (*nothing)()) {
  fields(row, [](auto&&...) {});
};

class Writer {
 public:
  explicit Writer(RowText& out) : out_(out) {}

  // As a constant, named "kN"; {} for none.
  template <class Element>
  std::string array(const std::vector<std::string>& elements) {
    if (elements.empty()) return "{}";
    std::string name = fmt::format("k{}", ++out_.arrays);
    out_.text += fmt::format("constexpr {} {}[] = {{{}}};\n", kType<Element>, name,
                             fmt::join(elements, ", "));
    return name;
  }

  // The C++ of a member: what stands in the file, else its default.
  std::string value(const Item& at, std::string_view otherwise) {
    return literal(at ? at.text() : std::string(otherwise));
  }
  std::string value(const Item& at, bool otherwise) {
    return at.truth(otherwise) ? "true" : "false";
  }
  std::string value(const Item& at, int otherwise) {
    return std::to_string(at.whole(0, 1'000'000'000, otherwise));
  }
  template <class Answer, class... Asked>
  std::string value(const Item& at, Answer (* /*none*/)(Asked...)) {  // by its name
    std::string name = at ? at.text() : "nullptr";
    if (!consists_of(name, "_")) at.fault(fmt::format("{} names no function", literal(name)));
    return name;
  }
  std::string value(const Item& at, Words otherwise, Field how = Field::optional) {
    std::vector<std::string> all;
    if (!at)
      for (const std::string_view one : otherwise) all.push_back(literal(one));
    for (const Item& one : at.elements("strings")) {
      all.push_back(literal(one.text()));
      if (how != Field::command && std::ranges::count(all, all.back()) > 1)
        one.fault(fmt::format("{} is there twice", all.back()));
    }
    return array<std::string_view>(all);
  }
  std::string value(const Item& at, std::span<const NamedWords> /*none*/) {
    std::vector<std::string> all;
    for (const Item& one : at.members("lists"))
      all.push_back(fmt::format("{{{}, {}}}", literal(one->key), value(one, Words())));
    return array<NamedWords>(all);
  }
  std::string value(const Item& at, std::span<const Words> /*none*/) {  // ["-a", ["--bb", "-b"]]
    std::vector<std::string> all;
    for (const Item& one : at.elements("strings and lists")) {
      const bool single = one->kind == Json::Kind::string;
      all.push_back(single ? array<std::string_view>({literal(one.text())}) : value(one, Words()));
    }
    return array<Words>(all);
  }
  template <Struct Row>
  std::string value(const Item& at, const Row& /*none*/) {
    return at ? row<Row>(at, nullptr) : "{}";
  }
  template <Struct Row>
  std::string value(const Item& at, std::span<const Row> /*none*/) {
    return array<Row>(list<Row>(at));
  }

  template <class Row>
  std::vector<std::string> list(const Item& at, Taken* taken = nullptr) {
    std::vector<std::string> all;
    Taken own;
    for (const Item& one : at.elements("objects"))
      all.push_back(row<Row>(one, taken != nullptr ? taken : &own));
    return all;
  }

 private:
  template <class Row>
  struct Visitor {
    Writer& writer;
    const Item& at;
    Taken* taken;
    const Row& row;
    std::vector<std::string> members = {};
    std::size_t end = 0;

    // A member that `fields` leaves out would shift all behind it.
    template <class Member>
    void place(std::string_view key, const Member& member) {
      const auto offset = static_cast<std::size_t>(reinterpret_cast<const char*>(&member) -
                                                   reinterpret_cast<const char*>(&row));
      if (offset != (end + alignof(Member) - 1) / alignof(Member) * alignof(Member)) {
        fmt::print(stderr, "fields() of {}: a member is missing before \"{}\"\n", kType<Row>, key);
        std::abort();
      }
      end = offset + sizeof(Member);
    }
    Item find(std::string_view key, Field how) {
      if (how == Field::optional || how == Field::command) return at[key];
      const Item found = at.need(key);
      if (how == Field::unique && taken != nullptr && found &&
          !(*taken)[std::string(key)].insert(found->text).second)
        found.fault(fmt::format("{} is there twice", literal(found->text)));
      return found;
    }
    template <class Member>
    void operator()(std::string_view key, const Member& member, Field how = Field::optional) {
      place(key, member);
      if constexpr (std::is_same_v<Member, Words>)
        members.push_back(writer.value(find(key, how), member, how));
      else
        members.push_back(writer.value(find(key, how), member));
    }
    template <class Member>
    void operator()(std::string_view key, const Member& member, Words names,
                    Field how = Field::optional) {
      place(key, member);
      auto index = static_cast<std::ptrdiff_t>(member);
      if (const Item one = find(key, how))
        if (const std::string name = one.choice(names); !name.empty())
          index = std::ranges::find(names, name) - names.begin();
      members.push_back(fmt::format("Choice{{{}}}", index));
    }
  };

  template <class Row>
  std::string row(const Item& at, Taken* taken) {
    Row plain;
    Visitor<Row> visitor{*this, at, taken, plain};
    fields(plain, visitor);
    return fmt::format("\n    {{{}}}", fmt::join(visitor.members, ", "));
  }

  RowText& out_;
};

using Read = std::vector<std::string> (*)(const Item& at, RowText& out, Taken& taken);
template <class Row>
Read reader_of(const char* list) {
  if constexpr (Struct<Row>) {
    if (list != nullptr)
      return [](const Item& at, RowText& out, Taken& taken) {
        return Writer(out).list<Row>(at, &taken);
      };
  }
  return nullptr;
}

struct Kind {
  const char* list;  // nullptr: of other rows
  const char* type;
  const char* header;
  Read read;
};
#define HPCLAUNCH_KIND(list, type, header) {list, #type, header, reader_of<type>(list)},
const Kind kKinds[] = {HPCLAUNCH_KINDS(HPCLAUNCH_KIND)};
#undef HPCLAUNCH_KIND

}  // namespace

std::vector<Error> read_rows(const std::string& file, const std::string& content, RowText& out) {
  json_reader::Context context(content, file);
  if (const Item head = context.root(); head && need_schema(head)) {
    for (const Kind& kind : kKinds) {
      if (kind.list == nullptr) continue;
      if (const Item at = head[kind.list]) {
        const std::vector<std::string> rows = kind.read(at, out, out.taken[kind.list]);
        std::vector<std::string>& all = out.rows[kind.list];
        all.insert(all.end(), rows.begin(), rows.end());
      }
    }
    head.finish();
  }
  return context.take();
}

std::string emit_rows(const RowText& out) {
  std::string includes, tables;
  for (const Kind& kind : kKinds) {
    const auto found = kind.list == nullptr ? out.rows.end() : out.rows.find(kind.list);
    if (found == out.rows.end()) continue;
    const std::string line = fmt::format("#include \"{}\"\n", kind.header);
    if (includes.find(line) == std::string::npos) includes += line;
    tables += fmt::format(
        "constexpr {0} k{0}[] = {{{1}}};\ntemplate <>\nstd::span<const {0}> rows<{0}>() {{\n"
        "  return k{0};\n}}\n\n",
        kind.type, fmt::join(found->second, ","));
  }
  return fmt::format(
      "// Written by hpclaunch-catalogue from profiles/; edit those files.\n{}\n"
      "namespace hpclaunch {{\n\n{}\n{}}}  // namespace hpclaunch\n",
      includes, out.text, tables);
}

}  // namespace hpclaunch::catalogue
