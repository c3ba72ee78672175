/* The header stands being included twice, and in two units of one program. */
#include "slicewise.h"
#include "slicewise.h"

uint32_t other_unit(void) { return slicewise_abi_version(); }
