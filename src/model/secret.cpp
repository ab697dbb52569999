// Secrets by name and by value, in variables and in command lines. What a program does with a word is not known here:
// an option is one that begins with '-', an assignment has a '='.
#include "hpclaunch/secret.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "hpclaunch/plan.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

constexpr std::string_view kBlanks = " \t\n";
constexpr std::string_view kQuotes = "\"'";
constexpr std::size_t kNone = std::string_view::npos;

std::string as_variable(std::string_view name) {
  std::string upper(name.substr(std::min(name.find_first_not_of("-."), name.size())));
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-' || c == '.') c = '_';
  }
  return upper;
}

/// TOKENIZER and the like are not secret.
bool has_word(const std::string& name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    const std::string_view rest = std::string_view(name).substr(at + word.size());
    const bool harmless =
        word == "TOKEN" && (rest.substr(0, 2) == "IZ" || rest.substr(0, 2) == "IS");
    if (!harmless) return true;
  }
  return false;
}

// "512", "4k", "1e-3", "300_000_000_000", "0.5,0.9": tokens are counted too.
bool is_number(std::string_view value) {
  constexpr std::string_view kDigits = "0123456789", kUnits = "kKmMgGtTbBiI%";
  constexpr std::size_t kUnit = 3;
  const std::size_t begin = value.find_first_not_of("+-.");
  if (begin == kNone || kDigits.find(value[begin]) == kNone) return false;
  const std::size_t unit = value.find_last_not_of(kUnits) + 1;
  const std::string_view digits = value.substr(0, unit);
  const std::size_t exponent = digits.find_first_of("eE");
  return value.size() - unit <= kUnit && digits.find_first_not_of("0123456789._,:+-eE") == kNone &&
         (exponent == kNone || digits.find_first_of("eE", exponent + 1) == kNone);
}

// What programs write for a switch, for a piece of text ("<pad>", "[MASK]"), and for a value to be filled in.
bool is_plain(std::string_view value) {
  constexpr std::array<std::string_view, 9> kSwitches = {"true", "false", "none", "null", "auto",
                                                         "yes",  "no",    "on",   "off"};
  const std::string lower = to_lower(value);
  const std::size_t prefix = lower.find_last_of("_-") + 1;  // of "hf_xxxx"
  const bool blank = lower.find_first_not_of("x*.", prefix) == kNone &&
                     lower.size() - prefix > (prefix == 0 ? 2 : 3);
  return std::ranges::count(kSwitches, lower) > 0 || blank || lower.starts_with("your") ||
         lower.find("_your") != std::string::npos ||
         (value.starts_with('<') && value.ends_with('>')) ||
         (value.starts_with('[') && value.ends_with(']')) ||
         (value.starts_with("{{") && value.ends_with("}}"));
}

// As issued by services: prefix and a long rest.
bool is_token(std::string_view value) {
  constexpr std::array<std::string_view, 13> kBegins = {
      "hf_",   "ghp_", "gho_", "ghs_", "github_pat_", "glpat-",    "AKIA",
      "xoxb-", "xoxp", "sk-",  "AIza", "wandb_v1_",   "-----BEGIN"};
  constexpr std::size_t kShortest = 16;
  return value.size() >= kShortest && value.find_first_of(kBlanks) == kNone && !is_plain(value) &&
         std::ranges::any_of(kBegins, [&](auto begin) { return value.starts_with(begin); });
}

bool has_password(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::string_view rest = url.substr(scheme == kNone ? url.size() : scheme + 3);
  const std::size_t at = rest.find_first_of("@/");
  return at != kNone && rest[at] == '@' && rest.substr(0, at).find(':') != kNone;
}

// Options are named more freely than variables: "--token-file F" is a place, "--label-key text" a field.
bool names_a_secret(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 3> kPlaces = {"FILE", "PATH", "DIR"};
  constexpr std::size_t kLongField = 20;
  const std::string variable = as_variable(name);
  if (is_token(value)) return true;
  if (value.empty() || !is_secret(variable) || !is_secret(variable, value)) return false;
  if (is_identifier(name) && name == variable) return true;
  const bool only_ending = !is_secret(variable + "S");
  const bool field = value.size() < kLongField && std::ranges::all_of(value, [](char c) {
                       return consists_of({&c, 1}, "_-.") && !(c >= '0' && c <= '9');
                     });
  return !(only_ending && field) &&
         std::ranges::none_of(kPlaces, [&](auto one) { return variable.ends_with(one); });
}

// "wandb login KEY": behind these words and their options.
bool is_login(const std::vector<std::string>& words, std::size_t index) {
  std::size_t at = index;
  while (at > 0 && words[at - 1].starts_with('-')) --at;
  return at > 1 && words[at - 1] == "login" && !words[index].starts_with('-') &&
         words[at - 2].substr(words[at - 2].rfind('/') + 1) == "wandb";
}

