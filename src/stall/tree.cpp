// The stacks of all ranks as a prefix tree: a node is a frame below its callers, with the ranks that are in it.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"
#include "place.h"

namespace hpclaunch::stacks {

namespace {

constexpr std::size_t kDetails = 3;  // that a leaf names

struct ByFrame {
  bool operator()(const Frame* a, const Frame* b) const {
    if (a->line != b->line) return a->line < b->line;
    if (const int order = a->file.compare(b->file); order != 0) return order < 0;
    return a->function < b->function;
  }
};

struct Node {
  const Frame* frame = nullptr;
  std::string leaf;               // instead of a frame: what is waited for
  std::set<std::string> details;  // of the leaf: "10.0.0.2:4711"
  std::vector<int> ranks;         // ascending
  std::map<const Frame*, Node*, ByFrame> frames;
  std::map<std::string, Node*> leaves;
};

class Tree {
 public:
  Node* root() { return &nodes_.front(); }

  void add(int rank, const std::vector<Frame>& frames, const Doing& doing) {
    Node* at = enter(root(), rank);
    for (const Frame& frame : frames) {
      Node*& next = at->frames[&frame];
      if (next == nullptr) (next = &nodes_.emplace_back())->frame = &frame;
      at = enter(next, rank);
    }
    Node*& leaf = at->leaves[doing.what];
    if (leaf == nullptr) (leaf = &nodes_.emplace_back())->leaf = doing.what;
    enter(leaf, rank);
    if (!doing.detail.empty() && leaf->details.size() <= kDetails)
      leaf->details.insert(doing.detail);
  }

 private:
  static Node* enter(Node* node, int rank) {
    if (node->ranks.empty() || node->ranks.back() != rank) node->ranks.push_back(rank);
    return node;
  }
  std::deque<Node> nodes_ = std::deque<Node>(1);
};

class Printer {
 public:
  explicit Printer(const TreeOptions& options) : options_(options) {}

  void line(int indent, std::string_view text) {
    ++lines_;
    if (options_.most_lines > 0 && lines_ > options_.most_lines) return;
    out_ += std::string(static_cast<std::size_t>(indent), ' ');
    out_ += text;
    out_ += '\n';
  }

  void ranks(int indent, const std::vector<int>& numbers) {
    const int room = options_.width - indent - 20;
    std::string set = ranges(numbers);
    for (int most = 16; columns(set) > room && most > 0; most /= 2) set = ranges(numbers, most);
    line(indent,
         fmt::format("{} {} ({})", numbers.size() == 1 ? "rank" : "ranks", set, numbers.size()));
  }

  // The frames of a node and below, those of all its ranks without a new indentation.
  void node(const Node& from, int indent) {
    const Node* at = &from;
    for (;;) {
      const int room = std::max(20, options_.width - indent);
      if (at->frame != nullptr) line(indent, frame_text(*at->frame, room));
      if (!at->leaf.empty()) line(indent, leaf_text(*at, room));
      const std::vector<const Node*> below = children(*at);
      if (below.size() == 1 && below[0]->ranks.size() == at->ranks.size()) {
        at = below[0];
        continue;
      }
      const int deeper = std::min(indent + 2, options_.width / 2);
      for (const Node* child : below) {
        ranks(deeper, child->ranks);
        node(*child, std::min(deeper + 2, options_.width / 2));
      }
      return;
    }
  }

  std::string finish() {
    if (const int more = lines_ - options_.most_lines; options_.most_lines > 0 && more > 0)
      out_ += fmt::format("... {} more\n", counted(more, "line"));
    return std::move(out_);
  }

 private:
  static std::string leaf_text(const Node& node, int room) {
    std::string text = node.leaf;
    if (node.details.size() > kDetails)
      text += fmt::format(" (a different one each: {}, ...)", *node.details.begin());
    else if (!node.details.empty())
      text += " " + joined(node.details, ", ");
    return cut_middle(render::printable(text), room);
  }

