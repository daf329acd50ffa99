#ifndef MUSTER_WORKER_C_H_
#define MUSTER_WORKER_C_H_

#include <stddef.h>
#include <stdint.h>

/* <muster/worker.h> for C, and for every language that can call C: who am I, and a line to the
 * agent. No LibTorch; the library is libmuster_worker.
 *
 * The functions here and their meaning stay as they are for as long as MUSTER_WORKER_ABI is the
 * same; new ones may come. No exception leaves them. Texts are NUL-terminated UTF-8. Any thread may
 * call. Every function takes a null worker for one without an agent in a world of one. */
#define MUSTER_WORKER_ABI 1

#ifdef __cplusplus
extern "C" {
#endif

/* One process as its launcher made it. Opaque; owned by whoever opened it. */
typedef struct MusterWorker MusterWorker;

/* The MUSTER_WORKER_ABI of the library that was loaded. */
int muster_worker_abi(void);
/* The release of the library that was loaded, such as "0.1.0". Owned by the library. */
const char* muster_version(void);

/* Reads the environment (RANK, WORLD_SIZE, …) and connects to the agent that MUSTER_SOCKET names.
 * Without a launcher: a world of one; without an agent: nothing that is said is heard. Null: only
 * part of the environment is there, a value is wrong, or there is no memory;
 * muster_worker_last_error() says which. */
MusterWorker* muster_worker_open(void);
/* Ends the connection and frees the worker and the texts that it owns. */
void muster_worker_close(MusterWorker* worker);

/* Why this thread's last muster_worker_open() returned null: one line, what is wrong and what to
 * do. "" where it did not. Owned by the library, until this thread's next muster_worker_open(). */
const char* muster_worker_last_error(void);

/* 1: a launcher started this process. 0: a world of one. */
int muster_worker_launched(const MusterWorker* worker);
/* 0 … world_size - 1, over all nodes. */
int muster_worker_rank(const MusterWorker* worker);
/* How many workers there are. */
int muster_worker_world_size(const MusterWorker* worker);
/* 0 … local_world_size - 1, on this node. */
int muster_worker_local_rank(const MusterWorker* worker);
/* How many workers there are on this node. */
int muster_worker_local_world_size(const MusterWorker* worker);
/* The number of this node. */
int muster_worker_node(const MusterWorker* worker);
/* How many nodes there are. */
int muster_worker_nodes(const MusterWorker* worker);
/* How often the job was restarted. */
int muster_worker_restart_count(const MusterWorker* worker);
/* The number of the membership; it grows with every change of it. */
int64_t muster_worker_generation(const MusterWorker* worker);
/* Where rank 0 is reached; "" in a world of one. Owned by the worker. */
const char* muster_worker_master_addr(const MusterWorker* worker);
/* The port there; 0 in a world of one. */
int muster_worker_master_port(const MusterWorker* worker);
/* This node as the others reach it; may be "". Owned by the worker. */
const char* muster_worker_local_addr(const MusterWorker* worker);
/* The job's id; may be "". Owned by the worker. */
const char* muster_worker_run_id(const MusterWorker* worker);

/* 1: there is an agent that listens. */
int muster_worker_connected(MusterWorker* worker);

/* What the worker says. No call blocks; without an agent, or once it is gone, none has an effect.
 * What is said again later when the agent is slow to read: ready, checkpoint (the newest), error,
 * quiesced; what is dropped then: step, status. Line breaks in a text become spaces, and a text is
 * cut at 32 KiB. A null text is an empty one. */

/* Set up; from here on it trains. */
void muster_worker_ready(MusterWorker* worker);
/* Progress: the number of the step that was made. */
void muster_worker_step(MusterWorker* worker, int64_t step);
/* A commit point has been written: its name. */
void muster_worker_checkpoint(MusterWorker* worker, const char* text);
/* Free text for people. */
void muster_worker_status(MusterWorker* worker, const char* text);
/* Why it is about to fail: the message of the report. */
void muster_worker_error(MusterWorker* worker, const char* text);
/* It has left the group of that generation and waits, alive, for the next. */
void muster_worker_quiesced(MusterWorker* worker, int64_t generation);

/* What the agent has said so far; each costs one system call. */

/* 1: reach a commit point, save, exit 0. */
int muster_worker_drain_requested(MusterWorker* worker);
/* 1: a peer is gone; leave the collectives of `*generation` (the highest that was told) and older
 * ones. 0: nothing of that kind, and `*generation` is left as it is. `generation` may be null. */
int muster_worker_aborted(MusterWorker* worker, int64_t* generation);
/* The newest MEMBERS datagram, as it came (docs/WORKER_SOCKET.md): at most `size` bytes of it with
 * the NUL. Returns its length, as snprintf() does: 0, and "", where none came. */
size_t muster_worker_members(MusterWorker* worker, char* buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* MUSTER_WORKER_C_H_ */
