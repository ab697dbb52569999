#include "lint/values.h"

#include <algorithm>

#include "hpclaunch/text.h"
#include "lint/words.h"

namespace hpclaunch::lint {

namespace {

Value known(std::string text) { return {Value::Kind::known, std::move(text)}; }

int precedence(char c) {
  return c == '+' || c == '-' ? 1 : c == '*' || c == '/' || c == '%' ? 2 : 0;
}

// False: no number comes of it.
bool apply(std::vector<long>& numbers, char sign) {
  if (numbers.size() < 2) return false;
  const long b = numbers.back();
  numbers.pop_back();
  long& a = numbers.back();
  constexpr long kMost = 1L << 31;
  if ((sign == '/' || sign == '%') && b == 0) return false;
  if (sign == '+') a += b;
  if (sign == '-') a -= b;
  if (sign == '*') a *= b;
  if (sign == '/') a /= b;
  if (sign == '%') a %= b;
  return a < kMost && a > -kMost;
}

}  // namespace

const Variable* Values::find(std::string_view name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

// What was set in a branch is known in that branch only.
bool Values::sure(const Variable& variable) const {
  if (!variable.conditional) return true;
  std::size_t block = block_;
  for (int up = 0; up < 64 && block != variable.block && block != 0; ++up)
    block = shell_.blocks[block].parent;
  return block == variable.block && block != 0;
}

// Dijkstra's two stacks. Names stand for variables.
std::optional<long> Values::arithmetic(std::string_view text) const {
  std::vector<long> numbers;
  std::string signs;
  bool operand = true;  // one must come
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == ' ' || c == '\t' || c == '"' || c == '$' || c == '{' || c == '}') {
      ++i;
    } else if (is_name_char(c)) {
      std::size_t end = i;
      while (end < text.size() && is_name_char(text[end])) ++end;
      std::string word(text.substr(i, end - i));
      if (is_name_start(c)) {
        const Variable* variable = find(word);
        if (variable == nullptr || !sure(*variable) || !variable->value.known())
          return std::nullopt;
        word = variable->value.text;
      }
      const std::optional<long> number = parse_natural(word);
      if (!number || !operand) return std::nullopt;
      numbers.push_back(*number);
      operand = false;
      i = end;
    } else if (c == '(') {
      signs += c;
      ++i;
    } else if (c == ')') {
      while (!signs.empty() && signs.back() != '(') {
        if (!apply(numbers, signs.back())) return std::nullopt;
        signs.pop_back();
      }
      if (signs.empty()) return std::nullopt;
      signs.pop_back();
      ++i;
    } else {
      if (precedence(c) == 0 || operand) return std::nullopt;
      while (!signs.empty() && precedence(signs.back()) >= precedence(c)) {
        if (!apply(numbers, signs.back())) return std::nullopt;
        signs.pop_back();
      }
      signs += c;
      operand = true;
      ++i;
    }
  }
  for (; !signs.empty(); signs.pop_back())
    if (!apply(numbers, signs.back())) return std::nullopt;
  return numbers.size() == 1 ? std::optional(numbers.front()) : std::nullopt;
}

Value Values::command(const Part& part) const {
  const std::string_view text = trim(part.text);
  const bool hosts = text.find("NODEFILE") != text.npos || text.find("HOSTFILE") != text.npos;
  const bool counts = text.find("wc -l") != text.npos || text.find("wc --lines") != text.npos;
  const bool once = text.find("uniq") != text.npos || text.find("sort -u") != text.npos;
  if (hosts && counts && !once) return {Value::Kind::node_lines, std::string(1, kUnknownPart)};
  if (text == "hostname" || text.starts_with("hostname ") || text.starts_with("/bin/hostname") ||
      text == "uname -n")
    return {Value::Kind::hostname, std::string(1, kUnknownPart)};
  return unknown_value();
}

