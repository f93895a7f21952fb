"""From stored bytes to the layouts that a decoder computes with."""
