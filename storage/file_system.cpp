#include "storage/file_system.h"
