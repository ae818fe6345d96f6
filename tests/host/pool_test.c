/* pool_test.c -- tests the pool of compile threads: maximum number of threads,
 * wake-up, removal of tasks, signals and fork. */
#include "support.h"

#include "base/os.h"
#include "core/compile_pool.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static test_allocator memory;

static void setup(void)
{
  test_allocator_init(&memory);
}

static void teardown(void)
{
  ck_assert_int_eq(memory.live, 0);
}

typedef struct job {
  /* first member, so that a pointer to the task is a pointer to the job */
  kiln__task task;
  atomic_int *running, *most, *done;
  sem_t *gate;
  pthread_t thread;
} job;

static void run_job(kiln__task *task)
{
  job *j = (job *)task;
  int now, peak;

  j->thread = pthread_self();
  now = atomic_fetch_add(j->running, 1) + 1;
  peak = atomic_load(j->most);
  while (now > peak && !atomic_compare_exchange_weak(j->most, &peak, now))
    continue;
  if (j->gate != NULL)
    sem_wait(j->gate);
  atomic_fetch_sub(j->running, 1);
  atomic_fetch_add(j->done, 1);
}

enum { JOBS = 200 };

static job jobs[JOBS];
static atomic_int running, most, done;

static void prepare_jobs(sem_t *gate)
{
  running = most = done = 0;
  for (int i = 0; i < JOBS; i++)
    jobs[i] = (job){{NULL, run_job}, &running, &most, &done, gate, 0};
}

static void wait_for(atomic_int *what, int value)
{
  const uint64_t start = kiln__clock_ns();

  while (atomic_load(what) != value) {
    ck_assert_msg(kiln__clock_ns() - start < UINT64_C(20000000000),
                  "%d instead of %d", atomic_load(what), value);
    kiln__sleep_ns(100000);
  }
}

START_TEST(pool_runs_everything_within_its_bound)
{
  static const unsigned limits[] = {0, 1, 3, 1000};
  kiln__pool *pool;

  prepare_jobs(NULL);
  ck_kiln_ok(kiln__pool_create(&pool, &memory.alloc, limits[_i]));
  for (int i = 0; i < JOBS; i++)
    kiln__pool_add(pool, &jobs[i].task);
  kiln__pool_free(pool); /* Freeing the pool first runs the queued tasks. */
  ck_assert_int_eq(done, JOBS);
  ck_assert_int_le(most, limits[_i] == 0 ? 1 : (int)limits[_i]);
  for (int i = 0; i < JOBS; i++)
    ck_assert(!pthread_equal(jobs[i].thread, pthread_self()));
}
END_TEST

/* If many tasks arrive after a pause, the pool starts further threads in
 * addition to the idle one. */
START_TEST(pool_wakes_enough_threads)
{
  kiln__pool *pool;
  sem_t gate;

  sem_init(&gate, 0, 0);
  for (int round = 0; round < 50; round++) {
    ck_kiln_ok(kiln__pool_create(&pool, &memory.alloc, 4));
    prepare_jobs(&gate);
    kiln__pool_add(pool, &jobs[0].task);
    sem_post(&gate);
    wait_for(&done, 1);
    if (round % 5 != 0)
      kiln__sleep_ns(500000); /* Give the thread time to become idle. */
    for (int i = 1; i <= 4; i++)
      kiln__pool_add(pool, &jobs[i].task);
    wait_for(&running, 4); /* All four tasks run concurrently. */
    for (int i = 1; i <= 4; i++)
      sem_post(&gate);
    kiln__pool_free(pool);
    ck_assert_int_eq(done, 5);
  }
  sem_destroy(&gate);
}
END_TEST