Value Values::parameter(const Part& part) const {
  const std::string_view rest = part.rest;
  const Variable* variable = find(part.text);
  const bool set = variable != nullptr;
  if (in_function && part.text.size() == 1 && rest.empty() && part.text[0] >= '1' &&
      part.text[0] <= '9') {
    const auto index = static_cast<std::size_t>(part.text[0] - '1');
    return index < arguments.size() ? arguments[index].value : known("");
  }
  const bool fallback = rest.starts_with(":-") || rest.starts_with("-") || rest.starts_with(":=") ||
                        rest.starts_with("=");
  if (!set && fallback) {
    const std::string_view other = rest.substr(rest.front() == ':' ? 2 : 1);
    if (other.find_first_of("$`\"'\\") == other.npos) return known(std::string(other));
    return unknown_value();
  }
  if (!set || !sure(*variable)) return unknown_value();
  if (rest == "#" || rest == "!") return unknown_value();
  if (variable->array) {
    if (rest == "[@]" || rest == "[*]") {
      Value all = known("");
      for (const Value& item : variable->items) {
        all.text += (all.text.empty() ? "" : " ") + item.text;
        if (!item.known()) all.kind = Value::Kind::unknown;
      }
      return all;
    }
    const std::string_view index = rest.size() > 2 ? rest.substr(1, rest.size() - 2) : "0";
    const std::optional<long> number = parse_natural(index);
    if (number && static_cast<std::size_t>(*number) < variable->items.size())
      return variable->items[static_cast<std::size_t>(*number)];
    return unknown_value();
  }
  return rest.empty() || fallback ? variable->value : unknown_value();
}

Value Values::value(const Word& word) const {
  Value all = known("");
  for (const Part& part : word.parts) {
    Value one = known("");
    if (part.kind == Part::Kind::text)
      one.text = part.text;
    else if (part.kind == Part::Kind::parameter)
      one = parameter(part);
    else if (part.kind == Part::Kind::command)
      one = command(part);
    else if (part.kind == Part::Kind::bad)
      one = unknown_value();
    else if (const std::optional<long> number = arithmetic(part.text))
      one.text = std::to_string(*number);
    else
      one = unknown_value();
    const bool alone = all.text.empty() && all.known();
    all.text += one.text;
    if (!one.known())
      all.kind = alone ? one.kind : Value::Kind::unknown;
    else if (!all.known() && !one.text.empty())
      all.kind = Value::Kind::unknown;
    if (all.text.size() > 65536) return unknown_value();
  }
  return all;
}

void Values::expand(const Word& word, std::vector<Text>& words) const {
  constexpr std::size_t kMost = 4096;  // words of one command
  if (words.size() > kMost) return;
  if (word.parts.size() == 1 && word.parts.back().kind == Part::Kind::parameter) {
    const Part& part = word.parts.back();
    if (in_function && (part.text == "@" || part.text == "*")) {
      for (const Text& one : arguments) words.push_back({one.value, word.span, false});
      return;
    }
    const Variable* variable = find(part.text);
    const bool known_array = variable != nullptr && variable->array && sure(*variable);
    if (known_array && (part.rest == "[@]" || part.rest == "[*]")) {
      for (const Value& one : variable->items) {
        if (words.size() > kMost) return;
        words.push_back({one, word.span, false});
      }
      return;
    }
    const Value one = parameter(part);
    if (!part.quoted && one.text.find_first_of(" \t\n") != std::string::npos) {
      for (const Word& piece :
           words_in(one.text, {0, static_cast<std::uint32_t>(one.text.size())})) {
        Value value = known(one.text.substr(piece.span.begin, piece.span.end - piece.span.begin));
        if (value.text.find(kUnknownPart) != std::string::npos) value.kind = Value::Kind::unknown;
        words.push_back({std::move(value), word.span, false});
        if (words.size() > kMost) return;
      }
      return;
    }
    if (!part.quoted && one.known() && one.text.empty()) return;
    words.push_back({one, word.span, false});
    return;
  }
  bool direct = true;
  for (const Part& part : word.parts) direct = direct && part.kind == Part::Kind::text;
  words.push_back({value(word), word.span, direct});
}

}  // namespace hpclaunch::lint
