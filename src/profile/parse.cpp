// Reads a profile by the list of its fields.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpclaunch/text.h"
#include "profile/reader.h"

namespace hpclaunch {
namespace profile {
namespace {

constexpr std::size_t kMaxText = 1'048'576;

template <class T>
T& there(std::optional<T>& member) {
  return member.emplace();
}
auto& there(auto& member) { return member; }

/// Visits the fields of what `object` describes; a key that is absent leaves the member as it is.
struct Reader {
  const Item& object;
  Cases cases;

  template <class Member, class Kind>
  void operator()(const char* key, Member&& member, const Kind& kind, Need need,
                  const char* /*meaning*/) const {
    const Item at = need == must ? object.need(key) : object[key];
    const bool skipped =
        std::is_same_v<std::remove_cvref_t<Member>, std::vector<Case>> && cases == Cases::skip;
    if (at && !skipped) get(at, there(member), kind);
  }
  void operator()(const char* /*key*/, Origin& origin, Inline kind, Need why,
                  const char* /*meaning*/) const {
    origin.profile = object.context().subject;
    origin.where = object.where();
    fields(origin, *this, why, kind.reasons);
    check(object, origin);
  }
  void operator()(const char* /*key*/, PlaceText& place, Inline /*kind*/, Need /*need*/,
                  const char* /*meaning*/) const {
    fields(place, *this);
  }
  void operator()(const char* /*key*/, NodeShape& shape, Inline /*kind*/, Need /*need*/,
                  const char* /*meaning*/) const {
    const std::size_t problems_before = object.context().count();
    const bool whole = !object["topology"];
    fields(shape,
           [&](const char* key, auto& member, const auto& kind, Need need, const char* text) {
             if (whole) return (*this)(key, member, kind, need, text);
             object.refuse(key, "\"topology\" describes the node", "remove one of the two");
           });
    if (whole) check(object, shape, problems_before);
  }

  // ---- one value -----------------------------------------------------------------------------------

  void get(const Item& at, std::string& text, const Form& form) const {
    text = form.good != nullptr ? at.text_of(form.what, form.good, form.hint) : at.text();
  }
  void get(const Item& at, std::string& text, Variable /*kind*/) const {
    text = at.text();
    if (!text.empty()) text = at.variable(text);
  }
  void get(const Item& at, bool& truth, Flag /*kind*/) const { truth = at.truth(truth); }
  template <class Number>
  void get(const Item& at, Number& number, const Whole& kind) const {
    number = static_cast<Number>(at.whole(kind.min, kind.max) * kind.scale);
  }
  /// Text, truth or an enumeration in the order of the words.
  template <class Member>
  void get(const Item& at, Member& member, const Choice& kind) const {
    const std::string word = at.choice(kind.words);
    const auto index = std::ranges::find(kind.words, word) - kind.words.begin();
    if constexpr (std::is_same_v<Member, std::string>)
      member = word;
    else if (word.empty())
      return;
    else if constexpr (std::is_same_v<Member, bool>)
      member = index == static_cast<std::ptrdiff_t>(kind.yes);
    else
      member = static_cast<Member>(index);
  }
  void get(const Item& at, std::string& text, const Templated& kind) const {
    text = parse_template(at, kind.allowed);
    const std::vector<std::string_view> parts = split(text, '/');
    const bool rooted = text.starts_with("/") || text.starts_with("${");
    if (kind.path && !text.empty() && (!rooted || std::ranges::count(parts, "..") > 0))
      at.fault(fmt::format("{} is not an absolute path", shown(text)),
               "start it with '/' or ${fact}, and leave \"..\" out");
  }
  void get(const Item& at, When& when, const Condition& kind) const {
    const std::size_t problems_before = at.context().count();
    when = parse_when(at, kind.allowed);
    // Templates are not at fault where the condition that allows them is.
    if (at.context().count() != problems_before) when.push_back({"value.", Test::Op::is_set, {}});
  }
  void get(const Item& at, CpuSet& cores, Cores /*kind*/) const { cores = at.cores(); }
  void get(const Item& at, std::tuple<int&, int&> ends, Width /*kind*/) const {
    const std::string text = at.text();
    const Result<CpuSet> range = CpuSet::parse(text);
    if (range && text.find(',') == std::string::npos)
      ends = std::make_tuple(range->first(), range->last());
    else if (!text.empty())
      at.fault(fmt::format("{} is not a core range", shown(text)), "write it like \"0-3\"");
  }
  template <class Number>
  void get(const Item& at, std::tuple<Number&, Number&> ends, const Range& kind) const {
    const std::vector<Item> items = at.items();
    if (at->kind != Json::Kind::array || items.size() != 2)
      return at.fault("a range has two ends", "write [1, 64], or [1, null] without an upper limit");
    const std::size_t problems_before = at.context().count();
    const int low = items[0].whole(0, kind.most);
    const int high = items[1]->kind == Json::Kind::null ? 0 : items[1].whole(1, kind.most);
    if (high != 0 && high < low && at.context().count() == problems_before)
      at.fault(fmt::format("{} is above {}", low, high), "write the smaller one first");
    ends = std::make_tuple(low * kind.scale, high * kind.scale);
  }
  void get(const Item& at, Topology& node, Tree /*kind*/) const { node = topology_of(at); }
  void get(const Item& at, auto& /*member*/, Ignored /*kind*/) const { (void)at.text(); }
  void get(const Item& /*at*/, auto& /*member*/, Version /*kind*/) const {
    json_reader::need_schema(object);
  }

