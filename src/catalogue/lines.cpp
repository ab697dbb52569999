#include "lines.h"

#include <fmt/format.h>

#include <iterator>
#include <set>

namespace hpclaunch::catalogue {

namespace {

// Hands out the characters of a text and counts the lines as they go by.
class Counting {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Counting(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  Counting& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  Counting operator++(int) {
    Counting before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Counting& other) const { return at_ == other.at_; }
  bool operator!=(const Counting& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  int* line_;
};

// Follows the parser: which object it is in, and what stood there already.
class Tracker {
 public:
  Tracker(Document& document, int& line) : document_(document), line_(line) {}

  void event(nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open_.push_back({path_, {}});
    if (event == Event::object_end) {
      path_ = open_.back().path;
      open_.pop_back();
    }
    if (event == Event::key) key(parsed.get<std::string>());
  }
  const std::string& twice() const { return twice_; }
  int twice_line() const { return twice_line_; }

 private:
  struct Open {
    std::string path;
    std::set<std::string> members;
  };

  void key(const std::string& name) {
    path_ = open_.back().path + "/" + name;
    document_.lines.emplace(path_, line_);
    document_.order[open_.back().path].push_back(name);
    if (!open_.back().members.insert(name).second && twice_.empty()) {
      twice_ = name;
      twice_line_ = line_;
    }
  }

  Document& document_;
  int& line_;
  std::vector<Open> open_;
  std::string path_;
  std::string twice_;
  int twice_line_ = 0;
};

}  // namespace

SourceRef Document::where(std::string path) const {
  for (;;) {
    const auto at = lines.find(path);
    if (at != lines.end()) return {file, at->second};
    if (path.empty()) return {file, 1};
    path.resize(path.rfind('/'));
  }
}

Result<Document> parse(const std::string& file, const std::string& text) {
  Document document;
  document.file = file;
  int line = 1;
  Tracker tracker(document, line);
  const auto follow = [&tracker](int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    tracker.event(event, parsed);
    return true;
  };
  try {
    document.root =
        nlohmann::json::parse(Counting(text.data(), &line),
                              Counting(text.data() + text.size(), &line), follow, true, true);
  } catch (const nlohmann::json::parse_error& error) {
    std::string message = error.what();
    message = message.substr(message.find("column") == std::string::npos
                                 ? 0
                                 : message.find(": ", message.find("column")) + 2);
    return Error{ErrorKind::invalid, message, "", SourceRef{file, line}};
  }
  if (!tracker.twice().empty())
    return Error{ErrorKind::invalid, fmt::format("\"{}\" stands here twice", tracker.twice()), "",
                 SourceRef{file, tracker.twice_line()}};
  return document;
}

}  // namespace hpclaunch::catalogue
