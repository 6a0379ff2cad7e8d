"""McNemar's exact test of discordant pairs (McNemar 1947; studies.md section 6).

For one sample per task and arm only: repeats of a task are no independent pairs.
"""

from __future__ import annotations

from scipy.special import bdtr


def mcnemar_exact(only_treatment: int, only_comparator: int) -> float:
    """min(1, 2 P(Bin(b + c, 1/2) <= min(b, c))), two-sided.

    Args:
        only_treatment: tasks that only the treatment arm passed.
        only_comparator: tasks that only the comparator passed.

    Returns:
        The p-value; 1 without a discordant pair.

    Raises:
        ValueError: a negative count.
    """
    if only_treatment < 0 or only_comparator < 0:
        raise ValueError("counts of pairs start at 0")
    pairs, fewer = only_treatment + only_comparator, min(only_treatment, only_comparator)
    if pairs == 0:
        return 1.0
    # The incomplete beta function, so that thousands of pairs neither overflow nor underflow.
    return min(1.0, 2.0 * float(bdtr(fewer, pairs, 0.5)))
