"""The milestone close: final gate, crosscheck and close over evidence that a run makes itself.

Source: milestone.md.
"""
