#include "hpclaunch/grammar.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

constexpr std::string_view kDigits = "0123456789";

bool is_long(std::string_view name) { return name.starts_with("--"); }

// A name as the grammar has it.
std::string known_name(Syntax syntax, std::string_view typed) {
  if (syntax == Syntax::words) return std::string(typed.substr(is_long(typed) ? 2 : 1));
  return syntax == Syntax::argparse ? replaced(typed, {{'_', "-"}}) : std::string(typed);
}

// argparse takes "-1" and "-x y" for values.
bool is_value(Syntax syntax, std::string_view word) {
  if (word.size() < 2 || word.front() != '-') return true;
  if (syntax != Syntax::argparse) return false;
  return word.find_first_not_of("0123456789.", 1) == word.npos || word.find(' ') != word.npos;
}

template <class Use>  // of each option, and whether it may be abbreviated
void each_option(const Grammars& grammars, Use use) {
  for (const Grammar* part : grammars) {
    for (const Option& one : part->options) use(one, part->abbreviates);
    const std::pair<Grammar::Names, Takes> others[] = {{part->flags, Takes::nothing},
                                                       {part->joined, Takes::joined},
                                                       {part->values, Takes::value},
                                                       {part->pairs, Takes::pair}};
    for (const auto& [list, takes] : others)
      for (const auto& names : list) use(Option{names, takes}, part->abbreviates);
  }
}

Syntax syntax_of(const Grammars& grammars) {
  return grammars.empty() ? Syntax::words : grammars.front()->syntax;
}

class Reader {
 public:
  Reader(const Grammars& grammars, std::span<const std::string> words, std::size_t from)
      : grammars_(grammars), words_(words), syntax_(syntax_of(grammars)) {
    line_.rest = from;
  }

  OptionLine read(Strays strays) {
    std::size_t& at = line_.rest;
    for (; at < words_.size() && !ended_; at = end_) {
      const std::string& word = words_[at];
      end_ = at + 1;
      if (word == "--") {
        line_.dashes = true;
        ++at;
        break;
      }
      if (word.size() > 1 && word.front() == '-') {
        if (is_long(word) || syntax_ == Syntax::words)
          whole(word);
        else
          letters(word);
      } else if (strays == Strays::skip) {
        line_.strays.push_back(at);
      } else {
        break;
      }
    }
    return std::move(line_);
  }

 private:
  // "--ntasks", "--ntasks=4", "-np"; "-n4" of a program that takes words, where no word is meant.
  void whole(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const bool glued =
        !is_long(word) && word.size() > 2 && kDigits.find(word[2]) != kDigits.npos && !find(name);
    if (glued) return add(word.substr(0, 2), 2);
    add(name, equals < word.size() ? equals + 1 : std::string::npos);
  }

  // "-n", "-n4", "-lN1": the letters up to the one that takes a value.
  void letters(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const std::string name = {'-', word[i]};
      const std::optional<Option> option = find(name, std::string_view(word).substr(i + 1));
      if (i + 1 == word.size()) return add(name, std::string::npos);
      if (!option || option->takes != Takes::nothing)
        return add(name, i + 1 + (word[i + 1] == '=' ? 1 : 0));
      add(name, std::string::npos);
    }
  }

  std::optional<Option> find(std::string_view name, std::string_view value = {}) const {
    const std::vector<Option> named = options_named(grammars_, name, value);
    return named.size() == 1 ? std::optional(named.front()) : std::nullopt;
  }

  // `at`: where a value begins in the word itself; npos: nowhere.
  void add(std::string name, std::size_t at) {
    const std::size_t first = line_.rest;
    const bool joined = at != std::string::npos;
    const std::string* next = end_ < words_.size() ? &words_[end_] : nullptr;
    GivenOption given{.name = std::move(name), .value = {}, .has_value = joined, .first = first};
    given.value_word = joined ? first : end_;
    given.value_at = joined ? at : 0;
    if (joined) given.value = words_[first].substr(at);
    const auto option = find(given.name, joined ? given.value : next != nullptr ? *next : "");
    given.known = option.has_value();
    given.option = option.value_or(Option());
    if (!given.known && !grammars_.empty()) given.option.takes = grammars_.front()->unknown;
    const Takes takes = given.option.takes;
    const bool any = given.known && syntax_ != Syntax::argparse;
    const bool follows = takes == Takes::value || takes == Takes::pair;
    if (!joined && follows && next != nullptr && (any || is_value(syntax_, *next))) {
      given.has_value = true;
      given.value = *next;
      ++end_;
      if (takes == Takes::pair && next->find('=') == next->npos && end_ < words_.size())
        given.value += "=" + words_[end_++];
    }
    given.end = end_;
    ended_ = follows && (given.is(Decides::module) || given.is(Decides::text));
    line_.options.push_back(std::move(given));
  }

  const Grammars& grammars_;
  std::span<const std::string> words_;
  Syntax syntax_;
  OptionLine line_;
  std::size_t end_ = 0;  // of the option at line_.rest
  bool ended_ = false;
};

}  // namespace

bool has_key(std::string_view value, std::string_view key) {
  return value.starts_with(key) && (value.size() == key.size() || value[key.size()] == '=');
}

bool has_name(const Grammars& grammars, const GivenOption& given, std::string_view name) {
  return given.known ? std::ranges::count(given.option.names, name) > 0
                     : known_name(syntax_of(grammars), given.name) == name;
}

std::vector<Option> options_named(const Grammars& grammars, std::string_view name,
                                  std::string_view value) {
  const std::string known = known_name(syntax_of(grammars), name);
  std::vector<Option> named, meant;
  each_option(grammars, [&](const Option& one, bool abbreviates) {
    if (!named.empty() || (!one.key.empty() && !has_key(value, one.key))) return;
    const auto is = [&](std::string_view other) { return other == known; };
    const auto begins = [&](std::string_view other) {
      return is_long(other) && known.size() > 2 && other.starts_with(known);
    };
    if (std::ranges::any_of(one.names, is))
      named.push_back(one);
    else if (abbreviates && std::ranges::any_of(one.names, begins) &&
             std::ranges::none_of(meant, [&](auto& other) { return other.name() == one.name(); }))
      meant.push_back(one);
  });
  return named.empty() ? meant : named;
}

std::vector<Option> options_of(const Grammars& grammars) {
  std::vector<Option> all;
  each_option(grammars, [&](const Option& one, bool) { all.push_back(one); });
  return all;
}

OptionLine read_options(const Grammars& grammars, std::span<const std::string> words,
                        std::size_t from, Strays strays) {
  return Reader(grammars, words, from).read(strays);
}

}  // namespace hpclaunch
