/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a process tells what happened in it. For one source of each preload. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/escape.h"

static struct stat first_stderr;
static void note_stderr(void) { fstat(STDERR_FILENO, &first_stderr); } /* at the start */

/* -1 where the program has closed it: under its number there may be a file of the program's. */
static int own_stderr(void) {
  struct stat now;
  return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == first_stderr.st_dev &&
                 now.st_ino == first_stderr.st_ino
             ? STDERR_FILENO
             : -1;
}

static void tell_of_file(const char* what, const char* name) {
  const int error = errno;
  const int file = own_stderr();
  dprintf(file, "muster run: %s in ", what);
  print_escaped(file, name, "x");
  dprintf(file, ": %s\n", strerror(error));
}

/* `print` returns false, with errno, if the last of it could not be written. */
static void append_report(const char* name, int flags, bool (*print)(int)) {
  const int file = open(name, O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0666);
  if (file < 0) {
    /* The launcher has removed its own: it has its report. */
    if (errno != ENOENT || (flags & O_CREAT) != 0) tell_of_file("no report", name);
    return;
  }
  flock(file, LOCK_EX); /* other processes append their lines */
  if (!print(file)) tell_of_file("no whole report", name);
  close(file);
}
