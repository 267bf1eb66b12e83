// SPDX-License-Identifier: Apache-2.0
// Prints size and member offsets of our NVML structures, in the order of their members, for the
// test that compares them with the public Python bindings.
#include "emulator/lib/abi_gpm.h"
#include "emulator/lib/abi_more.h"
#include "gpu/nvml_abi_mig.h"

#include <stddef.h>
#include <stdio.h>

#define SIZE(type) printf("%s %zu", #type, sizeof(struct type))
#define AT(type, member) printf(" %zu", offsetof(struct type, member))
#define END() printf("\n")

static void print_common(void)
{
	SIZE(nvml_memory), AT(nvml_memory, total_bytes), AT(nvml_memory, free_bytes),
		AT(nvml_memory, used_bytes), END();
	SIZE(nvml_memory_v2), AT(nvml_memory_v2, version), AT(nvml_memory_v2, total_bytes),
		AT(nvml_memory_v2, reserved_bytes), AT(nvml_memory_v2, free_bytes),
		AT(nvml_memory_v2, used_bytes), END();
	SIZE(nvml_utilization), AT(nvml_utilization, gpu_percent),
		AT(nvml_utilization, memory_percent), END();
	SIZE(nvml_pci_info), AT(nvml_pci_info, bus_id_legacy), AT(nvml_pci_info, domain),
		AT(nvml_pci_info, bus), AT(nvml_pci_info, device), AT(nvml_pci_info, pci_device_id),
		AT(nvml_pci_info, pci_subsystem_id), AT(nvml_pci_info, bus_id), END();
	SIZE(nvml_process_info), AT(nvml_process_info, pid), AT(nvml_process_info, used_bytes),
		AT(nvml_process_info, gpu_instance_id), AT(nvml_process_info, compute_instance_id),
		END();
	SIZE(nvml_process_sample), AT(nvml_process_sample, pid), AT(nvml_process_sample, time_us),
		AT(nvml_process_sample, sm_percent), AT(nvml_process_sample, memory_percent),
		AT(nvml_process_sample, encoder_percent), AT(nvml_process_sample, decoder_percent),
		END();
	SIZE(nvml_event_data), AT(nvml_event_data, device), AT(nvml_event_data, event_type),
		AT(nvml_event_data, event_data), AT(nvml_event_data, gpu_instance_id),
		AT(nvml_event_data, compute_instance_id), END();
	SIZE(nvml_field_value), AT(nvml_field_value, field_id), AT(nvml_field_value, scope_id),
		AT(nvml_field_value, time_us), AT(nvml_field_value, latency_us),
		AT(nvml_field_value, value_type), AT(nvml_field_value, status),
		AT(nvml_field_value, value), END();
	SIZE(nvml_bar1_memory), AT(nvml_bar1_memory, total_bytes), AT(nvml_bar1_memory, free_bytes),
		AT(nvml_bar1_memory, used_bytes), END();
	SIZE(nvml_gpm_support), AT(nvml_gpm_support, version), AT(nvml_gpm_support, is_supported),
		END();
	SIZE(nvml_temperature_v1), AT(nvml_temperature_v1, version),
		AT(nvml_temperature_v1, sensor), AT(nvml_temperature_v1, temperature_c), END();
}

static void print_more(void)
{
	SIZE(nvml_pci_info_v2), END();
	SIZE(nvml_pci_info_ext), END();
	SIZE(nvml_uuid), END();
	SIZE(nvml_driver_branch), END();
	SIZE(nvml_ecc_counts), END();
	SIZE(nvml_row_remapper_histogram), END();
	SIZE(nvml_violation_time), END();
	SIZE(nvml_fbc_stats), END();
	SIZE(nvml_margin_temperature), END();
	SIZE(nvml_thermal_settings), END();
	SIZE(nvml_fabric_info_v2), END();
	SIZE(nvml_fabric_info_v3), END();
}

static void print_mig(void)
{
	SIZE(nvml_placement), AT(nvml_placement, start), AT(nvml_placement, size), END();
	SIZE(nvml_gi_profile_info), AT(nvml_gi_profile_info, id),
		AT(nvml_gi_profile_info, is_p2p_supported), AT(nvml_gi_profile_info, slice_count),
		AT(nvml_gi_profile_info, instance_count), AT(nvml_gi_profile_info, sm_count),
		AT(nvml_gi_profile_info, copy_count), AT(nvml_gi_profile_info, decoder_count),
		AT(nvml_gi_profile_info, encoder_count), AT(nvml_gi_profile_info, jpeg_count),
		AT(nvml_gi_profile_info, ofa_count), AT(nvml_gi_profile_info, memory_mib), END();
	SIZE(nvml_gi_profile_info_v2), END();
	SIZE(nvml_gi_info), AT(nvml_gi_info, device), AT(nvml_gi_info, id),
		AT(nvml_gi_info, profile_id), AT(nvml_gi_info, placement), END();
	SIZE(nvml_ci_profile_info), END();
	SIZE(nvml_ci_profile_info_v2), END();
	SIZE(nvml_ci_info), AT(nvml_ci_info, device), AT(nvml_ci_info, gpu_instance),
		AT(nvml_ci_info, id), AT(nvml_ci_info, profile_id), AT(nvml_ci_info, placement),
		END();
	SIZE(nvml_device_attributes), AT(nvml_device_attributes, sm_count),
		AT(nvml_device_attributes, copy_count), AT(nvml_device_attributes, decoder_count),
		AT(nvml_device_attributes, encoder_count), AT(nvml_device_attributes, jpeg_count),
		AT(nvml_device_attributes, ofa_count), AT(nvml_device_attributes, gi_slice_count),
		AT(nvml_device_attributes, ci_slice_count), AT(nvml_device_attributes, memory_mib),
		END();
}

static void print_gpm(void)
{
	SIZE(nvml_gpm_metric), AT(nvml_gpm_metric, id), AT(nvml_gpm_metric, status),
		AT(nvml_gpm_metric, value), AT(nvml_gpm_metric, short_name), END();
	SIZE(nvml_sample), AT(nvml_sample, time_us), AT(nvml_sample, value), END();
	SIZE(nvml_process_use), AT(nvml_process_use, time_us), AT(nvml_process_use, pid),
		AT(nvml_process_use, sm_percent), AT(nvml_process_use, memory_percent),
		AT(nvml_process_use, encoder_percent), AT(nvml_process_use, decoder_percent),
		AT(nvml_process_use, jpeg_percent), AT(nvml_process_use, ofa_percent), END();
	SIZE(nvml_processes_use), AT(nvml_processes_use, version), AT(nvml_processes_use, count),
		AT(nvml_processes_use, last_seen_us), AT(nvml_processes_use, processes), END();
	SIZE(nvml_process_detail), AT(nvml_process_detail, pid),
		AT(nvml_process_detail, used_bytes), AT(nvml_process_detail, gpu_instance_id),
		AT(nvml_process_detail, compute_instance_id),
		AT(nvml_process_detail, protected_bytes), END();
	SIZE(nvml_process_details), AT(nvml_process_details, version),
		AT(nvml_process_details, mode), AT(nvml_process_details, count),
		AT(nvml_process_details, processes), END();
	SIZE(nvml_power_value_v2), AT(nvml_power_value_v2, version), AT(nvml_power_value_v2, scope),
		AT(nvml_power_value_v2, power_mw), END();
}

int main(void)
{
	print_mig();
	print_gpm();
	print_common();
	print_more();
	return fflush(stdout) == 0 ? 0 : 1;
}
