// Checks of values. hpclaunch-catalogue checks defaults with the same code, so nothing here reads the table.
#include <fmt/format.h>

#include <charconv>
#include <span>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"

namespace hpclaunch::knowledge {

namespace {

using Words = std::span<const std::string_view>;

// The word that `value` is; "" when it is none.
std::string_view among(Words words, std::string_view value, bool any_case) {
  for (const std::string_view word : words)
    if (any_case ? to_lower(word) == to_lower(value) : word == value) return word;
  return {};
}

std::string listed(Words items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == items.size() ? " or " : ", ", items[i]);
  return text;
}

std::string nearest_of(TextList words, std::string_view value) {
  const std::vector<std::string_view> all = words.all();
  return nearest(value, std::vector<std::string>(all.begin(), all.end())).value_or("");
}

std::string with_consequence(std::string what, std::string_view consequence) {
  if (!consequence.empty()) what += fmt::format("; {}", consequence);
  return what;
}

// Length of the integer at the start, by the library's rules; `number` gets its value.
std::size_t read_number(std::string_view text, bool c_numbers, long long& number) {
  const bool minus = text.starts_with('-');
  const std::size_t sign = minus || text.starts_with('+') ? 1 : 0;
  std::string_view digits = text.substr(sign);
  int base = 10;
  std::size_t prefix = 0;
  if (c_numbers && digits.size() > 2 && digits[0] == '0' && to_lower(digits[1]) == 'x') {
    base = 16;
    prefix = 2;
  } else if (c_numbers && digits.size() > 1 && digits[0] == '0') {
    base = 8;
  }
  digits.remove_prefix(prefix);
  unsigned long long magnitude = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  const auto used = static_cast<std::size_t>(end - digits.data());
  if (used == 0) return 0;
  constexpr unsigned long long kMost = 9'223'372'036'854'775'807ULL;
  if (error != std::errc() || magnitude > kMost) magnitude = kMost;
  number = minus ? -static_cast<long long>(magnitude) : static_cast<long long>(magnitude);
  return sign + prefix + used;
}

template <class Number>
std::optional<Fault> range_fault(const Variable& v, Number number) {
  const auto limit = [](std::string_view text) {
    long long value = 0;
    read_number(text, false, value);
    return static_cast<Number>(value);
  };
  if (!v.lowest.empty() && number < limit(v.lowest))
    return Fault{fmt::format("is below {}, the minimum of {}", v.lowest, v.name), ""};
  if (!v.highest.empty() && number > limit(v.highest))
    return Fault{fmt::format("is above {}, the maximum of {}", v.highest, v.name), ""};
  return std::nullopt;
}

// "8M" as bytes, for libraries that read digits only; "" for other texts and for too large numbers.
std::string spelt_out(long long number, std::string_view rest) {
  constexpr std::string_view kLetters = "kmgt";
  if (rest.empty() || rest.size() > 2 || (rest.size() == 2 && to_lower(rest[1]) != 'b')) return "";
  const std::size_t power = kLetters.find(to_lower(rest[0]));
  if (power == std::string_view::npos || number <= 0 || number > 1'000'000) return "";
  return std::to_string(number << (10 * (power + 1)));
}

std::optional<Fault> integer_fault(const Variable& v, std::string_view value) {
  if (!among(v.library.number_words.all(), value, true).empty()) return std::nullopt;
  if (!v.values.empty() && !among(v.values.all(), value, true).empty()) return std::nullopt;
  long long number = 0;
  const std::size_t used = read_number(value, v.library.c_numbers, number);
  const std::string_view rest = value.substr(used);
  const bool byte = rest.size() == 2 && to_lower(rest[1]) == 'b';  // "16kB"
  const bool suffix =
      (rest.size() == 1 || byte) && v.library.suffixes.find(rest[0]) != std::string_view::npos;
  if (used == 0) return Fault{with_consequence("is not a number", v.library.bad_number), ""};
  if (!rest.empty() && !suffix)
    return Fault{with_consequence(fmt::format("is not a number (\"{}\" follows it)", shown(rest)),
                                  v.library.bad_number),
                 v.type == Type::size ? spelt_out(number, rest) : ""};
  if (suffix) return std::nullopt;  // limits count in the base unit
  if (std::optional<Fault> fault = range_fault(v, number)) return fault;
  if (v.closed && !v.values.empty())
    return Fault{fmt::format("is not {}", listed(v.values.all())), ""};
  return std::nullopt;
}

std::optional<Fault> boolean_fault(const Variable& v, std::string_view value) {
  const Library& lib = v.library;
  constexpr std::string_view kTrue[] = {"true", "yes", "on", "y", "t", "1", "enable", "enabled"};
  constexpr std::string_view kFalse[] = {"false", "no", "off",     "n",
                                         "f",     "0",  "disable", "disabled"};
  const bool means_true = !among(kTrue, value, true).empty();
  const bool means_false = !among(kFalse, value, true).empty();
  if (lib.truths.empty()) {
    long long number = 0;
    if (read_number(value, lib.c_numbers, number) == value.size()) return std::nullopt;
    return Fault{with_consequence("is not 0 or 1", lib.bad_boolean), means_true    ? "1"
                                                                     : means_false ? "0"
                                                                                   : ""};
  }
  if (!among(lib.truths.all(), value, lib.booleans_any_case).empty()) return std::nullopt;
  if (!among(lib.falsehoods.all(), value, lib.booleans_any_case).empty()) return std::nullopt;
  std::string meant;
  if (means_true) meant = lib.truths.front();
  if (means_false) meant = lib.falsehoods.front();
  return Fault{with_consequence(fmt::format("is neither {} nor {}", listed(lib.truths.all()),
                                            listed(lib.falsehoods.all())),
                                lib.bad_boolean),
               meant};
}

std::optional<Fault> word_fault(const Variable& v, std::string_view value) {
  if (!v.closed || v.values.empty()) return std::nullopt;
  if (!among(v.values.all(), value, v.any_case).empty()) return std::nullopt;
  if (v.numbers && parse_natural(value)) return std::nullopt;
  const std::string_view other_case = among(v.values.all(), value, true);
  return Fault{
      with_consequence(fmt::format("is not {}", listed(v.values.all())), v.library.bad_word),
      other_case.empty() ? nearest_of(v.values, value) : std::string(other_case)};
}

std::optional<Fault> list_fault(const Variable& v, std::string_view value) {
  // NCCL: "^LL128" is all but these, "LL;allreduce:Simple" what holds for one operation.
  const bool words = !v.numbers && !v.values.empty();
  const std::string items = words ? replaced(value, {{';', ","}}) : std::string(value);
  for (const std::string_view raw : split(items, ',')) {
    std::string_view item = trim(raw);
    if (words) item.remove_prefix(item.find(':') + 1);  // npos + 1 is 0
    if (item.starts_with('^')) item.remove_prefix(1);
    std::optional<Fault> fault = v.numbers ? integer_fault(v, item) : word_fault(v, item);
    if (!fault) continue;
    if (item == value) return fault;
    return Fault{fmt::format("has an item \"{}\" that {}", shown(item), fault->what), ""};
  }
  return std::nullopt;
}

std::optional<Fault> algorithm_fault(const Variable& v, std::string_view value) {
  for (const std::string_view part : split(value, ';')) {
    const std::string_view name = trim(split(part, ':').front());
    if (name.empty() || v.values.empty() ||
        !among(v.values.all(), name, v.library.words_any_case).empty())
      continue;
    const bool whole = value.find_first_of(":;") == std::string_view::npos;
    return Fault{fmt::format("names \"{}\", which is not {}", shown(name), listed(v.values.all())),
                 whole ? nearest_of(v.values, name) : ""};
  }
  return std::nullopt;
}

std::optional<Fault> real_fault(const Variable& v, std::string_view value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = error == std::errc() && end == value.data() + value.size();
  if (whole) return range_fault(v, number);
  if (!among(v.library.number_words.all(), value, true).empty()) return std::nullopt;
  return Fault{with_consequence("is not a number", v.library.bad_number), ""};
}

std::optional<Fault> time_fault(const Variable& v, std::string_view value) {
  if (!real_fault(v, value)) return std::nullopt;
  const std::size_t letters = value.find_first_not_of("+-.0123456789");
  if (letters == std::string_view::npos || letters == 0) return real_fault(v, value);
  if (v.library.suffixes.empty()) return integer_fault(v, value);
  constexpr std::string_view kUnits[] = {"s", "ms", "us", "ns", "m"};
  if (!among(kUnits, value.substr(letters), false).empty())
    return real_fault(v, value.substr(0, letters));
  return Fault{fmt::format("has the unit \"{}\", which is not {}", shown(value.substr(letters)),
                           listed(kUnits)),
               ""};
}

std::optional<Fault> cpu_list_fault(std::string_view value) {
  const bool word =
      value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") ==
      std::string_view::npos;
  if (word || value.find_first_not_of("0123456789,-: ") == std::string_view::npos)
    return std::nullopt;
  return Fault{"is not a list of CPU numbers", ""};
}

}  // namespace

std::vector<std::string_view> TextList::all() const {
  std::vector<std::string_view> texts;
  for (std::string_view one = first; !one.empty(); one = one.data() + one.size() + 1)
    texts.push_back(one);
  return texts;
}

std::optional<Fault> find_fault(const Variable& variable, std::string_view value) {
  if (value.empty()) return std::nullopt;
  switch (variable.type) {
    case Type::boolean:
      return boolean_fault(variable, value);
    case Type::integer:
    case Type::size:
      return integer_fault(variable, value);
    case Type::time:
      return time_fault(variable, value);
    case Type::real:
      return real_fault(variable, value);
    case Type::word:
      return word_fault(variable, value);
    case Type::list:
      return list_fault(variable, value);
    case Type::cpu_list:
      return cpu_list_fault(value);
    case Type::algorithm:
      return algorithm_fault(variable, value);
    case Type::text:
    case Type::path:
    case Type::path_list:
    case Type::range:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace hpclaunch::knowledge
