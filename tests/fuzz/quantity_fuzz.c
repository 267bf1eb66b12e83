// SPDX-License-Identifier: Apache-2.0
#include "base/money.h"
#include "base/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	int64_t milli = 0, units = 0, nano = 0, again = 0;
	bool has_milli = quantity_to_milli(text, &milli),
	     has_units = quantity_to_units(text, &units);
	if (has_milli && has_units)
		ASSERT(milli >= 0 && milli / 1000 + (milli % 1000 > 0 ? 1 : 0) == units);
	char out[MONEY_TEXT_BYTES];
	if (money_parse(text, &nano))
		ASSERT(money_parse(str_of(money_format(nano, out)), &again) && again == nano);
	return 0;
}
