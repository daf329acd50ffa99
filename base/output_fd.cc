#include "base/output_fd.h"
