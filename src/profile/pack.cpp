// A profile as bytes: what a start reads of the profiles that are compiled in, without their golden cases.
#include <algorithm>
#include <deque>
#include <functional>

#include "profile/fields.h"

namespace hpclaunch {
namespace profile {
namespace {

/// Writes a profile behind `bytes`, or reads it from there; what it reads, it has written. Numbers have seven bits in
/// each byte, and a text that comes again is a number.
class Packer {
 public:
  explicit Packer(std::string& out) : out_(&out) {}
  explicit Packer(std::string_view in) : in_(in) {}

  template <class Member, class Kind>
  void operator()(const char* /*key*/, Member&& member, const Kind& /*kind*/, Need /*need*/,
                  const char* /*meaning*/) {
    pass(member);
  }

  void pass(Profile& profile) {
    fields(profile, std::ref(*this));
    pass(profile.where);
    pass(profile.places);
  }

 private:
  bool reads() const { return out_ == nullptr; }

  void pass(std::uint64_t& number) {
    constexpr unsigned kBits = 7;
    constexpr std::uint64_t kMore = 1U << kBits;
    if (!reads()) {
      for (std::uint64_t rest = number;; rest >>= kBits) {
        out_->push_back(static_cast<char>(rest < kMore ? rest : rest % kMore + kMore));
        if (rest < kMore) return;
      }
    }
    number = 0;
    for (unsigned shift = 0;; shift += kBits) {
      const auto byte = static_cast<unsigned char>(in_.front());
      in_.remove_prefix(1);
      number |= (byte % kMore) << shift;
      if (byte < kMore) return;
    }
  }
  template <class Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void pass(Number& number) {
    auto value = static_cast<std::uint64_t>(static_cast<long>(number) + 1);  // -1: not known
    pass(value);
    number = static_cast<Number>(static_cast<long>(value) - 1);
  }
  void pass(std::string& text) {
    const auto known = std::ranges::find(texts_, std::string_view(text));
    auto number = static_cast<std::uint64_t>(known - texts_.begin());
    if (!reads()) {
      const bool fresh = known == texts_.end();
      pass(number);
      if (!fresh) return;
      number = text.size();
      pass(number);
      out_->append(text);
      texts_.emplace_back(kept_.emplace_back(text));
      return;
    }
    pass(number);
    if (number == texts_.size()) {
      std::uint64_t size = 0;
      pass(size);
      texts_.push_back(in_.substr(0, size));
      in_.remove_prefix(size);
    }
    text = texts_[number];
  }
  template <class T>
  void pass(std::vector<T>& list) {
    std::uint64_t size = list.size();
    pass(size);
    if (reads()) list.resize(size);
    for (T& one : list) pass(one);
  }
  void pass(std::vector<Case>& /*cases*/) {}
  template <class T, class Less>
  void pass(std::map<std::string, T, Less>& map) {
    std::vector<std::pair<std::string, T>> entries(map.begin(), map.end());
    pass(entries);
    if (reads()) map.insert(entries.begin(), entries.end());
  }
  template <class T>
  void pass(std::optional<T>& member) {
    bool there = member.has_value();
    pass(there);
    if (there) pass(reads() ? member.emplace() : *member);
  }
  template <class... Members>
  void pass(std::tuple<Members...>& members) {
    std::apply([&](auto&... each) { (pass(each), ...); }, members);
  }
  void pass(const decltype(std::ignore)& /*member*/) {}

  void all(auto&... members) { (pass(members), ...); }
  template <class A, class B>
  void pass(std::pair<A, B>& both) {
    all(both.first, both.second);
  }
  void pass(SourceRef& where) { all(where.file, where.line, where.column, where.pointer); }
  void pass(Origin& origin) {
    all(origin.profile, origin.where);
    fields(origin, std::ref(*this), may, true);
  }
  void pass(CpuSet& pus) {
    std::vector<std::uint64_t> words(pus.words().begin(), pus.words().end());
    pass(words);
    pus = CpuSet::of_words(words);
  }
  void pass(Topology& node) {
    std::string bytes = reads() ? "" : pack_topology(node);
    pass(bytes);
    if (reads()) node = *unpack_topology(bytes);
  }
  void pass(Test& test) { all(test.fact, test.op, test.values); }
  void pass(Template& value) { all(value.text, value.each, value.join); }
  void pass(Assignment& one) { all(one.name, one.value); }
  void pass(Report& report) { all(report.severity, report.message, report.fix); }
  void pass(ServiceCores& service) { all(service.name, service.pus, service.why, service.when); }
  void pass(NodeModel& node) {
    all(node.name, node.doc, node.count, node.topology, node.reserved, node.reserved_why,
        node.services, node.live, node.share, node.when, node.origin);
  }
  void pass(Binding::Role& role) {
    pass(role.name);
    fields(role, std::ref(*this));
  }
  void pass(auto&& part) { fields(part, std::ref(*this)); }

  std::string* out_ = nullptr;
  std::string_view in_;
  std::vector<std::string_view> texts_ = {""};
  std::deque<std::string> kept_;  ///< what `texts_` views while writing
};

}  // namespace
}  // namespace profile

std::string pack_profile(const Profile& profile) {
  std::string bytes;
  Profile copy = profile;  // one list of fields for both directions
  profile::Packer(bytes).pass(copy);
  return bytes;
}

Profile unpack_profile(std::string_view bytes) {
  Profile profile;
  profile::Packer(bytes).pass(profile);
  return profile;
}

}  // namespace hpclaunch
