#include "launcher/rdzv_conf.h"

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view text = TextOf(data, size);
  absl::StatusOr<RdzvConf> conf = ParseRdzvConf({text.data(), text.size()});
  if (!conf.ok()) {
    MustBeOneLine(conf.status());
    return 0;
  }
  for (const auto& time : {conf->join_timeout, conf->keep_alive_interval, conf->timeout}) {
    Must(!time || *time > Duration::zero(), "a time is positive");
  }
  return 0;
}
