#include "agent/error_file.h"
