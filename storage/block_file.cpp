#include "storage/block_file.h"
