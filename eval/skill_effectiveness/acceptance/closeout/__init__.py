"""Closeout: what has to be verified before the work of an agent is accepted, and the decision about it.

Source: closeout.md; the edition is specVersion 0.1 of the Closeout Specification.
"""
