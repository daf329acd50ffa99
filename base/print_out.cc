#include "base/print_out.h"

#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/write_all.h"

namespace muster {

int PrintOut(std::string_view text) {
  const int error = WriteAll(STDOUT_FILENO, text);
  if (error == 0) return 0;
  Log(LogLevel::kError, absl::StrCat("cannot write to standard output: ", strerror(error)));
  return kExitCannotWrite;
}

}  // namespace muster
