"""FlashInfer's fused sum and normalisation, which writes in place: the copies that the problem's outputs
need are part of the call."""

import flashinfer


def run(hidden_states, residual, scale):
    normalised, total = hidden_states.clone(), residual.clone()
    flashinfer.norm.fused_add_rmsnorm(normalised, total, scale, eps=1e-6)
    return normalised, total
