// `hpclaunch script` and `hpclaunch submit`: a batch script for this command line.
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "hpclaunch/submit.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  Request launch;
  job::BatchRequest batch;
  std::string file;
  bool follow = false;
  bool dry_run = false;
};

void declare_batch(Parser& parser, Args& args) {
  constexpr int kMostDevices = 1024;
  JobOptions& job = args.batch.job;
  parser.group("Batch job");
  parser.text("-t,--time", args.batch.time, "TIME", "Time limit: 1:30:00, 90m or 1h30m");
  parser.text("-A,--account", job.account, "NAME", "Account, project or bank");
  parser.text("-q,--queue", job.queue, "NAME", "Queue, partition or QOS; else the first that fits");
  parser.group("Batch job", false, true);
  parser.text("--filesystems", job.filesystems, "LIST", "File systems that the job needs (PBS)");
  parser.text("--constraint", job.constraint, "TEXT", "Kind of node, as the batch system names it");
  parser.text("--name", job.name, "NAME", "Name of the job");
  parser.text("--output", job.output, "FILE", "File for the output of the job");
  parser.text("--error", job.error, "FILE", "File for its errors; else they are in the output");
  parser.number("--gpus", args.launch.job_devices, "N", 1, kMostDevices,
                "GPUs on each node; else as many as the plan uses");
  parser.text("--mem", args.launch.job_memory, "SIZE", "Memory of each node, as in 64G");
  parser.list("--batch", job.batch, "OPTION", "A directive, as it is; repeatable");
  parser.choice("--scheduler", args.batch.scheduler, "NAME",
                {scheduler_names().begin(), scheduler_names().end()},
                "Batch system, without a profile");
  parser.group("Batch job", false, true);
  parser.text("--dependency", job.dependency, "TEXT",
              "Start after other jobs, as the batch system writes it: afterok:123");
  parser.text("--array", job.array, "RANGE", "An array of jobs, as the batch system writes it");
  parser.text("--reservation", job.reservation, "NAME", "Reservation of nodes");
  parser.text("--exclude", job.exclude, "HOSTS", "Nodes that the job does not use");
  parser.text("--mail", job.mail, "ADDRESS", "Send mail when the job begins, ends or fails");
}

// The command line, or the one of `script` that prints what `submit --dry-run` does.
std::vector<std::string> typed_line(const Args& args, const Parser& parser) {
  const std::vector<std::string>& all = parser.typed();
  std::vector<std::string> line = {"hpclaunch", args.dry_run ? "script" : parser.tree().name};
  const std::size_t options = args.dry_run ? all.size() - args.launch.command.size() : 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool value = i > 0 && parser.needs_value(all[i - 1]);
    const bool own = i < options && (all[i] == "--dry-run" || all[i] == "--follow");
    if (!own || value) line.push_back(all[i]);
  }
  return line;
}

Result<job::BatchScript> make(Args& args, const Parser& parser, Purpose purpose,
                              const char* not_done, Session& session) {
  args.launch.job_queue = args.batch.job.queue;
  args.batch.run_words = parser.shared_words("--nodes");  // the allocation decides
  args.batch.typed = typed_line(args, parser);
  Result<job::BatchScript> script =
      job::batch_script(args.launch, args.batch, session.env, purpose);
  if (!script) return script;
  report(session, script->diagnostics);
  if (any_from(Severity::error, script->diagnostics) && !args.launch.force)
    return stopped(not_done);
  if (args.follow) script->text = job::followed(*script);
  return script;
}

int write_script(Args& args, const Parser& parser, Session& session) {
  if (!args.file.empty())
    if (const Status good = job::check_file("--write", args.file); !good)
      return report(session, good.error());
  const Result<job::BatchScript> script = make(args, parser, Purpose::show, "no script", session);
  if (!script) return report(session, script.error());
  if (args.file.empty()) return print_all(session, script->text);
  const Status written = job::write_file("--write", args.file, script->text);
  return written ? 0 : report(session, written.error());
}

int submit_script(Args& args, const Parser& parser, Session& session) {
  if (args.dry_run) return write_script(args, parser, session);
  const Result<job::BatchScript> script =
      make(args, parser, Purpose::start, "not submitted", session);
  if (!script) return report(session, script.error());
  const Result<std::string> id = job::submit(*script, session.env);
  if (!id) return report(session, id.error());
  if (!job::print(session, *id + "\n") || !args.follow) return 0;
  std::fflush(session.out);
  const Result<int> status = job::follow(*script, *id, session);
  return status ? *status : report(session, status.error());
}

}  // namespace

Runner declare_script(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_batch(parser, *args);
  parser.group("Batch job", false, true);
  parser.text("-o,--write", args->file, "FILE", "Write the script to FILE, not to standard output");
  parser.flag("--force", args->launch.force, "Print the script in spite of errors");
  parser.gone("--plain", "hpclaunch run --dry-run with the same options");
  declare_launch_options(parser, args->launch);
  parser.takes_program(args->launch.command, true);
  parser.footer("Exit status: 0 printed, 2 no script could be made.");
  return [args, &parser](Session& session) { return write_script(*args, parser, session); };
}

Runner declare_submit(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_batch(parser, *args);
  parser.group("Batch job", false, true);
  parser.flag("--follow", args->follow, "Show its state, then its output, to its end");
  parser.flag("--dry-run", args->dry_run, "Print the script, and submit nothing");
  parser.flag("--force", args->launch.force, "Submit in spite of errors");
  declare_launch_options(parser, args->launch);
  parser.takes_program(args->launch.command, true);
  parser.footer("Exit status: 0 submitted, 125 not; --follow: the job's (signal n: 128+n).");
  return [args, &parser](Session& session) { return submit_script(*args, parser, session); };
}

}  // namespace hpclaunch::cli
