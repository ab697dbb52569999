// Launches in a command's words, by the grammar of profiles/programs/launchers.json.
#include "lint/launches.h"

#include <algorithm>

#include "hpclaunch/launcher.h"
#include "hpclaunch/programs.h"
#include "hpclaunch/text.h"
#include "lint/values.h"

namespace hpclaunch::lint {

namespace {

std::string base_name(const std::string& word) {
  std::string name = word.substr(word.rfind('/') + 1);
  if (is_python(name)) name = name.substr(0, name.find_last_not_of("0123456789.-") + 1);
  return name;
}

class Finder {
 public:
  Finder(const std::vector<Text>& words, std::string_view text, std::size_t first)
      : words_(words), text_(text), first_(first) {
    for (const Text& word : words) texts_.push_back(word.text());
  }

  std::vector<Launch> find() {
    std::size_t at = 0;
    while (at < words_.size() && found_.size() < 8) {
      const std::string& word = words_[at].text();
      const std::string name = base_name(word);
      const bool assigned = at > 0 && word.find('=') != std::string::npos &&
                            is_identifier(word.substr(0, word.find('=')));
      if (assigned) {
        ++at;
      } else if (const StartingProgram* row = launcher_at(at, name)) {
        at = launch(*row, at, name);
      } else if (const ContainerEngine* engine = engine_of(name)) {
        at = container(at, *engine);
      } else if (const Wrapper* wrapper = find_wrapper(name)) {
        at = behind_wrapper(*wrapper, at);
      } else {
        break;
      }
    }
    return std::move(found_);
  }

 private:
  // Of `python -m MODULE` the module decides.
  const StartingProgram* launcher_at(std::size_t& at, const std::string& name) const {
    for (const StartingProgram& row : rows<StartingProgram>()) {
      if (!has_word(row.programs, name)) continue;
      const Words next = words_of(row.words, name);
      if (next.empty()) return &row;
      if (at + 1 < words_.size() && has_word(next, words_[at + 1].text())) return &row;
    }
    if (!is_python(name)) return nullptr;
    for (std::size_t i = at + 1; i + 1 < words_.size() && words_[i].text().starts_with('-'); ++i) {
      if (words_[i].text() != "-m") continue;
      for (const StartingProgram& row : rows<StartingProgram>())
        if (has_word(row.modules, words_[i + 1].text())) {
          at = i + 1;
          return &row;
        }
      return nullptr;
    }
    return nullptr;
  }

  std::size_t launch(const StartingProgram& row, std::size_t at, const std::string& name) {
    Launch one;
    one.kind = row.name;
    one.program = base_name(words_[at].text());
    one.span = words_[at].span;
    const std::size_t begin = at++;
    if (!words_of(row.words, name).empty()) ++at;
    at = options(one, at, grammars_of(row.name)).rest;
    return add(std::move(one), begin, at);
  }

  // As lint has it: the value as a text with its place.
  Option found(const GivenOption& given) const {
    Option option{.name = given.name, .value = {}, .has_value = given.has_value, .span = {}};
    option.span = words_[given.first].span;
    if (!given.has_value) return option;
    const Text& word = words_[given.value_word];
    const std::size_t skip = given.value_at;
    option.value = word;
    option.value.value.text = given.value;
    if (skip > 0) {
      if (word.direct && word.span.end - word.span.begin == word.text().size())
        option.value.span.begin += static_cast<std::uint32_t>(skip);
      else
        option.value.direct = false;
      if (!word.value.known() && word.text().find(kUnknownPart) < skip)
        option.value.value = unknown_value();
      if (!word.value.known() && given.value.find(kUnknownPart) == std::string::npos)
        option.value.value.kind = Value::Kind::known;
    }
    for (std::size_t i = given.value_word + 1; i < given.end; ++i) {  // -genv NAME VALUE
      if (!words_[i].value.known()) option.value.value.kind = Value::Kind::unknown;
      option.value.span.end = std::max(option.value.span.end, words_[i].span.end);
      option.value.direct = false;
    }
    return option;
  }

