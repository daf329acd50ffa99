// Says who it is: everything that a launcher tells a worker is in its environment.
#include <cstdio>
#include <cstdlib>

int main() {
  const auto told = [](const char* name) { return std::getenv(name) ? std::getenv(name) : "-"; };
  std::printf("rank %s of %s, local rank %s of %s, master %s:%s\n", told("RANK"),
              told("WORLD_SIZE"), told("LOCAL_RANK"), told("LOCAL_WORLD_SIZE"), told("MASTER_ADDR"),
              told("MASTER_PORT"));
}
