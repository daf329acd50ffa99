// The smallest program with a group. Little of LibTorch is included: it compiles fast.
#include <ATen/ops/full.h>
#include <muster/world.h>

#include <cstdio>

int main() {
  const muster::World world = muster::init();
  const at::Tensor sum = at::full({1}, world.rank() + 1);
  world.all_reduce(sum);
  std::printf("rank %d: the sum over %d ranks is %ld\n", world.rank(), world.size(),
              static_cast<long>(sum.item<int64_t>()));
}
