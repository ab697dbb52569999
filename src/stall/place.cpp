#include "place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch::stacks {

namespace {

// "Trainer.step" -> "step"; "main.<locals>.run" -> "run"
std::string_view plain(std::string_view function) {
  return function.substr(function.rfind('.') + 1);
}

bool has_function(Words functions, std::string_view name) {
  return std::ranges::any_of(functions, [&](std::string_view one) {
    return one.ends_with('*') ? name.starts_with(one.substr(0, one.size() - 1)) : name == one;
  });
}

bool ends_path(std::string_view file, std::string_view end) {
  return file.ends_with(end) &&
         (file.size() == end.size() || file[file.size() - end.size() - 1] == '/');
}

// Where the package begins in a path of a library; npos: it is none.
std::size_t package_at(std::string_view file) {
  for (const std::string_view root : {"/site-packages/", "/dist-packages/"})
    if (const std::size_t at = file.rfind(root); at != file.npos) return at + root.size();
  for (const std::string_view root : {"/lib/python3", "/lib64/python3", "/lib/pypy3"})
    if (const std::size_t at = file.rfind(root); at != file.npos)
      if (const std::size_t slash = file.find('/', at + root.size()); slash != file.npos)
        return slash + 1;
  return file.npos;
}

const KnownWait* known_wait(const Frame& frame) {
  const std::string_view name = plain(frame.function);
  for (const KnownWait& row : rows<KnownWait>()) {
    // A name alone is of Python's own library: a user may have a queue.py as well.
    const bool own = row.file.find('/') == row.file.npos;
    if (ends_path(frame.file, row.file) && has_function(row.functions, name) &&
        (!own || is_library(frame.file)))
      return &row;
  }
  return nullptr;
}

bool runs(const Thread& thread) { return thread.state == 'R' || thread.state == 'D'; }

// Beside the program: a container, which an engine does not keep below itself.
bool is_beside(const Rank& rank, const Process& process) {
  return &process != &rank.processes.front() &&
         std::ranges::none_of(rank.processes,
                              [&](const Process& one) { return one.pid == process.parent; });
}

std::vector<const Process*> children_of(const Rank& rank, const Process& parent) {
  std::vector<const Process*> found;
  for (const Process& one : rank.processes)
    if (&one != &parent &&
        (one.parent == parent.pid || (&parent == &rank.processes.front() && is_beside(rank, one))))
      found.push_back(&one);
  return found;
}

bool has_python(const Rank& rank, const Process& process, int depth = 0) {
  if (!process.python.empty()) return true;
  return depth < 8 && std::ranges::any_of(rank.processes, [&](const Process& one) {
           return one.parent == process.pid && &one != &process && has_python(rank, one, depth + 1);
         });
}

// What leads to the program, of those that a shell or an agent has started; 0: it does not. Python goes before what has
// none, and the own tree before what a rank has left behind.
int leads(const Rank& rank, const Process& process, bool waits_for_child) {
  const bool beside = is_beside(rank, process);
  if (has_python(rank, process)) return beside ? 3 : 4;
  return beside ? 1 : waits_for_child ? 2 : 0;
}

}  // namespace

bool is_library(std::string_view file) {
  if (file.starts_with("<frozen")) return true;
  if (package_at(file) != file.npos) return true;
  // A package that is used from where its sources are.
  return std::ranges::any_of(rows<KnownWait>(), [&](const KnownWait& row) {
    return row.file.find('/') != row.file.npos && ends_path(file, row.file);
  });
}

const Thread* main_thread(const Process& process) {
  for (const Thread& one : process.threads)
    if (one.main || one.tid == process.pid) return &one;
  return process.threads.empty() ? nullptr : &process.threads.front();
}

Wait kernel_wait(const Thread& thread) {
  const std::string_view wchan = thread.wchan, what = thread.waits_for;
  const auto is = [&](std::string_view begin) { return what.starts_with(begin); };
  const auto in = [&](std::string_view part) { return wchan.find(part) != wchan.npos; };
  if (thread.state == 'T' || in("do_signal_stop")) return Wait::stopped;
  if (thread.state == 't') return Wait::terminal;
  if (thread.state == 'Z' || thread.state == 'X') return Wait::dead;
  if (thread.state == 'D') return Wait::disk;
  if (thread.state == 'R') return Wait::running;
  if (is("listen ") || in("accept")) return Wait::serve;
  // connect(2) of x86-64 and of most others.
  if (is("tcp ") && (thread.system_call == 42 || thread.system_call == 203)) return Wait::connect;
  if (is("file /dev/pts/") || is("file /dev/tty") || in("n_tty_read")) return Wait::terminal;
  if (is("file ") || is("fifo ") || in("wait_for_partner") || in("fifo_open")) return Wait::file;
  if (is("lock ") || in("lock_inode_wait")) return Wait::lock;
  if (is("tcp ") || is("unix") || is("pipe") || is("udp") || is("socket") || is("epoll"))
    return Wait::socket;
  if (is("futex") || in("futex")) return Wait::lock;
  if (is("child") || wchan == "do_wait" || in("kernel_wait4")) return Wait::child;
  if (is("sleep") || in("nanosleep")) return Wait::sleep;
  return Wait::asleep;
}

