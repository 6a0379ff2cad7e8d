"""Accepted outcome: whether a claim that an agent completed an issue holds, and whether it may close it.

Source: outcome.md; the contract is `accepted-outcome-v1.json` in this folder.
"""
