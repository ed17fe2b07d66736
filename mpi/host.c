/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/host.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Changes whenever ranks of two versions would not understand each other. */
enum { protocol_version = 3 };

static identity self;
static pthread_once_t self_once = PTHREAD_ONCE_INIT;

static uint64_t hash_bytes(uint64_t hash, const void* data, size_t bytes) { /* FNV-1a */
  const unsigned char* at = data;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 0x100000001b3U;
  return hash;
}

static uint64_t hash_file(uint64_t hash, const char* path) {
  char text[128];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return hash;
  const ssize_t got = read(fd, text, sizeof text);
  close(fd);
  return got > 0 ? hash_bytes(hash, text, (size_t)got) : hash;
}

/* One boot of one kernel, under one host name, in one namespace of process ids, as one user. */
static uint64_t host_identity(void) {
  uint64_t hash = 0xcbf29ce484222325U;
  hash = hash_file(hash, "/proc/sys/kernel/random/boot_id");
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0) hash = hash_bytes(hash, name, strlen(name));
  struct stat namespace_of_pids;
  if (stat("/proc/self/ns/pid", &namespace_of_pids) == 0) {
    hash = hash_bytes(hash, &namespace_of_pids.st_ino, sizeof namespace_of_pids.st_ino);
  }
  const uid_t user = geteuid();
  return hash_bytes(hash, &user, sizeof user);
}

static void identify(void) {
  self.host = host_identity();
  self.pid = (uint32_t)getpid();
  self.protocol = protocol_version;
  if (getrandom(&self.process, sizeof self.process, 0) != (ssize_t)sizeof self.process) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    self.process = hash_bytes(self.host, &now, sizeof now);
    self.process = hash_bytes(self.process, &self.pid, sizeof self.pid);
  }
}

identity own_identity(void) {
  pthread_once(&self_once, identify);
  return self;
}

void affinity_text(pid_t pid, char* text, size_t bytes) {
  enum { cpus_max = 1 << 16, bits = 8 * sizeof(unsigned long) };
  text[0] = '\0';
  unsigned long* const mask = calloc(cpus_max / bits, sizeof(unsigned long));
  if (mask == NULL) return;
  /* By syscall(2): the library's function needs the exact size. */
  if (syscall(SYS_sched_getaffinity, pid, cpus_max / 8, mask) > 0) {
    size_t length = 0;
    for (unsigned cpu = 0; cpu < cpus_max; ++cpu) {
      if ((mask[cpu / bits] >> (cpu % bits) & 1U) == 0) continue;
      unsigned last = cpu;
      while (last + 1 < cpus_max && (mask[(last + 1) / bits] >> ((last + 1) % bits) & 1U) != 0) {
        ++last;
      }
      const int wrote = snprintf(text + length, bytes - length, last > cpu ? "%s%u-%u" : "%s%u",
                                 length > 0 ? "," : "", cpu, last);
      if (wrote < 0 || (size_t)wrote >= bytes - length) { /* too long: as good as unknown */
        text[0] = '\0';
        break;
      }
      length += (size_t)wrote;
      cpu = last;
    }
  }
  free(mask);
}

/* How many of this job, as its launcher says in the environment; 0: it does not. */
static unsigned ranks_on_host_by_launcher(void) {
  static const char* const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                      "PALS_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE", NULL};
  for (const char* const* name = names; *name != NULL; ++name) {
    const char* const text = secure_getenv(*name);
    if (text == NULL) continue;
    char* end = NULL;
    const unsigned long ranks = strtoul(text, &end, 10);
    if (end != text && ranks > 0 && ranks <= 65536) return (unsigned)ranks;
  }
  return 0;
}

void job_ranks_text(const identity* all, unsigned count, char* text, size_t bytes) {
  static const char more[] = ",...";
  size_t length = 0;
  text[0] = '\0';
  for (unsigned first = 0; first < count;) {
    unsigned last = first;
    while (last + 1 < count && all[last + 1].job_rank == all[last].job_rank + 1) ++last;
    char part[32];
    const int wrote = snprintf(part, sizeof part, last > first ? "%s%u-%u" : "%s%u",
                               first > 0 ? "," : "", all[first].job_rank, all[last].job_rank);
    const bool is_end = last + 1 == count;
    if (length + (size_t)wrote + (is_end ? 1 : sizeof more) > bytes) {
      snprintf(text + length, bytes - length, "%s", more);
      return;
    }
    snprintf(text + length, bytes - length, "%s", part);
    length += (size_t)wrote;
    first = last + 1;
  }
}

/* The session's group and the control groups of a process, hashed. */
static uint64_t scheduling_group(uint32_t pid, bool by_session) {
  char path[64];
  uint64_t hash = 0xcbf29ce484222325U;
  if (by_session) {
    snprintf(path, sizeof path, "/proc/%u/autogroup", pid);
    hash = hash_file(hash, path);
  }
  snprintf(path, sizeof path, "/proc/%u/cgroup", pid);
  FILE* const file = fopen(path, "re");
  char line[512];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    /* Version 2 has one group for all; of version 1 the CPU controller's matters. */
    if (strncmp(line, "0::", 3) == 0 || strstr(line, ":cpu,") != NULL ||
        strstr(line, ",cpu:") != NULL || strstr(line, ":cpu:") != NULL) {
      hash = hash_bytes(hash, line, strlen(line));
    }
  }
  if (file != NULL) fclose(file);
  return hash;
}

bool scheduled_apart(const uint32_t* pids, unsigned count) {
  char enabled = '0';
  const int fd = open("/proc/sys/kernel/sched_autogroup_enabled", O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && read(fd, &enabled, 1) != 1) enabled = '0';
  if (fd >= 0) close(fd);
  const uint64_t own = scheduling_group((uint32_t)getpid(), enabled == '1');
  for (unsigned i = 0; i < count; ++i) {
    if (scheduling_group(pids[i], enabled == '1') != own) return true;
  }
  return false;
}

static pthread_mutex_t neighbours_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t* known;
static unsigned known_count;
static unsigned known_room;

void note_neighbour(uint32_t pid) {
  pthread_mutex_lock(&neighbours_mutex);
  bool is_new = true;
  for (unsigned i = 0; i < known_count && is_new; ++i) is_new = known[i] != pid;
  if (is_new && known_count == known_room) {
    const unsigned room = known_room == 0 ? 16 : 2 * known_room;
    uint32_t* const grown = realloc(known, room * sizeof *grown);
    is_new = grown != NULL; /* else it counts as one the launcher knows */
    if (grown != NULL) {
      known = grown;
      known_room = room;
    }
  }
  if (is_new) known[known_count++] = pid;
  pthread_mutex_unlock(&neighbours_mutex);
}

/* Those that have ended, such as spawned ones, want no CPU any more. With the mutex held. */
static void forget_the_dead(void) {
  unsigned alive = 0;
  for (unsigned i = 0; i < known_count; ++i) {
    if (kill((pid_t)known[i], 0) == 0 || errno != ESRCH) known[alive++] = known[i];
  }
  known_count = alive;
}

unsigned neighbours(uint32_t** pids, unsigned* noted) {
  const unsigned told = ranks_on_host_by_launcher();
  pthread_mutex_lock(&neighbours_mutex);
  forget_the_dead();
  *pids = malloc((known_count + 1) * sizeof **pids);
  *noted = *pids != NULL ? known_count : 0;
  if (*pids != NULL && known != NULL) memcpy(*pids, known, known_count * sizeof **pids);
  const unsigned all = known_count > told ? known_count : told;
  pthread_mutex_unlock(&neighbours_mutex);
  return all;
}