  // ---- lists and objects -------------------------------------------------------------------------------

  template <class T, class Kind>
  void get(const Item& at, std::vector<T>& list, const List<Kind>& kind) const {
    if (kind.none && at->kind == Json::Kind::array && at->items.empty()) return;
    for (const Item& item : at.elements(kind.what)) {
      T value{};
      get(item, value, kind.of);
      if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, int>)
        if (kind.once && std::ranges::count(list, value) > 0)
          item.fault(fmt::format("{} appears twice", shown(item->text)), "name each once");
      list.push_back(std::move(value));
    }
  }
  template <class T, class Kind>
  void get(const Item& at, std::vector<T>& list, const OneOrList<Kind>& kind) const {
    if (at->kind != Json::Kind::array) return get(at, list.emplace_back(), kind.of);
    get(at, list, List<Kind>{kind.of, "numbers"});
  }
  template <class T>
  void get(const Item& at, std::vector<T>& list, const Entries& kind) const {
    for (const Item& item : kind.name.empty() ? at.elements("objects") : at.entries(kind.name))
      get(item, list.emplace_back(), Object{});
  }
  void get(const Item& at, auto&& member, Object /*kind*/) const {
    fields(member, Reader{at, cases});
    if constexpr (requires { check(at, member); }) check(at, member);
  }
  void get(const Item& at, NodeModel& node, Object /*kind*/) const {
    const std::size_t problems_before = at.context().count();
    NodeText text;
    fields(text, Reader{at, cases});
    node = build_node(at, std::move(text), problems_before);
  }
  void get(const Item& at, Report& report, const ReportOf& kind) const {
    fields(report, kind.allowed, Reader{at, cases});
  }
  void get(const Item& at, std::vector<std::string>& way, Bridges /*kind*/) const {
    for (const Item& item : at.elements("strings"))
      way.push_back(item.text_of(
          way.empty() ? "a PCI root" : "a PCI bridge", way.empty() ? is_pci_root : is_pci_address,
          R"(write a root like "0000:c0", then bridges like "0000:c0:01.1")"));
  }
  void get(const Item& at, std::vector<std::vector<int>>& lists, Bases /*kind*/) const {
    const List<Whole> kind{{}, "bases"};
    const std::vector<Item> items = at.items();
    if (at->kind != Json::Kind::array ||
        std::ranges::none_of(items, [](const Item& one) { return one->kind == Json::Kind::array; }))
      return get(at, lists.emplace_back(), kind);
    for (const Item& item : items) {
      get(item, lists.emplace_back(), kind);
      if (!lists.back().empty() && !lists.front().empty() &&
          lists.back().size() != lists.front().size())
        item.fault(fmt::format("{} here, and {} in the first list",
                               counted(lists.back().size(), "base"), lists.front().size()),
                   "every group has as many ranks: make the lists equally long");
    }
  }

