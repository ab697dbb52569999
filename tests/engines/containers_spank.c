// A SPANK plugin that enters a container as NVIDIA/pyxis and CSCS's container engine do, as far as ranks notice: the
// task's root changes after Slurm has bound it and made its environment, the image's variables win, RANK and
// LOCAL_RANK are written where the image has PYTORCH_VERSION, /tmp is the container's own.
// An image NAME is the directory NAME below the folder in plugstack.conf; its variables stand in etc/environment.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

SPANK_PLUGIN(containers, 1)

enum { kImage, kMounts, kEnv, kWorkdir, kNoEntrypoint, kEnvironment, kOptions };
static char* given[kOptions];

static int take(int which, const char* argument, int remote) {
  (void)remote;
  free(given[which]);
  given[which] = strdup(argument != NULL ? argument : "");
  return 0;
}

static struct spank_option options[] = {
    {"container-image", "NAME", "[pyxis] the image", 1, kImage, take},
    {"container-mounts", "SRC:DST,...", "[pyxis] binds", 1, kMounts, take},
    {"container-env", "NAME,...", "[pyxis] variables that the image does not override", 1, kEnv,
     take},
    {"container-workdir", "DIR", "[pyxis] working directory", 1, kWorkdir, take},
    {"no-container-entrypoint", NULL, "[pyxis] no entry point", 0, kNoEntrypoint, take},
    {"environment", "FILE", "the environment definition file", 1, kEnvironment, take},
    SPANK_OPTIONS_TABLE_END};

int slurm_spank_init(spank_t spank, int count, char** words) {
  (void)count, (void)words;
  for (int i = 0; i < kOptions; ++i)
    if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS) return -1;
  return 0;
}

static int fail(const char* what) {
  slurm_error("pyxis: %s: %s", what, strerror(errno));
  return -1;
}

// The directories above `path`, and itself as a directory or a file, below `root`.
static void make(const char* root, const char* path, int directory) {
  char whole[4096];
  const int length = snprintf(whole, sizeof whole, "%s%s", root, path);
  for (char* at = whole + strlen(root) + 1; at < whole + length; ++at)
    if (*at == '/') *at = 0, mkdir(whole, 0755), *at = '/';
  if (directory)
    mkdir(whole, 0755);
  else
    close(open(whole, O_CREAT | O_WRONLY, 0644));
}

static int bind(const char* root, const char* from, const char* to) {
  struct stat found;
  char target[4096];
  if (stat(from, &found) != 0) return fail("--container-mounts: source path does not exist");
  make(root, to, S_ISDIR(found.st_mode));
  snprintf(target, sizeof target, "%s%s", root, to);
  return mount(from, target, NULL, MS_BIND | MS_REC, NULL) == 0 ? 0 : fail(target);
}

static int bind_all(const char* root, char* list) {
  for (char *rest = list, *one; (one = strsep(&rest, ",")) != NULL;) {
    char *from = strsep(&one, ":"), *to = strsep(&one, ":");
    if (*from != 0 && bind(root, from, to != NULL ? to : from) != 0) return -1;
  }
  return 0;
}

static int listed(const char* name) {
  const size_t length = strlen(name);
  for (const char* at = given[kEnv]; at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0)) return 1;
    if (*at == 0) break;
  }
  return 0;
}

static void rewrite(spank_t spank, const char* root, int ranks) {
  char line[4096], value[64];
  snprintf(line, sizeof line, "%s/etc/environment", root);
  FILE* file = fopen(line, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    char *text = line, *name = strsep(&text, "=");
    if (text == NULL) continue;
    text[strcspn(text, "\n")] = 0;
    if (!listed(name)) spank_setenv(spank, name, text, 1);
  }
  if (file != NULL) fclose(file);
  if (!ranks || spank_getenv(spank, "PYTORCH_VERSION", value, sizeof value) != ESPANK_SUCCESS)
    return;
  if (spank_getenv(spank, "SLURM_PROCID", value, sizeof value) == ESPANK_SUCCESS)
    spank_setenv(spank, "RANK", value, 1);
  if (spank_getenv(spank, "SLURM_LOCALID", value, sizeof value) == ESPANK_SUCCESS)
    spank_setenv(spank, "LOCAL_RANK", value, 1);
}

// The keys image, workdir and mounts of the file, each on one line.
static int read_definition(void) {
  char line[4096];
  FILE* file = fopen(given[kEnvironment], "r");
  if (file == NULL) return fail(given[kEnvironment]);
  while (fgets(line, sizeof line, file) != NULL) {
    char *value = line, *key = strsep(&value, "=");
    if (value == NULL) continue;
    char text[4096], *out = text;
    for (; *value != 0 && *value != '\n'; ++value)
      if (strchr("[]\" ", *value) == NULL) *out++ = *value;
    *out = 0;
    if (strncmp(key, "image", 5) == 0) take(kImage, text, 1);
    if (strncmp(key, "mounts", 6) == 0) take(kMounts, text, 1);
    if (strncmp(key, "workdir", 7) == 0) take(kWorkdir, text, 1);
  }
  fclose(file);
  return 0;
}

int slurm_spank_task_init(spank_t spank, int count, char** words) {
  char root[4096];
  const int edf = given[kEnvironment] != NULL;
  if (edf && read_definition() != 0) return -1;
  if (given[kImage] == NULL) return 0;
  if (count != 1) return fail("plugstack.conf: folder of images expected");
  snprintf(root, sizeof root, "%s/%s", words[0], given[kImage]);
  if (access(root, X_OK) != 0) return fail("failed to import docker image");
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
    return fail("namespace");
  if (bind(root, "/dev", "/dev") != 0 || bind(root, "/proc", "/proc") != 0 ||
      bind(root, "/sys", "/sys") != 0)
    return -1;
  make(root, "/tmp", 1);
  char tmp[4200];
  snprintf(tmp, sizeof tmp, "%s/tmp", root);
  if (mount("none", tmp, "tmpfs", 0, NULL) != 0) return fail("/tmp");
  if (given[kMounts] != NULL && bind_all(root, given[kMounts]) != 0) return -1;
  rewrite(spank, root, !edf);
  if (chroot(root) != 0) return fail("chroot");
  if (chdir(given[kWorkdir] != NULL ? given[kWorkdir] : "/") != 0)
    return fail("--container-workdir");
  return 0;
}
