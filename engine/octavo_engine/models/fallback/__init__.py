"""Architectures that our own decoder does not compute, through transformers over our pages."""
