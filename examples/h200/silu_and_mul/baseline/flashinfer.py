"""FlashInfer's gated activation."""

import flashinfer


def run(gate_and_value):
    return flashinfer.activation.silu_and_mul(gate_and_value)
