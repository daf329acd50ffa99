/* The C functions do what their header says: identity, what is said, what is heard, bad input. */
#include <muster/worker_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int failures = 0;

static void Expect(int holds, int line, const char* what) {
  if (holds) return;
  fprintf(stderr, "worker_c_test.c:%d: does not hold: %s\n", line, what);
  ++failures;
}
#define EXPECT(condition) Expect((condition) != 0, __LINE__, #condition)

static void Launch(void) {
  setenv("RANK", "3", 1);
  setenv("WORLD_SIZE", "4", 1);
  setenv("LOCAL_RANK", "1", 1);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  setenv("MASTER_ADDR", "node0", 1);
  setenv("MASTER_PORT", "29500", 1);
}

/* A listening agent at `path`, which MUSTER_SOCKET names from now on. */
static int Listen(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  unlink(path);
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  EXPECT(bind(listener, (struct sockaddr*)&address, sizeof address) == 0);
  EXPECT(listen(listener, 1) == 0);
  setenv("MUSTER_SOCKET", path, 1);
  return listener;
}

static void ExpectHeard(int agent, const char* line) {
  char datagram[256] = "";
  const ssize_t size = recv(agent, datagram, sizeof datagram - 1, MSG_DONTWAIT);
  EXPECT(size == (ssize_t)strlen(line) && strcmp(datagram, line) == 0);
  if (strcmp(datagram, line) != 0) fprintf(stderr, "  heard '%s' for '%s'\n", datagram, line);
}

static void WithoutALauncherItIsAWorldOfOne(void) {
  MusterWorker* worker = muster_worker_open();
  EXPECT(worker != NULL);
  EXPECT(!muster_worker_launched(worker) && muster_worker_world_size(worker) == 1);
  EXPECT(!muster_worker_connected(worker));
  EXPECT(strcmp(muster_worker_master_addr(worker), "") == 0);
  muster_worker_ready(worker);
  EXPECT(!muster_worker_drain_requested(worker));
  muster_worker_close(worker);
}

static void ANullWorkerIsOneWithoutAnAgent(void) {
  char members[4] = "abc";
  EXPECT(muster_worker_world_size(NULL) == 1 && muster_worker_rank(NULL) == 0);
  EXPECT(strcmp(muster_worker_run_id(NULL), "") == 0);
  muster_worker_step(NULL, 1);
  muster_worker_error(NULL, NULL);
  EXPECT(!muster_worker_connected(NULL) && !muster_worker_aborted(NULL, NULL));
  EXPECT(muster_worker_members(NULL, members, sizeof members) == 0 && members[0] == '\0');
  EXPECT(muster_worker_members(NULL, NULL, 0) == 0);
  muster_worker_close(NULL);
}

static void HalfAnEnvironmentIsNullAndOneLine(void) {
  setenv("RANK", "0", 1);
  EXPECT(muster_worker_open() == NULL);
  EXPECT(strstr(muster_worker_last_error(), "WORLD_SIZE") != NULL);
  EXPECT(strchr(muster_worker_last_error(), '\n') == NULL);
  Launch();
  setenv("MASTER_PORT", "many", 1);
  EXPECT(muster_worker_open() == NULL);
  EXPECT(strstr(muster_worker_last_error(), "MASTER_PORT='many'") != NULL);
  Launch();
  MusterWorker* worker = muster_worker_open();
  EXPECT(worker != NULL && strcmp(muster_worker_last_error(), "") == 0);
  muster_worker_close(worker);
}

static void TheEnvironmentSaysWhoItIs(void) {
  setenv("MUSTER_GENERATION", "5000000000", 1);
  setenv("TORCHELASTIC_RUN_ID", "digits", 1);
  MusterWorker* worker = muster_worker_open();
  EXPECT(muster_worker_launched(worker) == 1);
  EXPECT(muster_worker_rank(worker) == 3 && muster_worker_world_size(worker) == 4);
  EXPECT(muster_worker_local_rank(worker) == 1 && muster_worker_local_world_size(worker) == 2);
  EXPECT(muster_worker_node(worker) == 1 && muster_worker_nodes(worker) == 2);
  EXPECT(muster_worker_restart_count(worker) == 0);
  EXPECT(muster_worker_generation(worker) == 5000000000);
  EXPECT(strcmp(muster_worker_master_addr(worker), "node0") == 0);
  EXPECT(muster_worker_master_port(worker) == 29500);
  EXPECT(strcmp(muster_worker_local_addr(worker), "") == 0);
  EXPECT(strcmp(muster_worker_run_id(worker), "digits") == 0);
  muster_worker_close(worker);
}

static void TheAgentHearsAndIsHeard(void) {
  /* Not in the test's own folder, whose path may be longer than a socket's may be. */
  char path[64];
  snprintf(path, sizeof path, "/tmp/muster-worker-c.%d", getpid());
  const int listener = Listen(path);
  MusterWorker* worker = muster_worker_open();
  const int agent = accept(listener, NULL, NULL);
  EXPECT(muster_worker_connected(worker) == 1);

  muster_worker_ready(worker);
  ExpectHeard(agent, "READY=1");
  muster_worker_step(worker, 1200);
  ExpectHeard(agent, "STEP=1200");
  muster_worker_checkpoint(worker, "run/a b");
  ExpectHeard(agent, "CHECKPOINT=run/a b");
  muster_worker_status(worker, NULL);
  ExpectHeard(agent, "STATUS=");
  muster_worker_error(worker, "two\nlines");
  ExpectHeard(agent, "ERROR=two lines");
  muster_worker_quiesced(worker, 7);
  ExpectHeard(agent, "QUIESCED=7");

  int64_t generation = -1;
  EXPECT(!muster_worker_drain_requested(worker));
  EXPECT(!muster_worker_aborted(worker, &generation) && generation == -1);
  const char* said[] = {"DRAIN=1", "ABORT=7", "MEMBERS=1\nRANK=0"};
  for (size_t i = 0; i < 3; ++i) EXPECT(send(agent, said[i], strlen(said[i]), MSG_NOSIGNAL) > 0);
  EXPECT(muster_worker_drain_requested(worker) == 1);
  EXPECT(muster_worker_aborted(worker, &generation) == 1 && generation == 7);
  char members[10];
  EXPECT(muster_worker_members(worker, members, sizeof members) == strlen(said[2]));
  EXPECT(strcmp(members, "MEMBERS=1") == 0); /* cut */

  close(agent);
  muster_worker_ready(worker);
  EXPECT(!muster_worker_connected(worker));
  muster_worker_close(worker);
  close(listener);
  unlink(path);
}

int main(void) {
  /* Whoever runs the tests may be a worker itself. */
  clearenv();
  EXPECT(muster_worker_abi() == MUSTER_WORKER_ABI);
  EXPECT(strlen(muster_version()) >= 5);
  WithoutALauncherItIsAWorldOfOne();
  ANullWorkerIsOneWithoutAnAgent();
  HalfAnEnvironmentIsNullAndOneLine();
  TheEnvironmentSaysWhoItIs();
  TheAgentHearsAndIsHeard();
  return failures != 0;
}
