#include "agent/worker_env.h"
