// Follows a script in the order in which commands would run: a function's body where it is called.
#include "lint/script.h"

#include <algorithm>
#include <set>

#include "hpclaunch/text.h"
#include "lint/asks.h"
#include "lint/launches.h"
#include "lint/values.h"
#include "lint/words.h"

namespace hpclaunch::lint {

namespace {

using How = Setting::How;

class Walk {
 public:
  explicit Walk(Script& script) : script_(script), shell_(script.shell), values_(script.shell) {
    for (std::size_t i = 0; i < shell_.functions.size(); ++i)
      by_name_[std::string(shell_.functions[i].name)] = i;
  }

  void run() {
    budget_ =  // a script may call one function thousands of times
        1000 + 4 * shell_.commands.size();
    walk(0, shell_.commands.size(), 0);
    for (std::size_t i = 0; i < shell_.functions.size(); ++i) {
      if (called_.contains(i)) continue;
      called_.insert(i);
      walk(shell_.functions[i].first, shell_.functions[i].last, i + 1);
    }
  }

 private:
  struct Frame {
    std::size_t next;
    std::size_t last;
    std::size_t function;  // 1 + index; 0: none
    bool conditional;      // the call may not happen
    std::vector<Text> arguments;
  };

  void walk(std::size_t first, std::size_t last, std::size_t function) {
    frames_ = {{first, last, function, false, {}}};
    resume();
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      if (frame.next >= frame.last || budget_ == 0) {
        frames_.pop_back();
        if (!frames_.empty()) resume();
        continue;
      }
      const std::size_t index = frame.next++;
      const Command& command = shell_.commands[index];
      if (command.function != frame.function) {  // the body of a function that is defined here
        if (command.function != 0)
          frame.next = std::max(frame.next, shell_.functions[command.function - 1].last);
        continue;
      }
      --budget_;
      maybe_ = frame.conditional || command.conditional;
      read(command, index);
    }
  }

  void resume() {
    values_.arguments = frames_.back().arguments;
    values_.in_function = frames_.back().function != 0;
  }

  void read(const Command& command, std::size_t index) {
    values_.enter(command.block);
    at_ = index;
    std::vector<Text> words;
    for (const Word& word : command.words) values_.expand(word, words);
    const std::string name = words.empty() ? "" : words.front().text();
    const std::size_t exports_from = words.empty() ? 0 : declaration(name, words);
    if (words.empty() || exports_from != 0) {
      const How how = words.empty() || !exports_ ? How::assigned : How::exported;
      for (const Assignment& one : command.assignments) assign(one, how, command);
      for (std::size_t i = exports_from; i < words.size() && exports_from != 0; ++i)
        export_name(words[i], command);
      return;
    }
    if (special(name, command, words)) return;
    if (const auto function = by_name_.find(name); function != by_name_.end())
      return call(function->second, command, std::move(words));
    launch(command, words);
  }

  // 0: it declares nothing; else where its names begin.
  std::size_t declaration(std::string_view name, const std::vector<Text>& words) {
    exports_ = name == "export";
    const bool declares =
        exports_ || name == "declare" || name == "typeset" || name == "readonly" || name == "local";
    if (!declares) return 0;
    std::size_t at = 1;
    bool away = false;
    for (; at < words.size() && words[at].text().starts_with('-'); ++at) {
      exports_ =
          exports_ || (name != "readonly" && words[at].text().find('x') != std::string::npos);
      away = away || (name == "export" && words[at].text() != "-p" &&
                      words[at].text().find('n') != std::string::npos);
    }
    if (away) exports_ = false;
    return at;
  }

  Setting base(std::string_view name, How how, const Command& command, Span span) const {
    Setting one;
    one.name = name;
    one.how = how;
    one.command = at_;
    one.conditional = maybe_;
    one.local = command.subshell;
    one.name_span = span;
    return one;
  }

  std::size_t keep(Setting one) {
    script_.by_name[one.name].push_back(script_.settings.size());
    script_.settings.push_back(std::move(one));
    return script_.settings.size() - 1;
  }

  void assign(const Assignment& one, How how, const Command& command) {
    Setting setting = base(one.name, how, command, one.name_span);
    setting.append = one.append;
    setting.array = one.array;
    setting.value_span = one.value.span;
    Variable& variable = values_.variables[std::string(one.name)];
    if (one.array) {
      std::vector<Text> items;
      for (const Word& item : one.items) values_.expand(item, items);
      if (one.append && variable.array && variable.items.size() + items.size() < 10000)
        setting.items = variable.items;
      for (Text& item : items) setting.items.push_back(std::move(item.value));
    } else if (one.element) {
      setting.value = unknown_value();
      setting.array = true;
    } else {
      setting.value = values_.value(one.value);
      if (one.append) {
        const bool sure = variable.value.known() && !variable.array;
        setting.value = sure && setting.value.known() && variable.value.text.size() < 65536
                            ? Value{Value::Kind::known, variable.value.text + setting.value.text}
                            : unknown_value();
      }
    }
    set(std::move(setting), variable, command);
  }

