# SPDX-License-Identifier: Apache-2.0
# The emulated GPUs of a node: device nodes and the NVML library under the driver root, and the
# emulator's daemon. GPUAAS_EMUD and GPUAAS_EMU_LIB name the built files; without them nodes have
# no GPUs and are ordinary.

# GPUAAS_GPUS overrides what is in the nodes: BOARD:COUNT, one word a node, "-" for none.
tb_gpus=${GPUAAS_GPUS:-A100-SXM4-80GB:8 H100-SXM5-80GB:8 L40S:8}

# hardware_of INDEX: "BOARD COUNT", nothing for a node without GPUs.
hardware_of() {
	local words
	read -ra words <<<"$tb_gpus"
	local word=${words[$(($1 - 1))]:--}
	[ "$word" = - ] || printf '%s %s' "${word%:*}" "${word##*:}"
}

hardware_make() {
	local i=$1 board count root=$tb_run/node$1/run/nvidia/driver lib=${GPUAAS_EMU_LIB:-}
	read -r board count <<<"$(hardware_of "$i")" || true
	[ -n "$board" ] && [ -n "$lib" ] || return 0
	[ -f "$lib" ] || die "GPUAAS_EMU_LIB=$lib: no such file" "build it first: ninja -C build"
	mkdir -p "$root/dev" "$root/usr/lib/x86_64-linux-gnu"
	install -m 755 "$lib" "$root/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
	local minor
	for ((minor = 0; minor < count; minor++)); do
		hardware_device "$root/dev/nvidia$minor" "$minor"
	done
	hardware_device "$root/dev/nvidiactl" 255
}

hardware_device() { [ -c "$1" ] || mknod -m 666 "$1" c 195 "$2"; }

# hardware_boards BOARD COUNT: the emulated machine, as the daemon reads it.
hardware_boards() {
	jq -n --arg board "$1" --argjson count "$2" '{gpus: [range($count) | {board: $board}]}'
}

emud_start() {
	local i=$1 board count dir=/run/gpuaas-emu here=$tb_run/node$1/run/gpuaas-emu
	read -r board count <<<"$(hardware_of "$i")" || true
	[ -n "$board" ] && [ -n "${GPUAAS_EMUD:-}" ] || return 0
	[ -x "$GPUAAS_EMUD" ] || die "GPUAAS_EMUD=$GPUAAS_EMUD: no such program" "build it first: ninja -C build"
	[ -f "$here/boards.json" ] || hardware_boards "$board" "$count" >"$here/boards.json"
	touch "$here/control"
	node_program "$i" emud "$GPUAAS_EMUD" --dir "$dir"
	program_wait "node$i-emud" 10 test -S "$here/emu.sock"
}
