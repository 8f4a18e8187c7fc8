#!/bin/bash
# check_vulkan.sh PART PROGRAM... - runs tests under the Khronos validation layer with
# synchronization validation, and fails where it has anything to say. Skipped where the layer is not
# installed. PART is K/N: the share of the operators that test_ops runs; other programs run whole.
set -u
layer=/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json
if [ ! -f "$layer" ]; then
    echo "SKIP: $layer is not there"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/vk_layer_settings.txt" <<'END'
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn,perf
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
END
# What other devices do is looked at elsewhere.
export INF_OPS_BACKEND=vulkan INF_OPS_PART=$1
shift
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_SETTINGS_PATH=$folder
failed=0
for program in "$@"; do
    "$program" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log"; failed=1; }
    messages=$(grep -cE 'VUID-|UNASSIGNED-|SYNC-' "$folder/log")
    if [ "$messages" -ne 0 ]; then
        grep -E 'VUID-|UNASSIGNED-|SYNC-' "$folder/log" | cut -c1-500 | head -n 10
        failed=1
    fi
    echo "$(basename "$program"): $messages messages"
done
exit $failed