  void set(Setting setting, Variable& variable, const Command& command) {
    setting.exported = setting.how == How::exported || variable.exported || values_.exports_all;
    if (!setting.local) {
      variable = {setting.value,    setting.items, setting.array,
                  setting.exported, command.block, maybe_};
      // An element of an array: the others are not known any more.
      if (setting.array && setting.items.empty() && !setting.value.known()) variable.array = false;
    }
    keep(std::move(setting));
  }

  void export_name(const Text& word, const Command& command) {
    if (!exports_ || !is_identifier(word.text())) return;
    Variable& variable = values_.variables[word.text()];
    const bool fresh = !script_.by_name.contains(word.text());
    Setting setting = base(word.text(), How::exported, command, word.span);
    setting.value = fresh ? unknown_value() : variable.value;
    setting.items = variable.items;
    setting.array = variable.array;
    if (fresh) variable.value = unknown_value();
    setting.exported = true;
    if (!setting.local) variable.exported = true;
    keep(std::move(setting));
  }

  void forget(std::string_view name, const Command& command, Span span) {
    Setting setting = base(name, How::unset, command, span);
    if (!setting.local) values_.variables.erase(std::string(name));
    keep(std::move(setting));
  }

  void read_name(const std::string& name, const Command& command, Span span) {
    if (!is_identifier(name)) return;
    Setting setting = base(name, How::read, command, span);
    setting.value = unknown_value();
    set(std::move(setting), values_.variables[name], command);
  }

  // setenv NAME VALUE; set NAME = VALUE.
  void csh_set(const Command& command, const std::vector<Text>& words) {
    const bool exported = words.front().text() == "setenv";
    if (words.size() < 2) return;
    std::string name = words[1].text();
    std::size_t value = 2;
    const std::size_t equals = name.find('=');
    if (!exported && equals == std::string::npos && words.size() > 2 && words[2].text() == "=")
      value = 3;
    Setting setting = base(name.substr(0, equals), exported ? How::exported : How::assigned,
                           command, words[1].span);
    if (!is_identifier(setting.name)) return;
    if (equals != std::string::npos && !exported) {
      setting.value = words[1].value;
      setting.value.text = name.substr(equals + 1);
      setting.value_span = span_of(words[1].span.begin + equals + 1, words[1].span.end);
      setting.name_span.end = setting.name_span.begin + static_cast<std::uint32_t>(equals);
    } else if (value < words.size()) {
      setting.value = words[value].value;
      setting.value_span = words[value].span;
    }
    Variable& variable = values_.variables[setting.name];
    set(std::move(setting), variable, command);
  }

  // Builtins that change variables. True: nothing else is to be done.
  bool special(const std::string& name, const Command& command, const std::vector<Text>& words) {
    if (name == "unset" || name == "unsetenv") {
      for (std::size_t i = 1; i < words.size(); ++i)
        if (is_identifier(words[i].text())) forget(words[i].text(), command, words[i].span);
      return true;
    }
    const bool csh = shell_.dialect == Dialect::csh;
    if (name == "setenv" || (csh && name == "set")) return csh_set(command, words), true;
    if (name == "set") {
      for (const Text& word : words) {
        if (word.text() == "-a" || word.text() == "allexport") values_.exports_all = true;
        if (word.text() == "+a") values_.exports_all = false;
      }
      return true;
    }
    if (name == "for" || name == "select" || name == "read" || name == "mapfile" ||
        name == "readarray") {
      const bool one = name == "for" || name == "select";
      for (std::size_t i = 1; i < words.size() && (!one || i == 1); ++i)
        if (!words[i].text().starts_with('-')) read_name(words[i].text(), command, words[i].span);
      return true;
    }
    if (name == "let") {
      for (std::size_t i = 1; i < words.size(); ++i)
        read_name(words[i].text().substr(0, words[i].text().find_first_of("=+-*/")), command,
                  words[i].span);
      return true;
    }
    if (name == "source" || name == ".") return true;
    if (name == "module" || name == "ml") return module(words), true;
    return false;
  }

  void module(const std::vector<Text>& words) {
    std::string verb = words.front().text() == "ml" ? "load" : "";
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string& text = words[i].text();
      const bool is_verb = has_word(words_named("module verbs"), text);
      if (text.starts_with('-') && words.front().text() != "ml") continue;
      if (is_verb && (verb.empty() || words.front().text() == "ml")) {
        verb = text == "add" || text == "try-load" ? "load"
               : text == "rm" || text == "del"     ? "unload"
                                                   : text;
        const bool alone = verb == "purge" || verb == "reset" || verb == "restore";
        if (alone) script_.modules.push_back({verb, "", at_, words[i].span, maybe_});
        continue;
      }
      if (verb.empty()) return;  // list, avail, ...
      const bool removed = text.starts_with('-');
      script_.modules.push_back(
          {removed ? "unload" : verb, removed ? text.substr(1) : text, at_, words[i].span, maybe_});
    }
  }

