#include "storage/ledger.h"