  OptionLine options(Launch& one, std::size_t at, const Grammars& grammars) const {
    OptionLine line = read_options(grammars, texts_, at);
    for (const GivenOption& given : line.options) one.options.push_back(found(given));
    return line;
  }

  std::size_t container(std::size_t at, const ContainerEngine& engine) {
    const Wrapper& line = engine.line;
    Launch one;
    one.kind = "container";
    one.engine = &engine;
    one.program = base_name(words_[at].text());
    one.span = words_[at].span;
    const std::size_t begin = at;
    const Grammars grammars = grammars_of(line);
    at = options(one, at + 1, grammars).rest;
    if (!line.words.empty()) {
      if (at >= words_.size() || !has_word(line.words, words_[at].text())) return words_.size();
      at = options(one, at + 1, grammars).rest;
    }
    at += static_cast<std::size_t>(line.skip);  // the image
    if (at < words_.size() && words_[at].text() == "--") ++at;
    return add(std::move(one), begin, std::min(at, words_.size()));
  }

  std::size_t add(Launch one, std::size_t begin, std::size_t inner) {
    one.words.assign(words_.begin() + static_cast<std::ptrdiff_t>(begin), words_.end());
    inner = std::min(inner, words_.size());
    one.inner.assign(words_.begin() + static_cast<std::ptrdiff_t>(inner), words_.end());
    if (!found_.empty()) one.outer = first_ + found_.size() - 1;
    found_.push_back(std::move(one));
    return inner;
  }

  std::size_t behind_wrapper(const Wrapper& row, std::size_t at) {
    const bool second = !row.words.empty();
    if (second && (at + 1 == words_.size() || !has_word(row.words, words_[at + 1].text())))
      return words_.size();
    const OptionLine line = read_options(grammars_of(row), texts_, at + (second ? 2 : 1));
    for (const GivenOption& one : line.options)
      if (one.is(Decides::text)) return shell_text(one.has_value ? one.value_word : words_.size());
    if (row.interprets) return words_.size();  // a script: what it starts is not said here
    return std::min(line.rest + static_cast<std::size_t>(row.skip), words_.size());
  }

  // bash -c 'TEXT': the first launch in it, as if its words stood here.
  std::size_t shell_text(std::size_t at) {
    if (at >= words_.size() || found_.size() > 4) return words_.size();
    Span span = words_[at].span;
    if (span.end - span.begin < 2 || (text_[span.begin] != '\'' && text_[span.begin] != '"'))
      return words_.size();
    ++span.begin;
    --span.end;
    std::vector<Text> line;
    std::vector<Launch> inside;
    const auto look = [&] {
      if (inside.empty() && !line.empty()) inside = Finder(line, "", first_ + found_.size()).find();
      line.clear();
    };
    for (const Word& word : words_in(text_, span)) {
      bool plain = true;
      std::string text = literal(word, &plain);
      const bool ends = text.ends_with(';') || text.ends_with("&&") || text.ends_with("||");
      if (text != "exec")
        line.push_back(
            {plain ? Value{Value::Kind::known, text} : unknown_value(), word.span, plain});
      if (ends) look();
    }
    look();
    for (Launch& one : inside) {
      if (one.outer == Setting::kNone && !found_.empty()) one.outer = first_ + found_.size() - 1;
      found_.push_back(std::move(one));
    }
    return words_.size();
  }

  const std::vector<Text>& words_;
  std::vector<std::string> texts_;
  std::string_view text_;
  std::size_t first_;
  std::vector<Launch> found_;
};

}  // namespace

std::vector<Launch> find_launches(const std::vector<Text>& words, std::string_view text,
                                  std::size_t first) {
  return Finder(words, text, first).find();
}

}  // namespace hpclaunch::lint
