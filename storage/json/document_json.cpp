#include "storage/json/document_json.h"
