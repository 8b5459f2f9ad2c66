#include "storage/reshard.h"