  // ---- objects with free keys ------------------------------------------------------------------------------

  void get(const Item& at, std::tuple<std::string&, TextMap&> reasons, const Reasons& kind) const {
    if (at->kind != Json::Kind::object) return get(at, std::get<0>(reasons), kind.of);
    for (const Item& one : at.members("sentences")) {
      std::string& text = std::get<1>(reasons)[one->key];
      get(one, text, kind.of);
      if (text.ends_with('.')) one.fault("the sentence ends with a full stop", "remove it");
    }
  }
  void get(const Item& at, std::map<std::string, std::string>& texts, Variables /*kind*/) const {
    for (const Item& value : at.members("variables")) {
      const bool empty = value->kind == Json::Kind::string && value->text.empty();
      texts[value.variable(value->key)] = empty ? "" : value.text();
    }
  }
  void get(const Item& at, std::map<std::string, std::string>& texts, Named /*kind*/) const {
    if (at->kind == Json::Kind::object)
      for (const Item& one : at.members("texts"))
        texts[one->key] = one->kind == Json::Kind::string ? one->text : one.text();
    else
      for (std::string& name : at.texts()) texts[std::move(name)] = "";
  }
  void get(const Item& at, std::vector<Binding::Role>& roles, Roles /*kind*/) const {
    for (const Item& item : at.members("roles")) {
      Binding::Role& role = roles.emplace_back();
      role.name = item->key;
      if (!is_word(role.name))
        item.fault(fmt::format("{} is not {}", shown(role.name), kWord.what), kWord.hint);
      get(item, role, Object{});
    }
  }
  /// A template, or a list built from one.
  void get(const Item& at, Template& value, const Values& kind) const {
    if (at->kind == Json::Kind::string && at->text.empty()) return;  // an empty value
    if (at->kind != Json::Kind::object) {
      value.text = parse_template(at, {.rank = true, .late = kind.late});
      return;
    }
    const bool rank = at.need("each").choice(kEach) != "unit";
    const Item join = at["join"];
    value = {parse_template(at.need("item"), {.rank = rank, .unit = true, .late = kind.late}),
             rank ? Template::Each::rank : Template::Each::unit, join ? join.text() : ","};
  }
  void get(const Item& at, std::vector<Assignment>& values, const Values& kind) const {
    for (const Item& value : at.members("variables")) {
      Assignment& one = values.emplace_back();
      one.name = value.variable(value->key);
      get(value, one.value, kind);
    }
  }
  void get(const Item& at, std::map<std::string, std::vector<std::string>>& lists,
           const Words& kind) const {
    for (const Item& list : at.members("lists")) {
      if (std::ranges::find(kind.known, list->key) == kind.known.end())
        list.fault(fmt::format("\"{}\" takes no {}", at->key, shown(list->key)),
                   suggestion_or_all(list->key, kind.known));
      get(list, lists[list->key], List<Templated>{{kind.allowed}, "flags"});
    }
  }
};

}  // namespace
}  // namespace profile

ParsedProfile parse_profile(std::string_view text, const std::string& file, Cases cases) {
  ParsedProfile parsed;
  Profile& profile = parsed.profile;
  profile.where = SourceRef{file, 0, 0, ""};
  if (text.size() > profile::kMaxText) {
    parsed.problems.push_back(
        {ErrorKind::invalid,
         fmt::format("the file has {} bytes, the limit is {}", text.size(), profile::kMaxText),
         "split the profile and use \"extends\"", SourceRef{file, 1, 1, ""}});
    return parsed;
  }
  profile::Context context(text, file);
  if (const profile::Item root = context.root()) {
    profile.where = root.where();
    if (const profile::Item name = root["name"]; name->kind == profile::Json::Kind::string)
      context.subject = name->text;
    profile::fields(profile, profile::Reader{root, cases});
    profile::check(root, profile);
    root.finish();
  }
  parsed.problems = context.take();
  return parsed;
}

}  // namespace hpclaunch
