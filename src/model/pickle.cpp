#include "model/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <map>

namespace hpclaunch::stacks {

namespace {

constexpr std::size_t kMostValues = 4'000'000;
constexpr std::size_t kMostMarks = 64;  // containers that are open at a time

}  // namespace

class PickleReader {
 public:
  explicit PickleReader(std::string_view bytes) : bytes_(bytes) {}

  Result<Pickle> read() {
    while (problem_.empty() && !done_) {
      if (at_ >= bytes_.size())
        problem_ = "it is cut";
      else
        step(static_cast<unsigned char>(bytes_[at_++]));
      if (made_.values_.size() > kMostValues) problem_ = "it has too many values";
    }
    if (!problem_.empty())
      return Error{ErrorKind::invalid, fmt::format("pickle: {} (at byte {})", problem_, at_)};
    return std::move(made_);
  }

 private:
  using Kind = PickleValue::Kind;

  std::uint64_t number(unsigned size) {
    std::uint64_t value = 0;
    if (bytes_.size() - at_ < size) return problem_ = "it is cut", 0;
    for (unsigned i = 0; i < size; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
    at_ += size;
    return value;
  }

  PickleValue& push(Kind kind) {
    stack_.push_back(static_cast<int>(made_.values_.size()));
    return made_.values_.emplace_back(PickleValue{kind, 0, 0, {}, {}});
  }

  void whole(std::uint64_t bits, unsigned size) {
    const unsigned unused = 64 - 8 * size;
    push(Kind::whole).whole = size == 0 ? 0
                                        : static_cast<std::int64_t>(bits << unused) >>
                                              unused;  // its sign is the first bit
  }

  void text(std::uint64_t size) {
    if (size > bytes_.size() - at_) {
      problem_ = "it is cut";
      return;
    }
    push(Kind::text).text = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
  }

  // The topmost values from there on. False: there are fewer.
  bool take(std::size_t from, std::vector<int>& items) {
    if (from > stack_.size()) return problem_ = "a value is missing", false;
    items.insert(items.end(), stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
    stack_.resize(from);
    return true;
  }
  std::size_t mark() {
    if (marks_.empty()) return problem_ = "a mark is missing", stack_.size();
    const std::size_t from = marks_.back();
    marks_.pop_back();
    return from;
  }
  std::size_t last(std::size_t count) {
    return stack_.size() < count ? stack_.size() + 1 : stack_.size() - count;
  }

  void tuple(std::size_t from) {
    std::vector<int> items;
    if (!problem_.empty() || !take(from, items)) return;
    push(Kind::list).items = std::move(items);
  }

  void append(std::size_t from, Kind kind) {
    std::vector<int> items;
    if (!problem_.empty() || !take(from, items)) return;
    PickleValue* into =
        stack_.empty() ? nullptr : &made_.values_[static_cast<std::size_t>(stack_.back())];
    if (into == nullptr || into->kind != kind || (kind == Kind::dict && items.size() % 2 != 0)) {
      problem_ = "a list or dict is missing";
      return;
    }
    into->items.insert(into->items.end(), items.begin(), items.end());
    items_ += items.size();
    if (items_ > kMostValues) problem_ = "it has too many values";
  }

  void remember(std::uint64_t name) {
    if (stack_.empty())
      problem_ = "a value is missing";
    else
      memo_[name] = stack_.back();
  }
  void recall(std::uint64_t name) {
    const auto known = memo_.find(name);
    if (known == memo_.end())
      problem_ = "a value is used before it is there";
    else if (stack_.size() < kMostValues)
      stack_.push_back(known->second);
    else
      problem_ = "it has too many values";
  }

  // Names as in CPython's Lib/pickletools.py.
  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const std::uint64_t version = number(1); version < 2 || version > 5)
          problem_ = fmt::format("protocol {} is not one of 2 to 5", version);
        return;
      case 0x95:  // FRAME
        number(8);
        return;
      case '.':  // STOP
        done_ = true;
        if (stack_.size() != 1 || !marks_.empty())
          problem_ = "it is not one value";
        else
          made_.root_ = stack_.back();
        return;
      case 'N':
        push(Kind::none);
        return;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        push(Kind::truth).whole = opcode == 0x88 ? 1 : 0;
        return;
      case 'J':  // BININT
        return whole(number(4), 4);
      case 'K':  // BININT1
        push(Kind::whole).whole = static_cast<long>(number(1));
        return;
      case 'M':  // BININT2
        push(Kind::whole).whole = static_cast<long>(number(2));
        return;
      case 0x8a: {  // LONG1
        const auto size = static_cast<unsigned>(number(1));
        if (size > 8)
          problem_ = "an integer has more than 64 bits";
        else
          whole(number(size), size);
        return;
      }
      case 'G': {  // BINFLOAT, the only number whose first byte is the highest
        std::uint64_t bits = number(8), turned = 0;
        for (int i = 0; i < 8; ++i, bits >>= 8) turned = turned << 8 | (bits & 0xff);
        push(Kind::real).real = std::bit_cast<double>(turned);
        return;
      }
      case 0x8c:  // SHORT_BINUNICODE
      case 'C':   // SHORT_BINBYTES
        return text(number(1));
      case 'X':  // BINUNICODE
      case 'B':  // BINBYTES
        return text(number(4));
      case 0x8d:  // BINUNICODE8
      case 0x8e:  // BINBYTES8
        return text(number(8));
      case '}':
        push(Kind::dict);
        return;
      case ']':
      case ')':
        push(Kind::list);
        return;
      case '(':  // MARK
        if (marks_.size() >= kMostMarks)
          problem_ = "it is too deep";
        else
          marks_.push_back(stack_.size());
        return;
      case 't':
        return tuple(mark());
      case 0x85:  // TUPLE1 to TUPLE3
      case 0x86:
      case 0x87:
        return tuple(last(opcode - 0x84U));
      case 'a':
        return append(last(1), Kind::list);
      case 'e':
        return append(mark(), Kind::list);
      case 's':
        return append(last(2), Kind::dict);
      case 'u':
        return append(mark(), Kind::dict);
      case 'q':  // BINPUT
        return remember(number(1));
      case 'r':  // LONG_BINPUT
        return remember(number(4));
      case 0x94:  // MEMOIZE
        return remember(memo_.size());
      case 'h':  // BINGET
        return recall(number(1));
      case 'j':  // LONG_BINGET
        return recall(number(4));
      default:
        problem_ = fmt::format("opcode {:#04x} is refused: it is no plain data", opcode);
    }
  }

