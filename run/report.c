/* SPDX-License-Identifier: BSD-3-Clause */
/* What happened in a process: for people on standard error, as a line of JSON in a file. */
#include "run/report.h"

#include <errno.h>
#include <inttypes.h>

#include "muster/memory.h"
#include "run/preload.h"

/* Where that library is preloaded, too. */
extern __typeof__(muster_memory_get_counters) muster_memory_get_counters __attribute__((weak));

static bool get_memory(muster_memory_counters* memory) {
  return muster_memory_get_counters != NULL &&
         muster_memory_get_counters(memory, sizeof *memory) == MUSTER_OK;
}

extern __typeof__(muster_preload_barriers) muster_preload_barriers __attribute__((weak));
extern __typeof__(muster_preload_print_barriers) muster_preload_print_barriers
    __attribute__((weak));

static bool has_barriers(void) {
  return settings.barrier != NULL && muster_preload_barriers != NULL;
}

static bool counts_mutexes(void) { return settings.mutex > RUN_MUTEX_THEIRS; }

static bool is_worth_a_word(void) {
  return getpid() == (pid_t)settings.launcher || run_total(RUN_CREATED) != 0 ||
         run_total(RUN_LOCKS) != 0 || (has_barriers() && muster_preload_barriers() != 0);
}

static void print_threads(int file) {
  const uint64_t created = run_total(RUN_CREATED);
  dprintf(file, "  threads: %" PRIu64 " created, at most %u at a time", created,
          run_most_threads());
  if (run_cores() == 0) {
    dprintf(file, ", none bound\n");
    return;
  }
  dprintf(file, "; %" PRIu64 " left alone, bound to PUs", run_total(RUN_LEFT_ALONE));
  bool some = false;
  for (unsigned core = 0; core < run_cores(); ++core) {
    if (run_placed_on(core) == 0) continue;
    dprintf(file, some ? "; " : " ");
    run_print_pus(file, core);
    dprintf(file, ": %" PRIu64, run_placed_on(core));
    some = true;
  }
  dprintf(file, some ? "\n" : " none\n");
}

static void print_refusals(int file, const muster_memory_counters* memory) {
  if (memory->pages_refused != 0) dprintf(file, " (%s)", strerror(memory->first_refusal));
  if (memory->regions_refused != 0) {
    dprintf(file, "; the kernel refused to bind %" PRIu64 " region%s (%s)", memory->regions_refused,
            s_after(memory->regions_refused), strerror(memory->first_region_refusal));
  }
  if (memory->threads_adrift != 0) {
    dprintf(file, "; %" PRIu64 " time%s a thread got no arena, and allocates as by default",
            memory->threads_adrift, s_after(memory->threads_adrift));
  }
}

static void print_memory(int file) {
  muster_memory_counters memory;
  if (!get_memory(&memory)) return;
  dprintf(file, "  memory: ");
  if (memory.numa_node < 0) {
    dprintf(file, "bound to no NUMA node");
  } else {
    dprintf(file, "from NUMA node %d", memory.numa_node);
  }
  dprintf(file,
          "; %" PRIu64 " of %" PRIu64 " bytes bound; pages moved %" PRIu64
          ", there already %" PRIu64 ", refused %" PRIu64,
          memory.bytes_bound, memory.bytes, memory.pages_moved, memory.pages_already_there,
          memory.pages_refused);
  print_refusals(file, &memory);
  dprintf(file, "\n");
}

static void print(int file) {
  dprintf(file, "muster run: ");
  print_escaped(file, program_invocation_short_name, "x");
  dprintf(file, " (process %ld)\n", (long)getpid());
  print_threads(file);
  print_memory(file);
  if (has_barriers()) muster_preload_print_barriers(file, false);
  if (!counts_mutexes()) return;
  dprintf(file,
          "  mutexes: %s; %" PRIu64 " lock%s, of which %" PRIu64 " waited and slept %" PRIu64
          " time%s; %" PRIu64 " wait%s for conditions; %" PRIu64
          " lock%s of other kinds passed on\n",
          settings.mutex_name, run_total(RUN_LOCKS), s_after(run_total(RUN_LOCKS)),
          run_total(RUN_WAITED), run_total(RUN_SLEPT), s_after(run_total(RUN_SLEPT)),
          run_total(RUN_WAITS), s_after(run_total(RUN_WAITS)), run_total(RUN_PASSED_ON),
          s_after(run_total(RUN_PASSED_ON)));
}

static bool print_json(int file) {
  dprintf(file, "{\"schema\": 1, \"program\": \"");
  print_escaped(file, program_invocation_short_name, "u00");
  dprintf(file,
          "\", \"process\": %ld, \"threads\": {\"created\": %" PRIu64
          ", \"most_at_a_time\": %u, \"left_alone\": %" PRIu64 ", \"cores\": [",
          (long)getpid(), run_total(RUN_CREATED), run_most_threads(), run_total(RUN_LEFT_ALONE));
  for (unsigned core = 0; core < run_cores(); ++core) {
    dprintf(file, core == 0 ? "{\"pus\": [" : ", {\"pus\": [");
    run_print_pus(file, core);
    dprintf(file, "], \"threads\": %" PRIu64 "}", run_placed_on(core));
  }
  dprintf(file, "]}");
  if (counts_mutexes()) {
    dprintf(file,
            ", \"mutexes\": {\"name\": \"%s\", \"locks\": %" PRIu64 ", \"waited\": %" PRIu64
            ", \"slept\": %" PRIu64 ", \"waits_for_conditions\": %" PRIu64
            ", \"passed_on\": %" PRIu64 "}",
            settings.mutex_name, run_total(RUN_LOCKS), run_total(RUN_WAITED), run_total(RUN_SLEPT),
            run_total(RUN_WAITS), run_total(RUN_PASSED_ON));
  }
  if (has_barriers()) muster_preload_print_barriers(file, true);
  muster_memory_counters memory;
  if (get_memory(&memory)) {
    dprintf(file,
            ", \"memory\": {\"numa_node\": %d, \"bytes\": %" PRIu64 ", \"bytes_bound\": %" PRIu64
            ", \"pages_moved\": %" PRIu64 ", \"pages_already_there\": %" PRIu64
            ", \"pages_refused\": %" PRIu64 ", \"regions_refused\": %" PRIu64
            ", \"threads_adrift\": %" PRIu64 "}",
            memory.numa_node, memory.bytes, memory.bytes_bound, memory.pages_moved,
            memory.pages_already_there, memory.pages_refused, memory.regions_refused,
            memory.threads_adrift);
  }
  return dprintf(file, "}\n") > 0;
}

void run_note_stderr(void) { note_stderr(); }

void run_report(void) {
  if (settings.reports && is_worth_a_word()) print(own_stderr());
  if (settings.json != NULL) append_report(settings.json, O_CREAT, print_json);
}
