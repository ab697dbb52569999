// hpclaunch-ask: the program in one process for many questions, so that a test case costs no start.
//
//   hpclaunch-ask --questions     answers what comes on stdin until it ends (tests/cli/ask.py writes it)
//   hpclaunch-ask WORD...         what `hpclaunch WORD...` does
//
// Question: "WORDS VARIABLES INPUT\n" (numbers), then the working directory, the words and NAME=VALUE of each variable,
// each with a NUL behind it, then INPUT bytes of standard input.
// Answer: "STATUS OUT ERR\n" (numbers), then that many bytes of stdout and stderr.
// Commands that replace their process (run, torchrun, submit, verify) are no questions: the client starts them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "cli/command.h"

extern char** environ;
extern "C" void __sanitizer_set_report_fd(void* fd) __attribute__((weak));

namespace {

constexpr int kMostDescriptors = 256;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "hpclaunch-ask: %s\n", what);
  _exit(3);
}

std::size_t number(std::FILE* from) {
  unsigned long value = 0;
  if (std::fscanf(from, "%lu", &value) != 1) give_up("a question begins with three numbers");
  return value;
}

std::string text(std::FILE* from) {
  std::string value;
  for (int c = std::fgetc(from); c != 0; c = std::fgetc(from)) {
    if (c == EOF) give_up("a question ended within a word");
    value += static_cast<char>(c);
  }
  return value;
}

std::vector<std::string> texts(std::FILE* from, std::size_t count) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(text(from));
  return values;
}

// An empty file in memory in the place of descriptor `fd`.
void make_file(int fd) {
  const int file = memfd_create("hpclaunch-ask", MFD_CLOEXEC);
  if (file < 0 || dup2(file, fd) < 0) give_up("no file in memory");
  close(file);
}

std::string content(int fd) {
  struct stat found {};
  fstat(fd, &found);
  std::string value(static_cast<std::size_t>(found.st_size), '\0');
  for (std::size_t at = 0; at < value.size();) {
    const ssize_t got = pread(fd, value.data() + at, value.size() - at, static_cast<off_t>(at));
    if (got <= 0) give_up("an answer could not be read");
    at += static_cast<std::size_t>(got);
  }
  return value;
}

// Descriptors from `first_free` on are the question's: a process would have closed them, with locks of ports, at its end.
void answer(std::FILE* questions, std::FILE* answers, std::size_t word_count, int first_free) {
  const std::size_t variable_count = number(questions);
  const std::size_t input_size = number(questions);
  std::fgetc(questions);  // the newline
  const std::string folder = text(questions);
  const std::vector<std::string> words = texts(questions, word_count);
  std::vector<std::string> variables = texts(questions, variable_count);
  std::string input(input_size, '\0');
  if (std::fread(input.data(), 1, input_size, questions) != input_size)
    give_up("a question ended within its standard input");

  if (chdir(folder.c_str()) != 0) give_up("no such working directory");
  std::vector<char*> pointers;
  for (std::string& variable : variables) pointers.push_back(variable.data());
  pointers.push_back(nullptr);
  environ = pointers.data();
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) make_file(fd);
  if (write(STDIN_FILENO, input.data(), input.size()) < 0) give_up("standard input is full");
  lseek(STDIN_FILENO, 0, SEEK_SET);
  std::rewind(stdin);

  int status = 0;
  try {
    status = hpclaunch::cli::run_words(words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hpclaunch: internal error: %s\n", error.what());
    status = 125;
  }
  std::fflush(stdout);
  std::fflush(stderr);
  environ = nullptr;
  for (int fd = first_free; fd < kMostDescriptors; ++fd) close(fd);
  const std::string out = content(STDOUT_FILENO);
  const std::string err = content(STDERR_FILENO);
  std::fprintf(answers, "%d %zu %zu\n", status, out.size(), err.size());
  std::fwrite(out.data(), 1, out.size(), answers);
  std::fwrite(err.data(), 1, err.size(), answers);
  std::fflush(answers);
}

// Descriptors 0 to 2 belong to the questions from here on; children get none of ours.
int moved(int fd) {
  const int other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (other < 0) give_up("no more descriptors");
  return other;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words != std::vector<std::string>{"--questions"}) return hpclaunch::cli::run_words(words);
  std::FILE* questions = fdopen(moved(STDIN_FILENO), "r");
  std::FILE* answers = fdopen(moved(STDOUT_FILENO), "w");
  const int reports = moved(STDERR_FILENO);
  if (__sanitizer_set_report_fd != nullptr)
    __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<long>(reports)));
  unsigned long word_count = 0;
  while (std::fscanf(questions, "%lu", &word_count) == 1)
    answer(questions, answers, word_count, reports + 1);
  std::fclose(questions);
  std::fclose(answers);
  return 0;
}
