#include "agent/run_directory.h"
