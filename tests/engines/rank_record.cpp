// The program that the matrix starts: each rank writes what it really got into a file of its own.
//
//   rank_record FOLDER [STATUS]
//
// FOLDER/RANK holds, each ended by a null byte: host name, pid, Cpus_allowed_list, then the environment. Two ranks of
// one number are an error (status 99). It says "rank R" on standard output and ends with STATUS.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

extern char** environ;

namespace {

std::string host_name() {
  // Where nodes share a host name, the cluster says which one this is.
  if (const char* node = std::getenv("HPCLAUNCH_TEST_MODE"); node != nullptr)
    for (const char* name : {"SLURMD_NODENAME", "HPCLAUNCH_TEST_NODE"})
      if (const char* value = std::getenv(name)) return value;
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

std::string allowed_cpus() {
  std::ifstream status("/proc/self/status");
  const std::string key = "Cpus_allowed_list:\t";
  for (std::string line; std::getline(status, line);)
    if (line.compare(0, key.size(), key) == 0) return line.substr(key.size());
  return "?";
}

}  // namespace

int main(int argc, char** argv) {
  const char* rank = std::getenv("RANK");
  if (argc < 2 || rank == nullptr) {
    std::cerr << "rank_record: no folder or no RANK\n";
    return 98;
  }
  const std::string path = std::string(argv[1]) + "/" + rank;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) {
    std::cerr << "rank_record: cannot make " << path << "\n";
    return 99;
  }
  std::string record;
  for (const std::string& part : {host_name(), std::to_string(getpid()), allowed_cpus()})
    record.append(part).push_back('\0');
  for (char** entry = environ; *entry != nullptr; ++entry) record.append(*entry).push_back('\0');
  if (write(file, record.data(), record.size()) != static_cast<ssize_t>(record.size())) return 97;
  std::cout << "rank " + std::string(rank) + "\n" << std::flush;
  return argc > 2 ? std::atoi(argv[2]) : 0;
}
