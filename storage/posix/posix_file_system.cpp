#include "storage/posix/posix_file_system.h"
