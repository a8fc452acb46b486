"""How much a problem or a piece of evidence weighs: five levels of each, as rules name them, and the logarithm of the odds of each.

Finer numbers name the causes of reports no better that had no part in the choice (bench/causes.py). The values lie in the middle of the
range in which every collection of reports is judged as well as by the levels that the others would choose.
"""

from collections.abc import Mapping
from typing import Literal

WeightName = Literal["decisive", "strong", "fair", "even", "weak"]
EvidenceName = Literal["for", "slightly-for", "slightly-against", "against", "excludes"]

PROBLEM_LOG_ODDS: Mapping[WeightName, float] = {"decisive": 4.5, "strong": 2.3, "fair": 1.0, "even": 0.0, "weak": -0.8}
"""Of a problem that holds, against everything that no rule names, before evidence: 0.99, 0.91, 0.73, 0.50 and 0.31 of such cases."""
EVIDENCE_LOG_ODDS: Mapping[EvidenceName, float] = {
    "for": 1.0,
    "slightly-for": 0.4,
    "slightly-against": -0.7,
    "against": -2.0,
    "excludes": -4.0,
}
"""Of something seen: it is seen 2.7 or 1.5 times more often with a cause than without it, or 2, 7 or 55 times less often."""
