#ifndef MUSTER_AGENT_THREAD_STACKS_H_
#define MUSTER_AGENT_THREAD_STACKS_H_

#include <string>
#include <vector>

namespace muster {

// What the threads of a process are doing, as far as the kernel tells us: a line for each,
// "thread 812 (trainer): sleeping in futex_wait_queue, system call 202", and below it, where it can
// be read (root), the kernel's stack. A thread that ends meanwhile, or a file that may not be read,
// leaves its part out. At most `threads_max` threads and 16 frames of each; a last line counts the
// threads that are left out. Empty when there is no such process. `proc`: where /proc is mounted.
std::vector<std::string> ThreadStacks(int pid, int threads_max, const std::string& proc = "/proc");

}  // namespace muster

#endif  // MUSTER_AGENT_THREAD_STACKS_H_
