#pragma once
// verify=report: the rank compares what it got with the plan and writes the difference to stdout, instead of starting
// the program. docs/reference/verify-checks.md has the keys.
#include <fcntl.h>
#include <sys/resource.h>

#include "look.h"

namespace hpclaunch::shim {

using Json = Buffer<256 * 1024>;

constexpr Text kBefore = "HPCLAUNCH_BEFORE";  ///< the report from before an import

/// In quotation marks. A byte that is not printable ASCII becomes \u00XX.
inline Json& add_text(Json& out, Text text) {
  out.add("\"");
  for (int i = 0; i < text.size; ++i) {
    const auto byte = static_cast<unsigned char>(text.at[i]);
    if (byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\')
      out.add({text.at + i, 1});
    else
      out.add("\\u").add_digits(byte, 4, 16);
  }
  return out.add("\"");
}

/// Puts `open` before the first of several items, commas between the others, and `close` behind the last.
class List {
 public:
  List(Json& out, Text open, Text close) : out_(out), open_(open), close_(close) {}
  Json& next() {
    out_.add(some_ ? "," : open_);
    some_ = true;
    return out_;
  }
  void end() const {
    if (some_) out_.add(close_);
  }

 private:
  Json& out_;
  Text open_;
  Text close_;
  bool some_ = false;
};

inline bool is_shown(Text name, Text patterns) {
  bool shown = false;
  each_piece(patterns, [&](Text pattern) {
    const int fixed = pattern.size - 1;
    const bool open = pattern.at[fixed] == '*';
    shown = shown || pattern == name ||
            (open && name.size >= fixed && Text(name.at, fixed) == Text(pattern.at, fixed));
  });
  return shown;
}

/// Variables that differ, as fingerprints, and values of those that may be shown.
inline void add_variables(Json& out, const char* const* environment, const Plan& plan,
                          const Task& task) {
  List marks(out, ",\"variables\":{", "}");
  each_planned(environment, plan, task, [&](Text name, Text value, const char* fault) {
    if (fault == nullptr) return;
    add_text(marks.next(), name).add(":\"");
    if (value.at != nullptr) out.add_digits(fnv1a(value), 8, 16).add("\"");
    if (value.at == nullptr) out.add("--------\"");
  });
  marks.end();
  List values(out, ",\"values\":{", "}");
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    Text value(*entry);
    Text name;
    if (!cut(value, '=', name) || !is_shown(name, plan.show)) continue;
    bool as_planned = false;
    each_planned(environment, plan, task, [&](Text other, Text, const char* fault) {
      as_planned |= fault == nullptr && other == name;
    });
    if (!as_planned) add_text(add_text(values.next(), name).add(":"), value);
  }
  values.end();
}

inline int open_file(const char* path, int flags) {
  return static_cast<int>(
      call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

/// Up to the end, or as much as there is room for.
template <int kRoom>
Text read_all(int fd, char (&bytes)[kRoom]) {
  int size = 0;
  for (long part = 1; part > 0 && size<kRoom; size += part> 0 ? static_cast<int>(part) : 0)
    part = call(SYS_read, fd, bytes + size, kRoom - size);
  return {bytes, size};
}

template <int kRoom>
Text read_file(const char* path, char (&bytes)[kRoom]) {
  const int fd = open_file(path, O_RDONLY);
  if (fd < 0) return {};
  const Text all = read_all(fd, bytes);
  close(fd);
  return all;
}

template <int kRoom>
Text first_line(const char* path, char (&bytes)[kRoom]) {
  Text line;
  Text rest = read_file(path, bytes);
  cut(rest, '\n', line);
  return line;
}

template <class Use>
void each_name(const char* directory, Use use) {
  alignas(8) static char bytes[16384];
  const int fd = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  constexpr int kSizeAt = 16;  // of the kernel's struct linux_dirent64
  constexpr int kNameAt = 19;
  for (long size = 0; (size = call(SYS_getdents64, fd, bytes, sizeof bytes)) > 0;) {
    for (long at = 0; at < size;) {
      use(Text(bytes + at + kNameAt));
      at += *reinterpret_cast<const unsigned short*>(bytes + at + kSizeAt);
    }
  }
  close(fd);
}

inline bool is_numbered(Text name, Text stem) {
  int number = 0;
  return name.size > stem.size && Text(name.at, stem.size) == stem &&
         is_number(name.from(stem.size), number);
}

/// Device files that can be opened, by vendor, and those that exist and cannot. A control group refuses at open(2)
/// what access(2) allows, so they are opened.
class Devices {
 public:
  explicit Devices(Text vendors) : vendors_(vendors) {
    bool render_nodes = false;
    bool amd = false;
    each_name("/dev", [&](Text name) {
      render_nodes |= name == "dri";
      amd |= name == "kfd";
      each_vendor([&](Text, Text file, int& count) {
        if (file.at[0] != '0' && is_numbered(name, file)) look("/dev/", name, count);
      });
    });
    if (render_nodes)
      each_name("/dev/dri", [&](Text name) {
        if (is_numbered(name, "renderD")) look_at_render_node(name);
      });
    int ignored = 0;
    if (amd) look("/dev/", "kfd", ignored);  // for all its devices
  }

  void add_to(Json& out) {
    List counts(out, ",\"devices\":{", "}");
    each_vendor([&](Text name, Text, int count) {
      if (count > 0) add_text(counts.next(), name).add(":").add(count);
    });
    counts.end();
    if (refused_.text().size > 0) out.add(",\"refused\":[").add(refused_.text()).add("]");
  }

 private:
  static constexpr int kMostVendors = 8;

  /// `use` gets the name of each vendor, its file and the number of its devices.
  template <class Use>
  void each_vendor(Use use) {
    int at = 0;
    each_piece(vendors_, [&](Text file) {
      Text name;
      cut(file, '*', name);
      if (at < kMostVendors) use(name, file, counts_[at++]);
    });
  }

  void look(Text directory, Text name, int& count) {
    const Line path = Line(directory).add(name);
    const int fd = open_file(path.text().at, O_RDWR);
    if (fd >= 0) {
      ++count;
      close(fd);
    } else {
      refused_.add(refused_.text().size > 0 ? ",\"" : "\"").add(path.text()).add("\"");
    }
  }

  void look_at_render_node(Text name) {
    char bytes[16];
    const Line path = Line("/sys/class/drm/").add(name).add("/device/vendor");
    const Text found = first_line(path.text().at, bytes);
    each_vendor([&](Text, Text file, int& count) {
      if (file == found) look("/dev/dri/", name, count);
    });
  }

  Text vendors_;
  int counts_[kMostVendors] = {};
  Buffer<4096> refused_;  // paths as JSON
};

/// The NUMA nodes that the process may use, where the system call is forbidden: Mems_allowed_list of proc(5).
inline Text allowed_nodes() {
  static char bytes[32768];
  Text line;
  Text key;
  for (Text rest = read_file("/proc/self/status", bytes); rest.size > 0;) {
    cut(rest, '\n', line);
    if (cut(line, ':', key) && key == "Mems_allowed_list") return line.from(1);
  }
  return {};
}

inline void add_memory(Json& out) {
  constexpr int kAllowed = 4;  // MPOL_F_MEMS_ALLOWED
  constinit static Mask nodes;
  int mode = 0;
  if (call(SYS_get_mempolicy, &mode, &nodes, kMaskBits, 0, 0) == 0) {
    mode &= kPolicyModeBits;
    out.add(",\"memory_policy\":\"");
    if (mode < kPolicyCount) out.add(kPolicies[mode]).add("\"");
    if (mode >= kPolicyCount) out.add("mode ").add(mode).add("\"");
    if (nodes.count() > 0) out.add(",\"memory_nodes\":\"").add(nodes).add("\"");
  }
  nodes = {};
  out.add(",\"memory_allowed\":\"");
  if (call(SYS_get_mempolicy, nullptr, &nodes, kMaskBits, 0, kAllowed) == 0)
    out.add(nodes).add("\"");
  else
    out.add(allowed_nodes()).add("\"");
}

inline void add_limits(Json& out) {
  const struct {
    Text name;
    int which;
    rlim_t rlimit::*part;
  } kLimits[] = {{"core", RLIMIT_CORE, &rlimit::rlim_cur},
                 {"core-hard", RLIMIT_CORE, &rlimit::rlim_max},
                 {"memlock", RLIMIT_MEMLOCK, &rlimit::rlim_cur},
                 {"nofile", RLIMIT_NOFILE, &rlimit::rlim_cur},
                 {"stack", RLIMIT_STACK, &rlimit::rlim_cur}};
  List all(out, ",\"limits\":{", "}");
  for (const auto& [name, which, part] : kLimits) {
    rlimit limit = {};
    call(SYS_prlimit64, 0, which, nullptr, &limit);
    add_text(all.next(), name).add(":\"");
    if (limit.*part == RLIM_INFINITY) out.add("unlimited\"");
    if (limit.*part != RLIM_INFINITY) out.add_wide(limit.*part).add("\"");
  }
  all.end();
}

/// The CPUs that the control group allows: what the kernel makes of a mask of all.
inline bool read_allowed(const Mask& own, Mask& allowed) {
  for (unsigned long& word : allowed.words) word = ~0UL;
  return write_affinity(allowed) && read_affinity(allowed) && write_affinity(own);
}

/// What differs from the plan, each key with a comma before it. What most ranks have in common is left out where it
/// has the planned mark.
inline void observe(Json& out, const char* const* environment, const Plan& plan, const Place& place,
                    const Task& task) {
  static Mask found;
  static Mask allowed;
  const bool known = read_affinity(found);
  if (known && read_allowed(found, allowed)) out.add(",\"cpuset\":\"").add(allowed).add("\"");
  add_memory(out);
  Devices(plan.devices).add_to(out);
  add_limits(out);
  if (plan.usual.size > 0 && is_mark_of(plan.usual, out.text())) out.cut_to(0);
  const bool bound = task.binding == Binding::bind || task.binding == Binding::expect;
  if (!known)
    out.add(",\"cpus\":\"(unknown)\"");
  else if (task.binding == Binding::part || !(found == (bound ? task.mask : allowed)))
    out.add(",\"cpus\":\"").add(found).add("\"");
  if (task.outside) out.add(",\"cpus_given\":\"").add(task.given).add("\"");
  const int local = number_in(environment, &plan.local_name, 1);
  if (plan.local_name.size > 0 && local != place.local) {
    out.add(",\"launcher_local_rank\":");
    local < 0 ? out.add("-2") : out.add(local);  // -2: it has none
  }
  add_variables(out, environment, plan, task);
}

/// `json` as lines that launchers keep whole: include/hpclaunch/rank_report.h.
inline void add_pieces(Json& lines, Text json, const Place& place) {
  constexpr int kPiece = 1000;
  constexpr int kNumbers = 24;  // "K/N SIZE ", generously
  Line sender("@hpclaunch-report ");
  sender.add(host_name()).add(":").add(own_pid()).add(":").add(place.rank).add(" ");
  const int room = kPiece - sender.text().size - kNumbers;
  const int count = (json.size + room - 1) / room;
  for (int k = 0; k < count; ++k) {
    const int size = k + 1 < count ? room : json.size - k * room;
    lines.add(sender.text()).add(k + 1).add("/").add(count).add(" ").add(size).add(" ");
    lines.add({json.at + k * room, size}).add_bytes("\n");
  }
}

}  // namespace hpclaunch::shim