/// Finds what is secret within one word.
class Reader {
 public:
  Reader(const std::vector<std::string>& words, std::size_t index, std::vector<SecretWord>& found)
      : word_(words[index]),
        index_(index),
        found_(found),
        text_(word_.find_first_of(kBlanks) != kNone) {
    if (index > 0 && words[index - 1].starts_with('-')) name_ = words[index - 1];
  }

  void read() {
    while (at_ < word_.size()) {
      const std::size_t end = std::min(word_.find_first_not_of(kName, at_), word_.size());
      if (end == at_) {
        ++at_;
        continue;
      }
      const std::string_view name = view().substr(at_, end - at_);
      const bool login = text_ && name == "login" && before_ == "wandb";
      before_ = name;
      if (!url(end)) value(name, end);
      if (login) key(end);
    }
  }

 private:
  static constexpr std::string_view kName =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

  std::string_view view() const { return word_; }

  bool url(std::size_t scheme) {
    if (view().substr(scheme, 3) != "://") return false;
    const std::size_t end = std::min(word_.find_first_of(" \t\n\"'", at_), word_.size());
    const bool secret = is_secret("", view().substr(at_, end - at_));
    if (secret) add(name_, at_, end);
    at_ = secret ? end : scheme + 3;
    return true;
  }

  void value(std::string_view name, std::size_t end) {
    at_ = end;
    std::size_t next = end;
    if (next < word_.size() && kQuotes.find(word_[next]) != kNone) ++next;  // of a key in JSON
    const char sign = next < word_.size() ? word_[next] : '\0';
    const std::size_t begin = std::min(word_.find_first_not_of(kBlanks, next + 1), word_.size());
    const bool key = sign == ':' && (next > end || begin > next + 1);
    const bool option = text_ && name.starts_with('-') && next == end &&
                        kBlanks.find(sign) != kNone &&
                        word_[std::min(begin, word_.size() - 1)] != '-';
    if (sign == '=' || name.starts_with('-')) name_ = name;
    if (sign == '=' && next == end)
      take(name, end + 1, false);
    else if (key || option)
      take(name, begin, key && next == end);
  }

  // "wandb login --relogin KEY"
  void key(std::size_t end) {
    constexpr std::string_view kEnds = " \t\n;&|)";
    std::size_t begin = word_.find_first_not_of(kBlanks, end);
    while (begin < word_.size() && word_[begin] == '-')
      begin = word_.find_first_not_of(kBlanks, word_.find_first_of(kEnds, begin));
    if (begin >= word_.size() || kEnds.find(word_[begin]) != kNone || word_[begin] == '$') return;
    at_ = std::min(word_.find_first_of(kEnds, begin), word_.size());
    if (word_[begin] != '"') add("WANDB_API_KEY", begin, at_);
  }

  // A header's value has blanks.
  void take(std::string_view name, std::size_t begin, bool header) {
    std::size_t end = word_.size();
    if (begin < word_.size() && kQuotes.find(word_[begin]) != kNone) {
      end = std::min(word_.find(word_[begin], begin + 1), word_.size());
      ++begin;
    } else if (text_) {
      end = std::min(word_.find_first_of(header ? "\"'" : " \t\n\"';&|()<>,}", begin), end);
    }
    const std::string_view value = view().substr(std::min(begin, end), end - std::min(begin, end));
    const bool reference = text_ && value.starts_with('$');
    if (reference || !names_a_secret(name, value)) return;
    add(name, begin, end);
    at_ = end;
  }

  void add(std::string_view name, std::size_t begin, std::size_t end) {
    std::string variable = as_variable(name);
    found_.push_back({index_, begin, end, is_identifier(variable) ? variable : "SECRET"});
  }

  const std::string& word_;
  std::size_t index_;
  std::vector<SecretWord>& found_;
  bool text_;
  std::size_t at_ = 0;
  std::string_view name_;
  std::string_view before_;  // the name before this one
};

// An option whose value is the next word.
bool takes_next(const std::string& word, const std::string& next) {
  constexpr std::size_t kShortOption = 2;
  const bool option =
      next.starts_with("--") || (next.starts_with('-') && next.size() <= kShortOption);
  return word.starts_with('-') && consists_of(word, "-_.") && !option && names_a_secret(word, next);
}

}  // namespace

bool is_secret(std::string_view name, std::string_view value) {
  return has_password(value) || is_token(value) ||
         (is_secret(name) && !is_plain(value) && !is_number(value));
}

