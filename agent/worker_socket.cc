#include "agent/worker_socket.h"