  // Most ranks first.
  static std::vector<const Node*> children(const Node& node) {
    std::vector<const Node*> found;
    for (const auto& [frame, child] : node.frames) found.push_back(child);
    for (const auto& [text, child] : node.leaves) found.push_back(child);
    std::ranges::stable_sort(found, [](const Node* a, const Node* b) {
      if (a->ranks.size() != b->ranks.size()) return a->ranks.size() > b->ranks.size();
      return a->ranks.front() < b->ranks.front();
    });
    return found;
  }

  TreeOptions options_;
  std::string out_;
  int lines_ = 0;
};

// Trees by what they are of: "" the main threads, "process data_worker", "thread pt_nccl_watchdg".
using Trees = std::map<std::string, Tree>;

bool is_idle(const Place& place) {
  if (place.thread == nullptr) return place.wait != Wait::dead;
  return place.wait != Wait::running && place.wait != Wait::disk && place.wait != Wait::stopped &&
         place.wait != Wait::dead && place.wait != Wait::file;
}

std::string without_number(const std::string& name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  return end == name.npos ? name : name.substr(0, end + 1);
}

void add_thread(Tree& tree, int rank, const Process& process, const Thread* thread) {
  static const std::vector<Frame> kNone;
  Doing doing{"state unknown", ""};
  if (thread != nullptr)
    doing = kernel_doing(*thread);
  else if (process.state == 'Z')
    doing.what = "has died";
  else if (process.state == 'T')
    doing.what = "is stopped (SIGSTOP)";
  if (!process.unread.empty())
    doing.what = fmt::format("{}; no stack: {}", doing.what, process.unread);
  else if (thread == nullptr || thread->frames.empty())
    doing.what = fmt::format("{}: {}", process.name.empty() ? "program" : process.name, doing.what);
  tree.add(rank, thread == nullptr ? kNone : thread->frames, doing);
}

void add(Trees& trees, const Rank& rank, bool all) {
  if (rank.processes.empty()) {
    trees[""].add(rank.rank, {}, {"no stack: " + rank.missing, ""});
    return;
  }
  const Place place = place_of(rank);
  add_thread(trees[""], rank.rank, *place.process, place.thread);
  bool above = true;  // shells and agents, which the program was started by
  for (const Process& process : rank.processes) {
    const bool acting = &process == place.process;
    if (acting) above = false;
    const Thread* main = main_thread(process);
    if (!acting && (all || (!above && !is_idle(place_in(process, main)))))
      add_thread(trees["process " + process.name], rank.rank, process, main);
    for (const Thread& thread : process.threads) {
      const bool shown = acting && &thread == place.thread;
      if (all ? !shown && &thread != main : acting && thread.has_gil && !shown)
        add_thread(trees["thread " + without_number(thread.name)], rank.rank, process, &thread);
      else if (all && acting && &thread == main && !shown)
        add_thread(trees["thread main"], rank.rank, process, &thread);
    }
  }
}

}  // namespace

std::string tree_text(const Snapshot& snapshot, const TreeOptions& options) {
  Trees trees;
  std::map<std::string, std::vector<int>> cut;
  for (const Rank& rank : snapshot.ranks) {
    if (options.rank >= 0 && rank.rank != options.rank) continue;
    add(trees, rank, options.all_threads);
    for (const std::string& what : rank.cut) cut[what].push_back(rank.rank);
  }
  Printer printer(options);
  for (auto& [title, tree] : trees) {
    if (!title.empty()) printer.line(0, render::printable(title) + ":");
    printer.ranks(0, tree.root()->ranks);
    printer.node(*tree.root(), 2);
  }
  for (const auto& [what, ranks] : cut)
    printer.line(0, fmt::format("not complete ({}): {} {}", render::printable(what),
                                ranks.size() == 1 ? "rank" : "ranks", ranges(ranks, 8)));
  return printer.finish();
}

}  // namespace hpclaunch::stacks
