#include "lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

namespace hpclaunch::catalogue {

namespace {

// Which line the parser has come to.
class Lines {
 public:
  explicit Lines(const std::string& text) : in(text), text_(text) {}

  std::istringstream in;  // what the parser reads

  int here() {
    const auto at = in.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in);
    line_ += static_cast<int>(std::count(text_.begin() + counted_, text_.begin() + at, '\n'));
    counted_ = at;
    return line_;
  }

 private:
  const std::string& text_;
  std::streamoff counted_ = 0;
  int line_ = 1;
};

// Follows the parser: which object it is in, and what stood there already.
class Tracker {
 public:
  Tracker(Document& document, Lines& lines) : document_(document), lines_(lines) {}

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
    document_.lines.emplace(path_, lines_.here());
    document_.order[open_.back().path].push_back(name);
    if (!open_.back().members.insert(name).second && twice_.empty()) {
      twice_ = name;
      twice_line_ = lines_.here();
    }
  }

  Document& document_;
  Lines& lines_;
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
  Lines lines(text);
  Tracker tracker(document, lines);
  const auto follow = [&tracker](int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    tracker.event(event, parsed);
    return true;
  };
  try {
    document.root = nlohmann::json::parse(lines.in, follow, true, true);
  } catch (const nlohmann::json::parse_error& error) {
    std::string message = error.what();
    message = message.substr(message.find("column") == std::string::npos
                                 ? 0
                                 : message.find(": ", message.find("column")) + 2);
    return Error{ErrorKind::invalid, message, "", SourceRef{file, lines.here()}};
  }
  if (!tracker.twice().empty())
    return Error{ErrorKind::invalid, fmt::format("\"{}\" stands here twice", tracker.twice()), "",
                 SourceRef{file, tracker.twice_line()}};
  return document;
}

}  // namespace hpclaunch::catalogue
