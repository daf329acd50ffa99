#include "base/one_line.h"
