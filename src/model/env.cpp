#include "hpclaunch/env.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

EnvSnapshot::EnvSnapshot(std::vector<std::string> entries) : entries_(std::move(entries)) {
  for (const std::string& entry : entries_) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    values_.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
}

const std::string* EnvSnapshot::find(std::string_view name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? nullptr : &at->second;
}

std::string EnvSnapshot::get(std::string_view name, std::string_view otherwise) const {
  const std::string* value = find(name);
  return value != nullptr ? *value : std::string(otherwise);
}

EnvSnapshot EnvSnapshot::with(
    const std::map<std::string, std::optional<std::string>>& changes) const {
  std::vector<std::string> result;
  std::set<std::string, std::less<>> placed;
  for (const std::string& entry : entries_) {
    const auto change = changes.find(std::string(name_of(entry)));
    if (change == changes.end() || entry.find('=') == std::string::npos) {
      result.push_back(entry);
    } else if (change->second && placed.insert(change->first).second) {
      result.push_back(change->first + "=" + *change->second);
    }
  }
  for (const auto& [name, value] : changes)
    if (value && !placed.contains(name)) result.push_back(name + "=" + *value);
  return EnvSnapshot(std::move(result));
}

// ---- dotenv: as docker, python-dotenv and others read it, without the parts in which those disagree -----------

namespace {

constexpr std::string_view kBlanks = " \t";

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  Result<std::vector<DotenvEntry>> all() {
    for (skip_lines(); at_ < text_.size(); skip_lines())
      if (const Status good = entry(); !good) return good.error();
    return std::move(entries_);
  }

 private:
  bool ends() const { return at_ == text_.size() || text_[at_] == '\n'; }
  bool is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  void skip(std::string_view what) {
    at_ = std::min(text_.find_first_not_of(what, at_), text_.size());
  }
  void skip_comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }
  // To the first line that is not empty and no comment.
  void skip_lines() {
    for (skip(" \t\r\n"); is('#'); skip(" \t\r\n")) skip_comment();
  }

  Error wrong(std::size_t at, std::string message, std::string hint) const {
    SourceRef where{file_, 1, 1};
    for (std::size_t i = 0; i < at; ++i, ++where.column)
      if (text_[i] == '\n') ++where.line, where.column = 0;
    return Error{ErrorKind::invalid, std::move(message), std::move(hint), where};
  }

  Status entry() {
    constexpr std::string_view kExport = "export";
    const std::size_t begin = at_;
    std::size_t end = std::min(text_.find_first_of("=\n", at_), text_.size());
    std::string_view name = trim(text_.substr(begin, end - begin));
    if (name.starts_with(kExport) && name.find_first_of(kBlanks) == kExport.size())
      name = trim(name.substr(kExport.size()));
    if (end == text_.size() || text_[end] != '=')
      return wrong(begin, fmt::format("\"{}\" has no =", shown(name)), "NAME=VALUE");
    if (!is_identifier(name))
      return wrong(begin, fmt::format("invalid variable name \"{}\"", shown(name)),
                   "letters, digits and underscores, as in NAME=VALUE");
    DotenvEntry made{std::string(name), "", wrong(begin, "", "").where->line};
    at_ = end + 1;
    skip(kBlanks);
    const char quote = is('\'') ? '\'' : is('"') ? '"' : '\0';
    if (Status read = quote == '\0' ? plain(made.value) : quoted(quote, made.value); !read)
      return read;
    entries_.push_back(std::move(made));
    return Done{};
  }

  // To the end of the line, or to a comment behind a blank.
  Status plain(std::string& value) {
    const std::size_t begin = at_;
    while (!ends() && !(text_[at_] == '#' && at_ > begin && kBlanks.find(text_[at_ - 1]) < 2))
      ++at_;
    value = trim(text_.substr(begin, at_ - begin));
    skip_comment();
    return literal(begin, value);
  }

  Status quoted(char quote, std::string& value) {
    const std::size_t begin = at_++;
    for (; !is(quote); ++at_) {
      if (at_ == text_.size())
        return wrong(begin, fmt::format("the quote {} is not closed", quote), "close it");
      value += quote == '"' && text_[at_] == '\\' ? escaped() : text_[at_];
    }
    ++at_;
    skip(" \t\r");
    if (!ends() && !is('#'))
      return wrong(at_, "text behind the closing quote", "one value for each line");
    skip_comment();
    return quote == '"' ? literal(begin, value) : checked(begin, value);
  }

  // Another backslash than these stands for itself.
  char escaped() {
    constexpr std::string_view kEscapes = "nrt\"\\$";
    constexpr std::string_view kMeant = "\n\r\t\"\\$";
    const std::size_t which =
        at_ + 1 < text_.size() ? kEscapes.find(text_[at_ + 1]) : std::string_view::npos;
    if (which == std::string_view::npos) return '\\';
    ++at_;
    return kMeant[which];
  }

  Status literal(std::size_t begin, const std::string& value) const {
    if (value.find("${") != std::string::npos)
      return wrong(begin, "${...} is not expanded",
                   "the value itself, or '...' to keep it as it is");
    return checked(begin, value);
  }

  Status checked(std::size_t begin, const std::string& value) const {
    if (value.find('\0') != std::string::npos)
      return wrong(begin, "a value has a zero byte", "a text file of lines NAME=VALUE");
    return Done{};
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::vector<DotenvEntry> entries_;
};

}  // namespace

Result<std::vector<DotenvEntry>> parse_dotenv(std::string_view text, const std::string& file) {
  return Reader(text, file).all();
}

}  // namespace hpclaunch
