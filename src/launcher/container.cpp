// The words of a container engine (profiles/programs/engines.json) before the shim.
#include "hpclaunch/text.h"
#include "launcher/line.h"

namespace hpclaunch {

namespace {

std::string replaced(std::string_view word, std::string_view what, std::string_view value) {
  std::string text(word);
  if (const std::size_t at = text.find(what); at != std::string::npos)
    text.replace(at, what.size(), value);
  return text;
}

// The words of `pattern`, each as `fill` has it.
template <class Fill>
void add(Words pattern, Argv& words, Fill fill) {
  for (const std::string_view word : pattern) words.push_back(fill(word));
}

// srun takes an option once, with a list: what follows '=' joins the last word where that is the same option.
void join_last(Argv& words, std::size_t from) {
  for (std::size_t i = words.size(); i-- > from + 1;) {
    const std::size_t equal = words[i].find('=');
    if (equal == std::string::npos || words[i - 1].compare(0, equal + 1, words[i], 0, equal + 1))
      continue;
    words[i - 1] += "," + words[i].substr(equal + 1);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

Argv container_words(const ContainerUse& use) {
  const ContainerEngine& engine = *use.engine;
  Argv words;
  if (!use.program.empty()) words.push_back(use.program);
  const auto same = [](std::string_view word) { return std::string(word); };
  const auto image = [&](std::string_view word) { return replaced(word, "{}", use.image); };
  add(engine.start, words, same);
  if (engine.image_first) add(engine.directory, words, image);
  words.insert(words.end(), use.options.begin(), use.options.end());
  if (use.writes) add(engine.write, words, same);
  for (const ResourceLimit& limit : use.limits)
    add(engine.limit, words, [&](std::string_view word) {
      return replaced(
          replaced(replaced(word, "{name}", limit.name), "{soft}", std::to_string(limit.soft)),
          "{hard}", std::to_string(limit.hard));
    });
  const std::size_t lists = words.size();
  for (const auto& bind : use.binds)
    add(engine.bind, words, [&](std::string_view word) {
      return replaced(replaced(word, "{from}", bind.first), "{to}", bind.second);
    });
  for (const std::string& name : use.env)
    add(engine.env, words, [&](std::string_view word) { return replaced(word, "{}", name); });
  if (!engine.srun_option.empty()) join_last(words, lists);
  if (!engine.image_first) add(use.is_directory ? engine.directory : engine.image, words, image);
  return words;
}

}  // namespace hpclaunch
