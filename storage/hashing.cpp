#include "storage/hashing.h"
