#include "storage/retention.h"
