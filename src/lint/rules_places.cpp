// Folders and paths: who else uses them, where they are, and whether they are there at all.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "lint/counts.h"

namespace hpclaunch::lint {

namespace {

std::string_view unquoted(std::string_view text) {
  if (!text.empty() && (text.front() == '"' || text.front() == '\'')) text.remove_prefix(1);
  return text;
}

bool in_home(std::string_view text) {
  text = unquoted(text);
  return text.starts_with("~/") || text.starts_with("$HOME/") || text.starts_with("${HOME}/");
}

bool on_node(std::string_view text) {
  return text.starts_with("/tmp/") || text.starts_with("/dev/shm/");
}

void caches(const Script& script, Findings& findings) {
  for (const Setting& one : script.settings) {
    if (!one.exported || one.value_span.empty() || !has_word(words_named("caches"), one.name))
      continue;
    const std::string_view text = script.shell.at(one.value_span);
    if (one.value.known() && on_node(one.value.text))
      findings.add(
          "shared-fixed-folder", one.name_span,
          fmt::format("{}={} is the same for all users of a node: only the first can write "
                      "there",
                      one.name, shown(one.value.text, 60)),
          fmt::format("{}=/tmp/$USER-cache", one.name));
    else if (in_home(text) && script.request.nodes > 1)
      findings.add("cache-on-home", one.name_span,
                   fmt::format("{} is in the home directory, which all {} nodes share: their ranks "
                               "wait for each other's locks",
                               one.name, script.request.nodes),
                   fmt::format("{}=/tmp/$USER-cache, or another folder of the node", one.name));
  }
}

// The path that a word is, as far as the text says it.
std::string path_in(const Script& script, const Word& word) {
  if (word.parts.size() == 1 && word.parts.front().kind == Part::Kind::parameter) {
    const Setting* const one = script.last(word.parts.front().text, script.settings.size());
    return one == nullptr ? "" : one->value.text;
  }
  return std::string(unquoted(script.shell.at(word.span)));
}

// mkdir below /tmp in a job of several nodes: the others lack it.
void local_folders(const Script& script, Findings& findings) {
  if (script.request.nodes < 2 || script.launches.empty()) return;
  for (std::size_t i = 0; i < script.shell.commands.size(); ++i) {
    const Command& command = script.shell.commands[i];
    if (command.words.size() < 2 || script.shell.at(command.words.front().span) != "mkdir")
      continue;
    const bool launched =
        std::ranges::any_of(script.launches, [&](const Launch& one) { return one.command == i; });
    if (launched || command.function != 0) continue;
    for (const Word& word : command.words) {
      const std::string path = path_in(script, word);
      if (!on_node(path)) continue;
      findings.add("folder-on-first-node", word.span,
                   fmt::format("mkdir creates {} on the first of {} nodes only", shown(path, 60),
                               script.request.nodes),
                   script.request.system == "slurm"
                       ? "srun --ntasks-per-node=1 --overlap mkdir -p ..."
                       : "mpiexec --ppn 1 ... mkdir -p ...");
      break;
    }
  }
}

// Compilers, CUDA and the like set no PYTHONPATH.
bool sets(const Module& module, std::string_view variable) {
  return module.verb == "load" &&
         (variable != "PYTHONPATH" || !begins_with_one(words_named("toolchains"), module.name));
}

// A list of folders that loses what modules put into it.
void replaced_path(const Script& script, Findings& findings) {
  for (const Setting& one : script.settings) {
    const bool path =
        one.name == "PATH" || one.name == "LD_LIBRARY_PATH" || one.name == "PYTHONPATH";
    const bool typed = one.launch != Setting::kNone;  // for one launch
    if (!path || !one.exported || one.append || (one.local && !typed) || one.value.text.empty() ||
        (one.value_span.empty() && !typed) || one.how == Setting::How::unset)
      continue;
    const std::string_view text =
        script.shell.at(typed ? script.shell.commands[one.command].span : one.value_span);
    const std::vector<std::string_view> items = split(text, ':');
    if (!typed && std::ranges::count(items, std::string_view(one.name)) > 0) {
      findings.add("path-replaced", one.name_span,
                   fmt::format("{} without $ in its own value is read as a folder name", one.name),
                   fmt::format("{}=...:${}", one.name, one.name));
      continue;
    }
    if (text.find("$" + one.name) != text.npos || text.find("${" + one.name) != text.npos ||
        (!typed && text.find_first_of("`(") != text.npos))
      continue;
    const bool loaded = std::ranges::any_of(script.modules, [&](const Module& module) {
      return sets(module, one.name) && module.command < one.command;
    });
    const auto earlier = script.by_name.find(one.name);
    const bool before = std::ranges::any_of(earlier->second, [&](std::size_t index) {
      return &script.settings[index] < &one && !script.settings[index].local;
    });
    if (!loaded && !before && one.name != "PATH") continue;
    findings.add("path-replaced", one.name_span,
                 fmt::format("{} is replaced: what it had{} is lost", one.name,
                             loaded ? " from loaded modules" : ""),
                 fmt::format("{}=...:${}", one.name, one.name));
  }
}

void quoted_tilde(const Script& script, Findings& findings) {
  for (const Command& command : script.shell.commands)
    for (const Assignment& one : command.assignments) {
      if (one.value.parts.empty()) continue;
      const Part& first = one.value.parts.front();
      if (first.kind != Part::Kind::text || !first.quoted || !first.text.starts_with("~/"))
        continue;
      Finding& finding = findings.add(
          "tilde-quoted", one.span,
          fmt::format("~ in quotes is not expanded: {} is in a folder named \"~\"", one.name),
          fmt::format("{}=\"$HOME/...\"", one.name));
      const std::size_t at = one.value.span.begin;
      if (script.shell.text.substr(at, 3) != "\"~/") continue;
      finding.edits = {{at + 1, at + 2, "$HOME"}};
      finding.certain = true;
    }
}

void placeholders(const Script& script, Findings& findings) {
  const Shell& shell = script.shell;
  const auto report = [&](Span span) {
    findings.add("placeholder", span,
                 fmt::format("\"{}\" is a placeholder", shown(shell.at(span), 50)));
  };
  // "--account=your_project", "--nodes TODO"
  const auto stands_for = [](std::string_view body) {
    const std::string text = to_lower(body);
    if (body.find("TODO") != body.npos || body.find("??") != body.npos) return true;
    return has_one_in_it(words_named("placeholders"), text);
  };
  for (const Directive& one : shell.directives) {
    const std::string_view body = shell.at(one.body);
    const std::size_t open = body.find('<');
    const bool marked = open != body.npos && body.find('>', open) != body.npos;
    const bool empty =
        body.starts_with("--") && body.ends_with('=') && body.find_first_of(" \t") == body.npos;
    if (marked || empty || stands_for(body)) report(one.body);
  }
  const auto check = [&](const Word& word) {
    if (shell.at(word.span).find("/path/to/") == std::string_view::npos) return false;
    report(word.span);
    return true;
  };
  for (const Command& command : shell.commands) {
    const std::string_view name = command.words.empty() ? "" : shell.at(command.words.front().span);
    bool found = name == "echo" || name == "printf";  // how to call the script
    for (const Word& word : command.words) found = found || check(word);
    for (const Assignment& one : command.assignments) found = found || check(one.value);
  }
}

void environments(const Script& script, Findings& findings) {
  const Shell& shell = script.shell;
  const auto word = [&](const Command& command, std::size_t i) {
    return i < command.words.size() ? shell.at(command.words[i].span) : std::string_view();
  };
  bool initialised = shell.shebang.find("-l") != std::string_view::npos;
  std::size_t modules = shell.commands.size();  // the first command that loads one
  for (const Module& one : script.modules) modules = std::min(modules, one.command);
  for (std::size_t i = 0; i < shell.commands.size(); ++i) {
    const Command& command = shell.commands[i];
    initialised = initialised || i > modules;
    const std::string_view name = word(command, 0);
    const bool reads = name == "source" || name == ".";
    const bool conda = name == "conda" && word(command, 1) == "activate";
    const std::string_view place = reads ? word(command, 1) : conda ? word(command, 2) : "";
    constexpr long kMany = 16;  // nodes from which on shared file systems are felt
    if ((conda || place.ends_with("/bin/activate")) && in_home(place) &&
        script.request.nodes >= kMany)
      findings.add("environment-on-home", command.span,
                   fmt::format("each process of {} nodes reads this environment from the home "
                               "directory",
                               script.request.nodes),
                   "hpclaunch run --stage, or copy it to the nodes before the start");
    initialised = initialised || reads || name == "eval" || name == "conda_init";
    if (conda && !initialised && !script.request.system.empty() && command.function == 0) {
      findings.add("conda-not-initialised", command.span,
                   "conda activate is not defined: batch scripts read no shell start-up file",
                   "source \"$(conda info --base)/etc/profile.d/conda.sh\" before it");
      initialised = true;
    }
  }
}

// Apptainer shows the home and the current folder, and what it is told.
void containers(const Script& script, Findings& findings) {
  for (const Launch& launch : script.launches) {
    if (launch.engine == nullptr || launch.engine->shows_folders.empty()) continue;
    bool known = true;
    for (const Text& one : launch.words) known = known && one.value.known();
    if (!known || shows(script, launch, launch.engine->shows_folders)) continue;
    for (const Text& one : launch.inner) {
      const std::string& text = one.text();
      const bool inside = begins_with_one(words_named("in images"), text);
      if (!text.starts_with('/') || inside || text.find('/', 1) == std::string::npos) continue;
      findings.add(
          "container-without-binds", one.span,
          fmt::format("{} is outside of what {} shows by itself, unless the site binds it",
                      shown(text, 60), launch.program),
          fmt::format("{} exec --bind {} ...", launch.program, text.substr(0, text.find('/', 1))));
      break;
    }
  }
}

}  // namespace

void check_places(const Script& script, Findings& findings) {
  caches(script, findings);
  local_folders(script, findings);
  replaced_path(script, findings);
  quoted_tilde(script, findings);
  placeholders(script, findings);
  environments(script, findings);
  containers(script, findings);
}

}  // namespace hpclaunch::lint
