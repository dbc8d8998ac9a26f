"""torch's own fused operator."""

import torch


def run(hidden_states, scale):
    return torch.nn.functional.rms_norm(hidden_states, (hidden_states.shape[-1],), scale, 1e-6)
