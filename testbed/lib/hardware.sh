# SPDX-License-Identifier: Apache-2.0
# The emulated GPUs of a node: device nodes and the NVML library under the driver root, and the
# emulator's daemon. They come from a meson build folder; without one, nodes have no GPUs.

# What is in the nodes: BOARD:COUNT, one word a node, "-" for none.
tb_gpus=${GPUAAS_GPUS:-A100-SXM4-80GB:8 H100-SXM5-80GB:8 L40S:8}
tb_build=${GPUAAS_BUILD:-$tb_root/build}
tb_emud=${GPUAAS_EMUD:-$tb_build/emulator/gpuaas-emud}
tb_emu_lib=${GPUAAS_EMU_LIB:-$tb_build/emulator/libnvidia-ml.so.1}

# hardware_fetch: copies of what the build made, so that a later build does not disturb a node.
# A file that is named outright must be there; the default one may be absent.
hardware_fetch() {
	local dir=$tb_state/hardware named=${GPUAAS_BUILD:-}${GPUAAS_EMUD:-}${GPUAAS_EMU_LIB:-}
	if [ ! -x "$tb_emud" ] || [ ! -f "$tb_emu_lib" ]; then
		[ -z "$named" ] || die "$tb_emud or $tb_emu_lib is not there" "build the emulator: ninja -C $tb_build"
		say "no emulator in $tb_build: the nodes have no GPUs"
		return 0
	fi
	mkdir -p "$dir"
	install -m 755 "$tb_emud" "$dir/gpuaas-emud"
	install -m 755 "$tb_emu_lib" "$dir/libnvidia-ml.so.1"
}

# hardware_of INDEX: "BOARD COUNT"; fails for a node without GPUs.
hardware_of() {
	local words
	read -ra words <<<"$tb_gpus"
	local word=${words[$(($1 - 1))]:--}
	[ "$word" != - ] && [ -f "$tb_state/hardware/gpuaas-emud" ] || return 1
	[[ $word =~ ^[A-Za-z0-9_-]+:[0-9]+$ ]] || die "GPUAAS_GPUS has '$word'" "want BOARD:COUNT, as in $tb_gpus"
	printf '%s %s\n' "${word%:*}" "${word##*:}"
}

# hardware_make INDEX: the driver root and the machine's description, once for the node's life.
hardware_make() {
	local i=$1 board count run=$tb_run/node$1/run
	read -r board count < <(hardware_of "$i") || return 0
	local root=$run/nvidia/driver boards=$tb_here/../emulator/boards
	[ ! -f "$run/gpuaas-emu/boards.json" ] || return 0
	[ -f "$boards/$board.json" ] || die "there is no board '$board'" "the boards are: $(ls "$boards")"
	mkdir -p "$root/dev" "$root/usr/lib/x86_64-linux-gnu"
	install -m 755 "$tb_state/hardware/libnvidia-ml.so.1" "$root/usr/lib/x86_64-linux-gnu/"
	local minor
	for ((minor = 0; minor < count; minor++)); do
		hardware_device "$root/dev/nvidia$minor" "$minor"
	done
	hardware_device "$root/dev/nvidiactl" 255
	"$tb_state/hardware/gpuaas-emud" --make "$boards/$board.json" --count "$count" \
		--seed "node$i" | write_file "$run/gpuaas-emu/boards.json"
}

# The number is that of NVIDIA's driver: no other driver may answer for a device that is granted.
hardware_device() {
	[ -c "$1" ] || mknod "$1" c 195 "$2"
	chmod 666 "$1"
}

# emud_start INDEX: a start is a power cycle, so the faults of the life before are cleared.
emud_start() {
	local i=$1 run=$tb_run/node$1/run/gpuaas-emu
	[ -f "$run/boards.json" ] || return 0
	program_alive "node$i-emud" && return 0
	rm -f "$run"/{control,control.errors}
	touch "$run/control"
	node_program "$i" emud "$tb_state/hardware/gpuaas-emud" --dir /run/gpuaas-emu
	program_wait "node$i-emud" 10 test -S "$run/emu.sock"
}
