"""Whether agent work may be accepted: policies, evidence and decisions at a gate."""
