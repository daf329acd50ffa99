#include "agent/worker_message.h"