bool is_secret(std::string_view name) {
  const std::string upper = as_variable(name);
  constexpr std::array<std::string_view, 11> kWords = {
      "SECRET", "PASSWORD",    "PASSWD",     "PASSPHRASE", "CREDENTIAL", "API_KEY",
      "APIKEY", "PRIVATE_KEY", "PRIVATEKEY", "ACCESS_KEY", "ACCESSKEY"};
  constexpr std::array<std::string_view, 6> kLast = {"_PASS",  "_PAT",    "_AUTH",
                                                     "COOKIE", "COOKIES", "AUTHORIZATION"};
  // Of models: pieces of text, and how many.
  constexpr std::array<std::string_view, 47> kOfText = {
      "ADDED",      "AUDIO",      "BATCH",     "BOS",    "BUDGET", "CLS",     "CONTEXT", "COUNT",
      "DECAY",      "DISPATCHER", "DROP",      "EMBED",  "END",    "EOS",     "EVAL",    "IMAGE",
      "IMG",        "INPUT",      "LEN",       "LENGTH", "LIMIT",  "MASK",    "MAX",     "MERGE",
      "MICROBATCH", "MIN",        "MOE",       "N",      "NUM",    "OUTPUT",  "PAD",     "PER",
      "PROMPT",     "RATIO",      "REASONING", "SEP",    "SEQ",    "SPECIAL", "START",   "STOP",
      "THINK",      "TOTAL",      "TRAIN",     "UNK",    "VIDEO",  "VISION",  "WARMUP"};
  // Of rows of data: names of fields.
  constexpr std::array<std::string_view, 21> kFields = {
      "ANSWER", "AUDIO",    "COLUMN",   "DATA",     "FEATURE", "GROUP",     "IMAGE",
      "INPUT",  "LABEL",    "MESSAGE",  "MESSAGES", "OUTPUT",  "PARTITION", "PROMPT",
      "QUERY",  "QUESTION", "RESPONSE", "REWARD",   "SORT",    "TARGET",    "TEXT"};
  const auto is_one_of = [](const auto& list) {
    return [&list](std::string_view part) { return std::ranges::count(list, part) > 0; };
  };
  if (std::ranges::any_of(kLast, [&](auto word) { return upper.ends_with(word); }) ||
      std::ranges::any_of(kWords, [&](auto word) { return has_word(upper, word); }))
    return true;
  const bool token = has_word(upper, "TOKEN");
  if (!token && !upper.ends_with("_KEY")) return false;
  const std::vector<std::string_view> parts = split(upper, '_');
  return token ? std::ranges::none_of(parts, is_one_of(kOfText))
               : !std::all_of(parts.begin(), parts.end() - 1, is_one_of(kFields));
}

std::vector<SecretWord> secrets_in(const std::vector<std::string>& words) {
  std::vector<SecretWord> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool whole = i > 0 && takes_next(words[i - 1], words[i]) &&
                       (found.empty() || found.back().word != i - 1);
    if (whole)
      found.push_back({i, 0, words[i].size(), as_variable(words[i - 1])});
    else if (is_login(words, i))
      found.push_back({i, 0, words[i].size(), "WANDB_API_KEY"});
    else
      Reader(words, i, found).read();
  }
  return found;
}

std::vector<std::string> without_secrets(std::vector<std::string> words) {
  const std::vector<SecretWord> found = secrets_in(words);
  for (auto one = found.rbegin(); one != found.rend(); ++one)
    words[one->word].replace(one->begin, one->end - one->begin, kHidden);
  return words;
}

std::map<std::string, std::vector<LatePart>> secret_references(
    const std::vector<std::string>& words, const EnvSnapshot& env, std::string_view reason) {
  std::map<std::string, std::string> values;           // by variable
  std::map<std::size_t, std::vector<LatePart>> parts;  // by index of the word
  std::map<std::size_t, std::size_t> ends;
  const auto variable_for = [&](const std::string& wanted, const std::string& value) {
    if (const std::string* own = env.find(wanted); own != nullptr && *own == value) return wanted;
    for (const auto& [name, held] : env.values())
      if (held == value && is_identifier(name) && is_secret(name, held)) return name;
    std::string name = wanted;
    for (int n = 2; values.contains(name) && values[name] != value; ++n)
      name = fmt::format("{}_{}", wanted, n);
    return name;
  };
  for (const SecretWord& one : secrets_in(words)) {
    const std::string& word = words[one.word];
    const std::string value = word.substr(one.begin, one.end - one.begin);
    const std::string name = variable_for(one.name, value);
    values[name] = value;
    std::size_t& end = ends[one.word];
    if (one.begin > end) parts[one.word].push_back({word.substr(end, one.begin - end)});
    parts[one.word].push_back({fmt::format("${{{}:?{}}}", name, reason), true});
    end = one.end;
  }
  std::map<std::string, std::vector<LatePart>> made;
  for (auto& [index, of_word] : parts) {
    const std::string& word = words[index];
    if (ends[index] < word.size()) of_word.push_back({word.substr(ends[index])});
    made[word] = std::move(of_word);
  }
  return made;
}

}  // namespace hpclaunch