  void call(std::size_t function, const Command& command, std::vector<Text> words) {
    inlined(command, Setting::kNone);
    const bool open = std::ranges::any_of(
        frames_, [&](const Frame& one) { return one.function == function + 1; });
    if (open || frames_.size() > 16) return;
    called_.insert(function);
    words.erase(words.begin());
    frames_.push_back({shell_.functions[function].first, shell_.functions[function].last,
                       function + 1, maybe_, std::move(words)});
    resume();
  }

  void inlined(const Command& command, std::size_t launch) {
    for (const Assignment& one : command.assignments) {
      Setting setting = base(one.name, How::inline_, command, one.name_span);
      setting.value = values_.value(one.value);
      setting.value_span = one.value.span;
      setting.exported = true;
      setting.local = true;
      setting.launch = launch;
      keep(std::move(setting));
    }
  }

  void launch(const Command& command, const std::vector<Text>& words) {
    std::vector<Launch> found = find_launches(words, shell_.text, script_.launches.size());
    const std::size_t first = found.empty() ? Setting::kNone : script_.launches.size();
    const std::size_t before = script_.settings.size();
    inlined(command, first);
    // env NAME=value, bash -c and others in front of the launch or behind it
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool in_front = found.empty() || words[i].span.begin < found.front().span.begin;
      const bool behind_env =
          words[i - 1].text() == "env" || (i > 1 && is_assignment(words[i - 1].text()));
      if (in_front && behind_env && words.front().text() == "env" && is_assignment(words[i].text()))
        typed(words[i], command, first, How::inline_);
      else if (!in_front)
        break;
    }
    for (Launch& one : found) {
      const std::size_t index = script_.launches.size();
      one.command = at_;
      one.settings_before = before;
      one.background = command.join == Join::background;
      for (const Option& option : one.options) options_of_environment(option, command, index);
      for (std::size_t i = 0; i < one.inner.size(); ++i) {
        if (one.inner[i].text() == "env") continue;
        if (i == 0 || !is_assignment(one.inner[i].text()) || one.inner.front().text() != "env")
          break;
        typed(one.inner[i], command, index, How::inline_);
      }
      script_.launches.push_back(std::move(one));
    }
  }

  static bool is_assignment(const std::string& text) {
    const std::size_t equals = text.find('=');
    return equals != std::string::npos && is_identifier(text.substr(0, equals));
  }

  void typed(const Text& word, const Command& command, std::size_t launch, How how) {
    const std::string& text = word.text();
    const std::size_t equals = text.find('=');
    Setting setting = base(text.substr(0, equals), how, command, word.span);
    setting.value = word.value;
    setting.value.text = text.substr(equals + 1);
    if (word.direct && word.span.end - word.span.begin == text.size()) {
      setting.value_span = span_of(word.span.begin + equals + 1, word.span.end);
      setting.name_span.end = word.span.begin + static_cast<std::uint32_t>(equals);
    }
    setting.exported = true;
    setting.local = true;
    setting.launch = launch;
    keep(std::move(setting));
  }

  // -x NAME=value, --env NAME=value, -genv NAME value, --export=ALL,NAME=value.
  void options_of_environment(const Option& option, const Command& command, std::size_t launch) {
    if (!has_word(words_named("variable options"), option.name) || !option.has_value) return;
    const bool list = option.name == "--export";
    std::size_t at = 0;
    const std::vector<std::string_view> pieces =
        list ? split(option.value.text(), ',') : std::vector<std::string_view>{option.value.text()};
    for (const std::string_view piece : pieces) {
      Text one = option.value;
      one.value.text = piece;
      if (piece.find(kUnknownPart) == piece.npos) one.value.kind = Value::Kind::known;
      one.span.begin += static_cast<std::uint32_t>(one.direct ? at : 0);
      one.span.end =
          one.direct ? one.span.begin + static_cast<std::uint32_t>(piece.size()) : one.span.end;
      if (is_assignment(one.text())) typed(one, command, launch, How::option);
      at += piece.size() + 1;
    }
  }

  Script& script_;
  const Shell& shell_;
  Values values_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::set<std::size_t> called_;
  std::vector<Frame> frames_;
  std::size_t budget_ = 0;
  std::size_t at_ = 0;
  bool maybe_ = false;
  bool exports_ = false;
};

}  // namespace

Script read_script(std::string_view text, std::string file) {
  Script script;
  script.file = std::move(file);
  script.shell = read_shell(text);
  read_asks(script);
  Walk(script).run();
  for (std::size_t i = 0; i < script.settings.size(); ++i)
    if (const std::size_t launch = script.settings[i].launch; launch < script.launches.size())
      script.launches[launch].own_settings.push_back(i);
  return script;
}

}  // namespace hpclaunch::lint
