#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/parser.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {
namespace {

using Numbers = std::pair<std::optional<int>, std::optional<int>>;  // least, most

std::optional<Numbers> numbers_of(std::string_view text, int high) {
  const std::vector<std::string_view> ends = split(text, ':');
  const auto number = [&](std::string_view word) -> std::optional<int> {
    const std::optional<long> value = parse_natural(word, high);
    const bool good = value && *value > 0 && word.front() != '0';
    return good ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  const std::optional<int> least = number(ends.front());
  const std::optional<int> most = number(ends.back());
  if (!least || !most || ends.size() > 2 || *least > *most) return std::nullopt;
  return ends.size() == 1 ? Numbers{std::nullopt, most} : Numbers{least, most};
}

}  // namespace

void Parser::range(const std::string& spec, std::optional<int>& least, std::optional<int>& most,
                   const std::string& value_name, int high, const std::string& help) {
  const std::string name = spec.substr(spec.find("--"));
  describe(spec, value_name, help, [spec, name, &least, &most, high](CLI::App& app) {
    const auto store = [&least, &most, high](const std::string& text) {
      const std::optional<Numbers> found = numbers_of(text, high);
      if (found) std::tie(least, most) = *found;
    };
    const auto check = [name, high](const std::string& text) {
      return numbers_of(text, high)
                 ? std::string()
                 : fmt::format("{} must be an integer from 1 to {}, or two as in 2:4, not \"{}\"",
                               name, high, text);
    };
    return app.add_option_function<std::string>(spec, store)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->check(CLI::Validator(check, ""));
  });
}

void Parser::number_or(const std::string& spec, const std::string& word, int meaning,
                       std::optional<int>& value, const std::string& value_name, int high,
                       const std::string& help) {
  describe(spec, value_name, help, [spec, word, meaning, &value, high](CLI::App& app) {
    const auto read = [word, meaning, high](const std::string& text) -> std::optional<int> {
      if (text == word) return meaning;
      const std::optional<Numbers> number = numbers_of(text, high);
      return number && !number->first ? number->second : std::nullopt;
    };
    const auto check = [spec, word, read, high](const std::string& text) {
      return read(text) ? std::string()
                        : fmt::format("{} must be {} or an integer from 1 to {}, not \"{}\"", spec,
                                      word, high, text);
    };
    return app
        .add_option_function<std::string>(
            spec, [&value, read](const std::string& text) { value = read(text); })
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->check(CLI::Validator(check, ""));
  });
}

}  // namespace hpclaunch::cli
