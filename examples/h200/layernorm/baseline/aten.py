"""torch's own fused operator on bfloat16, which computes in float32 inside."""

import torch


def run(features, gain, shift):
    return torch.nn.functional.layer_norm(features, (features.shape[-1],), gain, shift, 1e-5)
