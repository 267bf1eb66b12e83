// SPDX-License-Identifier: Apache-2.0
// Reads the list of MIG profiles of a board's file: the GPU instances that the board can hold and
// where, as data. Part of board_read, which calls it; fails on a missing or impossible figure,
// with the profile's number.
#pragma once

#include "emulator/board.h"

err_status board_read_mig(const json_t *list, struct board *board, struct err *err);