  std::string_view bytes_;
  std::size_t at_ = 0, items_ = 0;
  std::string problem_;
  bool done_ = false;
  Pickle made_;
  std::vector<int> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, int> memo_;
};

Result<Pickle> Pickle::parse(std::string_view bytes) { return PickleReader(bytes).read(); }

namespace {

const PickleValue kNone;

}  // namespace

const PickleValue& Pickle::at(const PickleValue& dict, std::string_view key) const {
  if (dict.kind != PickleValue::Kind::dict) return kNone;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2)
    if (values_[static_cast<std::size_t>(dict.items[i])].text == key)
      return values_[static_cast<std::size_t>(dict.items[i + 1])];
  return kNone;
}

const PickleValue& Pickle::at(const PickleValue& list, std::size_t index) const {
  if (list.kind != PickleValue::Kind::list || index >= list.items.size()) return kNone;
  return values_[static_cast<std::size_t>(list.items[index])];
}

std::vector<std::pair<std::string_view, const PickleValue*>> Pickle::members(
    const PickleValue& dict) const {
  std::vector<std::pair<std::string_view, const PickleValue*>> found;
  if (dict.kind != PickleValue::Kind::dict) return found;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2)
    found.emplace_back(values_[static_cast<std::size_t>(dict.items[i])].text,
                       &values_[static_cast<std::size_t>(dict.items[i + 1])]);
  return found;
}

}  // namespace hpclaunch::stacks
