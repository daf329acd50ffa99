/* A trainer without LibTorch, in C: who it is, READY and STEP, until it is told to drain or is done. */
#include <muster/worker_c.h>
#include <stdio.h>

int main(void) {
  MusterWorker* worker = muster_worker_open();
  if (worker == NULL) {
    fprintf(stderr, "report: %s\n", muster_worker_last_error());
    return 78;
  }
  muster_worker_ready(worker);
  for (int64_t step = 1; step <= 3 && !muster_worker_drain_requested(worker); ++step) {
    muster_worker_step(worker, step);
  }
  printf("rank %d of %d, agent %s, muster %s\n", muster_worker_rank(worker),
         muster_worker_world_size(worker), muster_worker_connected(worker) ? "there" : "absent",
         muster_version());
  muster_worker_close(worker);
  return 0;
}