START_TEST(pool_gives_tasks_back)
{
  kiln__pool *pool;
  sem_t gate;

  sem_init(&gate, 0, 0);
  prepare_jobs(&gate);
  ck_kiln_ok(kiln__pool_create(&pool, &memory.alloc, 1));
  /* A task that was never added cannot be removed. */
  ck_assert(!kiln__pool_remove(pool, &jobs[0].task));
  for (int i = 0; i < 5; i++)
    kiln__pool_add(pool, &jobs[i].task);
  wait_for(&running, 1);
  /* A task that is already running cannot be removed. */
  ck_assert(!kiln__pool_remove(pool, &jobs[0].task));
  /* Remove a task in the middle of the queue, the last task and the first
   * task. */
  ck_assert(kiln__pool_remove(pool, &jobs[2].task));
  ck_assert(kiln__pool_remove(pool, &jobs[4].task));
  ck_assert(kiln__pool_remove(pool, &jobs[1].task));
  ck_assert(!kiln__pool_remove(pool, &jobs[1].task));
  kiln__pool_add(pool, &jobs[5].task); /* The queue still accepts tasks. */
  for (int i = 0; i < 3; i++)
    sem_post(&gate);
  kiln__pool_free(pool);
  ck_assert_int_eq(done, 3);
  sem_destroy(&gate);
}
END_TEST

/* If no thread can be started, the task runs in the calling thread. */
START_TEST(pool_without_threads_works)
{
  struct rlimit before, none;
  kiln__pool *pool;

  prepare_jobs(NULL);
  ck_kiln_ok(kiln__pool_create(&pool, &memory.alloc, 2));
  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) {
    puts("cannot give up root: not tried");
    kiln__pool_free(pool);
    return;
  }
  ck_assert_int_eq(getrlimit(RLIMIT_NPROC, &before), 0);
  none = (struct rlimit){0, before.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_NPROC, &none), 0);
  kiln__pool_add(pool, &jobs[0].task);
  setrlimit(RLIMIT_NPROC, &before); /* Leak checkers need to start a thread. */
  ck_assert_int_eq(done, 1);
  ck_assert(pthread_equal(jobs[0].thread, pthread_self()));
  kiln__pool_free(pool);
}
END_TEST

START_TEST(pool_runs_no_signal_handlers)
{
  sem_t gate;
  kiln__pool *pool;
  sigset_t mask;

  sem_init(&gate, 0, 0);
  prepare_jobs(&gate);
  ck_kiln_ok(kiln__pool_create(&pool, &memory.alloc, 1));
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  ck_assert(!sigismember(&mask, SIGUSR1));
  kiln__pool_add(pool, &jobs[0].task);
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  /* Adding the task has not changed the signal mask of this thread. */
  ck_assert(!sigismember(&mask, SIGUSR1));
  wait_for(&running, 1);
  /* The default action of this signal would end the process if the signal were
   * delivered. */
  ck_assert_int_eq(pthread_kill(jobs[0].thread, SIGUSR1), 0);
  sem_post(&gate);
  kiln__pool_free(pool);
  sem_destroy(&gate);
}
END_TEST

/* A forked child has no pool threads, so tasks run in the calling thread and
 * kiln__pool_free() does not wait. */
START_TEST(pool_in_a_forked_child)
{
  kiln__pool *pool;
  sem_t gate;
  int status;
  pid_t pid;

  sem_init(&gate, 0, 0);
  prepare_jobs(&gate);
  ck_kiln_ok(kiln__pool_create(&pool, &memory.alloc, 1));
  kiln__pool_add(pool, &jobs[0].task);
  wait_for(&running, 1);
  pid = fork();
  if (pid == 0) {
    alarm(20);
    jobs[1].gate = NULL;
    kiln__pool_add(pool, &jobs[1].task);
    if (done != 1 || kiln__pool_remove(pool, &jobs[1].task))
      _exit(1);
    kiln__pool_free(pool);
    _exit(memory.live == 0 ? 42 : 2);
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 42);
  sem_post(&gate);
  kiln__pool_free(pool);
  sem_destroy(&gate);
}
END_TEST

START_TEST(pool_needs_memory)
{
  kiln__pool *pool = (kiln__pool *)&memory;

  memory.fail_at = 0;
  ck_kiln_is(kiln__pool_create(&pool, &memory.alloc, 1), KILN_ENOMEM);
  ck_assert_ptr_null(pool);
  kiln__pool_free(NULL);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("pool");
  TCase *pool = kiln_test_case(
      s, "pool", 60, setup, teardown,
      TESTS(pool_wakes_enough_threads, pool_gives_tasks_back,
            pool_without_threads_works, pool_runs_no_signal_handlers,
            pool_in_a_forked_child, pool_needs_memory));

  tcase_add_loop_test(pool, pool_runs_everything_within_its_bound, 0, 4);
  return kiln_test_run(s);
}