Doing kernel_doing(const Thread& thread) {
  const std::string_view what = thread.waits_for;
  const std::size_t blank = what.find(' ');
  const std::string rest(blank == what.npos ? "" : what.substr(blank + 1));
  const std::string peer = rest.substr(0, rest.find(' '));
  switch (kernel_wait(thread)) {
    case Wait::stopped:
      return {"is stopped (SIGSTOP)", ""};
    case Wait::dead:
      return {"has died", ""};
    case Wait::running:
      return {"runs", ""};
    case Wait::disk:
      return {"is in the kernel: a disk or a driver", thread.wchan};
    case Wait::serve:
      return {"waits for a connection", peer};
    case Wait::connect:
      return {"connects to", peer};
    case Wait::terminal:
      return {thread.state == 't' ? "is stopped by a debugger" : "waits for a terminal", ""};
    case Wait::file:
      return {what.starts_with("fifo") ? "waits for the FIFO" : "waits for the file",
              rest.empty() ? thread.wchan : rest};
    case Wait::lock:
      return what.starts_with("lock") ? Doing{"waits for the lock of", rest}
                                      : Doing{"waits in futex", ""};
    case Wait::socket:
      if (what == "epoll") return {"waits in epoll", ""};
      return {what.starts_with("tcp") ? "waits for TCP"
                                      : "waits for a " + std::string(what.substr(0, blank)),
              peer};
    case Wait::child:
      return {"waits for process", rest};
    case Wait::sleep:
      return {"sleeps", ""};
    default:
      return {"waits in the kernel", thread.wchan};
  }
}

Place place_in(const Process& process, const Thread* thread) {
  Place place{&process, thread, Wait::none, "", nullptr};
  if (thread == nullptr) {
    place.wait = process.state == 'Z'   ? Wait::dead
                 : process.state == 'T' ? Wait::stopped
                                        : Wait::none;
    return place;
  }
  place.wait = kernel_wait(*thread);
  if (!thread->frames.empty()) place.user = &thread->frames.back();
  const KnownWait* known = nullptr;
  for (std::size_t i = thread->frames.size(); i-- > 0;) {
    const Frame& frame = thread->frames[i];
    if (!is_library(frame.file)) {
      place.user = &frame;
      break;
    }
    const KnownWait* row = known_wait(frame);
    if (row == nullptr || (row->blocked && runs(*thread))) continue;
    known = row;  // the outermost says most
    place.operation = plain(frame.function);
  }
  const bool held = place.wait == Wait::stopped || place.wait == Wait::disk ||
                    place.wait == Wait::dead || thread->state == 't';
  if (known != nullptr && !held) place.wait = known->kind;
  return place;
}

Place place_of(const Rank& rank) {
  if (rank.processes.empty()) return {};
  const Process* process = &rank.processes.front();
  Place place = place_in(*process, main_thread(*process));
  // Shells, agents and the like wait for the program, which is their child.
  for (int depth = 0; depth < 8; ++depth) {
    const bool bare = place.thread == nullptr || place.thread->frames.empty();
    if (place.wait != Wait::agent &&
        (!bare || !process->python.empty() || !process->unread.empty()))
      break;
    std::optional<Place> next;
    int best = 0;
    for (const Process* child : children_of(rank, *process)) {
      const int one = leads(rank, *child, place.wait == Wait::child);
      if (one == 0 || one < best) continue;
      const Place there = place_in(*child, main_thread(*child));
      // Of several workers the one that is not where the others wait.
      const bool outside = !child->python.empty() && next && waits_for_ranks(next->wait) &&
                           !waits_for_ranks(there.wait);
      if (one > best || outside) next = there;
      best = one;
    }
    if (!next) break;
    place = *next;
    process = place.process;
  }
  if (place.wait != Wait::lock) return place;
  // The main thread wants the lock of the interpreter, which another one keeps in C.
  for (const Thread& other : process->threads)
    if (other.has_gil && &other != place.thread && !other.frames.empty())
      return place_in(*process, &other);
  return place;
}

std::string doing(const Place& place) {
  if (place.thread == nullptr) return place.wait == Wait::dead ? "has died" : "is there";
  if (!place.operation.empty() && waits_for_ranks(place.wait)) return "waits in " + place.operation;
  if (place.wait == Wait::serve) return "waits for a request";
  if (place.wait == Wait::terminal && place.thread->state != 't')
    return "waits for a person at a terminal";
  const Doing kernel = kernel_doing(*place.thread);
  std::string text = kernel.what + (kernel.detail.empty() ? "" : " " + kernel.detail);
  const bool gil = !place.thread->main && place.thread->has_gil;
  if (gil) return fmt::format("has the interpreter's lock in C, in thread {}", place.thread->name);
  if (!kernel.detail.empty()) return text;
  const std::string by = place.operation.empty() ? "" : fmt::format(" ({})", place.operation);
  if (place.wait == Wait::queue) return "waits for a queue" + by;
  if (place.wait == Wait::child) return "waits for a process" + by;
  if (place.wait == Wait::lock) return "waits for a lock" + by;
  return text;
}

int columns(std::string_view text) {  // code points
  return static_cast<int>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string cut_middle(std::string text, int most) {
  if (columns(text) <= most) return text;
  const auto edge = [&](std::size_t byte) {  // not inside of a character
    while (byte < text.size() && (static_cast<unsigned char>(text[byte]) & 0xC0) == 0x80) ++byte;
    return byte;
  };
  const auto keep = static_cast<std::size_t>(std::max(most, 8) - 3);
  return text.substr(0, edge(keep / 3)) + "..." +
         text.substr(edge(text.size() - (keep - keep / 3)));
}

std::string frame_text(const Frame& frame, int width) {
  const std::size_t at = package_at(frame.file);
  std::string file = render::printable(at == frame.file.npos ? frame.file : frame.file.substr(at));
  std::string tail = frame.line > 0 ? fmt::format(":{}", frame.line) : "";
  if (!frame.function.empty()) tail += " " + render::printable(frame.function);
  tail = cut_middle(std::move(tail), width / 2);
  return cut_middle(std::move(file), width - columns(tail)) + tail;
}

}  // namespace hpclaunch::stacks
