/* SPDX-License-Identifier: BSD-3-Clause */
/* The first process of the virtual machine: runs each line of /commands, says how it ended, and
 * powers off. A line is a program and its arguments, parted by blanks. */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Since the kernel began. */
static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* This machine's way to itself, which Open MPI's launcher listens on. */
static int raise_loopback(void) {
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const int status = fd < 0 ? -1 : ioctl(fd, SIOCSIFFLAGS, &request);
  if (fd >= 0) close(fd);
  return status;
}

static int run(char* line) {
  char* arguments[32] = {NULL};
  int count = 0;
  for (char* word = strtok(line, " \n"); word != NULL && count < 31; word = strtok(NULL, " \n")) {
    arguments[count++] = word;
  }
  if (count == 0) return 0;
  const double begin = seconds();
  const pid_t child = fork();
  if (child == 0) {
    execv(arguments[0], arguments);
    perror(arguments[0]);
    _exit(127);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) status = -1;
  printf("vm: %s ended with %d after %.1f s\n", arguments[0], status, seconds() - begin);
  fflush(stdout);
  return status;
}

int main(void) {
  int failed = 0;
  failed |= mount("proc", "/proc", "proc", 0, NULL);
  failed |= mount("sysfs", "/sys", "sysfs", 0, NULL);
  failed |= mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
  failed |= raise_loopback() | sethostname("vm", 2);
  failed |= mkdir("/dev/shm", 01777);
  failed |= mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
  failed |= setenv("HOME", "/tmp", 1) | setenv("GTEST_COLOR", "no", 1);
  FILE* const commands = fopen("/commands", "r");
  char line[1024];
  int count = 0;
  if (commands == NULL) failed = 1;
  while (commands != NULL && fgets(line, sizeof line, commands) != NULL) {
    failed |= run(line);
    ++count;
  }
  printf("vm: over %.1f s after the kernel began\n", seconds());
  printf("vm: %d commands, %s\n", count, failed == 0 ? "all passed" : "some failed");
  fflush(stdout);
  sync();
  reboot(RB_POWER_OFF);
  return 1;
}
